#pragma once
// Where the function that an instruction calls came from, and whether that is the function that was
// called.

#include <cstdint>
#include <string_view>
#include <vector>

namespace luaspy {

// Where the function that an instruction calls came from. Refers only to what still exists while
// the callee runs.
struct ValuePath {
  enum class Root : std::uint8_t {
    unknown,
    slot,     // register `index` of the caller's frame
    upvalue,  // number `index` of the caller's closure
    global,   // named by constant `index`, in the environment of the caller's closure
    closure,  // a new closure of the prototype that is constant `index`
    event,    // a metamethod of one of the operands
  };
  static constexpr int environment = -1;
  struct Key {
    int index = 0;
    bool is_element = false;  // true: `index` is the key itself; false: the number of a constant
  };
  Root root = Root::unknown;
  int index = 0;
  static constexpr std::size_t most_keys = 60;
  std::vector<Key> keys;      // then the fields to follow, outermost first
  std::string_view event{};   // without "__"
  std::vector<int> operands;  // registers, or `environment`
};

enum class Callee : std::uint8_t {
  unknown,  // what the expression refers to is not known, or is no longer a function
  same,     // the function that was called
  // A different one: a tail call came between, the value was changed since, or the name was a guess
  // (`(a or b)()` has the name of b).
  other,
};

}  // namespace luaspy
