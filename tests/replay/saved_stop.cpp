#include "saved_stop.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <sstream>
#include <stdexcept>

namespace luaspy::replay {
namespace {

constexpr std::array register_names = {"rax", "rdx", "rcx", "rbx", "rsi", "rdi", "rbp", "rsp", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15", "rip"};

unsigned register_number(const std::string& name) {
  const auto found = std::ranges::find(register_names, name);
  if (found == register_names.end()) throw std::runtime_error("no register " + name);
  return static_cast<unsigned>(found - register_names.begin());
}

std::vector<std::byte> from_hex(const std::string& text) {
  std::vector<std::byte> bytes;
  for (std::size_t i = 0; i + 1 < text.size(); i += 2) bytes.push_back(static_cast<std::byte>(std::stoul(text.substr(i, 2), nullptr, 16)));
  return bytes;
}

void write_bytes(std::ostream& out, const char* word, Address address, std::span<const std::byte> bytes) {
  constexpr std::size_t a_line = 32;
  for (std::size_t i = 0; i < bytes.size(); i += a_line) {
    out << word << ' ' << fmt::format("{:x} ", address + i);
    for (const std::byte byte : bytes.subspan(i, std::min(a_line, bytes.size() - i))) out << fmt::format("{:02x}", std::to_integer<unsigned>(byte));
    out << '\n';
  }
}

void load_into(SavedStop& stop, const std::string& path) {
  std::ifstream in(path);
  if (!in) throw std::runtime_error("cannot read " + path);
  for (std::string line; std::getline(in, line);) {
    std::istringstream words(line);
    std::string word;
    words >> word >> std::hex;
    const auto rest = [&] {
      std::string text;
      std::getline(words >> std::ws, text);
      return text;
    };
    if (word == "include") load_into(stop, path.substr(0, path.rfind('/') + 1) + rest());
    else if (word == "from") stop.from = rest();
    else if (word == "lua") stop.version = rest();
    else if (word == "expect") stop.expected.push_back(rest());
    else if (word == "forget-expected") stop.expected.clear();
    else if (word == "register" || word == "saved") {
      std::string name;
      Address value = 0;
      words >> name >> value;
      (word == "register" ? stop.registers : stop.natives.back().registers).set(register_number(name), value);
    } else if (word == "stack" || word == "memory") {
      Address address = 0;
      std::string hex;
      words >> address >> hex;
      const std::vector<std::byte> bytes = from_hex(hex);
      if (word == "stack" && stop.stack.empty()) stop.stack_start = address;
      if (word == "stack") stop.stack.insert(stop.stack.end(), bytes.begin(), bytes.end());
      stop.memory.put(address, bytes);
    } else if (word == "native") {
      NativeFrame frame;
      std::string flags;
      words >> frame.pc >> frame.sp >> frame.cfa >> frame.function >> flags;
      frame.lookup = stop.natives.empty() ? frame.pc : frame.pc - 1;
      stop.flags[frame.function] = flags;
      stop.names[frame.function] = {Frame::Kind::native, rest(), {}, 0, 0};
      stop.natives.push_back(frame);
    }
  }
}

}  // namespace

bool SavedMemory::read(Address address, std::span<std::byte> into) const {
  if (into.empty()) return true;
  auto byte = bytes_.find(address);
  for (std::size_t i = 0; i < into.size(); ++i, ++byte) {
    if (byte == bytes_.end() || byte->first != address + i) return false;
    into[i] = byte->second;
  }
  return true;
}

void SavedMemory::put(Address address, std::span<const std::byte> bytes) {
  for (const std::byte byte : bytes) bytes_[address++] = byte;
}

bool SavedStop::has(const NativeFrame& frame, char flag) const {
  const auto found = flags.find(frame.function);
  return found != flags.end() && found->second.find(flag) != std::string::npos;
}

const Frame& SavedStop::describe(const NativeFrame& frame) const {
  static const Frame unknown = {Frame::Kind::native, "?", {}, 0, 0};
  const auto found = names.find(frame.function);
  return found != names.end() ? found->second : unknown;
}

Frame SavedStop::describe_entry(Address entry) const {
  NativeFrame frame;
  frame.function = entry;
  return describe(frame);
}

SavedStop load_stop(const std::string& path) {
  SavedStop stop;
  load_into(stop, path);
  return stop;
}

void save_stop(const SavedStop& stop, std::ostream& out) {
  out << "luaspy stop 1\nfrom " << stop.from << "\nlua " << stop.version << '\n';
  for (unsigned number = 0; number < register_count; ++number) {
    if (stop.registers.knows(number)) out << fmt::format("register {} {:x}\n", register_names[number], stop.registers[number]);
  }
  write_bytes(out, "stack", stop.stack_start, stop.stack);
  std::vector<std::byte> run;
  Address start = 0;
  const Address stack_end = stop.stack_start + stop.stack.size();
  for (const auto& [address, byte] : stop.memory.bytes()) {
    if (address >= stop.stack_start && address < stack_end) continue;
    if (!run.empty() && address != start + run.size()) write_bytes(out, "memory", start, run), run.clear();
    if (run.empty()) start = address;
    run.push_back(byte);
  }
  write_bytes(out, "memory", start, run);
  for (const NativeFrame& frame : stop.natives) {
    std::string flags = stop.flags.at(frame.function);
    if (flags.empty()) flags = "-";
    out << fmt::format("native {:x} {:x} {:x} {:x} {} {}\n", frame.pc, frame.sp, frame.cfa, frame.function, flags, stop.names.at(frame.function).name);
    for (const unsigned number : callee_saved_registers) {
      if (frame.registers.knows(number)) out << fmt::format("saved {} {:x}\n", register_names[number], frame.registers[number]);
    }
  }
  for (const std::string& line : stop.expected) out << "expect " << line << '\n';
}

namespace {

// What a stop's file does not hold of a page that it holds something of is 0: snapshots read pages.
class Padded : public Memory {
 public:
  explicit Padded(const SavedMemory& memory) : memory_(memory) {}
  bool read(Address address, std::span<std::byte> into) const override {
    std::ranges::fill(into, std::byte{0});
    auto byte = memory_.bytes().lower_bound(address);
    const bool some = byte != memory_.bytes().end() && byte->first < address + into.size();
    for (; byte != memory_.bytes().end() && byte->first < address + into.size(); ++byte) into[byte->first - address] = byte->second;
    return some;
  }

