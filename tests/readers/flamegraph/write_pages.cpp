// Writes the pages that check.py looks at into the folder of its argument.

#include <fmt/format.h>

#include <fstream>
#include <sstream>

#include "output/flamegraph.h"
#include "output/raw.h"
#include "support/dice.h"
#include "support/sample_profile.h"

using namespace luaspy;

namespace {

Frame lua(std::string name, std::string file, int line) {
  return {Frame::Kind::lua, std::move(name), std::move(file), line, 0};
}

// Samples of one thread, 10 ms apart.
class Writing {
 public:
  explicit Writing(std::string command, Unit unit = Unit::nanoseconds) {
    profile.about.unit = unit;
    profile.about.command = std::move(command);
    profile.about.rate = 100;
    thread_ = profile.index_of({1, "main", 1, profile.about.command});
  }
  void add(const Stack& stack, int samples, VmState state = VmState::interpreting, std::int64_t weight = 10'000'000) {
    const StackId id = profile.stacks().intern(stack);
    for (int i = 0; i < samples; ++i) add(id, state, weight);
  }
  void add(StackId stack, VmState state, std::int64_t weight = 10'000'000) {
    Sample facts;
    facts.vm_state = state;
    facts.labels = profile.labels().intern(labels);
    profile.add(thread_, {at_ns_ += 10'000'000, weight}, facts, stack);
    profile.about.duration_ns = at_ns_;
  }

  void pass(std::int64_t ns) { profile.about.duration_ns = at_ns_ += ns; }

  Profile profile;
  Labels labels;  // of the samples from here on

