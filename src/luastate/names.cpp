#include "luastate/names.h"

#include <algorithm>
#include <array>
#include <bit>
#include <map>
#include <utility>

#include "base/text.h"
#include "luastate/bytecode.h"
#include "luastate/lua.h"

namespace luaspy {
namespace {

// A target that makes functions without end must not fill memory.
constexpr std::size_t most_prototypes = 1 << 14;
constexpr std::size_t shown_source = 60;  // LUA_IDSIZE (luaconf.h)

}  // namespace

std::string chunk_name(const std::string& source) {
  if (source.empty()) return "?";
  if (source[0] == '@' || source[0] == '=') return printable(std::string_view(source).substr(1));
  const std::string_view first_line = std::string_view(source).substr(0, source.find('\n'));
  constexpr std::size_t room = shown_source - sizeof("[string \"...\"]");
  const bool whole = first_line.size() == source.size() && first_line.size() <= room;
  return "[string \"" + printable(first_line.substr(0, room)) + (whole ? "\"]" : "...\"]");
}

Names::Entry* Names::entry(const Lua& lua, const LuaCall& call) {
  if (prototypes_.size() >= most_prototypes && !prototypes_.contains(call.proto)) prototypes_.clear(), twins_.clear();
  Entry& entry = prototypes_[call.proto];
  if (entry.mark == call.mark && entry.prototype) return &entry;
  entry = {call.mark, lua.prototype(memory_, call.proto), {}, 0, {}};
  if (entry.prototype) entry.file = chunk_name(entry.prototype->source);
  // The thread runs: what was read is what the stop saw only if the Proto is unchanged after
  // reading.
  if (lua.mark(memory_, call.proto) != call.mark) entry.prototype.reset();
  return entry.prototype ? &entry : nullptr;
}

const Prototype* Names::prototype(const Lua& lua, const LuaCall& call) {
  Entry* const found = entry(lua, call);
  return found != nullptr ? &*found->prototype : nullptr;
}

std::string Names::called_as(const Context& context, const LuaCall& call, const LuaCall* caller) {
  if (caller == nullptr || call.tail) return {};
  if (caller->finalizer) return "__gc";
  if (caller->hooked) return "hook";
  if (!caller->is_lua) return {};
  if (!context.lua.is_named_by_caller(call)) return {};
  Entry* const from = entry(context.lua, *caller);
  if (from == nullptr) return {};
  const int pc = caller->index_of(caller->saved_pc);
  const auto [known, is_new] = from->callees.try_emplace(pc);
  Called& called = known->second;
  if (is_new) {
    if (const std::optional<CallName> name = callee_name(*from->prototype, pc)) called.name = printable(name->name);
    called.path = callee_path(*from->prototype, pc);
  }
  return is_true(called, context, call, *caller) ? called.name : std::string();
}

// A register is checked every time. For values that take more reads, one look that finds the
// function itself is enough: then it is called by this name at least sometimes. If a later look
// finds another function, the value may have been changed since the call.
bool Names::is_true(Called& called, const Context& context, const LuaCall& call, const LuaCall& caller) {
  constexpr int most_looks = 16;
  constexpr std::size_t most_verdicts = 1 << 10;
  if (called.name.empty() || called.path.root == ValuePath::Root::unknown) return true;
  const auto look = [&] {
    return context.lua.check_callee(memory_, context.stopped, context.G, called.path, caller, call);
  };
  if (called.path.root == ValuePath::Root::slot && called.path.keys.empty()) return look() != Callee::other;
  if (called.verdicts.size() >= most_verdicts) called.verdicts.clear();
  Called::Verdict& verdict = called.verdicts[call.is_lua ? call.proto : call.key];
  if (verdict.settled || verdict.looks == most_looks) return verdict.is_true;
  ++verdict.looks;
  const Callee callee = look();
  verdict.settled = callee == Callee::same;
  if (callee != Callee::unknown) verdict.is_true = verdict.settled;
  return verdict.is_true;
}

Frame Names::frame(const Context& context, const LuaCall& call, const LuaCall* caller, Address pc) {
  Frame frame;
  if (!call.is_lua) {
    frame.kind = Frame::Kind::c;
    if (const std::string* name = loaded_name(context, call.key)) frame.name = *name;
    else frame.name = called_as(context, call, caller);
    return frame;
  }
  frame.kind = Frame::Kind::lua;
  frame.name = called_as(context, call, caller);
  Entry* const known = entry(context.lua, call);
  if (known == nullptr) {
    frame.file = "?";
    if (frame.name.empty()) frame.name = "function";
    return frame;
  }
  const Prototype* const proto = &*known->prototype;
  frame.file = known->file;
  frame.line_defined = proto->line_defined;
  frame.line = proto->line(call.index_of(pc));
  if (known->identity == 0) known->identity = identity_of(context.lua, *known);
  if (!proto->is_main() && proto->line_defined != 0) frame.prototype = known->identity;
  if (proto->is_main()) frame.name = "main chunk";
  else if (proto->line_defined == 0) name_as_loaded(frame, context, call.code);
  else if (frame.name.empty()) {
    // No instruction names what C calls: name it as luaL_traceback does (lauxlib.c,
    // pushglobalfuncname).
    if (const std::string* const name = loaded_lua_name(context, call)) frame.name = *name;
  }
  if (frame.name.empty() || frame.name == "?") frame.name = "function";
  return frame;
}

// The functions inside this one are numbered before the first of them is asked for, if this one is
// named first. So callers must be named before their callees.
std::uint32_t Names::identity_of(const Lua& lua, Entry& entry) {
  const Prototype& prototype = *entry.prototype;
  tell_children_apart(lua, prototype);
  entry.prototype->children.clear();
  const std::uint32_t identity = prototype.identity();
  const auto twin = twins_.find(prototype.address);
  const bool is_twin = twin != twins_.end() && twin->second.identity == identity;
  return is_twin ? std::max(identity + twin->second.number, std::uint32_t{1}) : identity;
}

// Functions on one line may also have the same code. Then only their order in the source
// distinguishes them.
void Names::tell_children_apart(const Lua& lua, const Prototype& parent) {
  constexpr std::size_t most_read = 512, most_twins = 1 << 14;
  if (parent.children.size() < 2 || twins_.size() >= most_twins) return;
  std::vector<std::int32_t> lines;
  std::unordered_map<std::int32_t, int> on_line;
  for (const Address child : parent.children) {
    lines.push_back(lua.line_defined(memory_, child).value_or(-1));
    ++on_line[lines.back()];
  }
  std::map<std::pair<std::int32_t, std::uint32_t>, std::uint32_t> same;  // by line and identity
  std::size_t read = 0;
  for (std::size_t i = 0; i < lines.size() && read < most_read; ++i) {
    if (lines[i] < 0 || on_line[lines[i]] < 2) continue;
    ++read;
    const std::optional<Prototype> child = lua.prototype(memory_, parent.children[i]);
    if (!child) continue;
    const std::uint32_t identity = child->identity();
    if (const std::uint32_t number = same[{lines[i], identity}]++) twins_[child->address] = {identity, number};
    else twins_.erase(child->address);
  }
}

// LuaJIT without debug information, as for its own functions in bytecode: a function without a
// place is identified by its full name.
void Names::name_as_loaded(Frame& frame, const Context& context, Address key) {
  if (const std::string* name = loaded_name(context, key)) frame.name = *name;
}

const std::string* Names::loaded_name(const Context& context, Address key) {
  const auto name_of = [](const Loaded& loaded) { return loaded.is_shared ? nullptr : &loaded.name; };
  if (const auto known = loaded_.find(key); known != loaded_.end()) return name_of(known->second);
  // A module may have been loaded since. Each miss costs reading all modules, so they are read
  // rarely: after 1, 2, 4 … misses.
  ++misses_;
  if (stands_still_ || reads_left_ == 0 || (misses_ & (misses_ - 1)) != 0) return nullptr;
  --reads_left_;
  read_loaded(context.lua, context.G);
  const auto now = loaded_.find(key);
  return now != loaded_.end() ? name_of(now->second) : nullptr;
}

// The name of the called closure, or of another closure of the same prototype, since programs make
// handlers again and again. Tables may change at any time, but they are read again ever more
// rarely: most functions without a name are in no table.
const std::string* Names::loaded_lua_name(const Context& context, const LuaCall& call) {
  constexpr std::size_t most_states = 256;
  const auto known = [&]() -> const std::string* {
    if (const auto closure = loaded_closures_.find(call.closure);
        call.closure != 0 && closure != loaded_closures_.end()) {
      if (closure->second.code == call.code && closure->second.mark == call.mark) return &closure->second.name;
    }
    const auto loaded = loaded_.find(call.code);
    return loaded != loaded_.end() && !loaded->second.is_shared && loaded->second.mark == call.mark
               ? &loaded->second.name
               : nullptr;
  };
  if (const std::string* const name = known()) return name;
  if (stands_still_ || lua_reads_left_ == 0) return nullptr;
  if (lua_misses_.size() >= most_states && !lua_misses_.contains(context.G)) lua_misses_.clear();
  // After 1, 4, 16, 64 … misses.
  const auto misses = static_cast<unsigned>(++lua_misses_[context.G]);
  if (!std::has_single_bit(misses) || std::countr_zero(misses) % 2 != 0) return nullptr;
  --lua_reads_left_;
  read_loaded(context.lua, context.G);
  return known();
}

void Names::read_loaded(const Lua& lua, Address G) {
  constexpr std::size_t most_functions = 1 << 16;
  constexpr int most_aliases = 3;
  // Modules share functions (socket and socket.core): the shortest name is the one that people use.
  const auto take = [](std::string& known, const std::string& name) {
    if (known.empty() || name.size() < known.size() || (name.size() == known.size() && name < known)) known = name;
  };
  for (auto& [key, loaded] : loaded_) loaded.names = 0;
  loaded_closures_.clear();
  lua.visit_loaded(memory_, G,
                   [&](const std::string& module, const std::string& function, const LoadedFunction& value) {
                     std::string name = printable(module, 60);
                     if (!function.empty()) name += '.' + printable(function, 60);
                     if (name.starts_with("_G.")) name.erase(0, 3);
                     Loaded& known = loaded_[value.key];
                     const std::uint64_t mark = value.proto != 0 ? lua.mark(memory_, value.proto) : 0;
                     if (known.mark != mark) known = {};  // another function is there now
                     known.mark = mark;
                     known.names = known.module == module ? known.names + 1 : 1;
                     known.module = module;
                     known.is_shared |= known.names > most_aliases;
                     if (value.proto != 0) {
                       known.is_shared |= known.closure != 0 && known.closure != value.closure && known.name != name;
                       known.closure = value.closure;
                       LoadedClosure& closure = loaded_closures_[value.closure];
                       if (closure.code != value.key) closure = {{}, value.key, mark};
                       take(closure.name, name);
                     }
                     take(known.name, name);
                     return loaded_.size() < most_functions;
                   });
}

}  // namespace luaspy
