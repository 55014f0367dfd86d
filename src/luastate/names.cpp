#include "luastate/names.h"

#include <algorithm>
#include <array>

#include "luastate/luajit_prototype.h"
#include "luastate/tables.h"
#include "text.h"

namespace luaspy {
namespace {

constexpr std::size_t most_prototypes = 1 << 14;  // a target that makes functions without end must not fill memory
constexpr std::size_t shown_source = 60;          // LUA_IDSIZE (luaconf.h)

// The mark of the Proto or GCproto at `proto`, as it is now; 0 if there is none.
std::uint64_t mark_now(const Memory& memory, const Dialect& dialect, Address proto) {
  std::array<std::byte, 256> bytes;
  const auto now = std::span(bytes).first(dialect.luajit != nullptr ? dialect.luajit->pt_size : dialect.puc->p_size);
  if (!memory.read(proto, now)) return 0;
  return dialect.luajit != nullptr ? mark_of(*dialect.luajit, now) : mark_of(*dialect.puc, now);
}

}  // namespace

std::string chunk_name(const std::string& source) {
  if (source.empty()) return "?";
  if (source[0] == '@' || source[0] == '=') return printable(std::string_view(source).substr(1));
  const std::string_view first_line = std::string_view(source).substr(0, source.find('\n'));
  constexpr std::size_t room = shown_source - sizeof("[string \"...\"]");
  const bool whole = first_line.size() == source.size() && first_line.size() <= room;
  return "[string \"" + printable(first_line.substr(0, room)) + (whole ? "\"]" : "...\"]");
}

Names::Entry* Names::entry(const Dialect& dialect, const LuaCall& call) {
  if (prototypes_.size() >= most_prototypes && !prototypes_.contains(call.proto)) prototypes_.clear();
  Entry& entry = prototypes_[call.proto];
  if (entry.mark == call.mark && entry.prototype) return &entry;
  entry = {call.mark, read_prototype(memory_, dialect, call.proto), {}};
  // The thread runs: what was read is what the stop saw only if the Proto is still the same after the reading.
  if (mark_now(memory_, dialect, call.proto) != call.mark) entry.prototype.reset();
  return entry.prototype ? &entry : nullptr;
}

const Prototype* Names::prototype(const Dialect& dialect, const LuaCall& call) {
  Entry* const found = entry(dialect, call);
  return found != nullptr ? &*found->prototype : nullptr;
}

std::string Names::called_as(const Context& context, const LuaCall& call, const LuaCall* caller) {
  if (caller == nullptr || call.tail) return {};
  if (caller->finalizer) return "__gc";
  if (caller->hooked) return "hook";
  if (!caller->is_lua) return {};
  // LuaJIT calls hooks, finalizers and callbacks of C through a C frame of its own, whatever instruction they came at.
  if (context.dialect.luajit != nullptr && call.fresh) return {};
  Entry* const from = entry(context.dialect, *caller);
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

// A register is looked at every time. For values that take more reads one look that finds the function itself is enough: it is called by this
// name at least now and then. That it is another one may be because the value was changed since.
bool Names::is_true(Called& called, const Context& context, const LuaCall& call, const LuaCall& caller) {
  constexpr int most_looks = 16;
  constexpr std::size_t most_verdicts = 1 << 10;
  if (called.name.empty() || called.path.root == ValuePath::Root::unknown) return true;
  const auto look = [&] { return check_callee(memory_, context.stopped, *context.dialect.luajit, context.G, called.path, caller, call); };
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
  const Prototype* const proto = prototype(context.dialect, call);
  if (proto == nullptr) {
    frame.file = "?";
    if (frame.name.empty()) frame.name = "function";
    return frame;
  }
  frame.file = chunk_name(proto->source);
  frame.line_defined = proto->line_defined;
  frame.line = proto->line(call.index_of(pc));
  if (proto->is_main()) frame.name = "main chunk";
  else if (proto->line_defined == 0) name_as_loaded(frame, context, call.code);
  if (frame.name.empty() || frame.name == "?") frame.name = "function";
  return frame;
}

// LuaJIT without debug information, as its own functions in bytecode: what has no place is told apart by a full name.
void Names::name_as_loaded(Frame& frame, const Context& context, Address key) {
  if (const std::string* name = loaded_name(context, key)) frame.name = *name;
}

const std::string* Names::loaded_name(const Context& context, Address key) {
  const auto name_of = [](const Loaded& loaded) { return loaded.is_shared ? nullptr : &loaded.name; };
  if (const auto known = loaded_.find(key); known != loaded_.end()) return name_of(known->second);
  // A module may have been loaded since. Each miss costs a reading of all modules, so they become rare: after 1, 2, 4 … misses.
  ++misses_;
  if (reads_left_ == 0 || (misses_ & (misses_ - 1)) != 0) return nullptr;
  --reads_left_;
  read_loaded(context.dialect, context.G);
  const auto now = loaded_.find(key);
  return now != loaded_.end() ? name_of(now->second) : nullptr;
}

void Names::read_loaded(const Dialect& dialect, Address G) {
  constexpr std::size_t most_functions = 1 << 16;
  constexpr int most_aliases = 3;
  for (auto& [key, loaded] : loaded_) loaded.names = 0;
  visit_loaded(memory_, dialect, G, [&](const std::string& module, const std::string& function, Address key) {
    std::string name = printable(module, 60);
    if (!function.empty()) name += '.' + printable(function, 60);
    if (name.starts_with("_G.")) name.erase(0, 3);
    Loaded& known = loaded_[key];
    known.names = known.module == module ? known.names + 1 : 1;
    known.module = module;
    known.is_shared |= known.names > most_aliases;
    // Modules share functions (socket and socket.core): the shortest name is the one people call them by.
    if (known.name.empty() || name.size() < known.name.size() || (name.size() == known.name.size() && name < known.name)) known.name = std::move(name);
    return loaded_.size() < most_functions;
  });
}

}  // namespace luaspy
