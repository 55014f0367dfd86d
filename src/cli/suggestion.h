#pragma once
// What somebody may have meant who has typed a word that does not exist.

#include <span>
#include <string>
#include <string_view>

namespace luaspy {

// The choice that is most like `word`; empty if none is. Like: at most a third of its letters are
// wrong, missing, too many, or exchanged with the next one.
std::string nearest(std::string_view word, std::span<const std::string> choices);

}  // namespace luaspy
