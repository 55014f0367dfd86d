#pragma once
// What somebody has typed, and what is wrong with it.

#include <CLI/CLI.hpp>

#include <string>
#include <vector>

namespace luaspy {

// The words as luaspy's options have them: `luaspy help top` is `luaspy top --help`, and `luaspy top
// 1234` is `luaspy top --pid 1234`.
std::vector<std::string> meant_words(const CLI::App& app, std::vector<std::string> words);

// The first option that the command in `words` does not have, or whose value it does not take, in one line, with what
// to type instead; "" if there is none. To be asked before CLI11 reads the words: it would take the value of an option
// that it does not know for something else.
std::string explain_wrong_option(const CLI::App& app, const std::vector<std::string>& words);

// What is wrong with `words`, which have no such option, in one line, with what to type instead.
std::string explain(const CLI::App& app, const CLI::ParseError& error, const std::vector<std::string>& words);

}  // namespace luaspy
