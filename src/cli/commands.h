#pragma once
// The commands, with their options and notes.

#include <CLI/CLI.hpp>

#include "cli/options.h"

namespace luaspy {

// What `luaspy --help` ends with: what to type, and what the exit status says.
extern const char* const examples;

// `options` receives what the user types, and must outlive `app`.
void add_commands(CLI::App& app, Options& options);

}  // namespace luaspy
