#include "heapdump/heap_words.h"

#include <fmt/format.h>

#include <algorithm>

#include "profile/amount_text.h"

namespace luaspy {
namespace {

constexpr std::string_view function_word = "function", main_chunk = "main chunk";

// "function (a.lua:3)", "function string.gsub [C]", "main chunk (a.lua)"; "" if the name does not begin so.
std::string_view function_word_of(std::string_view name, ObjectType type) {
  if (type != ObjectType::lua_function && type != ObjectType::c_function) return "";
  return name.starts_with(function_word) ? function_word : name.starts_with(main_chunk) ? main_chunk : "";
}

}  // namespace

std::string size_text(std::uint64_t bytes) { return amount_text(static_cast<std::int64_t>(bytes), Unit::bytes); }

std::string change_text(std::int64_t bytes) {
  return (bytes < 0 ? "-" : "+") + amount_text(bytes < 0 ? -bytes : bytes, Unit::bytes);
}

std::string count_text(std::int64_t count) { return cost_text(count, By::weight, Unit::objects); }

std::string count_change_text(std::int64_t count) {
  return (count < 0 ? "-" : "+") + count_text(count < 0 ? -count : count);
}

std::string counted(std::int64_t count, std::string_view word) {
  return fmt::format("{} {}{}", count_text(count), word, count == 1 ? "" : "s");
}

std::string part_text(double part) { return fmt::format("{:.{}f} %", 100 * part, part < 0.1 ? 1 : 0); }

std::string objects_text(const ObjectClass& its, std::int64_t count) {
  const std::string_view type = name(its.type);
  if (its.name == type) return counted(count, type);
  if (const std::string_view word = function_word_of(its.name, its.type); !word.empty())
    return counted(count, word) + its.name.substr(word.size());
  // "coroutine of …" begins with what it is.
  if (its.name.starts_with(type)) return counted(count, type) + its.name.substr(type.size());
  return fmt::format("{} {}", counted(count, type), its.name);
}

std::string class_text(std::string_view of_class, ObjectType type) {
  const bool says_type = of_class.find(name(type)) != std::string_view::npos ||
                         !function_word_of(of_class, type).empty();
  return says_type ? std::string(of_class) : fmt::format("{} ({})", of_class, name(type));
}

std::string totals_text(const HeapAnalysis& analysis) {
  const Total live = analysis.all_live(), dead = analysis.all_dead();
  std::string text = fmt::format("{} in {}", size_text(live.bytes), counted(live.count, "live object"));
  if (dead.count != 0)
    text += fmt::format(", {} in {} that nothing refers to and that the collector has not freed yet",
                        size_text(dead.bytes), counted(dead.count, "object"));
  return text + fmt::format(", {} for Lua itself", size_text(analysis.other_bytes()));
}

std::string counter_text(const HeapAnalysis& analysis) {
  const auto counter = static_cast<double>(analysis.collector().bytes);
  const std::int64_t difference = analysis.difference();
  return fmt::format("Lua's own counter says {}: the objects found make {:+} bytes ({:+.4f} %)",
                     size_text(static_cast<std::uint64_t>(analysis.collector().bytes)), difference,
                     counter > 0 ? 100 * static_cast<double>(difference) / counter : 0.0);
}

std::string standstill_text(const HeapSnapshot& snapshot) {
  if (!snapshot.of_process) return "";
  if (snapshot.stood_still_ns == 0) return "was not stopped: none of its threads ran";
  return fmt::format("stood still for {:.1f} ms, in which {} were copied",
                     static_cast<double>(snapshot.stood_still_ns) / 1e6, size_text(snapshot.bytes));
}

std::string doubt_text(const HeapSnapshot& snapshot) {
  if (!snapshot.of_one_instant) return "A thread ran while its memory was copied: parts of this may be wrong.";
  return unknown_memory_text(snapshot.unknown_bytes);
}

std::string unknown_memory_text(std::uint64_t bytes) {
  if (bytes == 0) return "";
  return fmt::format(
      "{} of addresses were not searched: a kernel before Linux 6.7 does not say at once which pages they have.",
      size_text(bytes));
}

std::string doubt_text(const HeapAnalysis& analysis) {
  if (!analysis.is_known()) return "luaspy cannot find the objects of this one.";
  if (!analysis.graph().is_complete()) return "Not all objects could be read: a list of the collector ends early.";
  if (!is_close(analysis.difference(), analysis.collector().bytes))
    return "At that instant Lua was changing what it has: some objects may be missing, or wrong. Look again.";
  return "";
}

std::string suspect_text(const HeapAnalysis& analysis, ObjectNames& names, const Suspect& suspect) {
  std::string line = fmt::format("{} ({}) ", part_text(suspect.part), size_text(suspect.retained));
  if (suspect.is_class && suspect.holder == root_node) line += "is in";
  else line += "is held by " + names.path(suspect.holder) + ":";
  constexpr std::size_t most_classes = 3;
  for (std::size_t i = 0; i < std::min(most_classes, suspect.held.size()); ++i) {
    const Suspect::Held& held = suspect.held[i];
    line += fmt::format("{} {}", i == 0 ? "" : ",", objects_text(analysis.classes()[held.its_class], held.count));
  }
  if (suspect.held.size() > most_classes) line += ", …";
  if (suspect.held.empty()) line += ' ' + std::string(name(analysis.graph().type(suspect.holder)));
  return line;
}

std::string group_text(ObjectNames& names, Node table, std::string_view after, std::int64_t objects) {
  return fmt::format("{}[…]{} ({})", names.path(table), after, count_text(objects));
}

std::string holder_text(ObjectNames& names, const HeapDiff::Growth& growth) {
  if (growth.holders != 1) return group_text(names, growth.holder, growth.after, growth.holders);
  return growth.holder == root_node ? "several objects" : names.path(growth.holder);
}

std::string object_text(const HeapAnalysis& analysis, ObjectNames& names, Node node) {
  const HeapObject object = analysis.graph().object(node);
  return fmt::format("{} = {} at {:#x}", names.path(node), names.text(object), object.address);
}

std::string growth_text(const HeapAnalysis& after, ObjectNames& names, const HeapDiff::Growth& growth) {
  const ObjectClass& its = after.classes()[growth.its_class];
  const std::int64_t more = growth.count - growth.gone_count;
  return fmt::format("{} got {}{} {}: {}", holder_text(names, growth), more < 0 ? "" : "+", count_text(more),
                     class_text(its.name, its.type), change_text(growth.grown()));
}

}  // namespace luaspy
