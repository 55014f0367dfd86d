// --label request in servers other than nginx, and --slower: compared with what the test has sent.

#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <chrono>
#include <cmath>
#include <future>
#include <map>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "live/server.h"
#include "support/harness.h"

namespace luaspy::live::requests_test {
namespace {

// Redis has no os.clock(): there, the unit is a number of turns.
const std::string work = "local function work(n) local x = 0 for i = 1, n * 30000 do x = x + i % 7 end return x end\n";
const std::string spin =
    "local function spin(least) local begin, x = os.clock(), 0 "
    "repeat for i = 1, 500 do x = x + i % 7 end until os.clock() - begin >= least return x end\n";

std::future<Finished> record(int pid, const std::string& file, const Words& options) {
  Words words = {"record", "-d", "4", "-r", "500", "--max-stopped", "100", "-f", "raw", "-o", file};
  words.insert(words.end(), options.begin(), options.end());
  words.insert(words.end(), {"--pid", std::to_string(pid)});
  return std::async(std::launch::async, [words] { return luaspy(words); });
}

bool runs(const std::future<Finished>& recording) {
  return recording.wait_for(std::chrono::seconds(0)) != std::future_status::ready;
}

// Samples by value of a label.
struct Values {
  double samples = 0;  // of the recording
  std::map<std::string, double> of;
};
Values values_in(const std::string& file, const std::string& label) {
  const Finished reported = luaspy({"report", file, "--json"});
  INFO(reported.err);
  REQUIRE(reported.status == 0);
  const nlohmann::json json = nlohmann::json::parse(reported.out);
  Values values{json["recording"]["samples"].get<double>(), {}};
  const nlohmann::json labels = json.value("labels", nlohmann::json::object());
  for (const auto& each : labels.value(label, nlohmann::json::array())) values.of[each["value"]] = each["samples"];
  return values;
}

// Whether a share of the work is what it has to be, as far as that many samples can tell.
void check_share(const Values& values, const std::string& value, double expected, double all) {
  const auto found = values.of.find(value);
  INFO(value << ": " << (found == values.of.end() ? 0 : found->second) << " of " << all << ", not " << expected * all);
  REQUIRE(found != values.of.end());
  CHECK(std::abs(found->second / all - expected) < 5 * std::sqrt(expected * (1 - expected) / all) + 0.02);
}

// `name`: a Redis, or a Valkey. `functions`: it has functions that a library registers, from 7.0 on.
void check_redis(const std::string& name, bool functions = true) {
  INFO(name);
  const Folder folder;
  const std::string socket = folder.path("socket"), file = folder.path("requests.luaspy");
  Running redis(host(name) + Words{"--port", "0", "--unixsocket", socket, "--dir", folder.path(), "--save", "",
                                   "--appendonly", "no"});
  const std::string once = work + "local x = work(1) redis.call('SET', 'a', x) return 1",
                    thrice = work + "local x = work(3) redis.call('SET', 'a', x) return 1",
                    library = "#!lua name=own\n" + work +
                              "redis.register_function('f_two', function() local x = work(2) return x end)\n"
                              "redis.register_function('f_four', function() local x = work(4) return x end)\n";
  const auto ask = [&](const std::string& commands) {
    const Connection connection(redis, socket);
    connection.send(commands + resp({"QUIT"}));
    return connection.rest();
  };
  const std::string said = ask(resp({"SCRIPT", "LOAD", once}) + resp({"SCRIPT", "LOAD", thrice}) +
                               (functions ? resp({"FUNCTION", "LOAD", library}) : ""));
  INFO(said);
  std::smatch sha;
  REQUIRE(std::regex_search(said, sha, std::regex("([0-9a-f]{40})\r\n\\$40\r\n([0-9a-f]{40})")));
  const std::string of_once = sha[1], of_thrice = sha[2];
  std::future<Finished> recording = record(redis.pid(), file, {"--label", "request"});
  std::string some;
  for (int i = 0; i < 10; ++i)
    some += resp({"EVALSHA", of_once, "0"}) + resp({"EVALSHA", of_thrice, "0"}) +
            (functions ? resp({"FCALL", "f_two", "0"}) + resp({"FCALL", "f_four", "0"}) : "");
  while (runs(recording)) {
    const std::string answer = ask(some);
    INFO(answer);
    CHECK(answer.find("\n-") == std::string::npos);  // an error
    CHECK(!answer.starts_with('-'));
  }
  const Finished recorded = recording.get();
  INFO(recorded.err);
  REQUIRE(recorded.status == 0);
  const Values values = values_in(file, "request");
  double all = 0;
  for (const auto& [value, samples] : values.of) all += samples;
  REQUIRE(all > 300);
  check_share(values, of_once, functions ? 0.1 : 0.25, all);
  check_share(values, of_thrice, functions ? 0.3 : 0.75, all);
  if (functions) {
    check_share(values, "f_two", 0.2, all);
    check_share(values, "f_four", 0.4, all);
  }
  if (name == "valkey") return;
  // The stack says on its own which script it was: Redis has its function as a global.
  for (const std::string& script : {of_once, of_thrice}) {
    const Finished folded = luaspy({"report", file, "--label", "request=^" + script + "$", "-f", "folded", "-o", "-"});
    const std::string right = "f_" + script.substr(0, 8),
                      wrong = "f_" + (script == of_once ? of_thrice : of_once).substr(0, 8);
    CHECK(folded.out.find(right) != std::string::npos);
    CHECK(folded.out.find(wrong) == std::string::npos);
  }
}

}  // namespace

TEST_CASE("redis: the script or the function that it runs", "[live][labels]") { check_redis("redis"); }

TEST_CASE("redis 6: the script that it runs", "[live][labels][all]") { check_redis("redis6", false); }

TEST_CASE("valkey: the script or the function that it runs", "[live][labels][all]") { check_redis("valkey"); }

TEST_CASE("haproxy: a service and an action, by the function that it calls", "[live][labels][all]") {
  const Folder folder;
  const std::string socket = folder.path("socket"), file = folder.path("requests.luaspy"),
                    script = folder.write("work.lua", spin +
                                                          "function one(applet) local x = spin(0.001) "
                                                          "applet:start_response() applet:send('x') return x end\n"
                                                          "function three(applet) local x = spin(0.003) "
                                                          "applet:start_response() applet:send('x') return x end\n"
                                                          "function check(txn) local x = spin(0.002) return x end\n"
                                                          "core.register_service('one', 'http', one)\n"
                                                          "core.register_service('three', 'http', three)\n"
                                                          "core.register_action('check', {'http-req'}, check)\n");
  const std::string config = folder.write(
      "config",
      fmt::format("global\n  nbthread 1\n  lua-load {}\n"
                  "defaults\n  mode http\n  timeout connect 60s\n  timeout client 60s\n  timeout server 60s\n"
                  "frontend front\n  bind unix@{}\n  http-request lua.check if {{ path /three }}\n"
                  "  http-request use-service lua.one if {{ path /one }}\n  http-request use-service lua.three\n",
                  script, socket));
  Running haproxy(host("haproxy") + Words{"-db", "-f", config});
  const auto ask = [&](const std::string& path) {
    const Connection connection(haproxy, socket);
    connection.send("GET " + path + " HTTP/1.0\r\n\r\n");
    return connection.rest();
  };
  CHECK(ask("/one").find(" 200 ") != std::string::npos);
  std::future<Finished> recording = record(haproxy.pid(), file, {"--label", "coroutine"});
  while (runs(recording)) {
    for (const char* const path : {"/one", "/three"}) CHECK(ask(path).find(" 200 ") != std::string::npos);
  }
  const Finished recorded = recording.get();
  INFO(recorded.err);
  REQUIRE(recorded.status == 0);
  Values values;
  double all = 0;
  for (const auto& [value, samples] : values_in(file, "coroutine").of) {
    values.of[value.substr(0, value.find(' '))] += samples;
    all += samples;
  }
  REQUIRE(all > 300);
  check_share(values, "one", 1 / 6., all);
  check_share(values, "three", 3 / 6., all);
  check_share(values, "check", 2 / 6., all);
}

TEST_CASE("haproxy: the frontend for which a Lua works", "[live][labels][all]") {
  const Folder folder;
  const std::string
      front = folder.path("front"),
      side = folder.path("side"), file = folder.path("requests.luaspy"),
      script = folder.write(
          "work.lua",
          // HAProxy interrupts Lua for other Lua, so that time does not tell how much each has worked.
          "local function work(ms) local x = 0 for i = 1, ms * 100000 do x = x + i % 7 end return x end\n"
          "local function serve(applet, ms) local x = work(ms) applet:start_response() applet:send('x') "
          "return x end\n"
          "core.register_service('one', 'http', function(applet) local x = serve(applet, 1) return x end)\n"
          "core.register_service('three', 'http', function(applet) "
          "local x = coroutine.wrap(serve)(applet, 3) return x end)\n"
          "core.register_action('check', {'http-req'}, function(txn) local x = work(2) core.yield() "
          "return x end)\n"
          "core.register_task(function() while true do local x = work(1) core.msleep(5) end end)\n");
  const std::string config = folder.write(
      "config",
      fmt::format(
          "global\n  nbthread 1\n  lua-load {}\n"
          "defaults\n  mode http\n  timeout connect 60s\n  timeout client 60s\n  timeout server 60s\n"
          "frontend front\n  bind unix@{}\n  http-request use-service lua.one\n"
          "frontend side.door\n  bind unix@{}\n  http-request lua.check\n  http-request use-service lua.three\n",
          script, front, side));
  Running haproxy(host("haproxy") + Words{"-db", "-f", config});
  const auto ask = [&](const std::string& socket) {
    const Connection connection(haproxy, socket);
    connection.send("GET / HTTP/1.0\r\n\r\n");
    return connection.rest();
  };
  CHECK(ask(front).find(" 200 ") != std::string::npos);
  std::future<Finished> recording = record(haproxy.pid(), file, {"--label", "request"});
  while (runs(recording)) {
    for (const std::string& socket : {front, side}) CHECK(ask(socket).find(" 200 ") != std::string::npos);
  }
  const Finished recorded = recording.get();
  INFO(recorded.err);
  REQUIRE(recorded.status == 0);
  const Values values = values_in(file, "request");
  double all = 0, unknown = 0, other = 0;
  for (const auto& [value, samples] : values.of) {
    if (value == "(unknown)") unknown += samples;
    else if (value == "(no request)") other += samples;
    else all += samples;
  }
  INFO(unknown << " unknown, " << other << " of the task");
  REQUIRE(all > 200);
  CHECK(unknown < 0.1 * all);
  CHECK(other > 3);
  check_share(values, "front", 1 / 6., all);
  check_share(values, "side.door", 5 / 6., all);
}

TEST_CASE("nginx: only requests that took long, each with its samples", "[live][labels][all]") {
  const Folder folder;
  const std::string file = folder.path("slow.luaspy"), socket = folder.path("socket");
  Running nginx(nginx_with("slow-nginx", folder));
  nginx.read_until("READY");
  const auto ask = [&](const std::string& path) {
    const Connection connection(nginx, socket);
    connection.send("GET " + path + " HTTP/1.0\r\n\r\n");
    CHECK(connection.rest().find(" 200 OK") != std::string::npos);
  };
  std::future<Finished> recording = record(nginx.pid(), file, {"--slower", "200ms"});
  std::map<std::string, double> sent;
  while (runs(recording)) {
    for (const std::string path : {"/works", "/waits"}) {
      const Connection slow(nginx, socket);
      slow.send("GET " + path + " HTTP/1.0\r\n\r\n");
      for (int i = 0; i < 100; ++i) ask("/fast");
      CHECK(slow.rest().find(" 200 OK") != std::string::npos);
      ++sent[path];
    }
  }
  const Finished recorded = recording.get();
  INFO(recorded.err);
  REQUIRE(recorded.status == 0);
  CHECK(recorded.err.find(" took 200 ms or longer") != std::string::npos);
  CHECK(recorded.err.find("left out as asked") != std::string::npos);
  CHECK(values_in(file, "trace").of.empty());  // nobody has asked for it
  const Values values = values_in(file, "slow");
  std::map<std::string, double> seen, samples;
  for (const auto& [value, count] : values.of) {
    INFO(value << ": " << count);
    std::smatch parts;
    REQUIRE(std::regex_match(value, parts, std::regex("GET (/[a-z]+), ([0-9]+) ms, began at [0-9:]{8}\\.[0-9]{3}")));
    const std::string path = parts[1];
    CHECK((path == "/works" || path == "/waits"));
    const int ms = std::stoi(parts[2]);
    CHECK(ms >= 200);
    CHECK(ms < 4000);
    ++seen[path];
    samples[path] += count;
  }
  // The first ones end before it is known where nginx has their texts, the last ones after the recording.
  for (const auto& [path, count] : sent) {
    INFO(path << ": " << count << " sent, " << seen[path] << " seen, " << samples[path] << " samples");
    CHECK(seen[path] <= count);
    CHECK(seen[path] >= count - 3);
  }
  const double all = samples["/works"] + samples["/waits"];
  CHECK(values.samples == all);
  CHECK(std::abs(samples["/works"] / all - 0.75) < 5 * std::sqrt(0.75 * 0.25 / all) + 0.08);  // 60 and 20 ms
}

TEST_CASE("nginx: where the coroutines of slow requests waited", "[live][labels][all]") {
  const Folder folder;
  const std::string file = folder.path("slow.luaspy"), socket = folder.path("socket");
  Running nginx(nginx_with("slow-nginx", folder));
  nginx.read_until("READY");
  const auto ask = [&](const std::string& path) {
    const Connection connection(nginx, socket);
    connection.send("GET " + path + " HTTP/1.0\r\n\r\n");
    return connection.rest();
  };
  std::future<Finished> recording = record(nginx.pid(), file,
                                           {"--slower", "200ms", "--coroutines", "--coroutine-rate", "50"});
  double sent = 0;
  while (runs(recording)) {
    const Connection slow(nginx, socket), threads(nginx, socket);
    slow.send("GET /waits HTTP/1.0\r\n\r\n");
    threads.send("GET /thread HTTP/1.0\r\n\r\n");
    // The coroutines of /exit are left where they are, and the memory of their requests serves others.
    for (int i = 0; i < 50; ++i)
      CHECK(ask(i % 2 == 0 ? "/exit" : "/fast").find(i % 2 == 0 ? " 403 " : " 200 OK") != std::string::npos);
    CHECK(slow.rest().find(" 200 OK") != std::string::npos);
    CHECK(threads.rest().find(" 200 OK") != std::string::npos);
    ++sent;
  }
  const Finished recorded = recording.get();
  INFO(recorded.err);
  REQUIRE(recorded.status == 0);
  const Finished reported = luaspy({"report", file, "--coroutines", "--json"});
  INFO(reported.err);
  REQUIRE(reported.status == 0);
  const nlohmann::json json = nlohmann::json::parse(reported.out);
  INFO(reported.out.substr(0, 2000));
  std::map<std::string, double> samples;
  std::set<std::string> requests;
  for (const auto& each : json.at("labels").at("slow")) {
    const std::string value = each["value"], path = value.substr(0, value.find(','));
    CHECK((path == "GET /waits" || path == "GET /thread"));
    CHECK(std::stoi(value.substr(value.find(',') + 1)) >= 200);
    samples[path] += each["samples"].get<double>();
    requests.insert(value);
  }
  CHECK(static_cast<double>(requests.size()) <= 2 * sent);
  CHECK(static_cast<double>(requests.size()) >= 2 * (sent - 3));
  // /waits has one that waits for 300 ms, /thread two: one that waits for the other one.
  CHECK(samples["GET /thread"] / samples["GET /waits"] == Approx(2).margin(0.5));
  for (const auto& place : json.at("coroutines").at("places")) {
    const std::string stack = place.at("stack").dump();
    INFO(stack);
    CHECK(stack.find("slow-nginx.lua") != std::string::npos);
    CHECK(stack.find("exit") == std::string::npos);
  }
  // One of them, by itself.
  const std::string one = *requests.begin();
  const Finished of_one = luaspy({"report", file, "--coroutines", "--label", "slow=^" + one, "--json"});
  INFO(of_one.err);
  REQUIRE(of_one.status == 0);
  CHECK(nlohmann::json::parse(of_one.out).at("labels").at("slow").size() == 1);
  // The track of each says what it waited for: 300 ms, but for what it worked, and for what was seen of it too late.
  const Finished traced = luaspy({"report", file, "-f", "chrometrace", "-o", "-"});
  REQUIRE(traced.status == 0);
  std::map<int, std::string> names;
  std::map<int, std::vector<std::pair<std::string, double>>> open;
  double waited_us = 0, tracks_of_waits = 0;
  std::size_t tracks = 0;
  const nlohmann::json trace = nlohmann::json::parse(traced.out);
  for (const auto& event : trace.at("traceEvents")) {
    const int tid = event.value("tid", 0);
    const std::string phase = event.at("ph");
    if (event.value("name", "") == "thread_name") {
      names[tid] = event.at("args").at("name");
      tracks_of_waits += names[tid].starts_with("GET /waits, ");
      tracks += names[tid].starts_with("GET ");
    }
    if (phase == "B") open[tid].emplace_back(event.at("name"), event.at("ts"));
    if (phase != "E") continue;
    const auto [name, from] = open[tid].back();
    open[tid].pop_back();
    if (name == "waits" && names[tid].starts_with("GET /waits, ")) waited_us += event.at("ts").get<double>() - from;
  }
  CHECK(waited_us / tracks_of_waits / 1000 == Approx(290).margin(50));
  CHECK(tracks >= requests.size());
  CHECK(static_cast<double>(tracks) <= 2 * sent);
}

TEST_CASE("--slower that leaves nothing says so", "[live][labels]") {
  const Folder folder;
  Words words = {"record", "--slower", "1s", "-o", folder.path("a.luaspy"), "--"};
  for (const std::string& word : target("debian-lua5.4-bookworm").command) words.push_back(word);
  words.push_back(folder.write("a.lua", "local t = os.clock() while os.clock() - t < 0.3 do end"));
  const Finished none = luaspy(words);
  CHECK(none.status == 11);
  CHECK(none.err.find("--slower leaves none") != std::string::npos);
}

}  // namespace luaspy::live::requests_test
