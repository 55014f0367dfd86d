#include "doctor/doctor_json.h"

#include <fmt/format.h>

#include <cmath>

#include "base/hex.h"
#include "base/json.h"
#include "base/text.h"
#include "base/time_text.h"
#include "base/version.h"
#include "luastate/lua.h"

namespace luaspy {
namespace {

double in_hundredths(double value) { return std::round(value * 100) / 100; }

template <typename Values>
Json object_of(const Values& values) {
  Json json = Json::object();
  for (const auto& [name, value] : values) json[name] = value;
  return json;
}

Json to_json(const SystemFacts& system) {
  Json json = {{"name", system.name},
               {"release", system.release},
               {"machine", system.machine},
               {"distribution", system.distribution},
               {"cpus", system.cpus},
               {"load", system.load},
               {"rights", object_of(system.rights)},
               {"ptrace_scope", system.ptrace_scope},
               {"perf_event_paranoid", system.perf_event_paranoid},
               {"may_stop", system.may_not_stop.empty()},
               {"may_log_switches", system.may_log_switches}};
  if (!system.may_not_stop.empty()) json["may_not_stop"] = system.may_not_stop;
  return json;
}

Json to_json(const ProcessFacts& process) {
  Json json = {{"pid", process.pid},
               {"program", process.program},
               {"status", object_of(process.status)},
               {"memory", object_of(process.memory)},
               {"namespaces", object_of(process.namespaces)}};
  if (!process.called.empty()) json["called"] = process.called;
  return json;
}

Json to_json(const LuaImage& image) {
  Json layouts = Json::array();
  for (const Lua* const layout : image.layouts) layouts.add(layout->name());
  return {{"version", image.version},     {"file", image.path},       {"start", hex(image.start)},
          {"end", hex(image.end)},        {"certain", image.certain}, {"recognised_by", printable(image.ident)},
          {"layouts", std::move(layouts)}};
}

Json to_json(const LookFacts::State& state) {
  return {{"lua_state", hex(state.L)},
          {"global_state", hex(state.G)},
          {"lua", state.lua},
          {"natives_end", hex(state.boundary)}};
}

Json to_json(const NativeFacts& native) {
  return {{"address", native.address},
          {"name", native.name},
          {"step", native.step},
          {"sp", hex(native.sp)},
          {"is", native.is}};
}

Json to_json(const LookFacts& look) {
  if (!look.lost.empty()) return {{"lost", look.lost}};
  Json shape = Json::array();
  for (const auto& [what, count] : look.shape)
    shape.add(count == 0 ? Json{{"marker", what}} : Json{{"kind", what}, {"frames", count}});
  Json json = {{"state", look.state},
               {"vm", look.vm_state},
               {"stood_still_ns", look.stopped_ns},
               {"quality", object_of(quality_facts(look.quality))},
               {"stack", std::move(shape)},
               {"states", Json::array(look.states, to_json)},
               {"native_frames", look.native_count},
               {"stack_bytes", look.stack_bytes}};
  if (look.in_full) json["natives"] = Json::array(look.natives, to_json);
  return json;
}

Json to_json(const ThreadFacts& thread) {
  Json json = {{"tid", thread.tid},
               {"state", thread.state},
               {"on_cpu_seconds", in_hundredths(thread.on_cpu)},
               {"waiting_seconds", in_hundredths(thread.waited_for_cpu)},
               {"looks", Json::array(thread.looks, to_json)}};
  if (!thread.system_call.empty()) json["system_call"] = thread.system_call;
  return json;
}

Json to_json(const StateFacts& state) {
  Json json = {{"global_state", hex(state.G)},
               {"lua", state.lua},
               {"main_thread", hex(state.main_thread)},
               {"holds", state.misfit.empty()}};
  if (!state.misfit.empty()) json["misfit"] = state.misfit;
  if (state.collector.known)
    json["collector"] = {
        {"phase", state.collector.phase}, {"mode", state.collector.mode}, {"bytes", state.collector.bytes}};
  if (!state.fields.empty()) json["fields"] = Json::object();
  for (const auto& [name, offset] : state.fields) json["fields"][name] = offset ? Json(*offset) : Json();
  return json;
}

Json to_json(const InterpreterFacts::Execute& execute) {
  Json json = {{"address", execute.address}, {"bytes", execute.bytes}, {"score", execute.score}};
  if (!execute.symbol.empty()) json["symbol"] = execute.symbol;
  return json;
}

Json to_json(const InterpreterFacts& image) {
  Json json = {{"start", hex(image.start)}};
  if (!image.module.empty()) json["module"] = image.module;
  if (image.vm) {
    json["luajit"] = {{"start", image.vm->start},
                      {"end", image.vm->end},
                      {"frame_bytes", image.vm->frame_bytes},
                      {"also_saves", image.vm->also_saves},
                      {"sequences", image.vm->sequences},
                      {"trace_exit", image.vm->has_trace_exit}};
    return json;
  }
  json["executes"] = Json::array(image.executes, to_json);
  if (!image.collector.empty()) json["collector"] = image.collector;
  return json;
}

Json to_json(const TrialFacts& facts) {
  Json rejected = Json::array();
  for (const auto& [check, failures] : facts.trial.failed)
    rejected.add({{"check", check}, {"count", failures.count}, {"first", hex(failures.first)}});
  Json json = {{"layout", facts.trial.lua.name()},
               {"suggested", facts.suggested},
               {"fits", facts.trial.fitted},
               {"rejected", std::move(rejected)}};
  if (facts.trial.fitted != 0) json["first_fit"] = hex(facts.trial.first_fit);
  return json;
}

Json to_json(const ModuleFacts& module) {
  Json json = {{"path", module.path},
               {"start", hex(module.start)},
               {"build_id", module.build_id},
               {"deleted", module.deleted},
               {"readable", module.bytes.has_value()}};
  if (!module.bytes) return json;
  json["bytes"] = *module.bytes;
  json["eh_frame_hdr_bytes"] = module.eh_frame_hdr_bytes;
  json["functions_described"] = module.functions_described;
  json["has_file"] = module.has_file;
  if (module.functions) json["functions"] = *module.functions;
  return json;
}

Json to_json(const MappingFacts& mapping) {
  return {{"start", hex(mapping.start)}, {"end", hex(mapping.end)}, {"flags", mapping.flags}, {"kind", mapping.kind}};
}

}  // namespace

std::string json_of(const DoctorReport& report) {
  Json json = {{"version", 1},
               {"time", utc_text(report.time, "%Y-%m-%dT%H:%M:%SZ")},
               {"luaspy", version},
               {"build", build},
               {"system", to_json(report.system)}};
  if (report.process) {
    json["process"] = to_json(*report.process);
    json["searched"] = report.searched;
    json["images"] = Json::array(report.images, to_json);
    json["threads"] = Json::array(report.threads, to_json);
    json["threads_left_out"] = report.threads_left_out;
    json["states"] = Json::array(report.states, to_json);
    json["interpreters"] = Json::array(report.interpreters, to_json);
    json["layouts_tried"] = {{"stack_words", report.stack_words},
                             {"on_stacks", Json::array(report.on_stacks, to_json)},
                             {"searched_bytes", report.searched_bytes},
                             {"in_memory", Json::array(report.in_memory, to_json)}};
    json["files"] = Json::array(report.modules, to_json);
    json["mappings"] = Json::array(report.mappings, to_json);
  } else {
    json["refusal"] = report.refusal;
  }
  return json.text();
}

}  // namespace luaspy
