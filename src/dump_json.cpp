#include "dump_json.h"

#include <array>
#include <nlohmann/json.hpp>

namespace luaspy {
namespace {

using Json = nlohmann::ordered_json;

Json to_json(const Frame& frame) {
  static constexpr std::array kinds = {"lua", "c", "native", "marker"};
  Json json = {{"kind", kinds[static_cast<std::size_t>(frame.kind)]}, {"name", frame.name}};
  if (!frame.file.empty()) json["file"] = frame.file;
  if (frame.kind == Frame::Kind::lua) {
    if (frame.line != 0) json["line"] = frame.line;
    json["line_defined"] = frame.line_defined;
    if (frame.line_is_near) json["line_is_near"] = true;
  }
  return json;
}

Json to_json(const ThreadLook& thread) {
  const Sample& sample = thread.sample;
  Json json = {{"tid", thread.tid}, {"name", thread.name}, {"state", sample.state == Sample::State::running ? "running" : "sleeping"}};
  if (sample.loss != Loss::none) json["loss"] = name(sample.loss);
  if (sample.vm_state != VmState::none) json["vm_state"] = name(sample.vm_state);
  json["cpu_s"] = static_cast<double>(thread.times.on_cpu) / 1e9;
  json["native_complete"] = sample.quality.native_complete != 0;
  json["stopped_ns"] = sample.stopped_ns;
  json["frames"] = Json::array();
  for (auto frame = sample.stack.rbegin(); frame != sample.stack.rend(); ++frame) json["frames"].push_back(to_json(*frame));
  return json;
}

Json threads_of(const ProcessLook& look) {
  Json json = Json::array();
  for (const ThreadLook& thread : look.threads) json.push_back(to_json(thread));
  return json;
}

Json to_json(const Movement& movement) {
  Json json = {{"tid", movement.tid}, {"name", movement.name}, {"verdict", name(movement.kind)}, {"cpu", movement.cpu}, {"waited_for_cpu", movement.waited}};
  json["inside"] = Json::array();
  for (auto frame = movement.inside.rbegin(); frame != movement.inside.rend(); ++frame) json["inside"].push_back(to_json(*frame));
  if (!movement.lines.empty()) json["lines"] = movement.lines;
  return json;
}

Json to_json(const std::vector<ProcessLook>& looks) {
  const ProcessLook& look = looks.front();
  Json json = {{"pid", look.pid}, {"command", look.command}};
  json["lua"] = Json::array();
  for (const LuaImage& image : look.images) json["lua"].push_back({{"version", image.version}, {"file", image.path}});
  json["rows"] = look.rows;
  json["threads"] = threads_of(look);
  if (looks.size() == 1) return json;
  json["later"] = Json::array();
  for (auto later = looks.begin() + 1; later != looks.end(); ++later) json["later"].push_back({{"after_s", later->time - look.time}, {"threads", threads_of(*later)}});
  json["movements"] = Json::array();
  for (const Movement& movement : movements(looks)) json["movements"].push_back(to_json(movement));
  return json;
}

}  // namespace

std::string to_json(const std::vector<std::vector<ProcessLook>>& families) {
  Json json = {{"version", 1}};
  json.update(to_json(families.front()));
  for (std::size_t i = 1; i < families.size(); ++i) json["subprocesses"].push_back(to_json(families[i]));
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + '\n';
}

}  // namespace luaspy
