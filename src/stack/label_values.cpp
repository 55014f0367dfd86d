#include "stack/label_values.h"

#include <algorithm>
#include <utility>

#include "luastate/bytecode.h"
#include "luastate/variables.h"

namespace luaspy {
namespace {

constexpr WalkLimits touched_calls{.innermost = 100, .outermost = 30, .count_left_out = false};
constexpr std::string_view globals = "_G";

// At most longest_label bytes of UTF-8.
std::string bounded(std::string text) {
  constexpr std::string_view cut = "...";
  if (text.size() <= longest_label) return text;
  text.resize(longest_label - cut.size());
  while (!text.empty() && (static_cast<unsigned char>(text.back()) & 0xc0) == 0x80) text.pop_back();
  if (!text.empty() && (static_cast<unsigned char>(text.back()) & 0xc0) == 0xc0) text.pop_back();
  return text.append(cut);
}

// All keys that are asked for, each once.
std::vector<std::string> keys_of(const std::vector<LabelExpression>& labels) {
  std::vector<std::string> keys;
  for (const LabelExpression& label : labels) {
    for (const std::string& key : label.path) {
      if (std::ranges::find(keys, key) == keys.end()) keys.push_back(key);
    }
  }
  return keys;
}

}  // namespace

LabelValues::LabelValues(const std::vector<LabelExpression>& labels) : paths_(keys_of(labels)) {
  const std::vector<std::string> keys = keys_of(labels);
  for (const LabelExpression& label : labels) {
    const bool is_global = label.path.size() > 1 && label.path[0] == globals;
    Expression& expression = expressions_.emplace_back();
    expression.name = label.name;
    if (!is_global) expression.variable = label.path[0];
    for (const std::string& key : std::span(label.path).subspan(is_global ? 1 : 0)) {
      const auto id = static_cast<FieldPaths::KeyId>(std::ranges::find(keys, key) - keys.begin());
      expression.global.push_back(id);
      if (expression.global.size() > 1) expression.fields.push_back(id);
    }
  }
}

void LabelValues::touch(const LuaInspector& lua, const Locator::StoppedThread& thread, const Located& located) {
  constexpr std::size_t most_states = 16;
  touched_.assign(expressions_.size(), false);
  std::size_t number = 0;
  for (const std::vector<ActiveState>* const states : {&located.active, &located.unprotected}) {
    for (const ActiveState& state : *states) {
      if (number++ == most_states) break;
      lua.reader_of(state).likely_calls(thread, state, touched_calls, walk_);
      touch_calls(state, thread.memory);
    }
  }
  if (located.active.empty()) return;
  for (std::size_t i = 0; i < expressions_.size(); ++i) {
    if (!touched_[i]) touch_global(located.active[0], thread.memory, i);
  }
}

void LabelValues::touch_calls(const ActiveState& state, const Memory& memory) {
  const FieldPaths::State* const known = paths_.find(state.G);
  if (known == nullptr) return;
  for (const LuaCall& call : walk_.calls) {
    const auto places = call.is_lua() ? places_.find(call.proto) : places_.end();
    if (places == places_.end() || places->second.places.empty()) continue;
    const Address base = known->lua->first_local(memory, call);
    for (const Place& place : places->second.places) {
      const auto index = static_cast<std::size_t>(place.number);
      const Address slot = place.is_upvalue ? known->lua->upvalue_slot(memory, call.closure, index)
                                            : base + index * known->lua->slot_size();
      const std::optional<Value> root = known->lua->read_value(memory, slot);
      if (!root) continue;
      touched_[place.expression] = true;
      const std::optional<Value> value = paths_.follow(memory, *known, *root, expressions_[place.expression].fields);
      if (value) FieldPaths::touch_text(memory, *known, *value);
    }
  }
}

void LabelValues::touch_global(const ActiveState& state, const Memory& memory, std::size_t expression) const {
  const FieldPaths::State* const known = paths_.find(state.G);
  if (known == nullptr) return;
  const Value table(Value::Type::table, known->lua->globals_table(memory, known->form, state.G, state.L));
  const std::optional<Value> value = paths_.follow(memory, *known, table, expressions_[expression].global);
  if (value) FieldPaths::touch_text(memory, *known, *value);
}

const LabelValues::Places& LabelValues::places_of(const LuaCall& call, const Prototype& prototype) {
  for (const auto* const known : {&new_places_, &places_}) {
    const auto found = known->find(call.proto);
    if (found != known->end() && found->second.mark == call.mark) return found->second;
  }
  Places& places = new_places_[call.proto] = {call.mark, {}};
  has_learned_ = true;
  const auto add = [&](const Place& place) {
    if (std::ranges::find(places.places, place) == places.places.end()) places.places.push_back(place);
  };
  for (std::size_t i = 0; i < expressions_.size(); ++i) {
    const std::string& variable = expressions_[i].variable;
    for (const LocalVariable& local : prototype.locals) {
      if (local.name != variable || variable.empty()) continue;
      visit_locals(prototype, local.start_pc, [&](const LocalVariable& each, int number) {
        if (&each == &local) add({i, false, number});
        return &each != &local;
      });
    }
    for (std::size_t upvalue = 0; upvalue < prototype.upvalues.size(); ++upvalue) {
      if (prototype.upvalues[upvalue] == variable) add({i, true, static_cast<int>(upvalue)});
    }
  }
  return places;
}

// The innermost scope that has the name: a local that was declared later hides the ones before it, and an upvalue.
LabelValues::Variable LabelValues::variable_in(const StackCall& at, const Prototype* prototype,
                                               const Expression& expression, const Memory& stopped) const {
  using Kind = Variable::Kind;
  const LuaCall& call = at.walk->calls[at.call];
  const Lua& lua = *at.state->lua;
  const TracePart trace = trace_part(stopped, lua, at.state->L, *at.walk);
  std::optional<int> reg;
  const int pc = call.index_of(at.pc);
  visit_locals(*prototype, pc, [&](const LocalVariable& local, int number) {
    if (local.name == expression.variable) reg = number;
    return true;
  });
  const bool begins = !call.on_trace && call.func != 0 && !why_no_locals(lua, *at.walk, call, at.pc).empty();
  if (begins) return {Kind::unknown};  // the parameters are not there yet
  if (reg) {
    if (at.walk->relocated || call.func == 0) return {Kind::unknown};
    // Machine code keeps what it changes in registers. What a function was called with is in memory if nothing assigns
    // to it, in the frame that the machine code was entered with: those above it may never have been written.
    const bool lasts = call.ci == trace.base && *reg < prototype->parameters && !is_assigned(*prototype, *reg);
    if (call.on_trace && !lasts) return {Kind::unknown};
    const Address base = lua.first_local(stopped, call);
    return base != 0 ? Variable{Kind::found, base + static_cast<Address>(*reg) * lua.slot_size()}
                     : Variable{Kind::unknown};
  }
  const auto upvalue = std::ranges::find(prototype->upvalues, expression.variable);
  if (upvalue == prototype->upvalues.end()) return {};
  const Address slot = call.closure == 0
                           ? 0
                           : lua.upvalue_slot(stopped, call.closure,
                                              static_cast<std::size_t>(upvalue - prototype->upvalues.begin()));
  return slot == 0 || trace.has(slot) ? Variable{Kind::unknown} : Variable{Kind::found, slot};
}

std::string LabelValues::value_of(const ActiveState& state, const Value& root,
                                  std::span<const FieldPaths::KeyId> fields, const Memory& stopped,
                                  const Memory& live) {
  const FieldPaths::State* const known = paths_.find(state.G);
  std::optional<Value> value = known != nullptr ? paths_.follow(stopped, *known, root, fields) : std::nullopt;
  // Where there is nothing, the key may have another address than was thought.
  if (known == nullptr || !value || (value->type == Value::Type::nil && !fields.empty())) {
    const FieldPaths::Learned learned = paths_.learn(live, state, root, fields, lessons_[state.G]);
    has_learned_ |= learned.something;
    if (!value && learned.nowhere) value.emplace();
    else if (learned.something) value.reset();
  }
  if (!value) return std::string(unknown_value);
  if (value->type == Value::Type::nil) return {};
  const std::optional<std::string> text = FieldPaths::text(stopped, *known, *value);
  return text ? bounded(*text) : std::string(unknown_value);
}

std::string LabelValues::value(LuaInspector& lua, const Joined& joined, const Expression& expression,
                               const Memory& stopped, const Memory& live) {
  using Kind = Variable::Kind;
  const StackCall* innermost = nullptr;
  bool is_cut = false;
  for (auto at = joined.calls.rbegin(); at != joined.calls.rend(); ++at) {
    if (at->state == nullptr) continue;
    const LuaCall& call = at->walk->calls[at->call];
    if (innermost == nullptr) innermost = &*at;
    is_cut |= at->walk->end == LuaWalk::End::broken || at->walk->left_out != 0;
    if (!call.is_lua() || expression.variable.empty()) continue;
    const Prototype* const prototype = lua.names().prototype(*at->state->lua, call);
    if (prototype == nullptr) return std::string(unknown_value);
    const std::vector<Place>& places = places_of(call, *prototype).places;
    const auto number = static_cast<std::size_t>(&expression - expressions_.data());
    if (std::ranges::find(places, number, &Place::expression) == places.end()) continue;
    const Variable variable = variable_in(*at, prototype, expression, stopped);
    if (variable.kind == Kind::none) continue;
    const std::optional<Value> root = variable.kind == Kind::found ? at->state->lua->read_value(stopped, variable.slot)
                                                                   : std::nullopt;
    return root ? value_of(*at->state, *root, expression.fields, stopped, live) : std::string(unknown_value);
  }
  if (innermost == nullptr) return {};
  if (is_cut && !expression.variable.empty()) return std::string(unknown_value);
  const ActiveState& state = *innermost->state;
  const FieldPaths::State* const known = paths_.find(state.G);
  const Memory& readable = known != nullptr ? stopped : live;
  const TableForm form = known != nullptr ? known->form : state.lua->stock_table_form();
  const Value table(Value::Type::table, state.lua->globals_table(readable, form, state.G, state.L));
  return value_of(state, table, expression.global, stopped, live);
}

const Labels& LabelValues::values(LuaInspector& lua, const Joined& joined, const Memory& stopped, const Memory& live) {
  labels_.clear();
  for (const Expression& expression : expressions_) {
    std::string text = value(lua, joined, expression, stopped, live);
    if (!text.empty()) labels_.push_back({expression.name, std::move(text)});
  }
  return labels_;
}

void LabelValues::learn() {
  constexpr std::size_t most_functions = 1 << 14;  // a program may make them without end
  if (places_.size() + new_places_.size() > most_functions) places_.clear();
  for (auto& [proto, places] : new_places_) places_[proto] = std::move(places);
  for (auto& [G, lesson] : lessons_) paths_.keep(G, std::move(lesson));
  new_places_.clear(), lessons_.clear();
  has_learned_ = false;
}

void LabelValues::forget() {
  places_.clear(), new_places_.clear(), lessons_.clear();
  has_learned_ = false;
  paths_.forget();
}

}  // namespace luaspy
