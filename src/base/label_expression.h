#pragma once
// What the user wants to know of each sample: --label NAME=EXPR, or a label that luaspy knows how to read.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace luaspy {

// A variable, and the fields from it on: req.uri, KEYS[1].
struct LabelExpression {
  std::string name;               // of the label
  std::vector<std::string> path;  // at least the variable; an element of an array is its index, in digits
};

// Everything that samples are labelled with.
struct LabelChoice {
  bool coroutines = false;  // in which they were
  bool requests = false;    // of nginx, Redis or HAProxy, for which they were
  bool traces = false;      // of a distributed trace, the span that has called
  bool phases = false;      // of nginx, that in which a request was
  bool fibers = false;      // of Tarantool, that which ran
  bool plugins = false;     // which plugin of the program it was
  std::vector<LabelExpression> expressions;
  bool any() const { return coroutines || requests || traces || phases || fibers || plugins || !expressions.empty(); }
};

inline constexpr std::size_t most_label_expressions = 8;

// "NAME=EXPR"; nullopt: it is none. A name has letters, digits, "_", "." and "-"; an expression is Lua's names, joined
// by dots, of which "_G." at the begin says that a global is meant, and elements as [1], up to [99].
std::optional<LabelExpression> label_expression(std::string_view text);

}  // namespace luaspy
