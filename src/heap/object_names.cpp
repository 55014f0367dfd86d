#include "heap/object_names.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "luastate/strings.h"
#include "luastate/tokens.h"

namespace luaspy {
namespace {

constexpr std::size_t key_bytes = 60;
constexpr std::uint32_t half_of_path = 12;  // steps; what is between two halves is left out
constexpr ValueLimits short_values = {.string_bytes = 40, .entries = 4, .depth = 1, .text_bytes = 200};

std::string metatable_of(Value::Type type) {
  switch (type) {
    case Value::Type::string:
      return "strings";
    case Value::Type::number:
      return "numbers";
    case Value::Type::boolean:
      return "booleans";
    case Value::Type::function:
      return "functions";
    case Value::Type::thread:
      return "coroutines";
    case Value::Type::light_userdata:
      return "light userdata";
    case Value::Type::nil:
      return "nil";
    default:
      return "other values";
  }
}

ActiveState main_thread_of(const HeapAnalysis& analysis) {
  const Address G = analysis.global_state();
  return {analysis.lua().main_thread(analysis.memory(), G), G, &analysis.lua()};
}

}  // namespace

ObjectNames::ObjectNames(const HeapAnalysis& analysis)
    : analysis_(analysis),
      names_(analysis.memory()),
      values_(analysis.memory(), main_thread_of(analysis), names_, short_values, room_),
      path_ends_(analysis.all_before(), half_of_path) {
  names_.read_loaded(analysis.lua(), analysis.global_state());
  names_.use_code(analysis.code());
}

std::string ObjectNames::text(const HeapObject& object, ValueText& values) {
  switch (object.type) {
    case ObjectType::string:
      return values.text({Value::Type::string, object.address});
    case ObjectType::table:
      return values.text({Value::Type::table, object.address});
    case ObjectType::lua_function:
    case ObjectType::c_function:
      return values.text({Value::Type::function, object.address});
    case ObjectType::userdata:
      return values.text({Value::Type::userdata, object.address});
    case ObjectType::thread: {
      const std::string began = began_with(object.address);
      const std::string text = values.text({Value::Type::thread, object.address});
      return began.empty() ? text : text + " of " + began;
    }
    case ObjectType::cdata:
      return values.text({Value::Type::cdata, object.address});
    case ObjectType::prototype: {
      const std::optional<FunctionPlace> place = analysis_.lua().place(analysis_.memory(), object.address);
      return place ? fmt::format("code of {}:{}", chunk_of(object.address, *place), place->line_defined) : "code";
    }
    default:
      return std::string(name(object.type));
  }
}

std::string ObjectNames::chunk_of(Address proto, const FunctionPlace& place) {
  return names_.chunk_of({analysis_.lua(), analysis_.global_state(), analysis_.memory()}, proto, place);
}

std::string ObjectNames::text(const HeapObject& object) { return text(object, values_); }

std::string ObjectNames::text(const HeapObject& object, const ValueLimits& limits) {
  CountingRoom room{1 << 24};
  ValueText values(analysis_.memory(), main_thread_of(analysis_), names_, limits, room);
  return text(object, values);
}

std::vector<Node> ObjectNames::steps(Node node) const {
  std::vector<Node> all;
  for (; node != root_node && node != no_node; node = analysis_.before(node)) all.push_back(node);
  std::ranges::reverse(all);
  return all;
}

std::string ObjectNames::Stage::alone() const {
  constexpr std::string_view arrow = " → ";
  return text.starts_with(arrow) ? text.substr(arrow.size()) : text;
}

std::vector<ObjectNames::Stage> ObjectNames::stages(Node node) {
  const PathEnds::Ends ends = path_ends_.of(node);
  if (ends.first.empty()) return {};
  std::vector<Stage> stages = {{ends.first.front(), first_step(ends.first.front())}};
  std::string name;
  const auto add = [&](Node from, Node to, bool is_first) {
    Step next = step(from, to, is_first, name);
    stages.push_back({to, std::move(next.text)});
    name = std::move(next.name);
  };
  for (std::size_t i = 1; i < ends.first.size(); ++i)
    add(ends.first[i - 1], ends.first[i], i == 1 && stages.front().text.empty());
  if (ends.last.empty()) return stages;
  stages.push_back({no_node, fmt::format(" → …({} steps)", ends.left_out)});
  name.clear();
  Node from = analysis_.before(ends.last.front());
  for (const Node to : ends.last) {
    add(from, to, false);
    from = to;
  }
  return stages;
}

std::string ObjectNames::path(Node node) {
  const std::vector<Stage> all = stages(node);
  if (all.empty()) return "nothing";
  std::string text;
  for (const Stage& stage : all) text += stage.text;
  return text.empty() ? "globals" : text;
}

std::string ObjectNames::first_step(Node node) {
  if (node == analysis_.globals()) return "";
  if (node == analysis_.loaded()) return "package.loaded";
  const Address address = analysis_.graph().object(node).address;
  const auto& roots = analysis_.graph().roots();
  const auto root = std::ranges::find(roots, address, &Root::to);
  if (root == roots.end()) return "Lua's own";
  return name_of(*root) + (root->kind == Root::Kind::finalizer ? ": " + text(analysis_.graph().object(node)) : "");
}

std::string ObjectNames::name_of(const Root& root) const {
  switch (root.kind) {
    case Root::Kind::registry:
      return "registry";
    case Root::Kind::main_thread:
      return root.to == analysis_.lua().main_thread(analysis_.memory(), analysis_.global_state()) ? "main coroutine"
                                                                                                  : "running coroutine";
    case Root::Kind::metatable:
      return "metatable of " + metatable_of(root.type);
    case Root::Kind::finalizer:
      return "waiting for its __gc";
    case Root::Kind::trace:
      return "machine code";
    case Root::Kind::fixed:
      break;
  }
  return "Lua's own";
}

std::string ObjectNames::name_of(const HeapObject& from, const Reference& reference) {
  switch (reference.link) {
    case Link::entry: {
      const Value& key = reference.key;
      if (key.type == Value::Type::string)
        return printable(read_string(analysis_.memory(), analysis_.lua(), key.word).value_or("?"), string_limit);
      const std::optional<Node> node = analysis_.graph().find(key.word);
      const bool is_light = key.is_any_number() || key.type == Value::Type::boolean ||
                            key.type == Value::Type::light_userdata;
      const bool has_class = !is_light && node && *node != root_node && analysis_.is_live(*node);
      return fmt::format("[{}]", has_class ? analysis_.classes()[analysis_.class_of(*node)].name : values_.text(key));
    }
    case Link::key:
      return "key";
    case Link::metatable:
      return "metatable";
    case Link::environment:
      return "environment";
    case Link::upvalue:
      return from.type == ObjectType::thread ? "open upvalue" : upvalue_name(from.address, reference.index);
    case Link::value:
      return "value";
    case Link::prototype:
      return "code";
    case Link::constant:
      return "constant";
    case Link::nested:
      return "function in it";
    case Link::user_value:
      return "user value";
    case Link::slot:
      return slot_text(from.address, reference.index);
    case Link::trace:
      return "machine code";
  }
  return "?";
}

std::string ObjectNames::key_text(const Value& key, bool is_first) {
  if (key.type == Value::Type::string) {
    const std::optional<std::string> name = read_string(analysis_.memory(), analysis_.lua(), key.word, key_bytes);
    if (name && is_name(*name) && string_length(analysis_.memory(), analysis_.lua(), key.word) == name->size())
      return (is_first ? "" : ".") + *name;
  }
  return fmt::format("{}[{}]", is_first ? "_G" : "", values_.text(key));
}

// Of several references from one object to another, the one that says most.
ObjectNames::Step ObjectNames::step(Node from, Node to, bool is_first, const std::string& from_name) {
  const HeapObject object = analysis_.graph().object(from);
  const Address target = analysis_.graph().object(to).address;
  std::optional<Reference> best;
  const auto is_better = [](const Reference& one, const Reference& other) {
    if (one.link != other.link) return one.link < other.link;
    const bool named = one.key.type == Value::Type::string;
    return named && other.key.type != Value::Type::string;
  };
  analysis_.reader().visit_references(object, [&](const Reference& reference) {
    if (reference.to == target && reference.from == object.address && (!best || is_better(reference, *best)))
      best = reference;
  });
  // An ephemeron: the key refers to the value, in a table elsewhere.
  if (!best) return {" → its value in a weak table", {}};
  switch (best->link) {
    case Link::entry: {
      std::string text = key_text(best->key, is_first);
      const bool is_field = !text.empty() && text.back() != ']';
      std::string name = is_field ? text.substr(text.front() == '.' ? 1 : 0) : "";
      return {std::move(text), std::move(name)};
    }
    case Link::key:
      return {" → key " + text(analysis_.graph().object(to)), {}};
    case Link::metatable:
      return {" → metatable", {}};
    case Link::environment:
      return {" → environment", {}};
    case Link::upvalue: {
      if (object.type == ObjectType::thread) return {" → open upvalue", {}};
      std::string name = upvalue_name(object.address, best->index);
      constexpr std::string_view unnamed = "function (";
      std::string function = is_first ? "" : text(object);
      if (function.starts_with(unnamed) && !from_name.empty()) function.replace(0, unnamed.size() - 2, from_name);
      return {" → upvalue " + name + (is_first ? "" : " of " + function), std::move(name)};
    }
    case Link::value:
      return {"", from_name};
    case Link::prototype:
      return {" → its code", {}};
    case Link::constant:
      return {" → constant", {}};
    case Link::nested:
      return {" → function in it", {}};
    case Link::user_value:
      return {" → user value", {}};
    case Link::slot:
      return {" → " + slot_text(object.address, best->index), {}};
    case Link::trace:
      return {" → machine code", {}};
  }
  return {" → ?", {}};
}

// ldebug.c, luaG_findlocal: register n belongs to the n-th local variable that is active.
std::string ObjectNames::slot_text(Address L, std::uint32_t index) {
  const Lua& lua = analysis_.lua();
  const Memory& memory = analysis_.memory();
  const Address slot = lua.stack_of(memory, L).first + Address{index} * lua.slot_size();
  const std::vector<LuaCall>& calls = look_at(L, Active::innermost).walk.calls;
  const auto found = std::ranges::find_if(calls,
                                          [&](const LuaCall& call) { return call.func != 0 && slot > call.func; });
  if (found == calls.end()) return "stack";
  const LuaCall& call = *found;
  if (!call.is_lua()) return "argument of a C function";
  const std::string function = text(call);
  const VariableNames& variables = variables_of(call.proto);
  const Address first = lua.first_local(memory, call);
  if (first == 0 || slot < first) return "vararg of " + function;
  const int pc = call.index_of(call.saved_pc);
  std::uint64_t left = (slot - first) / lua.slot_size();
  for (const LocalVariable& local : variables.locals) {
    if (local.start_pc > pc) break;
    if (pc < local.end_pc && left-- == 0)
      return fmt::format("local {} of {}", printable(local.name, key_bytes), function);
  }
  return "temporary value of " + function;
}

std::string ObjectNames::upvalue_name(Address closure, std::uint32_t index) {
  const std::optional<Function> function = analysis_.lua().function(analysis_.memory(), analysis_.global_state(),
                                                                    closure);
  if (function && function->proto != 0) {
    const std::vector<std::string>& names = variables_of(function->proto).upvalues;
    if (index < names.size() && !names[index].empty()) return printable(names[index], key_bytes);
  }
  return std::to_string(index + 1);
}

std::string ObjectNames::function_name(Address closure) {
  constexpr std::string_view function = "function ";
  std::string text = values_.text({Value::Type::function, closure});
  if (text.starts_with(function)) text.erase(0, function.size());
  const std::optional<Function> its = analysis_.lua().function(analysis_.memory(), analysis_.global_state(), closure);
  if (!its || its->proto == 0 || !text.starts_with('(')) return text;
  const std::string name = names_.loaded_name({analysis_.lua(), analysis_.global_state(), analysis_.memory()},
                                              its->proto);
  return name.empty() ? text : name + ' ' + text;
}

const ObjectNames::VariableNames& ObjectNames::variables_of(Address proto) {
  const auto [known, is_new] = variables_.try_emplace(proto);
  if (is_new) {
    if (std::optional<Prototype> its = analysis_.lua().prototype(analysis_.memory(), proto))
      known->second = {std::move(its->upvalues), std::move(its->locals)};
  }
  return known->second;
}

// What was looked at last is mostly asked for again.
const CoroutineLook& ObjectNames::look_at(Address L, Active active) {
  if (const std::pair wanted(L, active); looked_at_ != wanted) {
    looked_at_ = wanted;
    (void)look_at_coroutine(analysis_.memory(), {analysis_.lua(), analysis_.global_state(), L, active}, {}, look_);
  }
  return look_;
}

std::string ObjectNames::began_with(Address L) {
  const CoroutineLook& look = look_at(L, Active::no);
  return look.begun ? text(look.began) : "";
}

std::string ObjectNames::text(const LuaCall& call) {
  if (call.closure == 0) return values_.text({Value::Type::light_function, call.key});
  return values_.text({Value::Type::function, call.closure});
}

// "Account" of the global Account, or of package.loaded.bank.Account; empty for paths that are not
// names.
std::string ObjectNames::name_where_it_lives(Address table) {
  constexpr std::size_t most_steps = 4;
  const std::optional<Node> node = analysis_.graph().find(table);
  if (!node || analysis_.before(*node) == no_node) return "";
  const std::vector<Node> all = steps(*node);
  if (all.size() < 2 || all.size() > most_steps ||
      (all.front() != analysis_.globals() && all.front() != analysis_.loaded()))
    return "";
  std::string name;
  for (std::size_t i = 1; i < all.size(); ++i) name += step(all[i - 1], all[i], name.empty());
  if (name.starts_with('.')) name.erase(0, 1);
  const bool is_plain = name.find_first_of(" [") == std::string::npos;
  return is_plain ? name : "";
}

std::string ObjectNames::class_of(Address metatable) {
  if (std::optional<std::string> name = values_.metatable_name(metatable)) return *name;
  if (std::string name = name_where_it_lives(metatable); !name.empty()) {
    if (name.ends_with(".__index")) name.erase(name.size() - std::string_view(".__index").size());
    return name;
  }
  std::string name;
  const auto parts = analysis_.lua().table_parts(analysis_.memory(), analysis_.reader().table_form(), metatable);
  if (!parts) return "";
  constexpr std::uint64_t most_slots = 256;
  analysis_.lua().visit_entries(analysis_.memory(), *parts, most_slots, [&](const Value& key, const Value& value) {
    if (key.type != Value::Type::string || value.type != Value::Type::table ||
        read_string(analysis_.memory(), analysis_.lua(), key.word) != "__index")
      return true;
    name = name_where_it_lives(value.word);
    return false;
  });
  return name;
}

}  // namespace luaspy
