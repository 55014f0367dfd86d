#pragma once
// A file with options of a command: KEY = VALUE, by the long names of the options, in the lines of TOML that CLI11
// reads.

#include <CLI/CLI.hpp>

#include <string>
#include <vector>

#include "base/result.h"

namespace luaspy {

// The words of a command line with those of its --config put before its own; without --config, the same words. What
// the command line says counts instead of what the file says of the same option. An Error: the file's name, its line
// and what is wrong with that.
Result<std::vector<std::string>> with_configuration(const CLI::App& app, const std::vector<std::string>& words);

}  // namespace luaspy
