#include "dump.h"

#include <fmt/format.h>

#include <iostream>
#include <iterator>
#include <string>

#include <nlohmann/json.hpp>

#include "profile.h"
#include "session.h"

namespace luaspy {
namespace {

struct ThreadDump {
  int tid = 0;
  std::string name;
  Sample sample;
};

constexpr std::string_view state_name(Sample::State state) { return state == Sample::State::running ? "running" : "sleeping"; }

// Every thread, asleep or not. One that moves while it is read asleep is looked at again.
std::vector<ThreadDump> look(Session& session) {
  constexpr int tries = 20;
  std::vector<ThreadDump> threads;
  for (const auto& thread : session.target().process().threads()) {
    std::optional<Sample> sample;
    for (int i = 0; i < tries; ++i) {
      sample = session.sampler().sample(*thread);
      if (!sample || (sample->loss != Loss::moved && sample->loss != Loss::not_stopped)) break;
    }
    if (sample && sample->loss != Loss::ended) threads.push_back({thread->tid(), thread->name(), std::move(*sample)});
  }
  return threads;
}

std::string to_text(Session& session, const std::vector<ThreadDump>& threads) {
  std::string text;
  const auto out = std::back_inserter(text);
  fmt::format_to(out, "Process {}: {}\n", session.target().process().pid(), session.target().process().command());
  for (const LuaImage& image : session.sampler().reader().images()) fmt::format_to(out, "{} in {}\n", image.name(), image.path);
  for (const ThreadDump& thread : threads) {
    const VmState vm_state = thread.sample.vm_state;
    fmt::format_to(out, "\nThread {} \"{}\" ({}{})\n", thread.tid, thread.name, state_name(thread.sample.state),
               vm_state == VmState::none ? "" : fmt::format("; in the {}", name(vm_state)));
    if (thread.sample.loss != Loss::none) fmt::format_to(out, "    no stack: {}\n", name(thread.sample.loss));
    for (auto frame = thread.sample.stack.rbegin(); frame != thread.sample.stack.rend(); ++frame) fmt::format_to(out, "    {}\n", describe(*frame, true));
  }
  return text;
}

nlohmann::ordered_json to_json(const Frame& frame) {
  static constexpr std::array kinds = {"lua", "c", "native", "marker"};
  nlohmann::ordered_json json = {{"kind", kinds[static_cast<std::size_t>(frame.kind)]}, {"name", frame.name}};
  if (!frame.file.empty()) json["file"] = frame.file;
  if (frame.kind == Frame::Kind::lua) {
    json["line"] = frame.line, json["line_defined"] = frame.line_defined;
    if (frame.line_is_near) json["line_is_near"] = true;
  }
  return json;
}

// The schema is told in README.md ("dump --json"); "version" changes when a field changes its meaning or goes.
std::string to_json(Session& session, const std::vector<ThreadDump>& threads) {
  nlohmann::ordered_json json = {{"version", 1}, {"pid", session.target().process().pid()}, {"command", session.target().process().command()}};
  json["lua"] = nlohmann::ordered_json::array();
  for (const LuaImage& image : session.sampler().reader().images()) json["lua"].push_back({{"version", image.version}, {"file", image.path}});
  json["rows"] = session.sampler().reader().lua().rows();
  json["threads"] = nlohmann::ordered_json::array();
  for (const ThreadDump& thread : threads) {
    nlohmann::ordered_json entry = {{"tid", thread.tid}, {"name", thread.name}, {"state", state_name(thread.sample.state)}};
    if (thread.sample.loss != Loss::none) entry["loss"] = name(thread.sample.loss);
    if (thread.sample.vm_state != VmState::none) entry["vm_state"] = name(thread.sample.vm_state);
    entry["native_complete"] = thread.sample.quality.native_complete != 0;
    entry["stopped_ns"] = thread.sample.stopped_ns;
    entry["frames"] = nlohmann::ordered_json::array();
    for (auto frame = thread.sample.stack.rbegin(); frame != thread.sample.stack.rend(); ++frame) entry["frames"].push_back(to_json(*frame));
    json["threads"].push_back(std::move(entry));
  }
  return json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + '\n';
}

}  // namespace

Result<int> dump(const DumpOptions& options) {
  SamplerOptions sampler_options;
  sampler_options.merging = {options.mode, options.traces};
  sampler_options.idle = true;
  sampler_options.limits.count_left_out = true;
  sampler_options.patience = std::chrono::seconds(2);
  Result<std::unique_ptr<Session>> opened = Session::open(options.target, sampler_options);
  if (!opened) return opened.error();
  Session& session = **opened;
  if (options.mode != Mode::native) {
    if (const Result<void> lua = session.check_lua(); !lua) return lua.error();
  }
  system::watch_signals();
  const std::vector<ThreadDump> threads = look(session);
  if (threads.empty()) return Error{Cause::target_ended, fmt::format("Process {} ended while it was looked at.", session.target().process().pid())};
  // A stream, not stdio: that gives up when a signal interrupts it.
  std::cout << (options.json ? to_json(session, threads) : to_text(session, threads)) << std::flush;
  if (!std::cout) return Error{Cause::output, "Cannot write all of the dump: no space, or closed by its reader."};
  if (options.mode != Mode::native && !session.sampler().reader().has_state()) {
    return Error{Cause::not_initialised, fmt::format("{} is mapped in process {}, but there is no lua_State in its memory: Lua is not initialised yet.",
                                                     session.sampler().reader().images().front().name(), session.target().process().pid())};
  }
  return 0;
}

}  // namespace luaspy
