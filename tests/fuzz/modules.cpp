// Modules: ELF files (elf), their call frame information (call_frames), /proc/PID/maps (maps),
// which Lua is in an image (detect), and machine code in which prologues, virtual machines and
// collectors are searched for (machine_code).

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>

#include "arch/x86_64/instruction.h"
#include "arch/x86_64/machine.h"
#include "arch/x86_64/prologue.h"
#include "fuzz.h"
#include "luastate/detect.h"
#include "luastate/locate.h"
#include "luastate/luajit/vm_code.h"
#include "luastate/luas.h"
#include "luastate/puc/collector_code.h"
#include "luastate/puc/live_pc.h"
#include "luastate/puc/puc_lua.h"
#include "unwind/call_frame.h"
#include "unwind/unwinder.h"

namespace luaspy::fuzz {
namespace {

constexpr Address base = 0x7000'0000'0000;

// The input, at `base`; the rest of its last page is zero.
class InputMemory : public Memory {
 public:
  explicit InputMemory(Bytes bytes) : bytes_(bytes.begin(), bytes.end()) {
    bytes_.resize((bytes.size() + 4095) & ~std::size_t{4095});
  }
  bool read(Address address, std::span<std::byte> into) const override {
    ++reads;
    if (address < base || address - base > bytes_.size() || into.size() > bytes_.size() - (address - base))
      return false;
    if (!into.empty()) std::memcpy(into.data(), bytes_.data() + (address - base), into.size());
    return true;
  }
  std::size_t size() const { return bytes_.size(); }
  mutable std::int64_t reads = 0;

