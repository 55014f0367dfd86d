// The hunt of docs/alloc.md: a script in redis that asks for more than it needs, found and mended.
#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <map>
#include <regex>

#include "live/server.h"
#include "support/harness.h"

namespace luaspy::live::alloc_hunt_test {
namespace {

// Redis' protocol: a command is an array of bulk strings.
std::string command(const Words& words) {
  std::string text = fmt::format("*{}\r\n", words.size());
  for (const std::string& word : words) text += fmt::format("${}\r\n{}\r\n", word.size(), word);
  return text;
}

std::string script(const std::string& name) { return read_file(LUASPY_TESTS "/../demo/redis/" + name); }

// Sends commands; returns all replies.
std::string ask(Running& redis, const std::string& socket, const std::string& commands) {
  const Connection connection(redis, socket);
  connection.send(commands + command({"QUIT"}));
  return connection.rest();
}

}  // namespace

TEST_CASE("what a script of redis allocates is found", "[hosts]") {
  const Folder folder;
  const std::string socket = folder.path("socket");
  Running redis(host("redis") + Words{"--port", "0", "--unixsocket", socket, "--dir", folder.path(), "--save", "",
                                      "--appendonly", "no"});
  constexpr int customers = 200, fields = 20;
  std::string all;
  for (int i = 0; i < customers; ++i) {
    const std::string key = fmt::format("customer:{}", i);
    Words stored = {"HSET", key, "spent", std::to_string(i)};
    for (int j = 0; j < fields; ++j) stored = stored + Words{fmt::format("field{}", j), fmt::format("{} of {}", j, i)};
    all += command({"SADD", "customers", key}) + command(stored);
  }
  (void)ask(redis, socket, all);
  const std::string sum = ":19900\r\n";
  for (const char* const each : {"spent.lua", "mended.lua"})
    CHECK(ask(redis, socket, command({"EVAL", script(each), "0"})) == sum + "+OK\r\n");

  // The script again and again.
  const auto sampled = [&](const std::string& name) {
    const Connection connection(redis, socket);
    std::string endless = script(name);
    const std::string last = "return total(redis.call('SMEMBERS', 'customers'))";
    REQUIRE(endless.find(last) != std::string::npos);
    endless.replace(endless.find(last), last.size(),
                    "for i = 1, 40000000 do total(redis.call('SMEMBERS', 'customers')) end");
    connection.send(command({"EVAL", endless, "0"}));
    const std::string pid = std::to_string(redis.pid());
    redis.await("the script runs", [&] {
      return luaspy({"dump", "--pid", pid}).out.find("total (") != std::string::npos;
    });
    return luaspy({"alloc", "--pid", pid, "-d", "3", "--max-cost", "20"});
  };
  const Finished found = sampled("spent.lua");
  INFO(found.out << found.err);
  CHECK(found.status == 0);
  // It is on the stack of almost all that is allocated.
  std::smatch match;
  REQUIRE(std::regex_search(found.out, match,
                            std::regex("([0-9.]+) \u00b1 *[0-9.]+  fields_of \\(user_script f_[0-9a-f]{8}:2\\)")));
  CHECK(std::stod(match[1]) > 90);
}

// All scripts of redis are chunks of one name, and these two differ only in what no function shows.
TEST_CASE("scripts of redis are told apart by the start of their SHA-1", "[hosts]") {
  const Folder folder;
  const std::string socket = folder.path("socket");
  Running redis(host("redis") + Words{"--port", "0", "--unixsocket", socket, "--dir", folder.path(), "--save", "",
                                      "--appendonly", "no"});
  const std::string text =
      "local function spin(n) local function inner(x, i) return (x + i) % 7 end "
      "local x = 0 for i = 1, n do x = inner(x, i) end return x end return spin(1000000) ";
  Words shas;
  for (const char* const end : {"+ 1", "+ 2"}) {
    const std::string reply = ask(redis, socket, command({"SCRIPT", "LOAD", text + end}));
    REQUIRE(reply.starts_with("$40\r\n"));
    shas.push_back(reply.substr(5, 8));
  }
  const Connection connection(redis, socket);
  std::string both;
  for (int i = 0; i < 500; ++i) both += command({"EVAL", text + "+ 1", "0"}) + command({"EVAL", text + "+ 2", "0"});
  connection.send(both);
  const std::string pid = std::to_string(redis.pid());
  redis.await("the scripts run", [&] {
    return luaspy({"dump", "--pid", pid}).out.find(" (user_script f_") != std::string::npos;
  });
  const Finished recorded = luaspy({"record", "--pid", pid, "-r", "500", "-d", "1.5", "-f", "folded", "-o", "-"});
  INFO(recorded.err << recorded.out);
  std::map<std::string, std::int64_t> samples;
  for (const FoldedStack& stack : parse_folded(recorded.out)) {
    for (const std::string& frame : stack.frames) samples[frame] += stack.count;
  }
  std::int64_t all = 0;
  for (const std::string& sha : shas) {
    const std::string chunk = "user_script f_" + sha;
    CHECK(samples["main chunk (" + chunk + ")"] > 50);
    CHECK(samples["spin (" + chunk + ":1)"] > 50);
    CHECK(samples["inner (" + chunk + ":1)"] > 20);
    all += samples["main chunk (" + chunk + ")"];
  }
  CHECK(samples["main chunk (user_script)"] * 20 <= all);  // before the registry was read
  const Finished heap = luaspy({"heap", "--pid", pid, "--lines", "200"});
  INFO(heap.out);
  CHECK(heap.out.find("code of user_script f_" + shas.front()) != std::string::npos);
  CHECK(heap.out.find("(user_script f_" + shas.front()) != std::string::npos);
  CHECK(!std::regex_search(heap.out, std::regex("user_script(:|\\)| *\n)")));
  const Finished locals = luaspy({"dump", "--pid", pid, "--locals"});
  CHECK(locals.out.find(" (user_script f_") != std::string::npos);
}

}  // namespace luaspy::live::alloc_hunt_test
