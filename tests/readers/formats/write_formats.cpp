// write_formats FOLDER: writes profiles in the formats that check.py reads, as NAME.FORMAT, and the
// expected results as NAME.facts: the golden tests' sample in each unit, and a large one of many
// stacks, in which functions call themselves and each other, with gaps and hostile names.
// write_formats --time SAMPLES: prints the time that each format takes for so many samples of the
// large profile, and its size in bytes.

#include <fmt/format.h>

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "base/text.h"
#include "output/format.h"
#include "output/write_options.h"
#include "profile/function_table.h"
#include "support/dice.h"
#include "support/framed.h"
#include "support/sample_profile.h"

namespace luaspy {
namespace {

std::vector<Frame> functions() {
  std::vector<Frame> functions = {
      {Frame::Kind::native, "_start", "busy", 0, 0},
      {Frame::Kind::native, "malloc", "libc.so.6", 0, 0},
      {Frame::Kind::c, "string.rep", "busy", 0, 0},
      {Frame::Kind::c, "string.rep", "other.so", 0, 0},  // has the same text as the one before
      {Frame::Kind::marker, "(...tail calls...)", {}, 0, 0},
      {Frame::Kind::marker, "[garbage collector]", {}, 0, 0},
      {Frame::Kind::lua, "main chunk", "a.lua", 0, 0},
      {Frame::Kind::lua, "main chunk", "b.lua", 0, 0},
      {Frame::Kind::lua, "same", "a.lua", 10, 0},
      {Frame::Kind::lua, "same", "a.lua", 20, 0},
      {Frame::Kind::lua, "(1) fn=\nob=(2) \"quoted\" \xff\xc0\x80 \x1b[31m", "[string \"\n1 2 3\"]", 3, 0},
      {Frame::Kind::lua, "std::map<int, char>::at(int)", "größe日本.lua", 4, 0},
      {Frame::Kind::lua, "* 5", "+3 4", 5, 0},
  };
  for (int i = 0; i < 40; ++i)
    functions.push_back({Frame::Kind::lua, fmt::format("f{}", i), "many.lua", 10 * i + 1, 0});
  return functions;
}

Profile busy_profile(int samples) {
  Profile profile;
  profile.about = {"0.1.0",
                   "busy \"one\"\n\xff",
                   "/opt/busy",
                   7,
                   {"Lua 5.4.4", "LuaJIT 2.1"},
                   true,
                   "merged",
                   1000,
                   10,
                   1'700'000'000,
                   0,
                   samples,
                   false};
  const std::vector<Frame> all = functions();
  const std::vector<ThreadInfo> threads = {
      {7, "busy", 7, "busy"}, {8, "wor\"ker\n\xff", 7, "busy"}, {9, "busy", 9, "child"}};
  Dice dice;
  std::int64_t at = 0;
  std::vector<Stack> known;
  for (int i = 0; i < 1000; ++i) {
    Stack stack;
    for (unsigned depth = dice(12); depth > 0; --depth) {
      stack.push_back(all[dice(static_cast<unsigned>(all.size()))]);
      Frame& frame = stack.back();
      if (frame.kind == Frame::Kind::lua && dice(8) != 0)
        frame.line = frame.line_defined + static_cast<int>(dice(5)), frame.line_is_near = dice(4) == 0;
    }
    known.push_back(std::move(stack));
  }
  for (const int pid : {7, 9}) profile.heaps.add_state({pid, 0x1000});
  std::int64_t heap = 1'000'000;
  FramedSample sample;
  for (int i = 0; i < samples; ++i) {
    if (dice(3) != 0) sample.stack = known[dice(static_cast<unsigned>(known.size()))];
    sample.state = dice(10) == 0 ? Sample::State::sleeping : Sample::State::running;
    sample.vm_state = static_cast<VmState>(dice(vm_state_count));
    const std::int64_t weight = 900'000 + dice(200'000);
    at += weight + (dice(20) == 0 ? 1'000'001 : 0);
    add_framed(profile, threads[dice(100) == 0 ? 1 : dice(50) == 0 ? 2 : 0], {at, weight}, sample);
    const bool collected = dice(100) == 0;
    heap = collected ? heap / 2 : heap + dice(20'000);
    profile.heaps.add(at, {dice(2), heap, CollectorPhase::marking, collected});
  }
  profile.about.duration_ns = at;
  profile.add_loss(Loss::late, 3);
  profile.resolve_names();
  return profile;
}

struct Costs {
  std::int64_t own = 0, total = 0, own_weight = 0, total_weight = 0;
  const Frame* frame = nullptr;
};

std::string as_json(const std::string& text) {
  return nlohmann::json::parse(nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace))
      .get<std::string>();
}
std::string as_line(const std::string& text) { return printable(text, 1 << 16); }

// Counted again here in a simple way; each text is in the form of JSON and in that of formats
// without escapes.
nlohmann::json facts(const Profile& profile) {
  std::map<std::string, Costs> functions;
  std::map<std::string, std::map<int, std::int64_t>> lines;
  nlohmann::json threads = nlohmann::json::array();
  std::map<std::string, std::int64_t> states;
  for (const ThreadInfo& thread : profile.threads())
    threads.push_back({{"name", as_json(thread.name)},
                       {"text", as_line(thread.name)},
                       {"tid", thread.tid},
                       {"pid", thread.pid},
                       {"samples", 0},
                       {"weight", 0}});
  for (const auto& [of, amount] : profile.counts()) {
    const Profile::Situation& situation = profile.situations()[of.situation];
    nlohmann::json& thread = threads[of.thread];
    thread["samples"] = thread["samples"].get<std::int64_t>() + amount.samples;
    thread["weight"] = thread["weight"].get<std::int64_t>() + amount.weight;
    const std::string state = situation.state == Sample::State::sleeping  ? "asleep"
                              : situation.state == Sample::State::waiting ? "waiting for a CPU"
                                                                          : std::string(name(situation.vm_state));
    states[state] += amount.samples;
    std::set<std::string> seen;
    const auto stack = profile.stack(situation.stack);
    for (const FrameId id : stack) {
      const Frame& frame = profile.frames()[id];
      Costs& costs = functions[describe(frame, false)];
      if (costs.frame == nullptr) costs.frame = &frame;
      if (!seen.insert(describe(frame, false)).second) continue;
      costs.total += amount.samples, costs.total_weight += amount.weight;
    }
    if (stack.empty()) continue;
    const Frame& innermost = profile.frames()[stack.back()];
    Costs& costs = functions[describe(innermost, false)];
    costs.own += amount.samples, costs.own_weight += amount.weight;
    lines[describe(innermost, false)][innermost.line > 0 ? innermost.line : innermost.line_defined] += amount.samples;
  }
  const FunctionTable table = functions_of(profile, false);
  const std::vector<Cost> counted = costs(profile, table, By::samples);
  for (std::size_t i = 0; i < counted.size(); ++i) {
    const Costs& expected = functions.at(table.texts[i]);
    if (counted[i].own != expected.own || counted[i].total != expected.total)
      throw std::logic_error("costs() counts otherwise");
  }
  nlohmann::json heaps = nlohmann::json::array();
  std::map<int, int> of_process;
  for (const HeapTracks::Of& heap : profile.heaps.states()) {
    nlohmann::json values = nlohmann::json::array();
    heap.track.for_each_value([&](std::int64_t at_ns, std::int64_t bytes) { values.push_back({at_ns, bytes}); });
    const int number = ++of_process[heap.state.pid];
    heaps.push_back({{"pid", heap.state.pid},
                     {"name", number == 1 ? "Lua heap" : fmt::format("Lua heap {}", number)},
                     {"values", values},
                     {"cycles", heap.track.points().back().cycles}});
  }
  nlohmann::json marks = nlohmann::json::array();
  for (const Mark& mark : profile.marks)
    marks.push_back({{"kind", name(mark.kind)},
                     {"at_ns", mark.at_ns},
                     {"pid", mark.pid},
                     {"place", mark.file.empty() ? "" : as_json(fmt::format("{}:{}", mark.file, mark.line))},
                     {"number", mark.number},
                     {"text", as_json(mark.text)}});
  nlohmann::json json = {{"samples", profile.samples()},
                         {"heaps", heaps},
                         {"marks", marks},
                         {"weight", profile.weight()},
                         {"unit", name(profile.about.unit)},
                         {"threads", threads},
                         {"states", states},
                         {"started_s", profile.about.started_s},
                         {"duration_ns", profile.about.duration_ns},
                         {"rate", profile.about.rate}};
  for (const auto& [text, costs] : functions) {
    nlohmann::json of_lines = nlohmann::json::object();
    for (const auto& [line, samples] : lines[text]) of_lines[std::to_string(line)] = samples;
    json["functions"].push_back({{"json", as_json(text)},
                                 {"text", as_line(text)},
                                 {"name", as_json(costs.frame->name)},
                                 {"file", as_json(costs.frame->file)},
                                 {"line_defined", costs.frame->line_defined},
                                 {"own", costs.own},
                                 {"total", costs.total},
                                 {"own_weight", costs.own_weight},
                                 {"total_weight", costs.total_weight},
                                 {"lines", of_lines}});
  }
  return json;
}

constexpr std::array checked = {"pprof", "chrometrace", "callgrind", "firefox", "svg"};

void write(const Profile& profile, const std::string& path) {
  std::ofstream(path + ".facts") << facts(profile);
  for (const char* format : checked) {
    if (refusal(*find_format(format), profile.about.unit)) continue;
    std::ofstream out(path + '.' + format, std::ios::binary);
    find_format(format)->write(profile, {}, out);
  }
}

void time_formats(int samples) {
  const Profile profile = busy_profile(samples);
  for (const Format& format : formats()) {
    if (format.write == nullptr) continue;
    std::ofstream out("/dev/null", std::ios::binary);
    const auto start = std::chrono::steady_clock::now();
    format.write(profile, {}, out);
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
    std::ostringstream size;
    format.write(profile, {}, size);
    fmt::print("{:12} {:12} bytes {:7.3f} s\n", format.name, size.str().size(), taken.count());
  }
}

}  // namespace
}  // namespace luaspy

int main(int argc, char** argv) {
  if (argc == 3 && std::string_view(argv[1]) == "--time") return luaspy::time_formats(std::atoi(argv[2])), 0;
  if (argc != 2) return 2;
  using luaspy::Unit;
  const std::string folder = argv[1];
  luaspy::write(luaspy::sample_profile(), folder + "/sample");
  luaspy::write(luaspy::sample_profile(Unit::bytes), folder + "/sample.bytes");
  luaspy::write(luaspy::sample_profile(Unit::objects), folder + "/sample.objects");
  luaspy::write(luaspy::busy_profile(10'000), folder + "/busy");
}
