#pragma once
// Objects in Lua's words: what one is, and how it is reached.

#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "heap/heap_analysis.h"
#include "heap/path_ends.h"
#include "luastate/coroutine.h"
#include "luastate/names.h"
#include "luastate/value_text.h"

namespace luaspy {

class ObjectNames {
 public:
  // `analysis` must outlive it, and know its paths.
  explicit ObjectNames(const HeapAnalysis& analysis);

  // How the program reaches the object, by a shortest path: "cache.entries[5]",
  // "package.loaded.app.push → upvalue queue". Cut in the middle where it is long.
  std::string path(Node node);
  // The objects whose path() this is, or "globals": mostly one; up to 16 of those that have the same, such as the
  // arguments of C functions. None if the path has parts that were left out.
  std::vector<Node> at_path(std::string_view path);
  struct Stage {
    Node node = no_node;        // no_node: stages that are left out
    std::string text;           // to be added to the path of the one before
    std::string alone() const;  // without the arrow that it may begin with
  };
  // That path, object by object: the last one is `node`. Empty if nothing refers to it.
  std::vector<Stage> stages(Node node);
  // The objects of that path, from the first one on to `node`.
  std::vector<Node> steps(Node node) const;
  // A value as dump shows it: {1, 2, name = "x", …(3 more)}.
  std::string text(const Value& value) { return values_.text(value); }
  std::string text(const HeapObject& object);
  std::string text(const HeapObject& object, const ValueLimits& limits);
  // How `from` refers to `to`, to be added to the path of `from`: ".entries", " → upvalue queue of
  // push (app.lua:3)". `is_first`: nothing comes before it.
  std::string step(Node from, Node to, bool is_first = false) { return step(from, to, is_first, {}).text; }
  // The class that a metatable stands for: its __name, or where the program keeps it or the table
  // that its __index is. Empty if nothing tells.
  std::string class_of(Address metatable);
  // What a reference of `from` is called, alone: "entries" for a field, "[5]", "[Account]" for a key
  // that is an object of a class, "queue" for an upvalue, "local x of push (a.lua:3)", "metatable".
  // Valid UTF-8.
  std::string name_of(const HeapObject& from, const Reference& reference);
  std::string name_of(const Root& root) const;
  // "push (app.lua:3)", "string.gsub [C]"; "(app.lua:3)" if the function has no name where programs
  // keep such.
  std::string function_name(Address closure);
  // The chunk of a function's code that was defined at this place, as frames call it.
  std::string chunk_of(Address proto, const FunctionPlace& place);
  // The function that a coroutine began with; empty if it is not known.
  std::string began_with(Address L);

 private:
  struct Step {
    std::string text;
    std::string name;  // of the field or upvalue that `to` is; "": it is none
  };
  // `from_name`: what the step before has called `from`.
  Step step(Node from, Node to, bool is_first, const std::string& from_name);
  std::string first_step(Node node);
  void follow(Node at, std::string_view rest, bool is_first, const std::string& name, int depth,
              std::vector<Node>& found);
  std::vector<Node> next_steps(Node at, std::string_view rest, bool is_first);
  std::string key_text(const Value& key, bool is_first);
  std::string slot_text(Address L, std::uint32_t index);
  std::string upvalue_name(Address closure, std::uint32_t index);
  // The names that a Proto has for its variables; empty ones if it cannot be read.
  struct VariableNames {
    std::vector<std::string> upvalues;
    std::vector<LocalVariable> locals;
  };
  const VariableNames& variables_of(Address proto);
  const CoroutineLook& look_at(Address L, Active active);
  std::string text(const LuaCall& call);
  std::string text(const HeapObject& object, ValueText& values);
  std::string name_where_it_lives(Address table);

  const HeapAnalysis& analysis_;
  Names names_;
  CountingRoom room_;
  ValueText values_;
  PathEnds path_ends_;
  CoroutineLook look_;
  std::pair<Address, Active> looked_at_{};                // what look_ is of
  std::unordered_map<Address, VariableNames> variables_;  // by Proto
};

}  // namespace luaspy
