// record --jit: what LuaJIT's compiler decides, as marks in the order of time.

#include <fmt/format.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <map>
#include <set>

#include "support/harness.h"

namespace luaspy::live::record_jit_test {
namespace {

using Json = nlohmann::json;

// A new function every 60 ms, which is tried until it is blacklisted, and one that is compiled. Each is of a file of
// its own: round7. After the tenth, all traces are thrown away.
const std::string rounds =
    "for round = 1, 20 do\n"
    "  local code = [[return function(n)\n"
    "    local t = {}\n"
    "    for i = 1, n do t[i % 10] = function() return i end end\n"
    "  end, function(n)\n"
    "    local s = 0\n"
    "    for i = 1, n do s = s + i % 7 end\n"
    "    return s\n"
    "  end]]\n"
    "  local closures, plain = assert(loadstring(code, '=round' .. round))()\n"
    "  closures(200000)\n"
    "  local stop = os.clock() + 0.06\n"
    "  while os.clock() < stop do closures(100) plain(1000) end\n"
    "  if round == 10 then jit.flush() end\n"
    "end\n";

bool mentions(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

int round_of(const std::string& text) {
  const std::size_t at = text.find("round");
  return at == std::string::npos ? 0 : std::atoi(text.c_str() + at + 5);
}

struct Span {
  double first = 1e18, last = 0;  // µs
};

void check_marks(const Json& trace, double duration_us) {
  std::vector<Json> instants;
  std::map<int, Span> seen;  // by round: when samples found its code
  for (const Json& event : trace.at("traceEvents")) {
    if (event.at("ph") == "i") instants.push_back(event);
    if (event.at("ph") != "B" || !mentions(event.at("name"), "(round")) continue;
    Span& span = seen[round_of(event["name"])];
    span.first = std::min(span.first, event.at("ts").get<double>());
    span.last = std::max(span.last, event["ts"].get<double>());
  }
  std::map<std::string, int> kinds;
  std::set<std::string> reasons;
  double last = 0;
  int last_round = 0;
  std::size_t judged = 0;
  bool in_order = true, in_recording = true, in_round = true;
  for (const Json& instant : instants) {
    INFO(instant.dump());
    const double at = instant.at("ts");
    const std::string name = instant.at("name");
    ++kinds[name.substr(0, name.find(' '))];
    in_recording &= at >= 0 && at <= duration_us;
    in_order &= at >= last;
    last = at;
    const int round = round_of(name);
    if (round == 0) continue;
    in_order &= round >= last_round;
    last_round = round;
    // By the program's own clock: on a busy machine a mark may be later than the round by as long as luaspy got no CPU,
    // and that may be as long as two rounds take.
    if (const auto before = seen.find(round - 2); before != seen.end()) in_round &= at > before->second.first, ++judged;
    if (const auto after = seen.find(round + 2); after != seen.end()) in_round &= at < after->second.last, ++judged;
    if (name.starts_with("abort")) reasons.insert(instant.at("args").at("why").get<std::string>());
  }
  INFO(fmt::format("{} instants in {} rounds", instants.size(), seen.size()));
  CHECK(in_recording);
  CHECK(in_order);
  CHECK(in_round);
  CHECK(judged > instants.size());
  CHECK(seen.size() >= 10);
  CHECK(kinds["abort"] >= 10);
  CHECK(kinds["blacklisted"] >= 10);
  CHECK(kinds["trace"] >= 10);
  CHECK(kinds["flush"] == 1);
  CHECK(std::ranges::any_of(reasons,
                            [](const std::string& why) { return mentions(why, "NYI: bytecode FNEW at round"); }));
}

}  // namespace

TEST_CASE("what LuaJIT's compiler does is marked at its time", "[record]") {
  const Folder folder;
  const std::string raw = folder.path("raw.luaspy"), trace = folder.path("a.trace.json");
  const Finished recorded = luaspy(Words{"record", "--jit", "-r", "200", "-o", raw, "--"} +
                                   lua({folder.write("rounds.lua", rounds)}, luajit));
  INFO(recorded.err);
  REQUIRE(recorded.status == 0);
  CHECK(mentions(recorded.err, "LuaJIT's compiler: "));
  REQUIRE(luaspy({"report", raw, "-f", "chrometrace", "-o", trace}).status == 0);
  const Json events = Json::parse(read_file(trace));
  const Json report = Json::parse(luaspy({"report", raw, "--json"}).out);
  const double seconds = report.at("recording").at("seconds");
  check_marks(events, seconds * 1e6);
  // The views count what is marked.
  const Json& compiler = report.at("compiler");
  const auto instants = std::ranges::count_if(events.at("traceEvents"),
                                              [](const Json& event) { return event.at("ph") == "i"; });
  CHECK(compiler.at("aborts").get<int>() + compiler.at("blacklisted").get<int>() + compiler.at("flushes").get<int>() +
            compiler.at("traces").get<int>() ==
        instants);
  const std::string text = luaspy({"report", raw}).out;
  CHECK(mentions(text, fmt::format("LuaJIT's compiler: {} aborts, {} places blacklisted, 1 flush, {} new traces",
                                   compiler["aborts"].get<int>(), compiler["blacklisted"].get<int>(),
                                   compiler["traces"].get<int>())));
}

TEST_CASE("marks are written while recording, into each format that has them", "[record]") {
  const Folder folder;
  const std::string script = folder.write("rounds.lua", rounds);
  for (const char* const file : {"a.trace.json", "a.firefox.json"}) {
    const std::string path = folder.path(file);
    const Finished recorded = luaspy(Words{"record", "--jit", "-d", "0.7", "--end-command", "-o", path, "--"} +
                                     lua({script}, luajit));
    INFO(recorded.err);
    REQUIRE(recorded.status == 0);
    const std::string text = read_file(path);
    CHECK(mentions(text, file[2] == 't' ? "\"cat\":\"compiler\",\"name\":\"abort round"
                                        : "\"type\":\"LuaJIT\",\"place\":\"round"));
  }
}

TEST_CASE("without --jit, and without LuaJIT, there are no marks", "[record]") {
  const Folder folder;
  const std::string raw = folder.path("raw.luaspy");
  const Finished without = luaspy(Words{"record", "-d", "0.3", "--end-command", "-o", raw, "--"} +
                                  lua({folder.write("rounds.lua", rounds)}, luajit));
  REQUIRE(without.status == 0);
  CHECK_FALSE(mentions(without.err, "LuaJIT's compiler: "));
  const std::string busy = "local stop = os.clock() + 0.3 while os.clock() < stop do end\n";
  const Finished of_puc = luaspy(Words{"record", "--jit", "-o", folder.path("puc.luaspy"), "--"} +
                                 lua({folder.write("busy.lua", busy)}));
  INFO(of_puc.err);
  CHECK(of_puc.status == 0);
  CHECK(mentions(of_puc.err, "no LuaJIT was seen, so there is no compiler to watch (--jit)\n"));
}

}  // namespace luaspy::live::record_jit_test
