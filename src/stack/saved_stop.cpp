#include "stack/saved_stop.h"

#include <fmt/format.h>

#include <algorithm>
#include <ostream>

namespace luaspy {
namespace {

void write_bytes(std::ostream& out, const char* word, Address address, std::span<const std::byte> bytes) {
  constexpr std::size_t a_line = 32;
  for (std::size_t i = 0; i < bytes.size(); i += a_line) {
    out << word << ' ' << fmt::format("{:x} ", address + i);
    for (const std::byte byte : bytes.subspan(i, std::min(a_line, bytes.size() - i)))
      out << fmt::format("{:02x}", std::to_integer<unsigned>(byte));
    out << '\n';
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

NativeFunctions::LuaCode SavedStop::lua_code(const NativeFrame& frame) const {
  if (has(frame, 'l')) return LuaCode::yes;
  return in_core_module(frame) && !has(frame, 'h') ? LuaCode::maybe : LuaCode::no;
}

const Frame& SavedStop::describe(const NativeFrame& frame) const {
  static const Frame unknown = {Frame::Kind::native, "?", {}, 0, 0};
  const auto found = names.find(frame.function);
  return found != names.end() ? found->second : unknown;
}

void save_stop(const SavedStop& stop, std::ostream& out) {
  const std::span<const std::string_view> names = stop.machine->register_names;
  out << "luaspy stop 1\nfrom " << stop.from << "\nprocessor " << stop.machine->name << "\nlua " << stop.version
      << '\n';
  for (unsigned number = 0; number < names.size(); ++number) {
    if (stop.registers.knows(number)) out << fmt::format("register {} {:x}\n", names[number], stop.registers[number]);
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
    out << fmt::format("native {:x} {:x} {:x} {:x} {} {}\n", frame.pc, frame.sp, frame.cfa, frame.function, flags,
                       stop.names.at(frame.function).name);
    for (const unsigned number : stop.machine->callee_saved) {
      if (frame.registers.knows(number)) out << fmt::format("saved {} {:x}\n", names[number], frame.registers[number]);
    }
  }
  for (const std::string& line : stop.expected) out << "expect " << line << '\n';
}

}  // namespace luaspy
