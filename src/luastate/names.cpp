#include "luastate/names.h"

#include <algorithm>
#include <array>

#include "luastate/bytecode.h"
#include "text.h"

namespace luaspy {
namespace {

constexpr std::size_t most_prototypes = 1 << 14;  // a target that makes functions without end must not fill memory
constexpr std::size_t shown_source = 60;          // LUA_IDSIZE (luaconf.h)

}  // namespace

std::string chunk_name(const std::string& source) {
  if (source.empty()) return "?";
  if (source[0] == '@' || source[0] == '=') return printable(std::string_view(source).substr(1));
  const std::string_view first_line = std::string_view(source).substr(0, source.find('\n'));
  constexpr std::size_t room = shown_source - sizeof("[string \"...\"]");
  const bool whole = first_line.size() == source.size() && first_line.size() <= room;
  return "[string \"" + printable(first_line.substr(0, room)) + (whole ? "\"]" : "...\"]");
}

Names::Entry* Names::entry(const Layout& layout, const LuaCall& call) {
  if (prototypes_.size() >= most_prototypes && !prototypes_.contains(call.proto)) prototypes_.clear();
  Entry& entry = prototypes_[call.proto];
  if (entry.mark == call.mark && entry.prototype) return &entry;
  entry = {call.mark, read_prototype(memory_, layout, call.proto), {}};
  // The thread runs: what was read is what the stop saw only if the Proto is still the same after the reading.
  std::array<std::byte, 256> bytes;
  const auto now = std::span(bytes).first(layout.p_size);
  if (!memory_.read(call.proto, now) || mark_of(layout, now) != call.mark) entry.prototype.reset();
  return entry.prototype ? &entry : nullptr;
}

const Prototype* Names::prototype(const Layout& layout, const LuaCall& call) {
  Entry* const found = entry(layout, call);
  return found != nullptr ? &*found->prototype : nullptr;
}

std::string Names::called_as(const Layout& layout, const LuaCall& call, const LuaCall* caller) {
  if (caller == nullptr || call.tail) return {};
  if (caller->finalizer) return "__gc";
  if (caller->hooked) return "hook";
  if (!caller->is_lua) return {};
  Entry* const from = entry(layout, *caller);
  if (from == nullptr) return {};
  const int pc = caller->index_of(caller->saved_pc);
  if (const auto known = from->callees.find(pc); known != from->callees.end()) return known->second;
  const std::optional<CallName> name = callee_name(*from->prototype, pc);
  return from->callees[pc] = name ? printable(name->name) : std::string();
}

Frame Names::frame(const Layout& layout, Address G, const LuaCall& call, const LuaCall* caller, Address pc) {
  Frame frame;
  if (!call.is_lua) {
    frame.kind = Frame::Kind::c;
    if (const std::string* name = loaded_name(layout, G, call.entry)) frame.name = *name;
    else frame.name = called_as(layout, call, caller);
    return frame;
  }
  frame.kind = Frame::Kind::lua;
  frame.name = called_as(layout, call, caller);
  const Prototype* const proto = prototype(layout, call);
  if (proto == nullptr) {
    frame.file = "?";
    if (frame.name.empty()) frame.name = "function";
    return frame;
  }
  frame.file = chunk_name(proto->source);
  frame.line_defined = proto->line_defined;
  frame.line = proto->line(call.index_of(pc));
  if (proto->is_main()) frame.name = "main chunk";
  else if (frame.name.empty() || frame.name == "?") frame.name = "function";
  return frame;
}

const std::string* Names::loaded_name(const Layout& layout, Address G, Address entry) {
  if (const auto known = loaded_.find(entry); known != loaded_.end()) return &known->second;
  // A module may have been loaded since. Each miss costs a reading of all modules, so they become rare: after 1, 2, 4 … misses.
  ++misses_;
  if (reads_left_ == 0 || (misses_ & (misses_ - 1)) != 0) return nullptr;
  --reads_left_;
  read_loaded(layout, G);
  const auto now = loaded_.find(entry);
  return now != loaded_.end() ? &now->second : nullptr;
}

void Names::read_loaded(const Layout& layout, Address G) {
  const std::optional<TableForm> form = find_table_form(memory_, layout, G);
  if (!form) return;
  const auto keep = [&](Address entry, std::string name) {
    if (name.starts_with("_G.")) name.erase(0, 3);
    std::string& known = loaded_[entry];
    // Modules share functions (socket and socket.core): the shortest name is the one people call them by.
    if (known.empty() || name.size() < known.size() || (name.size() == known.size() && name < known)) known = std::move(name);
  };
  const auto entry_of = [&](const TableEntry& value) -> Address {
    if (value.tag == layout.tag_light_c) return value.value;
    if (value.tag != layout.tag_cclosure) return 0;
    if (layout.closure_isC != no_field && memory_.get<std::uint8_t>(value.value + layout.closure_isC).value_or(0) == 0) return 0;
    return memory_.get<Address>(value.value + layout.cclosure_f).value_or(0);
  };
  constexpr std::size_t most_functions = 1 << 16;
  visit_table(memory_, layout, *form, loaded_table(memory_, layout, *form, G), [&](const TableEntry& module) {
    const std::string prefix = printable(module.key, 60);
    if (const Address entry = entry_of(module)) keep(entry, prefix);
    if (!is_table_tag(layout, module.tag)) return true;
    visit_table(memory_, layout, *form, module.value, [&](const TableEntry& function) {
      if (const Address entry = entry_of(function)) keep(entry, prefix + '.' + printable(function.key, 60));
      return loaded_.size() < most_functions;
    });
    return true;
  });
}

}  // namespace luaspy
