#pragma once
// Texts, each kept once, so that a text that is needed again takes no memory and no allocation, and two texts are equal
// if their addresses are.

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_set>

namespace luaspy {

// Never nullptr. Valid until WordTable::clear().
using Word = const std::string*;

class WordTable {
 public:
  Word operator()(std::string_view text) {
    const auto known = all_.find(text);
    return known != all_.end() ? &*known : &*all_.emplace(text).first;
  }
  std::size_t size() const { return all_.size(); }
  void clear() { all_.clear(); }

 private:
  struct Hash : std::hash<std::string_view> {
    using is_transparent = void;
  };
  std::unordered_set<std::string, Hash, std::equal_to<>> all_;
};

}  // namespace luaspy
