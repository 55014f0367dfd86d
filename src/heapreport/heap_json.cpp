#include "heapreport/heap_json.h"

#include <algorithm>
#include <utility>

#include "base/hex.h"
#include "base/json.h"
#include "base/text.h"
#include "heap/heap_diff.h"
#include "heap/heap_snapshot.h"
#include "heap/object_names.h"
#include "heap/resident.h"
#include "heap/suspects.h"
#include "heapdump/heap_words.h"

namespace luaspy {
namespace {

// Of docs/heap.schema.json. Changes that a reader would misread need another one; new fields do not.
constexpr int version = 1;

Json to_json(const Total& total) { return {{"count", total.count}, {"bytes", total.bytes}}; }

Json to_json(const ObjectClass& its) {
  return {{"class", its.name},
          {"type", name(its.type)},
          {"count", its.count},
          {"bytes", its.bytes},
          {"retained", its.retained}};
}

Json types_of(const HeapAnalysis& analysis) {
  Json types = Json::array();
  for (std::size_t i = 0; i < object_types; ++i) {
    if (analysis.live()[i].count + analysis.dead()[i].count == 0) continue;
    types.add({{"type", name(static_cast<ObjectType>(i))},
               {"live", to_json(analysis.live()[i])},
               {"dead", to_json(analysis.dead()[i])}});
  }
  return types;
}

Json object_of(const HeapAnalysis& analysis, ObjectNames& names, Node node) {
  const HeapObject object = analysis.graph().object(node);
  return {{"address", hex(object.address)},
          {"type", name(object.type)},
          {"class", analysis.classes()[analysis.class_of(node)].name},
          {"path", names.path(node)},
          {"value", names.text(object)},
          {"bytes", object.size},
          {"retained", analysis.retained(node)}};
}

Json suspects_of(const HeapAnalysis& analysis, ObjectNames& names) {
  Json all = Json::array();
  for (const Suspect& suspect : suspects(analysis)) {
    Json held = Json::array();
    for (const Suspect::Held& each : suspect.held) {
      const ObjectClass& its = analysis.classes()[each.its_class];
      held.add({{"class", its.name}, {"type", name(its.type)}, {"count", each.count}, {"retained", each.retained}});
    }
    const bool has_holder = suspect.holder != root_node;
    all.add({{"part", suspect.part},
             {"retained", suspect.retained},
             {"holder", has_holder ? object_of(analysis, names, suspect.holder) : Json()},
             {"holds", std::move(held)}});
  }
  return all;
}

Json state_of(const HeapAnalysis& analysis, int lines) {
  Json state = {
      {"lua", analysis.lua().name()}, {"global_state", hex(analysis.global_state())}, {"known", analysis.is_known()}};
  if (!analysis.is_known()) return state;
  ObjectNames names(analysis);
  state["complete"] = analysis.graph().is_complete();
  state["collector"] = analysis.collector().phase;
  state["counter_bytes"] = analysis.collector().bytes;
  state["difference_bytes"] = analysis.difference();
  state["live"] = to_json(analysis.all_live());
  state["dead"] = to_json(analysis.all_dead());
  state["other_bytes"] = analysis.other_bytes();
  state["types"] = types_of(analysis);
  state["suspects"] = suspects_of(analysis, names);
  state["classes"] = Json::array();
  for (const ObjectClass* const each : largest_classes(analysis, lines)) state["classes"].add(to_json(*each));
  state["objects"] = Json::array();
  for (const Node node : largest_objects(analysis, lines)) state["objects"].add(object_of(analysis, names, node));
  return state;
}

Json resident_of(const ResidentReport& report) {
  Json parts = Json::array();
  for (std::size_t i = 0; i < resident_kinds; ++i) {
    const auto kind = static_cast<ResidentKind>(i);
    parts.add({{"kind", key(kind)}, {"name", name(kind)}, {"meaning", meaning(kind)}, {"bytes", report[kind]}});
  }
  return {{"rss", report.rss},       {"swap", report.swap},       {"files_written", report.files_written},
          {"c_heap", report.c_heap}, {"parts", std::move(parts)}, {"notes", report.notes}};
}

}  // namespace

std::string to_json(const HeapSnapshot& snapshot, const Analyses& states, int lines, const ResidentReport* resident) {
  Json json = {{"version", version},
               {"pid", snapshot.pid},
               {"command", printable(snapshot.command, 1 << 12)},
               {"time", static_cast<double>(snapshot.taken_ns) / 1e9},
               {"stood_still_ms", static_cast<double>(snapshot.stood_still_ns) / 1e6},
               {"of_one_instant", snapshot.of_one_instant},
               {"copied_bytes", snapshot.bytes},
               {"states", Json::array()}};
  for (const auto& state : states) json["states"].add(state_of(*state, lines));
  if (resident != nullptr) json["resident"] = resident_of(*resident);
  return json.text();
}

std::string to_json(const HeapDiff& diff, const HeapAnalysis& after, int pid, double seconds, int lines) {
  ObjectNames names(after);
  const auto most = static_cast<std::size_t>(lines);
  Json json = {{"version", version},
               {"pid", pid},
               {"lua", after.lua().name()},
               {"global_state", hex(after.global_state())},
               {"seconds", seconds},
               {"live_bytes_before", diff.live_before},
               {"live_bytes_after", diff.live_after},
               {"growths", Json::array()},
               {"classes", Json::array()}};
  for (std::size_t i = 0; i < std::min(most, diff.growths.size()); ++i) {
    const HeapDiff::Growth& each = diff.growths[i];
    const ObjectClass& its = after.classes()[each.its_class];
    json["growths"].add({{"holder", each.holder == root_node ? Json() : Json(holder_text(names, each))},
                         {"class", its.name},
                         {"type", name(its.type)},
                         {"new", each.count},
                         {"gone", each.gone_count},
                         {"grown_bytes", each.grown()}});
  }
  for (std::size_t i = 0; i < std::min(most, diff.classes.size()); ++i) {
    const HeapDiff::ClassChange& each = diff.classes[i];
    json["classes"].add({{"class", each.name},
                         {"type", name(each.type)},
                         {"count_before", each.count_before},
                         {"count_after", each.count_after},
                         {"grown_bytes", each.grown()}});
  }
  return json.text();
}

}  // namespace luaspy
