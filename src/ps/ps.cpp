#include "ps/ps.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iostream>
#include <iterator>

#include "attach/refusal.h"
#include "base/display_text.h"
#include "base/json.h"
#include "base/paint.h"
#include "base/say.h"
#include "base/text.h"
#include "ps/lua_processes.h"
#include "system/calls.h"
#include "system/standard_output.h"
#include "system/terminal.h"

namespace luaspy {
namespace {

std::string versions(const LuaProcess& process) {
  std::string text;
  for (const LuaImage& image : process.images) {
    const std::string name = printable(image.name()) + (image.certain ? "" : "?");
    if (text.find(name) == text.npos) text += (text.empty() ? "" : ", ") + name;
  }
  return text + (process.is_32bit ? " (32-bit: not read)" : "");
}

std::string files(const LuaProcess& process) {
  std::string text;
  std::vector<Address> seen;
  for (const LuaImage& image : process.images) {
    if (std::ranges::find(seen, image.start) != seen.end()) continue;
    seen.push_back(image.start);
    text += (text.empty() ? "" : ", ") +
            displayable(base_name(image.path == process.executable ? process.program : image.path), Charset::utf8, 40);
  }
  return text;
}

std::string states_text(const LuaProcess& process) {
  if (!process.states) return "?";
  return fmt::format("{}{}", *process.states, process.states_complete ? "" : "+");
}

// {"version": 1, "processes": [...], "unseen": [{"reason", "pids"}]}. For each process: pid, uid,
// user, name, command, bits (32 or 64), threads, cpu_percent (now, of one CPU), cpu_seconds (since
// its start), lua: [{"version", "file", "certain"}], and, if luaspy may not look into it,
// "refusal". With --states: "states" (null if its memory cannot be read), "states_complete",
// "read_as". "version" changes when a field changes its meaning or is removed.
std::string to_json(const LuaProcesses& found, bool states) {
  Json json = {{"version", 1}, {"processes", Json::array()}, {"unseen", Json::array()}};
  for (const LuaProcess& process : found.processes) {
    Json entry = {{"pid", process.pid},
                  {"uid", process.uid},
                  {"user", process.user},
                  {"name", process.name},
                  {"command", process.command},
                  {"bits", process.is_32bit ? 32 : 64},
                  {"threads", process.threads},
                  {"cpu_percent", std::round(process.cpu_percent * 10) / 10},
                  {"cpu_seconds", std::round(process.cpu_seconds * 100) / 100}};
    entry["lua"] = Json::array();
    for (const LuaImage& image : process.images)
      entry["lua"].add({{"version", image.version}, {"file", image.path}, {"certain", image.certain}});
    if (!process.refusal.empty()) entry["refusal"] = process.refusal;
    if (states) {
      entry["states"] = process.states ? Json(*process.states) : Json();
      entry["states_complete"] = process.states_complete;
      entry["read_as"] = process.layouts;
    }
    json["processes"].add(std::move(entry));
  }
  for (const Unseen& unseen : found.unseen) json["unseen"].add({{"reason", unseen.reason}, {"pids", unseen.pids}});
  return json.text();
}

}  // namespace

std::string table_of(const std::vector<LuaProcess>& processes, int width) {
  const bool with_states = std::ranges::any_of(processes,
                                               [](const LuaProcess& process) { return process.states.has_value(); });
  std::vector<std::array<std::string, 8>> rows = {
      {"PID", "USER", "CPU %", "THREADS", "STATES", "LUA", "FOUND IN", "COMMAND"}};
  constexpr std::size_t states_column = 4, command_column = 7;
  constexpr int shortest_command = 16;
  constexpr std::size_t most_command = 1000;
  for (const LuaProcess& process : processes)
    rows.push_back({std::to_string(process.pid), displayable(process.user, Charset::utf8, 32),
                    fmt::format("{:.1f}", process.cpu_percent), std::to_string(process.threads), states_text(process),
                    versions(process), files(process), displayable(process.command, Charset::utf8, most_command)});
  std::array<int, 8> widths{};
  for (const auto& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], columns(row[i]));
  }
  // In a narrow window what says least is left out, this first.
  constexpr std::array<std::size_t, 4> spared = {3, 1, 6, states_column};
  std::array<bool, 8> is_shown{};
  is_shown.fill(true);
  is_shown[states_column] = with_states;
  const auto width_before_command = [&] {
    int sum = 0;
    for (std::size_t i = 0; i < command_column; ++i) sum += is_shown[i] ? widths[i] + 2 : 0;
    return sum;
  };
  for (const std::size_t column : spared) {
    if (width != 0 && width_before_command() + shortest_command > width) is_shown[column] = false;
  }
  std::string text;
  for (const auto& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < command_column; ++i) {
      if (!is_shown[i]) continue;
      const bool is_number = i == 0 || (i >= 2 && i <= states_column);
      const std::string blanks(static_cast<std::size_t>(widths[i] - columns(row[i])), ' ');
      line += (is_number ? blanks + row[i] : row[i] + blanks) + "  ";
    }
    const int room = std::max(width - columns(line), shortest_command / 2);
    text += line + (width == 0 ? row[command_column] : fit(row[command_column], room, Cut::right, Charset::ascii)) +
            '\n';
  }
  return text;
}

std::string unseen_text(const std::vector<Unseen>& unseen) {
  std::string text;
  for (const Unseen& some : unseen) {
    const std::string which = some.pids.size() == 1 ? fmt::format("process ({})", some.pids[0]) : "processes";
    text += fmt::format("{} {} could not be looked at: {}\n", some.pids.size(), which, some.reason);
  }
  return text;
}

namespace {

// Other users' init is on every machine, and hardly ever what anybody looks for.
void leave_out_init(std::vector<Unseen>& unseen) {
  constexpr pid_t init = 1;
  for (Unseen& some : unseen) std::erase(some.pids, init);
  std::erase_if(unseen, [](const Unseen& some) { return some.pids.empty(); });
}

}  // namespace

Result<int> ps(const PsOptions& options) {
  if (!has_own_proc()) return explain_absence(0);
  LuaProcesses found = find_lua_processes(options.states);
  measure_cpu(found.processes);
  std::vector<Unseen> unseen = found.unseen;
  if (!found.processes.empty()) leave_out_init(unseen);
  std::string notes = unseen_text(unseen);
  std::string refusals;
  for (const LuaProcess& process : found.processes) {
    if (!process.refusal.empty() && refusals.size() < 2000) refusals += process.refusal + '\n';
  }
  if (options.json) {
    std::cout << to_json(found, options.states) << std::flush;
  } else {
    if (found.processes.empty()) notes = "No process runs Lua.\n" + notes;
    else std::cout << table_of(found.processes, system::terminal_of(1).width) << std::flush;
    constexpr int further_in = 2;
    say("{}", wrapped(refusals + notes, system::terminal_of(2).width, further_in));
  }
  if (const Result<void> written = system::flush_standard_output("the list"); !written) return written.error();
  return 0;
}

}  // namespace luaspy
