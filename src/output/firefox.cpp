#include "output/firefox.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <unordered_map>
#include <utility>

#include "base/json_text.h"
#include "profile/function_table.h"
#include "profile/heap_text.h"
#include "profile/mark_text.h"
#include "profile/recorded.h"

namespace luaspy {
namespace {

// Categories, by their index in `meta.categories`. The grey one is the default; the transparent one
// is for waiting.
enum Category : int { other, lua, c_function, native, machine_code, compiler, collector, idle, kernel };
constexpr std::string_view categories =
    R"([{"name":"Other","color":"grey","subcategories":["Other"]},)"
    R"({"name":"Lua","color":"yellow","subcategories":["Other"]},)"
    R"({"name":"C function","color":"blue","subcategories":["Other"]},)"
    R"({"name":"Native","color":"lightblue","subcategories":["Other"]},)"
    R"({"name":"Machine code of LuaJIT","color":"green","subcategories":["Other"]},)"
    R"({"name":"LuaJIT's compiler","color":"purple","subcategories":["Other","trace exit","recorder","optimiser","assembler"]},)"
    R"({"name":"Garbage collector","color":"orange","subcategories":["Other"]},)"
    R"({"name":"Idle","color":"transparent","subcategories":["Other","waiting for a CPU","suspended"]},)"
    R"({"name":"Kernel","color":"magenta","subcategories":["Other"]}])";

constexpr std::string_view marker_type = "LuaJIT";
constexpr std::string_view marker_schema =
    R"({"name":"LuaJIT","display":["marker-chart","marker-table","timeline-overview"],)"
    R"("tableLabel":"{marker.data.place} {marker.data.what}","chartLabel":"{marker.data.place}",)"
    R"("description":"What LuaJIT's compiler decided. Place: where a trace begins.",)"
    R"("fields":[{"key":"place","label":"Place","format":"string"},{"key":"attempts","label":"Failed attempts","format":"integer"},)"
    R"({"key":"trace","label":"Trace","format":"integer"},{"key":"what","label":"What","format":"string"}]})";

struct Kind {
  Category category = other;
  int subcategory = 0;
  auto operator<=>(const Kind&) const = default;
};

Kind kind_of(const Frame& frame) {
  constexpr std::array<Category, 5> of_kind = {lua, c_function, native, other, kernel};  // Frame::Kind
  return {of_kind[static_cast<std::size_t>(frame.kind)]};
}

// What the innermost frame shows: the state of the VM, where that is more specific than the frame.
Kind kind_of(const Profile::Situation& situation, const Frame& frame) {
  if (situation.state == Sample::State::sleeping) return {idle};
  if (situation.state == Sample::State::waiting) return {idle, 1};
  switch (situation.vm_state) {
    case VmState::collecting:
      return {collector};
    case VmState::machine_code:
      return {machine_code};
    case VmState::exiting:
      return {compiler, 1};
    case VmState::recording:
      return {compiler, 2};
    case VmState::optimising:
      return {compiler, 3};
    case VmState::assembling:
      return {compiler, 4};
    case VmState::none:
    case VmState::interpreting:
    case VmState::c:
      break;
  }
  return kind_of(frame);
}

class Strings {
 public:
  std::size_t operator()(const std::string& text) {
    const auto [place, added] = known_.emplace(text, all_.size());
    if (added) all_.push_back(&place->first);
    return place->second;
  }
  const std::vector<const std::string*>& all() const { return all_; }

 private:
  std::unordered_map<std::string, std::size_t> known_;  // its keys do not move
  std::vector<const std::string*> all_;
};

// A table of the format: columns of equal length.
class Table {
 public:
  explicit Table(std::vector<std::string> names) : names_(std::move(names)), columns_(names_.size()) {}
  template <typename... Values>
  std::size_t add(const Values&... values) {
    std::size_t column = 0;
    ((columns_[column++] += fmt::format("{}{}", length_ == 0 ? "" : ",", values)), ...);
    return length_++;
  }
  void write(std::ostream& out) const {
    out << '{';
    for (std::size_t i = 0; i < names_.size(); ++i) out << '"' << names_[i] << "\":[" << columns_[i] << "],\n";
    out << "\"length\":" << length_ << '}';
  }