 private:
  std::vector<std::byte> bytes_;
};

NativeFrame frame_at(Address pc, Address sp) {
  NativeFrame frame;
  frame.pc = frame.lookup = pc;
  frame.sp = sp;
  for (unsigned number = 0; number < own_machine().register_names.size(); ++number)
    frame.registers.set(number, sp + 8 * number);
  frame.registers.set_sp(sp);
  frame.registers.set_pc(pc);
  return frame;
}

// A file with the input as its contents, mapped in one piece; or, like the vdso, read from memory.
void look_at_module(Bytes bytes, bool in_memory) {
  const InputMemory memory(bytes);
  if (memory.size() == 0) return;
  const auto open = [&](const Mapping&) {
    const int file = ::memfd_create("input", MFD_CLOEXEC);
    return ::write(file, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size()) ? file : -1;
  };
  Mapping mapping{
      .start = base, .end = base + memory.size(), .readable = true, .executable = true, .inode = in_memory ? 0u : 7u};
  mapping.path = in_memory ? "[vdso]" : "/input.so";
  Modules modules(memory, open);
  modules.update(AddressSpace({mapping}));
  const Module* const module = modules.find(base);
  if (module == nullptr) return;
  Unwinder unwinder(modules, own_machine());
  std::array<std::byte, 64> some;
  std::vector<Address> places = {base, base + memory.size() / 2, module->entry(), module->lowest(), module->end() - 1};
  for (const Unwinder::Range& range : unwinder.functions(*module)) {
    if (places.size() < 64) places.push_back(range.start), places.push_back(range.start + 5);
  }
  for (const Address place : places) {
    (void)module->read(place, some);
    (void)module->executes(place);
    if (const std::optional<Symbol> symbol = module->symbol(place))
      expect(symbol->start <= place, "a symbol starts where it is or before");
    const Unwinder::Range range = unwinder.function(place);
    expect(range.start <= place || range.start == 0, "a function starts where it is or before");
    std::vector<NativeFrame> frames;
    const std::int64_t before = memory.reads;
    (void)unwinder.unwind(frame_at(place, base + 64).registers, memory, nullptr, frames, 64);
    expect(frames.size() <= 64, "frames are counted");
    expect(memory.reads - before < 64 * 20'000, "a step reads no more than it may");
  }
}

}  // namespace

void elf(Bytes bytes) {
  Input input(bytes);
  const auto flags = input.take<std::uint8_t>();
  look_at_module(input.rest(), (flags & 1) != 0);
}

// An input: a pc, then a segment at address 0 that begins with .eh_frame_hdr, or is .eh_frame.
void call_frames(Bytes bytes) {
  Input input(bytes);
  const Address pc = input.take<std::uint16_t>();
  const Bytes file = input.rest();
  ElfHeaders headers;
  headers.segments.push_back(
      {.type = 1, .offset = 0, .file_size = file.size(), .address = 0, .memory_size = file.size()});
  const LoadedBytes loaded(file, headers);
  FrameIndex index = FrameIndex::of_table(file, 0);
  if (index.size() == 0) index = FrameIndex::of_entries(loaded, 0, file.size());
  const std::optional<FrameIndex::Function> function = index.find(pc);
  const std::optional<CallFrameEntry> entry = function ? read_entry(loaded, function->entry) : std::nullopt;
  if (!entry || pc < entry->start || pc >= entry->end) return;
  expect(entry->start <= pc && pc < entry->end, "the entry has the pc");
  const InputMemory stack(file);
  for (const Address at : {pc, entry->start, entry->end - 1}) {
    const FrameRow row = row_at(own_machine(), *entry, at);
    expect(row.lowest <= 0 && row.lowest >= -128, "lowest is near");
    expect(row.number < own_machine().register_names.size(), "registers are those that there are");
    Registers caller;
    (void)row.step(own_machine(), frame_at(at, base), stack, caller);
  }
}

void maps(Bytes bytes) {
  Input input(bytes);
  const AddressSpace space = AddressSpace::parse(input.text(1 << 16));
  const InputMemory memory({});
  Modules modules(memory, [](const Mapping&) { return -1; });
  modules.update(space);
  Detector detector;
  (void)detector.update(space, memory);
  Locator locator(own_machine());
  locator.set_space(space);
  (void)locator.find_main_thread(memory, space);
  Address last = 0;
  for (const Mapping& mapping : space.mappings()) {
    expect(mapping.start < mapping.end && mapping.start >= last, "mappings ascend, and are disjoint");
    last = mapping.end;
    (void)space.find(mapping.start);
    (void)space.find(mapping.end);
    (void)modules.find(mapping.start);
    (void)modules.executes(mapping.end - 1);
  }
  modules.update(space);
}

// An input: an image that may contain an ident.
void detect(Bytes bytes) {
  Input input(bytes);
  const std::size_t executable = input.take<std::uint8_t>();
  const InputMemory memory(input.rest());
  if (memory.size() == 0) return;
  const Address middle = base + std::min<std::size_t>(executable * 4096, memory.size());
  std::vector<Mapping> mappings;
  if (middle > base)
    mappings.push_back(
        {.start = base, .end = middle, .readable = true, .executable = true, .inode = 7, .path = "/input\x1b[31m.so"});
  if (middle < base + memory.size())
    mappings.push_back({.start = middle,
                        .end = base + memory.size(),
                        .offset = middle - base,
                        .readable = true,
                        .inode = 7,
                        .path = "/input\x1b[31m.so"});
  Detector detector;
  KnownImages known;
  const AddressSpace space(mappings);
  (void)detector.update(space, memory, &known, [](const Mapping& mapping) {
    return FileVersion{mapping.device, mapping.inode, 0, 0};
  });
  (void)detector.layouts();
  for (const LuaImage& image : detector.images()) {
    expect_printable(image.path, 200, "a path");
    expect_printable(image.version, 200, "a version");
    expect_printable(image.ident, 1000, "an ident");
    expect(layouts_for(image.version).size() < 100, "rows are counted");
  }
  for (const Lua* const row : layouts_for(std::string(input.text(40)))) expect(!row->name().empty(), "rows have names");
  Locator locator(own_machine());
  locator.try_layouts(layouts_for("5.4.4"));
  (void)locator.find_main_thread(
      memory, AddressSpace({{.start = base, .end = base + memory.size(), .readable = true, .writable = true}}));
}

void machine_code(Bytes bytes) {
  Input input(bytes);
  const auto row = layouts_for(std::array{"5.1.5", "5.2.4", "5.3.6", "5.4.4", "5.5.1"}[input.take<std::uint8_t>() % 5]);
  const std::size_t split = input.take<std::uint8_t>() * 4u;
  const Bytes code = input.bytes(1 << 14);
  for (std::size_t at = 0; at <= code.size(); ++at) {
    if (const auto instruction = x86_64::read_instruction(code, at))
      expect(instruction->length > 0 && instruction->length <= code.size() - at, "instructions are within the code");
    if (at % (1 + code.size() / 16) != 0) continue;
    (void)x86_64::shape_of_frame(code, at);
    (void)x86_64::machine().code.depth_of_straight_code(code, at);
  }
  if (const std::optional<VmCode> vm = find_vm_code(base, code)) {
    expect(vm->start >= base && vm->end <= base + code.size() && vm->start <= vm->end, "the VM is within the code");
    for (std::size_t at = 0; at < code.size(); at += 7) (void)vm->depth_at(base + at);
  }
  (void)x86_64::machine().code.additions(code, 4);
  const InputMemory memory(code);
  expect(x86_64::machine().code.loads(code, base, base, memory).size() <= 32, "a function that reads is short");
  const auto part = [&](std::size_t from, std::size_t to) {
    return std::vector<std::byte>(code.begin() + static_cast<std::ptrdiff_t>(from),
                                  code.begin() + static_cast<std::ptrdiff_t>(to));
  };
  const std::size_t first = std::min(split, code.size());
  const MachineFunction execute{base, part(0, first)};
  int asked = 0;
  const CollectorCode found = find_collector_code(*puc_layout(*row.front()), execute, [&](Address address) {
    expect(++asked <= 100'000, "functions are asked for a bounded number of times");
    const std::size_t from = first + (address - base) / 64 % 16 * 64;
    return from < code.size() ? MachineFunction{base + from, part(from, std::min(code.size(), from + 64))}
                              : MachineFunction{};
  });
  (void)joins_collector(*puc_layout(*row.front()), found, execute);
}

}  // namespace luaspy::fuzz
