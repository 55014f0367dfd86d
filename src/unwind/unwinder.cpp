#include "unwind/unwinder.h"

#include <libunwind.h>

#include <algorithm>

#include "unwind/prologue.h"

// libunwind's search in a table of the form of .eh_frame_hdr, exported for remote unwinders (used by perf, too) but in no
// public header.
extern "C" int UNW_OBJ(dwarf_search_unwind_table)(unw_addr_space_t, unw_word_t, unw_dyn_info_t*, unw_proc_info_t*, int, void*);

namespace luaspy {
namespace {

// What libunwind's callbacks read during one unwind.
struct Source {
  const Modules& modules;
  const Memory* stack = nullptr;  // none outside of unwind(): tables are searched then, too
  Registers registers;
};

Source& source(void* argument) { return *static_cast<Source*>(argument); }

// LSB 5.0, 10.6.2: .eh_frame_hdr. Only the encoding that every linker writes is taken: a sorted table of pairs of sdata4
// relative to the header.
bool read_table(const Module& module, unw_dyn_info_t& table) {
  struct Header {
    std::uint8_t version, frame_encoding, count_encoding, table_encoding;
    std::int32_t frame;
    std::uint32_t count;
  } header;
  if (module.eh_frame_hdr() == 0 || !module.read(module.eh_frame_hdr(), std::as_writable_bytes(std::span(&header, 1)))) return false;
  if (header.version != 1 || header.count_encoding != 0x03 || header.table_encoding != 0x3b) return false;
  if (header.frame_encoding != 0x1b && header.frame_encoding != 0x3b) return false;
  if (std::uint64_t{header.count} * 8 + sizeof header > module.eh_frame_hdr_size()) return false;
  table = {};
  table.format = UNW_INFO_FORMAT_REMOTE_TABLE;
  table.start_ip = module.lowest();
  table.end_ip = module.end();
  table.u.rti.segbase = module.eh_frame_hdr();
  table.u.rti.table_data = module.eh_frame_hdr() + sizeof header;
  table.u.rti.table_len = header.count * 8 / sizeof(unw_word_t);
  return true;
}

int find_proc_info(unw_addr_space_t space, unw_word_t ip, unw_proc_info_t* info, int need_info, void* argument) {
  const Module* const module = source(argument).modules.find(ip);
  unw_dyn_info_t table;
  if (module == nullptr || !read_table(*module, table)) return -UNW_ENOINFO;
  const int status = UNW_OBJ(dwarf_search_unwind_table)(space, ip, &table, info, need_info, argument);
  if (status != 0) return status;
  return ip >= info->start_ip && ip < info->end_ip ? 0 : -UNW_ENOINFO;
}

void put_unwind_info(unw_addr_space_t, unw_proc_info_t*, void*) {}
int no_dynamic_info(unw_addr_space_t, unw_word_t*, void*) { return -UNW_ENOINFO; }

int access_memory(unw_addr_space_t, unw_word_t address, unw_word_t* value, int write, void* argument) {
  const Source& from = source(argument);
  const auto bytes = std::as_writable_bytes(std::span(value, 1));
  if (write != 0) return -UNW_EREADONLYREG;
  if (from.stack != nullptr && from.stack->read(address, bytes)) return 0;
  const Module* const module = from.modules.find(address);
  return module != nullptr && module->read(address, bytes) ? 0 : -UNW_EINVAL;
}

int access_register(unw_addr_space_t, unw_regnum_t number, unw_word_t* value, int write, void* argument) {
  const Registers& registers = source(argument).registers;
  if (write != 0 || number < 0 || number >= static_cast<int>(register_count) || !registers.knows(static_cast<unsigned>(number))) return -UNW_EBADREG;
  *value = registers[static_cast<unsigned>(number)];
  return 0;
}

int no_float_register(unw_addr_space_t, unw_regnum_t, unw_fpreg_t*, int, void*) { return -UNW_EBADREG; }
int no_resume(unw_addr_space_t, unw_cursor_t*, void*) { return -UNW_EINVAL; }
int no_name(unw_addr_space_t, unw_word_t, char*, std::size_t, unw_word_t*, void*) { return -UNW_ENOINFO; }

Registers read_cursor(unw_cursor_t& cursor) {
  Registers registers;
  unw_word_t value = 0;
  for (const unsigned number : callee_saved_registers) {
    if (unw_get_reg(&cursor, static_cast<int>(number), &value) == 0) registers.set(number, value);
  }
  if (unw_get_reg(&cursor, UNW_REG_SP, &value) == 0) registers.set(rsp, value);
  if (unw_get_reg(&cursor, UNW_REG_IP, &value) == 0) registers.set(rip, value);
  return registers;
}

}  // namespace

struct Unwinder::Space {
  explicit Space(const Modules& modules) : source{modules, nullptr, {}} {
    accessors.find_proc_info = find_proc_info;
    accessors.put_unwind_info = put_unwind_info;
    accessors.get_dyn_info_list_addr = no_dynamic_info;
    accessors.access_mem = access_memory;
    accessors.access_reg = access_register;
    accessors.access_fpreg = no_float_register;
    accessors.resume = no_resume;
    accessors.get_proc_name = no_name;
    space = unw_create_addr_space(&accessors, 0);
    unw_set_caching_policy(space, UNW_CACHE_GLOBAL);
    unw_set_cache_size(space, 4096, 0);
  }
  ~Space() { unw_destroy_addr_space(space); }

