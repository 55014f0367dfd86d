#include "luastate/names.h"

#include <algorithm>
#include <utility>

#include "base/text.h"
#include "luastate/bytecode.h"
#include "luastate/lua.h"

namespace luaspy {
namespace {

// A target that makes functions without end must not fill memory.
constexpr std::size_t most_prototypes = 1 << 14, most_words = 1 << 17, most_kept_bytes = 64 << 20;
constexpr std::size_t shown_source = 60;  // LUA_IDSIZE (luaconf.h)

// What the stop read, and the memory as it is now where it has read nothing.
class StoppedThenLive : public Memory {
 public:
  StoppedThenLive(const Memory& stopped, const Memory& live) : stopped_(stopped), live_(live) {}
  bool read(Address address, std::span<std::byte> into) const override {
    return stopped_.read(address, into) || live_.read(address, into);
  }

 private:
  const Memory& stopped_;
  const Memory& live_;
};

}  // namespace

std::string chunk_name(const std::string& source) {
  if (source.starts_with('@') || source.starts_with('=')) return printable(std::string_view(source).substr(1));
  const std::string_view first_line = std::string_view(source).substr(0, source.find('\n'));
  constexpr std::size_t room = shown_source - sizeof("[string \"...\"]");
  const bool whole = first_line.size() == source.size() && first_line.size() <= room;
  return "[string \"" + printable(first_line.substr(0, room)) + (whole ? "\"]" : "...\"]");
}

Frame CallLabel::frame() const {
  Frame frame;
  frame.kind = kind;
  frame.name = *name, frame.file = *file;
  frame.line_defined = line_defined, frame.line = line, frame.line_is_near = line_is_near;
  frame.prototype = prototype, frame.own_name = own_name;
  return frame;
}

std::size_t CallLabel::Hash::operator()(const CallLabel& label) const {
  std::uint64_t hash = hash_basis;
  mix(hash, reinterpret_cast<std::uintptr_t>(label.name));
  mix(hash, reinterpret_cast<std::uintptr_t>(label.file) ^ label.entry);
  mix(hash, static_cast<std::uint64_t>(label.line_defined) << 32 ^ static_cast<std::uint64_t>(label.line));
  mix(hash, label.prototype);
  return hash;
}

// Callers keep pointers to entries and words while they name one call, so room is made before.
void Names::make_room() {
  if (prototypes_.size() + 2 <= most_prototypes && words_.size() <= most_words && kept_bytes_ <= most_kept_bytes)
    return;
  prototypes_.clear(), unreadable_.clear(), twins_.clear(), given_.clear();
  loaded_words_.clear(), iterators_.clear(), words_.clear();
  kept_bytes_ = 0;
  ++forgotten_;
}

Names::Entry* Names::entry(const Lua& lua, const LuaCall& call) {
  const auto known = prototypes_.find(call.proto);
  if (known != prototypes_.end() && known->second.mark == call.mark) return &known->second;
  if (const auto found = unreadable_.find(call.proto);
      found != unreadable_.end() && found->second.mark == call.mark && found->second.look == look_)
    return nullptr;
  std::optional<Prototype> read = lua.prototype(memory_, call.proto);
  // The thread runs: what was read is what the stop saw only if the Proto is unchanged after
  // reading.
  if (!read || lua.mark(memory_, call.proto) != call.mark) {
    ++gone_;
    if (unreadable_.size() >= most_prototypes) unreadable_.clear();
    unreadable_[call.proto] = {call.mark, look_};
    return nullptr;
  }
  return &put(call.proto, call.mark, std::move(*read));
}

Names::Entry& Names::put(Address proto, std::uint64_t mark, Prototype prototype) {
  const std::size_t size = sizeof(Entry) + prototype.size();
  Entry& entry = prototypes_[proto];
  kept_bytes_ += size - entry.size;
  entry = {};
  entry.mark = mark;
  entry.size = size;
  entry.fingerprint = prototype.fingerprint();
  entry.file = words_(chunk_name(prototype.source));
  entry.may_be_script = is_host_script(prototype.source);
  entry.defined_as = words_("");
  entry.prototype = std::move(prototype);
  return entry;
}

Names::Kept Names::keep(FunctionCopy copy) {
  make_room();
  const Address proto = copy.prototype.address;
  const auto known = prototypes_.find(proto);
  const bool is_known = known != prototypes_.end();
  if (is_known && known->second.mark == copy.mark && known->second.fingerprint == copy.prototype.fingerprint())
    return {.replaced = false, .alike = ++known->second.alike};
  put(proto, copy.mark, std::move(copy.prototype)).alike = 1;
  return {.replaced = is_known};
}

const Prototype* Names::prototype(const Lua& lua, const LuaCall& call) {
  make_room();
  Entry* const found = entry(lua, call);
  return found != nullptr ? &found->prototype : nullptr;
}

Word Names::called_as(const Context& context, const LuaCall& call, const LuaCall* caller) {
  if (caller == nullptr || call.tail) return words_("");
  if (caller->inner == LuaCall::Inner::finalizer) return words_("__gc");
  if (caller->inner == LuaCall::Inner::hook) return words_("hook");
  if (!caller->is_lua() || !context.lua.is_named_by_caller(call)) return words_("");
  Entry* const from = entry(context.lua, *caller);
  if (from == nullptr) return words_("");
  const int pc = caller->index_of(caller->saved_pc);
  const auto [known, is_new] = from->callees.try_emplace(pc);
  Called& called = known->second;
  if (is_new) {
    const std::optional<CallName> name = callee_name(from->prototype, pc);
    called.name = words_(name ? printable(name->name) : std::string());
    called.path = callee_path(from->prototype, pc);
    called.is_general = *called.name == iterator_name || called.name->starts_with("__");
  }
  return is_true(called, context, call, *caller) ? called.name : words_("");
}

// A name of a value is not believed before a look has found the function itself; the names of
// iterators and metamethods say only how it was called. For values that take more reads than a
// register, one such look is enough: then it is called by this name at least sometimes. If a later
// look finds another function, the value may have been changed since the call.
bool Names::is_true(Called& called, const Context& context, const LuaCall& call, const LuaCall& caller) {
  constexpr int most_looks = 16;
  constexpr std::size_t most_verdicts = 1 << 10;
  if (called.name->empty() || !context.lua.hides_tail_calls()) return true;
  const auto look = [&] {
    const StoppedThenLive now(context.stopped, memory_);
    return context.lua.check_callee(now, context.stopped, context.G, called.path, caller, call);
  };
  if (called.verdicts.size() >= most_verdicts) called.verdicts.clear();
  const Called::Verdict unseen = {.is_true = called.is_general};
  Called::Verdict& verdict = called.verdicts.try_emplace(call.is_lua() ? call.proto : call.key, unseen).first->second;
  if (called.path.root == ValuePath::Root::slot && called.path.keys.empty()) {
    const Callee now = look();
    verdict.is_true |= now == Callee::same;
    return verdict.is_true && now != Callee::other;
  }
  if (verdict.settled || verdict.looks == most_looks) return verdict.is_true;
  ++verdict.looks;
  const Callee callee = look();
  verdict.settled = callee == Callee::same;
  if (callee != Callee::unknown) verdict.is_true = verdict.settled;
  return verdict.is_true;
}

CallLabel Names::label(const Context& context, const LuaCall& call, const LuaCall* caller, Address pc) {
  make_room();
  CallLabel label;
  label.file = words_("");
  if (!call.is_lua()) {
    label.name = c_name(context, call, caller);
    label.entry = call.entry;
    return label;
  }
  label.kind = Frame::Kind::lua;
  label.line_is_near = call.near;
  Entry* const known = entry(context.lua, call);
  if (known == nullptr) {
    label.file = words_("?");
    ++without_place_.gone;
    label.name = called_as(context, call, caller);
  } else {
    const Prototype& proto = known->prototype;
    if (known->may_be_script) name_script(context, *known);
    label.file = known->file;
    without_place_.no_debug_info += *label.file == "?";
    label.line_defined = proto.line_defined;
    label.line = proto.line(call.index_of(pc));
    identify(context.lua, *known);
    OwnName name = proto.is_main() ? OwnName{words_("main chunk")} : lua_name(context, *known, call);
    if (name.text->empty()) name = {called_as(context, call, caller)};
    if (!proto.is_main() && proto.line_defined != 0) {
      // A file that is loaded twice has each of its functions once; chunks made of one template are others.
      if (!name.is_own && !proto.source.starts_with('@')) distinguish(*known, *name.text);
      label.prototype = known->identity;
    }
    label.name = name.text, label.own_name = name.is_own;
  }
  if (label.name->empty() || *label.name == "?") label.name = words_("function");
  return label;
}

void Names::name_script(const Context& context, Entry& entry) {
  const Prototype& prototype = entry.prototype;
  const std::string& chunk = stands_still_ ? scripts_.known_chunk_of(prototype.address, entry.mark)
                                           : scripts_.chunk_of(context.lua, memory_, context.G, prototype, entry.mark);
  if (chunk.empty()) return;
  entry.file = words_(chunk);
  entry.may_be_script = false;
}

std::vector<Address> Names::known_prototypes() const {
  std::vector<Address> known;
  known.reserve(prototypes_.size());
  for (const auto& [prototype, entry] : prototypes_) known.push_back(prototype);
  return known;
}

std::string Names::chunk_of(const Context& context, Address proto, const FunctionPlace& place) {
  if (!is_host_script(place.source)) return chunk_name(place.source);
  const std::uint64_t mark = context.lua.mark(memory_, proto);
  const std::optional<Prototype> prototype = context.lua.prototype(memory_, proto);
  if (!prototype || mark == 0) return chunk_name(place.source);
  const std::string& chunk = stands_still_ ? scripts_.known_chunk_of(proto, mark)
                                           : scripts_.chunk_of_any(context.lua, memory_, context.G, *prototype, mark);
  return chunk.empty() ? chunk_name(place.source) : chunk;
}

// `what`: a function or a name that loaded_ has.
template <typename Make>
Names::OwnName Names::loaded_word(const void* what, Make make) {
  if (std::exchange(loaded_reading_, loaded_.readings()) != loaded_.readings()) loaded_words_.clear();
  if (const auto known = loaded_words_.find(what); known != loaded_words_.end()) return known->second;
  const FunctionName name = make();
  return loaded_words_[what] = {words_(name.text), name.is_own};
}

Names::OwnName Names::lua_name(const Context& context, Entry& entry, const LuaCall& call) {
  const auto known = [&] { return loaded_.lua_function(call.proto, call.mark); };
  const LoadedFunctions::Function* found = known();
  if (found == nullptr && !stands_still_ &&
      loaded_.read_for_miss(context.lua, memory_, context.G, !std::exchange(entry.was_missed, true)))
    found = known();
  // Different closures of one prototype may have names of their own.
  const LoadedFunctions::Name* const own = loaded_.closure(call.closure, call.proto, call.mark);
  const auto make = [&] { return function_name(found, own, *entry.defined_as, entry.prototype.takes_self()); };
  if (found == nullptr && own == nullptr) return {entry.defined_as};
  return loaded_word(own != nullptr ? static_cast<const void*>(own) : found, make);
}

// The name of a C function where it lives.
Word Names::c_name(const LoadedFunctions::Function* found) {
  return found != nullptr ? loaded_word(found, [&] { return FunctionName{c_function_name(found)}; }).text : words_("");
}

Word Names::c_name(const Context& context, const LuaCall& call, const LuaCall* caller) {
  const LoadedFunctions::Function* found = loaded_.c_function(call.key);
  if (found == nullptr && !stands_still_ && loaded_.read_for_miss(context.lua, memory_, context.G, false))
    found = loaded_.c_function(call.key);
  if (const Word name = c_name(found); !name->empty()) return name;
  const Word called = called_as(context, call, caller);
  const Word name = iterator_of(context, call, called);
  return !name->empty() ? name : called;
}

// What ipairs, string.gmatch and io.lines return are C functions that are in no table. They are
// in the same file of Lua as the functions that made them (lstrlib.c, gmatch_aux; liolib.c,
// io_readline; lib_string.c and lib_io.c of LuaJIT), and hold the string and the pattern, or the file.
//
// What was found once holds for all closures of that function.
Word Names::iterator_of(const Context& context, const LuaCall& call, Word called) {
  constexpr Address near = 64 << 10, beside = 4 << 10;  // bytes
  if (const auto known = iterators_.find(call.key); known != iterators_.end()) return known->second;
  const auto is_near = [&](const char* table, const char* key, Address most) {
    const Address maker = loaded_.c_function_named(context.G, table, key);
    return maker != 0 && call.key - maker + most <= 2 * most;
  };
  const auto keep = [&](std::string_view name) { return iterators_[call.key] = words_(name); };
  // It holds nothing that shows it, but stands right beside ipairs (lbaselib.c, ipairsaux;
  // lib_base.c), and a loop calls it. The same is true of `next`, which has a name as long as it is a
  // global. Some sandboxes remove it: then neither can be told from the other.
  if (*called == iterator_name && is_near("", "ipairs", beside) && is_near("", "next", beside))
    return keep("ipairs iterator");
  const bool near_gmatch = is_near("string", "gmatch", near), near_lines = is_near("io", "lines", near);
  if (call.closure == 0 || (!near_gmatch && !near_lines)) return words_("");
  const auto [first, second] = first_upvalues(context, call);
  if (near_gmatch && first == Value::Type::string && second == Value::Type::string)
    return keep("string.gmatch iterator");
  if (near_lines && first == Value::Type::userdata) return keep("io.lines iterator");
  return words_("");
}

// The types of the first two upvalues of a C function; nil if it has none, or if it is not known.
// The stop read its closure if it was new. If not, the closure may have been collected, and another
// one made in its place: it has to be one of that function before and after its upvalues are read.
std::pair<Value::Type, Value::Type> Names::first_upvalues(const Context& context, const LuaCall& call) const {
  constexpr Value::Type none = Value::Type::nil;
  for (const Memory* const memory : {&context.stopped, &memory_}) {
    const auto is_there = [&] {
      const auto function = context.lua.function(*memory, context.G, call.closure);
      return function && function->key == call.key;
    };
    if (!is_there()) continue;
    const std::size_t count = context.lua.upvalue_count(*memory, call.closure);
    const auto type_of = [&](std::size_t index) {
      if (index >= count) return none;
      const auto value = context.lua.read_value(*memory, context.lua.c_upvalue_slot(call.closure, index));
      return value ? value->type : none;
    };
    const std::pair types = {type_of(0), type_of(1)};
    if (types.first != none && is_there()) return types;
  }
  return {none, none};
}

Address Names::ffi_function(const Context& context, const LuaCall& call, const LuaCall* caller) {
  if (call.is_lua() || caller == nullptr || !caller->is_lua() || !context.lua.hides_tail_calls()) return 0;
  const Entry* const from = entry(context.lua, *caller);
  if (from == nullptr) return 0;
  const auto pc = static_cast<std::size_t>(caller->index_of(caller->saved_pc));
  const Prototype& prototype = from->prototype;
  if (pc >= prototype.code.size() || !is_call(prototype.bytecode, prototype.code[pc])) return 0;
  // ffi.gc and tostring may have a cdata, too. What calls one is __call of its metatable.
  const Word known = c_name(loaded_.c_function(call.key));
  if (!known->empty() && !known->ends_with("__call")) return 0;
  return context.lua.ffi_function(memory_, context.stopped, call);
}

std::string Names::loaded_name(const Context& context, Address key_or_proto) {
  const auto known = [&] {
    const LoadedFunctions::Function* found = loaded_.c_function(key_or_proto);
    if (found == nullptr) found = loaded_.lua_function(key_or_proto, context.lua.mark(memory_, key_or_proto));
    return found;
  };
  const LoadedFunctions::Function* found = known();
  if (found == nullptr && !stands_still_ && loaded_.read_for_miss(context.lua, memory_, context.G, false))
    found = known();
  return c_function_name(found);
}

// Chunks of one name, such as templates, may have functions at the same line with the same code that are
// different functions. Another name of the same prototype is a variable's; that of another prototype is a
// function's. The local variable in which it was defined decides, if that is known; else the first name by which
// it is called. Those of iterators and metamethods say nothing.
void Names::distinguish(Entry& entry, const std::string& called_as) {
  if (entry.is_told_apart || !entry.defined_as->empty()) return;
  const auto given = given_.find(entry.prototype.address);
  const std::string& name = given != given_.end() && given->second.mark == entry.mark ? given->second.name : called_as;
  constexpr std::size_t most_places = 1 << 14, most_names = 64;
  const bool says_nothing = name.empty() || name == "?" || name == iterator_name || name == "hook" ||
                            name.starts_with("__");
  if (says_nothing) return;
  entry.is_told_apart = true;
  std::uint64_t place = entry.identity;
  mix(place, *entry.file);
  mix(place, static_cast<std::uint64_t>(entry.prototype.line_defined));
  if (called_.size() >= most_places && !called_.contains(place)) called_.clear();
  std::vector<std::string>& names = called_[place];
  const auto known = std::ranges::find(names, name);
  const auto number = static_cast<std::uint32_t>(known - names.begin());
  if (known == names.end()) {
    if (names.size() == most_names) return;
    names.push_back(name);
  }
  constexpr std::uint32_t step = 0x9e37'79b9;  // far from the numbers that twins have
  entry.identity = std::max(entry.identity + number * step, std::uint32_t{1});
}

void Names::name_children(const Lua& lua, const Prototype& parent) {
  constexpr std::size_t most_given = 1 << 14;
  if (parent.children.empty()) return;
  const std::vector<std::string> names = locals_of_closures(parent);
  if (names.size() != parent.children.size()) return;
  if (given_.size() + names.size() > most_given) given_.clear();
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (names[i].empty()) continue;
    const auto known = prototypes_.find(parent.children[i]);  // as the stop has seen it
    const std::uint64_t mark = known != prototypes_.end() ? known->second.mark : lua.mark(memory_, parent.children[i]);
    if (mark != 0) given_[parent.children[i]] = {mark, printable(names[i])};
  }
}