 private:
  std::uint32_t thread_ = 0;
  std::int64_t at_ns_ = 0;
};

Profile recursive() {
  Writing writing("tree.lua");
  const Frame main = lua("main chunk", "tree.lua", 0), walk = lua("walk", "tree.lua", 3),
              leaf = lua("leaf", "tree.lua", 9), other = lua("other", "tree.lua", 20);
  const Frame insert = {Frame::Kind::c, "table.insert", "lua5.4", 0, 0};
  writing.add({main, walk, walk, leaf}, 30, VmState::interpreting);
  writing.add({main, other, walk, walk}, 12, VmState::machine_code);
  writing.add({main, walk, insert}, 7, VmState::c);
  writing.add({main, other}, 3, VmState::interpreting);
  writing.add({walk, leaf}, 5, VmState::collecting);
  return std::move(writing.profile);
}

// 200 calls of `down`, 60 calls of two functions by turns, and two lines of one function; the text
// of the file is carried, and the recording.
Profile deep() {
  Writing writing("deep.lua");
  const auto at = [](Frame frame, int line) { return frame.line = line, frame; };
  const Frame main = lua("main chunk", "app/deep.lua", 0), down = lua("down", "app/deep.lua", 2),
              even = lua("even", "app/deep.lua", 5), odd = lua("odd", "app/deep.lua", 6),
              unnamed = lua("function", "app/deep.lua", 7), leaf = lua("leaf", "app/deep.lua", 9);
  Stack stack = {at(main, 12)};
  stack.insert(stack.end(), 200, at(down, 3));
  stack.push_back(at(leaf, 9));
  writing.add(stack, 20);
  stack.resize(51);
  writing.add(stack, 10);
  stack = {at(main, 13)};
  for (int i = 0; i < 30; ++i) stack.push_back(at(even, 5)), stack.push_back(at(odd, 6));
  writing.add(stack, 30, VmState::collecting);
  writing.add({at(main, 13), at(unnamed, 7), at(leaf, 9)}, 25);
  writing.add({at(main, 13), at(unnamed, 8), at(leaf, 9)}, 15);
  writing.profile.sources["app/deep.lua"] = {
      "-- </script><b>\nlocal function down(n)\n  return (down(n - 1))\nend\n"
      "function even(n) return (odd(n - 1)) end\n"
      "function odd(n) return (even(n - 1)) end\nhandlers[1] = function()\n"
      "  leaf()\nfunction leaf() end\n\n\ndown(200)\neven(60)\n",
      false};
  return std::move(writing.profile);
}

// Frames of each kind and part; a thread that has not come to main(), and one that runs no Lua.
Profile parts() {
  Writing writing("parts.lua");
  const auto native = [](std::string name, Frame::Part part) {
    Frame frame = {Frame::Kind::native, std::move(name), "lua5.4", 0, 0};
    frame.part = part;
    return frame;
  };
  const Frame start = native("_start", Frame::Part::start), main = native("main", Frame::Part::program),
              execute = native("luaV_execute", Frame::Part::vm), match = native("match", Frame::Part::program);
  Frame launcher = {Frame::Kind::c, "pmain", "lua5.4", 0, 0};
  launcher.part = Frame::Part::start;
  const Frame gsub = {Frame::Kind::c, "string.gsub", "lua5.4", 0, 0}, chunk = lua("main chunk", "parts.lua", 0);
  writing.add({start, main, launcher, chunk, execute, lua("work", "parts.lua", 3), gsub, match}, 10);
  writing.add({start, main, launcher, chunk, execute}, 5);
  writing.add({start}, 3);
  writing.add({start, main, match}, 2);
  return std::move(writing.profile);
}

// 60 s at 100 Hz, in two functions by turns: the first half mostly in `first`, the second in
// `second`.
Profile busy() {
  Writing writing("busy.lua");
  const Frame main = lua("main chunk", "busy.lua", 0), first = lua("first", "busy.lua", 1),
              second = lua("second", "busy.lua", 2);
  for (int i = 0; i < 6000; ++i) writing.add({main, (i % 4 == 0) == (i < 3000) ? second : first}, 1);
  return std::move(writing.profile);
}

// Two requests with texts that no page may take for markup, and what is for none.
Profile labelled() {
  Writing writing("server.lua");
  const Frame main = lua("main chunk", "server.lua", 0), render = lua("render", "server.lua", 1),
              query = lua("query", "server.lua", 2);
  writing.labels = {{"request", "GET /<b>cart</b>"}, {"user", "a=b"}};
  writing.add({main, render}, 30, VmState::machine_code);
  writing.add({main, query}, 10);
  writing.labels = {{"request", "GET /list"}};
  writing.add({main, query}, 50);
  writing.labels = {};
  writing.add({main}, 10);
  return std::move(writing.profile);
}

// 6 s, six Lua heaps of 1 MiB each, from the first samples on, and three decisions of LuaJIT's compiler, two of them at
// one moment.
Profile heaps() {
  Writing writing("heaps.lua");
  writing.add({lua("main chunk", "heaps.lua", 0)}, 600);
  for (unsigned state = 0; state < 6; ++state) {
    writing.profile.heaps.add_state({1, 0x1000 * (state + 1)});
    writing.profile.heaps.add((state + 1) * 10'000'000, {state, 1 << 20, CollectorPhase::marking, false});
  }
  writing.profile.marks = {{Mark::Kind::trace, 1'500'000'000, 1, "heaps.lua", 3, 7, "loop"},
                           {Mark::Kind::flush, 4'500'000'000, 1, "", 0, 0, ""},
                           {Mark::Kind::trace, 4'500'001'000, 1, "heaps.lua", 3, 1, "loop"}};
  return std::move(writing.profile);
}

// 3 hours, in which only every tenth second has a sample, and one has 40.
Profile hours() {
  Writing writing("hours.lua");
  const Frame main = lua("main chunk", "hours.lua", 0), odd = lua("odd", "hours.lua", 3);
  for (int i = 0; i < 1080; ++i) {
    if (i == 540) writing.add({main, odd}, 40);
    else writing.add({main}, 1);
    writing.pass(i == 540 ? 9'600'000'000 : 9'990'000'000);
  }
  return std::move(writing.profile);
}

// What makes every tool appear: several threads, lines, and sources.
Profile full() {
  Profile profile = sample_profile();
  profile.sources = {{"app/main.lua", {"x = 1\n", false}}};
  return profile;
}

// Between 200 and 500 ms of 1 s there is no sample; a thread slept, waited and was lost.
Profile gaps() {
  Writing writing("gaps.lua");
  writing.add({lua("main chunk", "gaps.lua", 0), lua("before", "gaps.lua", 2)}, 20);
  writing.pass(300'000'000);
  writing.add({lua("main chunk", "gaps.lua", 0)}, 50);
  writing.profile.add_idle(1234);
  writing.profile.add_waiting(3);
  writing.profile.add_loss(Loss::late, 2);
  return std::move(writing.profile);
}

// Names that would have an effect if they were interpreted as markup or script.
Profile hostile() {
  constexpr std::string_view names[] = {"<img src=x onerror=\"window.owned=1\">",
                                        "</script><script>window.owned=1</script>",
                                        "</script x",
                                        "</SCRIPT/",
                                        "<!--<script ",
                                        "]]>",
                                        "\"onload=\"window.owned=1",
                                        "javascript:window.owned=1",
                                        "\u202egpj.exe",
                                        "\u2028\u2029",
                                        "\xff\xfe",
                                        "${window.owned=1}",
                                        "&lt;b&gt;",
                                        "__proto__",
                                        "constructor",
                                        "toString"};
  Writing writing("</title></script><script>window.owned=1</script><img src=x onerror=window.owned=1>");
  Stack stack;
  for (const std::string_view name : names) {
    stack.push_back(lua(std::string(name), std::string(name), 1));
    writing.add(stack, 2);
  }
  return std::move(writing.profile);
}

// 100,000 samples, 30 to 90 frames deep; successive samples have different stacks.
Profile large() {
  Writing writing("large.lua");
  Dice dice;
  std::vector<FrameId> functions;
  for (int i = 0; i < 300; ++i)
    functions.push_back(writing.profile.stacks().intern(
        lua(fmt::format("function_{}", i), fmt::format("module_{}.lua", i % 20), 1 + i)));
  std::vector<StackId> stack = {empty_stack};
  for (int i = 0; i < 100'000; ++i) {
    for (unsigned less = dice(4); less != 0 && stack.size() > 30; --less) stack.pop_back();
    do {
      // Each function has few different callees, as in real programs.
      const std::size_t callee = (number(stack.back()) * 7 + stack.size() * 3 + dice(3)) % functions.size();
      stack.push_back(writing.profile.stacks().intern({stack.back(), functions[callee]}));
    } while (stack.size() < 30 || (dice(2) == 0 && stack.size() < 90));
    writing.add(stack.back(), i % 5 == 0 ? VmState::machine_code : VmState::interpreting);
  }
  return std::move(writing.profile);
}

// `steady` takes the same time in both versions, `slower` takes half as long again after, and
// `gone` and `fresh` are only in one. The version after has a doubt: by its counts no sample has
// Lua.
Profile version_of(bool after) {
  Writing writing("versions.lua");
  writing.profile.about.lua_mapped = after;
  const Frame main = lua("main chunk", "versions.lua", 0);
  writing.add({main, lua("steady", "versions.lua", 2)}, 500);
  writing.add({main, lua("slower", "versions.lua", 4)}, after ? 600 : 400);
  writing.add({main, lua(after ? "fresh" : "gone", "versions.lua", 6)}, 100);
  return std::move(writing.profile);
}

// A raw recording of `render`, `parse` and two functions without a name. After, three lines more are above them,
// `render` takes less, and `emit` is there instead of `parse`.
std::string moved_version(bool after) {
  EventTables tables;
  const ThreadId thread = tables.threads.intern({1, "main", 1, "lua"});
  std::ostringstream out;
  RawWriter writer(tables, Unit::nanoseconds, out);
  const int lines = after ? 3 : 0;
  const Frame other = after ? lua("emit", "moved.lua", 60) : lua("parse", "moved.lua", 10);
  const std::pair<Frame, int> functions[] = {{lua("render", "moved.lua", 1 + lines), after ? 30 : 80},
                                             {other, after ? 50 : 4},
                                             {lua("function", "moved.lua", 20 + lines), 6},
                                             {lua("function", "moved.lua", 30 + lines), 10}};
  const StackId chunk = tables.stacks.intern({empty_stack, tables.stacks.intern(lua("main chunk", "moved.lua", 0))});
  std::int64_t at = 0;
  for (int round = 0; round < 40; ++round) {
    for (const auto& [function, samples] : functions) {
      Sample sample;
      sample.quality.stacks = sample.quality.with_lua = sample.quality.native_complete = 1;
      sample.vm_state = VmState::interpreting;
      sample.stack = tables.stacks.intern({chunk, tables.stacks.intern(function)});
      for (int i = 0; i < samples; ++i) writer.sample(thread, {at += 1'000'000, 1'000'000}, sample);
    }
  }
  writer.idle(12);
  writer.loss(Loss::late, 7);
  Metadata about;
  about.command = "lua moved.lua", about.rate = 1000, about.ticks = at / 1'000'000 + 19;
  about.duration_ns = at + 5'000'000, about.complete = true, about.luas = {"Lua 5.4.4"};
  about.cpu.lua_ns = about.sampled_cpu_ns = at;
  writer.about(about);
  writer.flush();
  return out.str();
}

// In bytes: `cache` has four times as much after, in the same number of samples.
Profile grown(bool after) {
  Writing writing("cache.lua", Unit::bytes);
  const Frame main = lua("main chunk", "cache.lua", 0);
  writing.add({main, lua("cache", "cache.lua", 2)}, 100, VmState::interpreting, after ? 40'000 : 10'000);
  writing.add({main, lua("parse", "cache.lua", 4)}, 300, VmState::interpreting, 10'000);
  return std::move(writing.profile);
}

// What is of an instant, as a heap is.
Profile instant() {
  Writing writing("instant.lua", Unit::bytes);
  writing.add({marker("package.loaded"), marker("cache")}, 3);
  Metadata& about = writing.profile.about;
  about.duration_ns = 0, about.rate = 0, about.complete = true;
  return std::move(writing.profile);
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 2) return 2;
  const std::string folder = arguments[1];
  const auto write = [&](const char* name, const Profile& profile) {
    std::ofstream file(fmt::format("{}/{}.html", folder, name), std::ios::binary);
    write_flamegraph(profile, {}, file);
  };
  write("sample", sample_profile());
  write("recursive", recursive());
  write("hostile", hostile());
  write("deep", deep());
  write("busy", busy());
  write("heaps", heaps());
  write("labelled", labelled());
  write("hours", hours());
  write("parts", parts());
  write("gaps", gaps());
  write("full", full());
  write("large", large());
  write("bytes", sample_profile(Unit::bytes));
  write("objects", sample_profile(Unit::objects));
  write("instant", instant());
  std::ofstream(folder + "/sample.luaspy", std::ios::binary) << sample_recording(Unit::nanoseconds);
  for (const bool after : {false, true})
    std::ofstream(folder + (after ? "/after.luaspy" : "/before.luaspy"), std::ios::binary) << moved_version(after);
  const auto write_diff = [&](const char* name, const Profile& before, const Profile& after, Compared compared,
                              double least_difference = 0, double least_ratio = 0) {
    std::ofstream file(fmt::format("{}/{}.html", folder, name), std::ios::binary);
    write_flamegraph_diff(before, after, {compared, 2, least_difference, least_ratio}, {}, file);
  };
  write_diff("diff", version_of(false), version_of(true), Compared::shares);
  write_diff("diff-time", version_of(false), version_of(true), Compared::weights);
  write_diff("diff-small", version_of(false), version_of(true), Compared::shares, 0.09);
  write_diff("diff-alike", version_of(false), version_of(true), Compared::shares, 0, 0.19);
  write_diff("diff-bytes", grown(false), grown(true), Compared::shares);
  write_diff("diff-bytes-measured", grown(false), grown(true), Compared::weights);
}