  unw_accessors_t accessors{};
  unw_addr_space_t space = nullptr;
  Source source;
};

Unwinder::Unwinder(const Modules& modules) : modules_(modules), space_(std::make_unique<Space>(modules)) {}
Unwinder::~Unwinder() = default;

void Unwinder::forget() {
  unw_flush_cache(space_->space, 0, 0);
  functions_.clear();
}

Unwinder::Range Unwinder::function(Address address) const {
  const auto known = functions_.find(address);
  if (known != functions_.end()) return known->second;
  Range range;
  unw_proc_info_t info{};
  if (find_proc_info(space_->space, address, &info, 0, &space_->source) == 0) {
    range = {info.start_ip, info.end_ip};
  } else if (const Module* const module = modules_.find(address)) {
    range = function_without_tables(*module, address);
  }
  constexpr std::size_t limit = 1 << 16;  // entries; a target that makes up addresses must not fill memory
  if (functions_.size() >= limit) functions_.clear();
  return functions_[address] = range;
}

Unwinder::Range Unwinder::function_without_tables(const Module& module, Address address) const {
  const std::vector<Address>& targets = module.call_targets();
  const auto next = std::ranges::upper_bound(targets, address);
  Range range;
  if (next != targets.begin()) range = {*std::prev(next), next != targets.end() ? *next : address + 1};
  const auto next_entry = entries_.upper_bound(address);
  if (next_entry != entries_.begin() && *std::prev(next_entry) >= std::max(range.start, module.lowest())) range.start = *std::prev(next_entry);
  if (next_entry != entries_.end() && *next_entry < range.end) range.end = *next_entry;
  if (const std::optional<Symbol> symbol = module.symbol(address); symbol && symbol->start >= range.start) range.start = symbol->start;
  return range;
}

std::vector<Unwinder::Range> Unwinder::functions(const Module& module) const {
  std::vector<Address> starts;
  unw_dyn_info_t table;
  if (read_table(module, table)) {
    const std::size_t count = table.u.rti.table_len;
    for (std::size_t i = 0; i < count; ++i) {
      std::int32_t start = 0;
      if (module.read(table.u.rti.table_data + 8 * i, std::as_writable_bytes(std::span(&start, 1))))
        starts.push_back(module.eh_frame_hdr() + static_cast<Address>(std::int64_t{start}));
    }
  }
  // The tables of a program say nothing of an object in it that was compiled without them.
  for (const Address target : module.call_targets()) {
    unw_proc_info_t info{};
    if (find_proc_info(space_->space, target, &info, 0, &space_->source) != 0) starts.push_back(target);
  }
  std::ranges::sort(starts);
  starts.erase(std::unique(starts.begin(), starts.end()), starts.end());
  std::vector<Range> ranges;
  for (std::size_t i = 0; i < starts.size(); ++i) ranges.push_back({starts[i], i + 1 < starts.size() ? starts[i + 1] : module.end()});
  return ranges;
}

bool Unwinder::note_entry(Address entry) {
  constexpr std::size_t limit = 1 << 16;
  if (entries_.size() >= limit || !entries_.insert(entry).second) return false;
  functions_.clear();
  return true;
}

Unwinder::End Unwinder::unwind(const Registers& registers, const Memory& stack, const FrameRule* rule, std::vector<NativeFrame>& frames, std::size_t limit) {
  Source& from = space_->source;
  from.stack = &stack;
  from.registers = registers;
  unw_cursor_t cursor;
  bool have_cursor = false;
  NativeFrame frame{registers.pc(), registers.pc(), registers.sp(), 0, 0, Step::registers, registers};
  for (std::size_t count = 0; count < limit; ++count) {
    frame.function = function(frame.lookup).start;
    Registers caller;
    Step step = Step::cfi;
    if (rule != nullptr && rule->step(frame, stack, caller) && caller.sp() > frame.sp) {
      frame.cfa = caller.sp();
      frames.push_back(frame);
      frame = {caller.pc(), caller.pc() - 1, caller.sp(), 0, 0, Step::rule, caller};
      have_cursor = false;
      continue;
    }
    int status = -UNW_ENOINFO;
    unw_proc_info_t info;
    // Without call frame information libunwind would try frame pointers unchecked; step_by_scan checks what it finds.
    if (find_proc_info(space_->space, frame.lookup, &info, 0, &from) == 0) {
      if (!have_cursor) {
        from.registers = frame.registers;
        from.registers.set(rip, frame.lookup);  // libunwind takes the first frame's pc for one that was not calling
        have_cursor = unw_init_remote(&cursor, space_->space, &from) == 0;
      }
      if (have_cursor) status = unw_step(&cursor);
      if (status > 0) caller = read_cursor(cursor);
    }
    const bool root = status == 0 || (status > 0 && caller.pc() == 0);
    if (status < 0 || (status > 0 && caller.sp() <= frame.sp && count > 0)) {
      have_cursor = false;
      if (is_entry(frame)) {
        frames.push_back(frame);
        return End::root;
      }
      if (step_by_code(frame, stack, caller)) {
        step = Step::code;
      } else if (step_by_scan(frame, stack, caller)) {
        step = Step::scan;
      } else {
        frames.push_back(frame);
        return End::lost;
      }
    }
    frame.cfa = root ? 0 : caller.sp();
    frames.push_back(frame);
    if (root) return End::root;
    // A signal handler's caller was interrupted, not calling; one byte back is still the same function except at its first
    // instruction.
    frame = {caller.pc(), caller.pc() - 1, caller.sp(), 0, 0, step, caller};
  }
  return End::limit;
}

// Where there is no call frame information to say that it has no caller (static programs without .eh_frame_hdr): the code at which a
// program starts calls main's caller, and nothing calls it.
bool Unwinder::is_entry(const NativeFrame& frame) const {
  constexpr Address longest = 64;  // crt1.o's _start is 38 to 48 bytes
  const Module* const module = modules_.find(frame.lookup);
  return module != nullptr && module->entry() != 0 && frame.lookup >= module->entry() && frame.lookup < module->entry() + longest;
}

bool Unwinder::step_by_code(const NativeFrame& from, const Memory& stack, Registers& caller) const {
  constexpr std::size_t largest = 1 << 17;
  const Module* const module = modules_.find(from.lookup);
  if (module == nullptr || from.function == 0 || from.pc < from.function || from.pc - from.function > largest) return false;
  std::vector<std::byte> code(from.pc - from.function);
  if (!module->read(from.function, code)) return false;
  const std::optional<FrameShape> shape = shape_of_frame(code, code.size());
  if (!shape) return false;
  Address slot = from.sp + static_cast<Address>(shape->depth);
  if (shape->frame_pointer && from.registers.knows(rbp)) slot = from.registers[rbp] + static_cast<Address>(*shape->frame_pointer);
  const std::optional<Address> address = stack.get<Address>(slot);
  if (slot < from.sp || !address || match_return(*address, from) == Match::none) return false;
  caller = {};
  for (const unsigned number : callee_saved_registers) {
    if (from.registers.knows(number)) caller.set(number, from.registers[number]);
  }
  for (const FrameShape::Saved& saved : shape->saved) {
    if (const std::optional<Address> value = stack.get<Address>(slot - static_cast<Address>(saved.below))) caller.set(saved.number, *value);
  }
  caller.set(rip, *address);
  caller.set(rsp, slot + 8);
  return true;
}

// Frame pointers first, where the frame that they lead to is one: [rbp + 8] is the return address of the call of `from`'s
// function. Then the nearest word above sp that is surely such an address; failing that, the nearest that may be.
bool Unwinder::step_by_scan(const NativeFrame& from, const Memory& stack, Registers& caller) const {
  constexpr std::size_t words_to_scan = 1024;  // 8 KiB: larger frames have been seen only where there is call frame information
  const auto take = [&](Address slot, Address return_address) {
    caller = {};
    caller.set(rip, return_address);
    caller.set(rsp, slot + 8);
    // Code with frame pointers pushes rbp right below the return address.
    const std::optional<Address> saved = stack.get<Address>(slot - 8);
    if (slot - 8 >= from.sp && saved && *saved > slot && *saved < slot + (1 << 20) && *saved % 8 == 0) caller.set(rbp, *saved);
    return true;
  };
  const Address frame_pointer = from.registers[rbp];
  if (from.registers.knows(rbp) && frame_pointer >= from.sp && frame_pointer % 8 == 0) {
    const std::optional<Address> address = stack.get<Address>(frame_pointer + 8);
    if (address && match_return(*address, from) == Match::strong) return take(frame_pointer + 8, *address);
  }
  Address weak_slot = 0, weak_address = 0;
  for (std::size_t i = 0; i < words_to_scan; ++i) {
    const Address slot = ((from.sp + 7) & ~Address{7}) + 8 * i;
    const std::optional<Address> address = stack.get<Address>(slot);
    if (!address) break;
    const Match match = match_return(*address, from);
    if (match == Match::strong) return take(slot, *address);
    if (match == Match::weak && weak_slot == 0) weak_slot = slot, weak_address = *address;
  }
  return weak_slot != 0 && take(weak_slot, weak_address);
}

// Intel SDM, CALL: E8 rel32 is a direct call; FF /2 an indirect one of 2 to 7 bytes (with SIB, displacement, REX).
// A direct call is right if it calls the very function that `callee` is in. Functions that Lua calls by pointer are called
// so by nobody else; a function that is called directly somewhere is rarely called by pointer. A tail call makes any of that
// wrong now and then: a return address in the same module is then better than none.
Unwinder::Match Unwinder::match_return(Address address, const NativeFrame& callee) const {
  if (!modules_.executes(address)) return Match::none;
  const Module* const module = modules_.find(address);
  const Module* const callees = modules_.find(callee.pc);
  std::array<std::uint8_t, 7> before;
  const auto bytes = std::as_writable_bytes(std::span(before));
  if (!(module != nullptr ? module->read(address - before.size(), bytes) : modules_.memory().read(address - before.size(), bytes))) return Match::none;
  if (before[2] == 0xe8) {
    std::int32_t displacement;
    std::memcpy(&displacement, &before[3], sizeof displacement);
    const Address target = address + static_cast<Address>(std::int64_t{displacement});
    // Code that a program makes calls its functions as it calls none of its own: nothing else says where they start.
    if (module == nullptr) return target >= callee.function && target <= callee.lookup && callee.lookup - target < (1 << 14) ? Match::strong : Match::none;
    if (module != callees) return reaches_through_plt(*module, target, callee) ? Match::strong : Match::none;
    if (callee.function == 0) return target <= callee.lookup && callee.lookup - target < (1 << 16) ? Match::weak : Match::none;
    return target == callee.function ? Match::strong : Match::weak;
  }
  const bool called_directly = callees != nullptr && std::ranges::binary_search(callees->call_targets(), callee.function);
  for (const std::size_t length : {2u, 3u, 4u, 6u, 7u}) {
    const std::size_t at = before.size() - length;
    if (before[at] != 0xff || (before[at + 1] >> 3 & 7) != 2) continue;
    if (entries_.contains(callee.function)) return Match::strong;
    if (module == nullptr) return Match::weak;
    return called_directly || callee.function == 0 ? Match::weak : Match::strong;
  }
  return Match::none;
}

// System V x86-64 ABI, 5.2: a PLT entry is jmp *offset(%rip), perhaps after endbr64 and with a bnd prefix; the word that it
// jumps through says where.
bool Unwinder::reaches_through_plt(const Module& caller, Address target, const NativeFrame& callee) const {
  std::array<std::uint8_t, 16> entry;
  if (!caller.read(target, std::as_writable_bytes(std::span(entry)))) return false;
  std::size_t at = 0;
  if (entry[0] == 0xf3 && entry[1] == 0x0f && entry[2] == 0x1e && entry[3] == 0xfa) at = 4;
  if (entry[at] == 0xf2) ++at;
  if (entry[at] != 0xff || entry[at + 1] != 0x25) return false;
  std::int32_t displacement;
  std::memcpy(&displacement, &entry[at + 2], sizeof displacement);
  const std::optional<Address> destination = modules_.memory().get<Address>(target + at + 6 + static_cast<Address>(std::int64_t{displacement}));
  return destination && modules_.find(*destination) == modules_.find(callee.pc);
}

}  // namespace luaspy
