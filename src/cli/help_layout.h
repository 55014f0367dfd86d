#pragma once
// How --help looks: the words of the command line as a person types them.

#include <CLI/CLI.hpp>

#include <memory>
#include <string>

namespace luaspy {

std::shared_ptr<CLI::FormatterBase> help_layout();

// What follows a command's options: "[-- COMMAND [ARGUMENT...]]", "[FILE]", "bash|zsh|fish". `word`: an option without
// a name, which is known by its place.
std::string word_as_typed(const CLI::Option& word);

// The choices of a validator that lists them, as "TEXT:{bash,zsh,fish}" does; empty if there is none.
std::vector<std::string> choices_of(const CLI::Option& option);

}  // namespace luaspy