 private:
  std::vector<std::string> names_, columns_;
  std::size_t length_ = 0;
};

// The tables of one thread: in this format each thread has its own, with the stacks of its samples.
class ThreadTables {
 public:
  ThreadTables(const Profile& profile, const FunctionTable& table, Strings& strings)
      : profile_(profile), table_(table), strings_(strings) {}

  // "null" for the empty stack.
  std::string stack_of(Profile::SituationId id) {
    const Profile::Situation& situation = profile_.situations()[id];
    if (situation.stack == empty_stack) return "null";
    const StackTable::Node& node = profile_.stacks().nodes()[situation.stack];
    return std::to_string(stack(situation.stack, kind_of(situation, profile_.frames()[node.frame])));
  }

  // Of a coroutine that waits there.
  std::string waiting_stack(StackId id) { return id == empty_stack ? "null" : std::to_string(stack(id, {idle, 2})); }

  void write(std::ostream& out) const {
    for (const auto& [name, table] :
         {std::pair{"stackTable", &stack_table_}, {"frameTable", &frame_table_}, {"funcTable", &func_table_}}) {
      out << ",\n\"" << name << "\":";
      table->write(out);
    }
  }

 private:
  std::size_t stack(StackId id, Kind kind) {
    std::vector<StackId> missing;  // innermost first
    for (StackId outer = id; outer != empty_stack; outer = profile_.stacks().nodes()[outer].outer) {
      missing.push_back(outer);
      if (stacks_.contains({outer, outer == id ? kind : own_kind(outer)})) break;
    }
    std::string prefix = "null";
    for (; !missing.empty(); missing.pop_back()) {
      const StackId next = missing.back();
      const Kind next_kind = next == id ? kind : own_kind(next);
      const auto [place, added] = stacks_.try_emplace({next, next_kind});
      if (added) place->second = stack_table_.add(frame(profile_.stacks().nodes()[next].frame, next_kind), prefix);
      prefix = std::to_string(place->second);
    }
    return stacks_.at({id, kind});
  }

  Kind own_kind(StackId id) const { return kind_of(profile_.frames()[profile_.stacks().nodes()[id].frame]); }

  std::size_t frame(FrameId id, Kind kind) {
    const auto [place, added] = frames_.try_emplace({id, kind});
    if (!added) return place->second;
    const Frame& frame = profile_.frames()[id];
    const int line = frame.kind == Frame::Kind::lua ? line_of(frame) : 0;
    return place->second = frame_table_.add(-1, 0, static_cast<int>(kind.category), kind.subcategory,
                                            function(table_.of_frame[id]), "null", "null", line_text(line), "null");
  }

  std::size_t function(std::uint32_t id) {
    const auto [place, added] = functions_.try_emplace(id);
    if (!added) return place->second;
    const Frame& frame = table_.functions[id];
    const std::string file = frame.file.empty() ? "null" : std::to_string(strings_(frame.file));
    return place->second = func_table_.add(strings_(frame.name), "false", "false", -1, file,
                                           line_text(frame.line_defined), "null");
  }

  static std::string line_text(int line) { return line > 0 ? std::to_string(line) : "null"; }

