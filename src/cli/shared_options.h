#pragma once
// Options that several commands have.

#include <CLI/CLI.hpp>

#include <string>
#include <utility>
#include <vector>

#include "base/mode.h"
#include "profile/view_options.h"
#include "sampling/target_options.h"

namespace luaspy {

// Options for a target that is already running. Returns both, because other options exclude them.
std::pair<CLI::Option*, CLI::Option*> add_running(CLI::App& command, TargetOptions& target);
void add_target(CLI::App& command, TargetOptions& target);
void add_end_command(CLI::App& command, bool& end_command);
// A core file, with where its program and its libraries are now. Returns --core.
CLI::Option* add_core(CLI::App& command, std::string& core, std::string& executable, std::string& root);
void add_debuginfod(CLI::App& command, TargetOptions& target);
void add_subprocesses(CLI::App& command, bool& subprocesses);
void add_rate(CLI::App& command, double& rate);
void add_max_stopped(CLI::App& command, double& max_stopped);
void add_always_stop(CLI::App& command, bool& always_stop);
void add_kernel(CLI::App& command, bool& kernel);
void add_mode(CLI::App& command, Mode& mode);
// The same for a recording. Whether it has Lua was decided when it was made, so there is no native.
void add_mode_of_recording(CLI::App& command, Mode& mode);
void add_patterns(CLI::App& command, std::string& only, std::string& ignore);
// `more`: formats that only this command has.
void add_output(CLI::App& command, std::string& output, std::string& format, const std::string& otherwise,
                const std::vector<std::string>& more = {});
// Of recordings with sleeping threads (--idle).
CLI::Option* add_all_threads(CLI::App& command, ViewOptions& shape);
void add_shape(CLI::App& command, ViewOptions& shape, bool& threads);

}  // namespace luaspy
