#include "heapreport/heap_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "heap/object_names.h"
#include "heap/suspects.h"
#include "heap/waste.h"
#include "heapdump/heap_words.h"

namespace luaspy {
namespace {

void print_totals(std::string& out, const HeapAnalysis& analysis) {
  out += fmt::format("  {}\n  {}\n", totals_text(analysis), counter_text(analysis));
  if (const std::string doubt = doubt_text(analysis); !doubt.empty()) out += fmt::format("  {}\n", doubt);
}

void print_suspects(std::string& out, const HeapAnalysis& analysis, ObjectNames& names, const Paint& paint) {
  const std::vector<Suspect> all = suspects(analysis);
  out += all.empty() ? "\nNo object holds a tenth of the memory.\n" : "\n";
  for (const Suspect& suspect : all) out += paint(Ink::strong, suspect_text(analysis, names, suspect)) + '\n';
}

void print_classes(std::string& out, const HeapAnalysis& analysis, int lines, const Paint& paint) {
  out += '\n' +
         paint(Ink::heading, fmt::format("{:>10} {:>10} {:>10} {:>5}  {}", "Retained", "Own", "Objects", "", "Class")) +
         '\n';
  int number = 0;
  for (const ObjectClass* const of : largest_classes(analysis, lines)) {
    const ObjectClass& each = *of;
    out += fmt::format("{:>10} {:>10} {:>10} {:>5}  {}\n", size_text(each.retained), size_text(each.bytes),
                       count_text(each.count), fmt::format("#{}", ++number), class_text(each.name, each.type));
  }
}

void print_objects(std::string& out, const HeapAnalysis& analysis, ObjectNames& names, int lines, const Paint& paint) {
  out += '\n' + paint(Ink::heading, fmt::format("{:>10} {:>10}  {}", "Retained", "Own", "Object")) + '\n';
  for (const Node node : largest_objects(analysis, lines))
    out += fmt::format("{:>10} {:>10}  {}\n", size_text(analysis.retained(node)),
                       size_text(analysis.graph().size(node)), object_text(analysis, names, node));
}

void print_types(std::string& out, const HeapAnalysis& analysis, const Paint& paint) {
  out += '\n' +
         paint(Ink::heading,
               fmt::format("{:>10} {:>10} {:>10} {:>10}  {}", "Live", "Objects", "Dead", "Objects", "Type")) +
         '\n';
  for (std::size_t i = 0; i < object_types; ++i) {
    const Total live = analysis.live()[i], dead = analysis.dead()[i];
    if (live.count + dead.count == 0) continue;
    out += fmt::format("{:>10} {:>10} {:>10} {:>10}  {}\n", size_text(live.bytes), count_text(live.count),
                       size_text(dead.bytes), count_text(dead.count), name(static_cast<ObjectType>(i)));
  }
}

void print_waste(std::string& out, const HeapAnalysis& analysis, ObjectNames& names) {
  constexpr std::size_t most_shown = 3;
  constexpr std::uint64_t least = 4096;  // bytes
  std::string text;
  Total all;
  const std::vector<DuplicateText> texts = duplicate_texts(analysis, most_shown, &all);
  if (all.bytes >= least) {
    text += fmt::format("{} in copies of strings\n", size_text(all.bytes));
    for (const DuplicateText& each : texts)
      text += fmt::format("{:>12} in {} copies of {}\n", size_text(each.bytes), count_text(each.count),
                          names.text(analysis.graph().object(each.example)));
  }
  all = {};
  const std::vector<RoomyTable> tables = roomy_tables(analysis, most_shown, &all);
  if (all.bytes >= least) {
    text += fmt::format("{} in tables of which less than a quarter is in use\n", size_text(all.bytes));
    for (const RoomyTable& each : tables)
      text += fmt::format("{:>12} in {}: {} of {} slots are in use\n", size_text(each.bytes), names.path(each.node),
                          count_text(static_cast<std::int64_t>(each.entries)),
                          count_text(static_cast<std::int64_t>(each.slots)));
  }
  const std::vector<Node> coroutines = coroutines_of_registry(analysis);
  if (!coroutines.empty()) {
    std::uint64_t retained = 0;
    for (const Node node : coroutines) retained += analysis.retained(node);
    text += fmt::format(
        "{} in {} that only the registry refers to: Lua code cannot resume them, the program around it "
        "may\n",
        size_text(retained), counted(static_cast<std::int64_t>(coroutines.size()), "suspended coroutine"));
  }
  if (!text.empty()) out += '\n' + text;
}

}  // namespace

std::string process_text(const HeapSnapshot& snapshot) {
  return fmt::format("Process {}: {}\n", snapshot.pid, snapshot.command);
}

std::string head_text(const HeapSnapshot& snapshot) {
  std::string text = process_text(snapshot);
  if (const std::string still = standstill_text(snapshot); !still.empty()) text += fmt::format("  {}\n", still);
  if (const std::string doubt = doubt_text(snapshot); !doubt.empty()) text += fmt::format("  {}\n", doubt);
  return text;
}

std::string written_text(const HeapSnapshot& snapshot, std::string_view path, std::string_view next_step) {
  std::string text = fmt::format("{}: {}", path, next_step);
  if (const std::string still = standstill_text(snapshot); !still.empty())
    text += fmt::format(" (process {} {})", snapshot.pid, still);
  if (const std::string doubt = doubt_text(snapshot); !doubt.empty()) text += "\n  " + doubt;
  return text;
}

std::string to_text(const HeapAnalysis& analysis, int lines, const Paint& paint) {
  std::string out = fmt::format("{} at {:#x}\n", analysis.lua().name(), analysis.global_state());
  if (!analysis.is_known()) return out + fmt::format("  {}\n", doubt_text(analysis));
  ObjectNames names(analysis);
  print_totals(out, analysis);
  print_suspects(out, analysis, names, paint);
  print_classes(out, analysis, lines, paint);
  print_objects(out, analysis, names, lines, paint);
  print_types(out, analysis, paint);
  print_waste(out, analysis, names);
  return out;
}

std::string to_text(const HeapDiff& diff, const HeapAnalysis& after, double seconds, int lines, const Paint& paint) {
  ObjectNames names(after);
  const auto rate = [&](std::int64_t bytes) {
    constexpr double shortest = 1e-3;  // between two snapshots, in s
    if (seconds < shortest) return std::string();
    constexpr double most = 1e18;
    const double rate = std::clamp(static_cast<double>(bytes) / seconds, -most, most);
    return fmt::format(", {} a second", change_text(static_cast<std::int64_t>(rate)));
  };
  const std::int64_t grown = diff.live_after - diff.live_before;
  std::string out;
  const bool has_grown = !diff.growths.empty() && diff.growths.front().grown() > 0;
  if (has_grown) {
    const HeapDiff::Growth& first = diff.growths.front();
    out += paint(Ink::strong, growth_text(after, names, first) + rate(first.grown())) + "\n";
  } else {
    out += "Nothing has grown.\n";
  }
  out += fmt::format("  live objects: {} before, {} now: {}{}\n",
                     size_text(static_cast<std::uint64_t>(diff.live_before)),
                     size_text(static_cast<std::uint64_t>(diff.live_after)), change_text(grown), rate(grown));
  if (diff.classes.empty()) return out;
  const auto most = static_cast<std::size_t>(lines);
  if (has_grown)
    out += '\n' +
           paint(Ink::heading,
                 fmt::format("{:>11} {:>9} {:>9}  {}", "Grown by", "New", "Gone", "What, and who holds it")) +
           '\n';
  for (std::size_t i = 0; i < std::min(most, diff.growths.size()); ++i) {
    const HeapDiff::Growth& each = diff.growths[i];
    if (each.grown() <= 0 || each.grown() * 100 < diff.growths.front().grown()) break;
    const ObjectClass& its = after.classes()[each.its_class];
    out += fmt::format("{:>11} {:>9} {:>9}  {} in {}\n", change_text(each.grown()), count_text(each.count),
                       count_text(each.gone_count), class_text(its.name, its.type), holder_text(names, each));
  }
  out += '\n' + paint(Ink::heading, fmt::format("{:>11} {:>9} {:>9}  {}", "Grown by", "Before", "Now", "Class")) + '\n';
  for (std::size_t i = 0; i < std::min(most, diff.classes.size()); ++i) {
    const HeapDiff::ClassChange& each = diff.classes[i];
    out += fmt::format("{:>11} {:>9} {:>9}  {}\n", change_text(each.grown()), count_text(each.count_before),
                       count_text(each.count_after), class_text(each.name, each.type));
  }
  return out;
}

std::string to_text(const ResidentReport& report, const Paint& paint) {
  std::string text = paint(Ink::heading, fmt::format("Resident memory: {}", size_text(report.rss)));
  if (report.swap != 0) text += fmt::format(", and {} in swap", size_text(report.swap));
  text += '\n';
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < resident_kinds; ++i) {
    if (report.parts[i] != 0) order.push_back(i);
  }
  std::ranges::stable_sort(order, std::greater(), [&](std::size_t i) { return report.parts[i]; });
  for (const std::size_t i : order) {
    const double percent = 100 * static_cast<double>(report.parts[i]) / static_cast<double>(report.rss);
    text += fmt::format("{:>12}  {}  {}", size_text(report.parts[i]),
                        paint(Paint::of_share(percent), fmt::format("{:5.1f} %", percent)),
                        paint(Ink::strong, name(static_cast<ResidentKind>(i))));
    if (static_cast<ResidentKind>(i) == ResidentKind::files && report.files_written != 0)
      text += fmt::format(", of which {} are written by the process", size_text(report.files_written));
    text += '\n';
  }
  text += fmt::format("C heap: {}\n", report.c_heap);
  for (const std::string& sentence : report.notes) text += paint(Ink::warning, sentence) + '\n';
  return text;
}

}  // namespace luaspy