  const Profile& profile_;
  const FunctionTable& table_;
  Strings& strings_;
  std::map<std::pair<StackId, Kind>, std::size_t> stacks_;
  std::map<std::pair<FrameId, Kind>, std::size_t> frames_;
  std::unordered_map<std::uint32_t, std::size_t> functions_;
  Table stack_table_{{"frame", "prefix"}};
  Table frame_table_{
      {"address", "inlineDepth", "category", "subcategory", "func", "nativeSymbol", "innerWindowID", "line", "column"}};
  Table func_table_{{"name", "isJS", "relevantForJS", "resource", "fileName", "lineNumber", "columnNumber"}};
};

// A sample as the site understands it: it lasts until the next one.
struct Point {
  const Timeline::Run* run = nullptr;  // nullptr: no sample
  std::int64_t at_ns = 0, weight = 0;
};

// In a profile of time, a run is written as two points, its first samples and its last one, because
// the site draws a sample as if it began half-way from the one before. Where nothing was sampled
// there is an empty stack that counts as nothing. In other units samples have no length: a run is
// one point.
template <typename See>
void each_point(const Timeline& timeline, Unit unit, See see) {
  std::int64_t end = 0;
  timeline.for_each([&](const Timeline::Run& run) {
    if (unit != Unit::nanoseconds) {
      see(Point{&run, run.start_ns, run.weight});
    } else {
      if (run.start_ns != end) see(Point{nullptr, end, 0});
      if (run.samples > 1) see(Point{&run, run.start_ns, run.samples - 1});
      see(Point{&run, run.start_ns + (run.samples - 1) * (run.weight / run.samples), 1});
    }
    end = run.end_ns;
  });
  see(Point{nullptr, end, 0});
}

// The format's weight types are "samples", "tracing-ms" and "bytes". It has none for objects: with
// "samples" the site shows their number, although it calls it samples.
std::string_view weight_type(Unit unit) { return unit == Unit::bytes ? "bytes" : "samples"; }

std::string milliseconds(std::int64_t ns) { return fmt::format("{}.{:06}", ns / 1'000'000, ns % 1'000'000); }

void write_samples(const Profile& profile, std::size_t thread, ThreadTables& tables, std::ostream& out) {
  const Timeline& timeline = profile.timeline(thread);
  std::unordered_map<Profile::SituationId, std::string> stacks;
  const auto column = [&](std::string_view name, auto value) {
    out << '"' << name << "\":[";
    std::string_view separator;
    each_point(timeline, profile.about.unit,
               [&](const Point& point) { out << std::exchange(separator, ",") << value(point); });
    out << "],\n";
  };
  std::size_t length = 0;
  out << "\"samples\":{";
  column("stack", [&](const Point& point) {
    ++length;
    if (point.run == nullptr) return std::string("null");
    const auto [place, added] = stacks.try_emplace(point.run->situation);
    if (added) place->second = tables.stack_of(point.run->situation);
    return place->second;
  });
  std::int64_t last = 0;
  column("timeDeltas",
         [&](const Point& point) { return milliseconds(point.at_ns - std::exchange(last, point.at_ns)); });
  column("weight", [](const Point& point) { return point.weight; });
  out << fmt::format("\"weightType\":\"{}\",\"length\":{}}}", weight_type(profile.about.unit), length);
}

// The site groups threads by it. A process that has executed another program counts as another one: "4711.1", as
// Firefox itself writes the second process of a number.
std::string process_id(const Profile& profile, std::size_t thread) {
  const ThreadInfo& of = profile.threads()[thread];
  std::set<std::uint64_t> programs;  // of its number, before this one
  for (std::size_t i = 0; i < thread; ++i) {
    const ThreadInfo& other = profile.threads()[i];
    if (process_of(profile, other) == process_of(profile, of)) programs.insert(other.program);
    if (other.program == of.program) break;
  }
  programs.erase(of.program);
  const int pid = process_of(profile, of);
  return programs.empty() ? std::to_string(pid) : fmt::format("{}.{}", pid, programs.size());
}

// The thread below which the site shows what is of a process: its first one.
std::size_t thread_of(const Profile& profile, int pid) {
  const auto& threads = profile.threads();
  const auto found = std::ranges::find_if(threads,
                                          [&](const ThreadInfo& thread) { return process_of(profile, thread) == pid; });
  return found != threads.end() ? static_cast<std::size_t>(found - threads.begin()) : 0;
}

// What happened in processes whose first thread this is: markers without a duration.
void write_markers(const Profile& profile, std::size_t thread, Strings& strings, std::ostream& out) {
  constexpr int instant = 0;
  Table markers({"data", "name", "startTime", "endTime", "phase", "category"});
  for (const Mark* const mark : in_order(profile.marks)) {
    if (thread_of(profile, mark->pid) != thread) continue;
    std::string data = fmt::format("{{\"type\":\"{}\"", marker_type);
    if (!mark->file.empty()) data += ",\"place\":" + json_text(fmt::format("{}:{}", mark->file, mark->line));
    if (mark->kind == Mark::Kind::abort || mark->kind == Mark::Kind::blacklisted)
      data += fmt::format(",\"attempts\":{}", mark->number);
    if (mark->kind == Mark::Kind::trace) data += fmt::format(",\"trace\":{}", mark->number);
    if (!mark->text.empty()) data += ",\"what\":" + json_text(mark->text);
    markers.add(data + '}', strings("LuaJIT " + std::string(name(mark->kind))), milliseconds(mark->at_ns), "null",
                instant, static_cast<int>(compiler));
  }
  out << ",\n\"markers\":";
  markers.write(out);
}

constexpr const char* nothing_else =
    ",\n\"resourceTable\":{\"lib\":[],\"name\":[],\"host\":[],\"type\":[],\"length\":0},\n"
    "\"nativeSymbols\":{\"libIndex\":[],\"address\":[],\"name\":[],\"functionSize\":[],\"length\":0}";

// A coroutine, as a thread of its process: two points for each wait, where it begins and where it ends.
void write_coroutine(const Profile& profile, std::size_t at, const FunctionTable& functions, Strings& strings,
                     std::ostream& out) {
  constexpr int first_number = 1 << 24;  // above those of threads (proc(5): pid_max is at most 2^22)
  const SuspendedTrack& of = profile.tracks[at];
  const auto thread = std::ranges::find(profile.threads(), of.program, &ThreadInfo::program);
  const bool is_known = thread != profile.threads().end();
  const std::size_t number = static_cast<std::size_t>(thread - profile.threads().begin());
  out << fmt::format(
      "{{\"processType\":\"default\",\"processName\":{},\"processStartupTime\":0,\"processShutdownTime\":null,"
      "\"registerTime\":0,\"unregisterTime\":null,\"pausedRanges\":[],\"name\":{},\"isMainThread\":false,"
      "\"pid\":\"{}\",\"tid\":{},\n",
      json_text(is_known ? command_of(profile, *thread) : of.process), json_text(title_of(of)),
      is_known ? process_id(profile, number) : std::to_string(of.pid), first_number + static_cast<int>(at));
  ThreadTables tables(profile, functions, strings);
  std::string stacks, deltas, weights;
  std::int64_t last = 0;
  std::size_t length = 0;
  const auto add = [&](const std::string& stack, std::int64_t at_ns, int weight) {
    const std::string_view comma = length++ == 0 ? "" : ",";
    stacks += fmt::format("{}{}", comma, stack);
    deltas += fmt::format("{}{}", comma, milliseconds(at_ns - std::exchange(last, at_ns)));
    weights += fmt::format("{}{}", comma, weight);
  };
  for (const SuspendedTrack::Wait& wait : of.waits) {
    add(tables.waiting_stack(wait.stack), wait.start_ns, 1);
    add("null", wait.end_ns, 0);
  }
  out << fmt::format(
      "\"samples\":{{\"stack\":[{}],\n\"timeDeltas\":[{}],\n\"weight\":[{}],\n\"weightType\":\"samples\","
      "\"length\":{}}}",
      stacks, deltas, weights, length);
  tables.write(out);
  out << ",\n\"markers\":";
  Table({"data", "name", "startTime", "endTime", "phase", "category"}).write(out);
  out << nothing_else << '}';
}

void write_thread(const Profile& profile, std::size_t thread, const FunctionTable& functions, Strings& strings,
                  std::ostream& out) {
  const ThreadInfo& of = profile.threads()[thread];
  const int pid = process_of(profile, of);
  out << fmt::format(
      "{{\"processType\":\"default\",\"processName\":{},\"processStartupTime\":0,\"processShutdownTime\":null,"
      "\"registerTime\":0,\"unregisterTime\":null,",
      json_text(command_of(profile, of)));
  out << fmt::format("\"pausedRanges\":[],\"name\":{},\"isMainThread\":{},\"pid\":\"{}\",\"tid\":{},\n",
                     json_text(of.name), of.tid == pid, process_id(profile, thread), of.tid);
  ThreadTables tables(profile, functions, strings);
  write_samples(profile, thread, tables, out);
  tables.write(out);
  write_markers(profile, thread, strings, out);
  out << nothing_else << '}';
}

// A counter's `count` is what has come since its sample before. The site shows the sums of the
// category "Memory" as they are, from the least to the most.
void write_heap(const Profile& profile, std::size_t state, std::ostream& out) {
  const auto& [of, track] = profile.heaps.states()[state];
  std::string times, counts;
  std::size_t length = 0;
  std::int64_t before = 0;
  track.for_each_value([&](std::int64_t at_ns, std::int64_t bytes) {
    times += (length == 0 ? "" : ",") + milliseconds(at_ns);
    counts += fmt::format("{}{}", length == 0 ? "" : ",", bytes - std::exchange(before, bytes));
    ++length;
  });
  out << fmt::format(
      "{{\"name\":\"{}\",\"category\":\"Memory\",\"description\":\"bytes in use, as Lua counts them\","
      "\"color\":\"orange\",\"pid\":\"{}\",\"mainThreadIndex\":{},\n"
      "\"samples\":{{\"time\":[{}],\n\"count\":[{}],\n\"length\":{}}}}}",
      heap_name(profile.heaps, state), of.pid, thread_of(profile, of.pid), times, counts, length);
}

void write_meta(const Profile& profile, std::ostream& out) {
  const Metadata& about = profile.about;
  const double interval_ms = about.rate > 0 ? 1000 / about.rate : 1;
  out << "\"meta\":{\"version\":31,\"preprocessedProfileVersion\":56,";
  out << fmt::format(
      "\"product\":{},\"interval\":{},\"startTime\":{},\"profilingStartTime\":0,\"profilingEndTime\":{},",
      json_text(about.command), interval_ms, about.started_s * 1000, milliseconds(about.duration_ns));
  out << fmt::format(
      "\"processType\":0,\"stackwalk\":1,\"debug\":false,\"symbolicated\":true,\"symbolicationNotSupported\":true,"
      "\"usesOnlyOneStackType\":true,"
      "\"sourceCodeIsNotOnSearchfox\":true,\"keepProfileThreadOrder\":true,\"importedFrom\":{},\"platform\":\"X11\",\n",
      json_text("luaspy " + about.luaspy));
  out << "\"sampleUnits\":{\"time\":\"ms\",\"eventDelay\":\"ms\",\"threadCPUDelta\":\"ns\"},\"markerSchema\":["
      << (profile.marks.empty() ? std::string_view() : marker_schema) << "],\n\"categories\":" << categories
      << ",\n\"extra\":[{\"label\":\"Recording\",\"entries\":[";
  std::string_view separator = "\n";
  for (const auto& [name, value] : recorded(profile))
    out << std::exchange(separator, ",\n") << "{\"label\":" << json_text(name)
        << ",\"format\":\"string\",\"value\":" << json_text(value) << '}';
  out << "]}]}";
}

}  // namespace

void write_firefox(const Profile& profile, const WriteOptions&, std::ostream& out) {
  const FunctionTable functions = functions_of(profile, false);
  Strings strings;
  out << '{';
  write_meta(profile, out);
  out << ",\n\"libs\":[],\"pages\":[],\n\"threads\":[";
  for (std::size_t thread = 0; thread < profile.threads().size(); ++thread) {
    out << (thread == 0 ? "\n" : ",\n");
    write_thread(profile, thread, functions, strings, out);
  }
  for (std::size_t at = 0; at < profile.tracks.size(); ++at) {
    out << (at == 0 && profile.threads().empty() ? "\n" : ",\n");
    write_coroutine(profile, at, functions, strings, out);
  }
  out << ']';
  // A counter refers to a thread.
  const std::size_t heaps = profile.threads().empty() ? 0 : profile.heaps.states().size();
  for (std::size_t state = 0; state < heaps; ++state) {
    out << (state == 0 ? ",\n\"counters\":[\n" : ",\n");
    write_heap(profile, state, out);
  }
  out << (heaps == 0 ? "" : "]") << ",\n\"shared\":{\"stringArray\":[";
  std::string_view separator = "\n";
  for (const std::string* text : strings.all()) out << std::exchange(separator, ",\n") << json_text(*text);
  out << "]}}\n";
}

}  // namespace luaspy
