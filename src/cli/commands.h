#pragma once
// The commands, with their options and notes.

#include <CLI/CLI.hpp>

#include "cli/options.h"

namespace luaspy {

// `options` receives what the user types, and must outlive `app`.
void add_commands(CLI::App& app, Options& options);

}  // namespace luaspy