// The functions inside this one are numbered before the first of them is asked for, if this one is
// named first. So callers must be named before their callees.
void Names::identify(const Lua& lua, Entry& entry) {
  if (entry.is_identified || (stands_still_ && entry.identity != 0)) return;
  Prototype& prototype = entry.prototype;
  const std::uint32_t identity = prototype.identity();
  if (entry.identity != 0) loaded_words_.clear();  // it was named in a standstill, without its Definition
  const Twins::Twin* const twin = twins_.find(prototype.address, identity);
  // Functions of one line may have the same code, too.
  entry.is_told_apart = false;
  entry.identity = std::max(identity + (twin != nullptr ? twin->number : 0), std::uint32_t{1});
  int definition = prototype.is_main() ? Siblings::main_chunk : Siblings::unknown;
  if (!stands_still_ && !prototype.is_main() && prototype.line_defined != 0) {
    const std::span<const Definition> all = definitions_.in_text_of(prototype, entry.mark, lua, memory_);
    definition = find_definition(all, prototype, twin != nullptr ? &twin->siblings : nullptr);
    if (definition >= 0) entry.defined_as = words_(printable(all[static_cast<std::size_t>(definition)].name));
  }
  twins_.read_children(lua, memory_, prototype, entry.mark, definition);
  name_children(lua, prototype);
  if (stands_still_) return;
  entry.is_identified = true;
  prototype.children.clear();
}

}  // namespace luaspy
