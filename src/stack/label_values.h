#pragma once
// The values that --label NAME=EXPR asks for. They are of the instant of the stop, so all that they need is read in it:
// touch() follows each variable of that name in each call that may be there, and values() afterwards finds out which of
// them was visible, in memory that the stop has read. Which functions have such a variable, and the addresses of keys,
// are learned from look to look; until then a value is "(unknown)".

#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/label_expression.h"
#include "events/label_table.h"
#include "luastate/field_path.h"
#include "luastate/lua_inspector.h"
#include "stack/one_stack.h"

namespace luaspy {

class LabelValues {
 public:
  explicit LabelValues(const std::vector<LabelExpression>& labels);

  // In the stop, after LuaInspector::locate().
  void touch(const LuaInspector& lua, const Locator::StoppedThread& thread, const Located& located);

  // After the stop: the labels of a look, without those whose value is nil, or whose variable is not there. `stopped`:
  // the memory that was read in the stop. `live`: as it is now.
  const Labels& values(LuaInspector& lua, const Joined& joined, const Memory& stopped, const Memory& live);
  // Has values() learned something? Then no stop may be in touch() while learn() is called.
  bool has_learned() const { return has_learned_; }
  void learn();

  // The process has become another program.
  void forget();

 private:
  struct Expression {
    std::string name;
    std::string variable;                   // "": only a global
    std::vector<FieldPaths::KeyId> fields;  // of the variable
    std::vector<FieldPaths::KeyId> global;  // the variable and these, from the table of globals on
  };
  // Of a function: where variables are that have the name of an expression.
  struct Place {
    std::size_t expression = 0;
    bool is_upvalue = false;
    int number = 0;  // of the register, or the upvalue
    bool operator==(const Place&) const = default;
  };
  struct Places {
    std::uint64_t mark = 0;  // LuaCall::mark of its Proto
    std::vector<Place> places;
  };
  // The variable that an expression means.
  struct Variable {
    enum class Kind { none, unknown, found } kind = Kind::none;
    Address slot = 0;
  };

  void touch_calls(const ActiveState& state, const Memory& memory);
  void touch_global(const ActiveState& state, const Memory& memory, std::size_t expression) const;
  const Places& places_of(const LuaCall& call, const Prototype& prototype);
  Variable variable_in(const StackCall& at, const Prototype* prototype, const Expression& expression,
                       const Memory& stopped) const;
  std::string value(LuaInspector& lua, const Joined& joined, const Expression& expression, const Memory& stopped,
                    const Memory& live);
  std::string value_of(const ActiveState& state, const Value& root, std::span<const FieldPaths::KeyId> fields,
                       const Memory& stopped, const Memory& live);

  std::vector<Expression> expressions_;
  FieldPaths paths_;
  std::unordered_map<Address, Places> places_;  // by Proto
  // What learn() will add.
  std::unordered_map<Address, FieldPaths::Lesson> lessons_;  // by global_State
  std::unordered_map<Address, Places> new_places_;
  bool has_learned_ = false;
  Labels labels_;
  // Of touch(), kept for their memory.
  LuaWalk walk_;
  std::vector<bool> touched_;  // by expression: a call may have its variable
};

}  // namespace luaspy
