#include "dump/dump_json.h"

#include <algorithm>
#include <array>

#include "base/hex.h"
#include "base/json.h"
#include "base/text.h"

namespace luaspy {
namespace {

Json to_json(const Frame& frame) {
  static constexpr std::array kinds = {"lua", "c", "native", "marker", "kernel"};
  Json json = {{"kind", kinds[static_cast<std::size_t>(frame.kind)]}, {"name", frame.name}};
  if (!frame.file.empty()) json["file"] = frame.file;
  if (frame.kind == Frame::Kind::lua) {
    json["line"] = frame.line;
    json["line_defined"] = frame.line_defined;
    if (frame.line_is_near) json["line_is_near"] = true;
  }
  return json;
}

// Innermost first.
Json frames_of(const Stack& stack) {
  Json json = Json::array();
  for (auto frame = stack.rbegin(); frame != stack.rend(); ++frame) json.add(to_json(*frame));
  return json;
}

Json to_json(const Variable& variable) {
  return {{"kind", name(variable.kind)}, {"name", variable.name}, {"value", variable.value}};
}

Json to_json(const CompilerPart& part) {
  const JitWhy& why = part.why;
  Json json = {{"entry", !part.is_loop},
               {"first_line", part.first_line},
               {"last_line", part.last_line},
               {"state", name(why.why)}};
  if (why.trace != 0) json["trace"] = why.trace;
  if (why.failed != 0) json["attempts"] = why.failed;
  if (why.failed != 0 && why.at_least) json["at_least"] = true;
  if (!why.reason.empty()) json["reason"] = why.reason;
  if (!why.advice.empty()) json["advice"] = why.advice;
  json["why"] = why_text(why);
  return json;
}

Json to_json(const CompilerFunction& function) {
  return {{"file", function.file},
          {"line_defined", function.line_defined},
          {"jit_off", function.is_off},
          {"traces", function.traces},
          {"starts", Json::array(function.parts, to_json)}};
}

// Functions of which nothing is known are left out.
Json to_json(const CompilerLook& compiler) {
  Json json = {{"found", compiler.is_found}};
  if (compiler.is_on) json["on"] = *compiler.is_on;
  json["traces"] = compiler.traces;
  json["all_functions"] = compiler.has_all_functions;
  json["functions"] = Json::array();
  for (const auto& [prototype, function] : compiler.functions) {
    if (function.is_decided()) json["functions"].add(to_json(function));
  }
  return json;
}

void add_detail(const FrameDetail& detail, Json& frame) {
  if (detail.source) {
    frame["source"] = detail.source->text;
    if (detail.source->changed) frame["source_changed"] = true;
  }
  if (!detail.variables) return;
  frame["variables"] = Json::array(detail.variables->variables, to_json);
  if (!detail.variables->not_known.empty()) frame["variables_not_known"] = detail.variables->not_known;
}

Json to_json(const OpenFile& file) { return {{"fd", file.fd}, {"what", file.what}}; }

Json to_json(const Wait& wait) {
  Json json = {{"system_call", wait.system_call}, {"text", wait.text}};
  if (wait.file) json["file"] = to_json(*wait.file);
  if (!wait.watched.empty()) json["watched"] = Json::array(wait.watched, to_json);
  if (wait.timeout) json["timeout_s"] = static_cast<double>(wait.timeout->count()) / 1e9;
  if (wait.futex) json["futex"] = hex(*wait.futex);
  if (wait.mutex_owner) json["mutex_owner"] = *wait.mutex_owner;
  if (wait.joined_thread) json["joined_thread"] = *wait.joined_thread;
  if (!wait.children.empty()) json["children"] = wait.children;
  if (!wait.wchan.empty()) json["wchan"] = wait.wchan;
  if (wait.uninterruptible) json["uninterruptible"] = true;
  if (wait.halt.kind != Halt::Kind::none) json["halted"] = name(wait.halt.kind);
  return json;
}

Json to_json(const CpuWait& wait) {
  const auto seconds = [](std::int64_t ns) { return static_cast<double>(ns) / 1e9; };
  Json json = {{"text", cpu_wait_text(wait)}, {"window_s", seconds(wait.window)}, {"on_cpu_s", seconds(wait.on_cpu)}};
  if (wait.waited) json["waited_s"] = seconds(*wait.waited);
  if (wait.throttled != 0) json["throttled_s"] = seconds(wait.throttled);
  return json;
}

Json to_json(const ThreadLook& thread, const ProcessLook& look) {
  const Sample& sample = thread.sample;
  Json json = {{"tid", thread.tid}, {"name", thread.name}, {"state", name(sample.state)}};
  if (sample.loss != Loss::none) json["loss"] = name(sample.loss);
  if (sample.vm_state != VmState::none) json["vm_state"] = name(sample.vm_state);
  json["cpu_s"] = static_cast<double>(thread.times.on_cpu) / 1e9;
  json["native_complete"] = sample.quality.native_complete != 0;
  json["stopped_ns"] = sample.stopped_ns;
  if (thread.wait) json["wait"] = to_json(*thread.wait);
  if (thread.cpu_wait) json["cpu_wait"] = to_json(*thread.cpu_wait);
  json["frames"] = Json::array();
  for (std::size_t i = thread.stack.size(); i-- > 0;) {
    Json frame = to_json(thread.stack[i]);
    if (i < thread.details.size()) {
      add_detail(thread.details[i], frame);
      const CompilerFunction* const function = function_in(look, thread.details[i]);
      if (function != nullptr) frame["compiler"] = to_json(*function);
    }
    json["frames"].add(std::move(frame));
  }
  return json;
}

Json to_json(const CoroutineGroup& group) {
  Json json = {{"count", group.count}, {"status", name(group.status)}};
  if (!group.began.name.empty()) json["began"] = to_json(group.began);
  json["frames"] = frames_of(group.stack);
  for (const Address L : group.examples) json["examples"].add(hex(L));
  if (!group.errors.empty()) json["errors"] = group.errors;
  for (const CoroutineDetail& detail : group.details) {
    Json& one = json["details"].add({{"address", hex(detail.L)}});
    one["frames"] = Json::array();
    for (std::size_t i = std::min(group.stack.size(), detail.variables.size()); i-- > 0;) {
      Json frame = to_json(group.stack[i]);
      add_detail({std::nullopt, detail.variables[i]}, frame);
      one["frames"].add(std::move(frame));
    }
  }
  return json;
}

Json to_json(const StateReport& state, bool with_coroutines) {
  Json json = {{"global_state", hex(state.G)}, {"lua", state.lua}};
  if (state.collector.known) {
    json["collector"] = {{"phase", state.collector.phase}, {"bytes", state.collector.bytes}};
    if (!state.collector.mode.empty()) json["collector"]["mode"] = state.collector.mode;
  }
  json["hooked"] = state.hooked;
  if (!with_coroutines) return json;
  json["objects"] = state.objects;
  json["complete"] = state.complete, json["exact"] = state.exact;
  json["garbage"] = state.garbage, json["unread"] = state.unread;
  Json& counts = json["coroutines"] = Json::object();
  for (std::size_t i = 0; i < coroutine_statuses; ++i) {
    if (state.counts[i] != 0) counts[name(static_cast<CoroutineStatus>(i))] = state.counts[i];
  }
  json["groups"] = Json::array(state.groups, to_json);
  return json;
}

Json to_json(const CoreFacts& core) {
  Json json = {{"file", core.path}};
  if (!core.end.empty()) json["ended_by"] = core.end;
  if (core.missing_bytes != 0) json["missing_bytes"] = core.missing_bytes;
  for (const CoreFacts::MissingFile& file : core.missing_files)
    json["missing_files"].add({{"file", printable(file.path)}, {"differs", file.differs}});
  return json;
}

// Adds the part of a look that differs from look to look, without what belongs to the process.
void add_look(const ProcessLook& look, bool with_coroutines, Json& json) {
  json["threads"] = Json::array();
  for (const ThreadLook& thread : look.threads) json["threads"].add(to_json(thread, look));
  json["states"] = Json::array();
  for (const StateReport& state : look.states) {
    Json& json_of_state = json["states"].add(to_json(state, with_coroutines));
    if (const auto compiler = look.compilers.find(state.G); compiler != look.compilers.end())
      json_of_state["compiler"] = to_json(compiler->second);
  }
  if (!look.deadlocks.empty()) json["deadlocks"] = look.deadlocks;
  if (look.stood_still_ns != 0) json["stood_still_ns"] = look.stood_still_ns;
  if (look.disturbed) json["disturbed"] = true;
}

Json to_json(const Movement& movement) {
  Json json = {{"tid", movement.tid},
               {"name", movement.name},
               {"verdict", name(movement.kind)},
               {"cpu", movement.cpu},
               {"waited_for_cpu", movement.waited}};
  json["inside"] = frames_of(movement.inside);
  if (!movement.lines.empty()) json["lines"] = movement.lines;
  return json;
}

Json to_json(const LuaImage& image) { return {{"version", image.version}, {"file", image.path}}; }

void add_process(const std::vector<ProcessLook>& looks, bool with_coroutines, Json& json) {
  const ProcessLook& look = looks.front();
  json["pid"] = look.pid;
  json["command"] = look.command;
  if (look.core) json["core"] = to_json(*look.core);
  json["lua"] = Json::array(look.images, to_json);
  json["read_as"] = look.layouts;
  add_look(look, with_coroutines, json);
  if (looks.size() == 1) return;
  json["later"] = Json::array();
  for (auto later = looks.begin() + 1; later != looks.end(); ++later)
    add_look(*later, with_coroutines, json["later"].add({{"after_s", later->time - look.time}}));
  json["movements"] = Json::array(movements(looks), to_json);
}

}  // namespace

std::string to_json(const std::vector<std::vector<ProcessLook>>& processes, bool with_coroutines) {
  Json json = {{"version", 1}};
  add_process(processes.front(), with_coroutines, json);
  for (std::size_t i = 1; i < processes.size(); ++i)
    add_process(processes[i], with_coroutines, json["subprocesses"].add({}));
  return json.text();
}

}  // namespace luaspy