 private:
  const SavedMemory& memory_;
};

// `stopped`: what the stop has read; `objects`: that, and what was read after it.
Outcome finish(const SavedStop& stop, LuaReader& reader, const LuaReader::Found& found, const Memory& stopped, const Memory& objects) {
  const Locator::ThreadStack stack = {stop.stack_start, stop.stack};
  reader.walk(found, stopped, objects, stop.registers, stack);
  reader.refine(stop.natives, stop.registers, stop, objects);
  const Merged merged = merge(stop.natives, reader.segments(), stop, {});
  Outcome outcome;
  reader.judge(merged, outcome.quality);
  outcome.stack = reader.label(merged, stop.natives, stop, stopped);
  return outcome;
}

WalkLimits limits() {
  WalkLimits limits;
  limits.count_left_out = true;
  return limits;
}

}  // namespace

Outcome replay(const SavedStop& stop) {
  LuaReader reader(stop.memory, stop.memory, limits());
  reader.try_rows(rows_for(stop.version));
  LuaReader::Found found;
  reader.read(stop.memory, stop.registers, {stop.stack_start, stop.stack}, {}, true, found);
  return finish(stop, reader, found, stop.memory, stop.memory);
}

Outcome replay_through_snapshot(const SavedStop& stop) {
  LuaReader reader(stop.memory, stop.memory, limits());
  reader.try_rows(rows_for(stop.version));
  const Locator::ThreadStack stack = {stop.stack_start, stop.stack};
  const Padded padded(stop.memory);
  Snapshot snapshot(padded);
  snapshot.open(stop.stack_start, stop.stack.size(), {});
  LuaReader::Found found;
  reader.read(snapshot, stop.registers, stack, {}, true, found);
  snapshot.close();
  return finish(stop, reader, found, snapshot, SnapshotThenLater(snapshot, stop.memory));
}

}  // namespace luaspy::replay
