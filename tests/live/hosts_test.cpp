// Programs from Debian that embed Lua: redis, haproxy, nmap, tshark, texlua; with LuaJIT nginx,
// neovim, tarantool, dnsdist, texluajit. Each gets work that never ends.

#include <fmt/format.h>
#include <algorithm>
#include <catch2/catch.hpp>
#include <regex>

#include "live/server.h"
#include "support/harness.h"

namespace luaspy::live::hosts_test {
namespace {

std::string base_name(const std::string& path) { return path.substr(path.rfind('/') + 1); }

// Functions that are not called by Lua have no names, and are listed by the place of their
// definition: "file.lua:7".
std::vector<std::string> names(const nlohmann::json& thread, const std::string& kind) {
  std::vector<std::string> names;
  for (const nlohmann::json& frame : thread.at("frames")) {
    if (frame.at("kind") != kind) continue;
    names.push_back(frame.at("name"));
    if (names.back() == "function")
      names.back() = fmt::format("{}:{}", base_name(frame.at("file")), frame.at("line_defined").get<int>());
  }
  return names;
}

bool in_order(const std::vector<std::string>& all, const std::vector<std::string>& wanted) {
  auto from = all.begin();
  for (const std::string& name : wanted) {
    from = std::find_if(from, all.end(),
                        [&](const std::string& one) { return one == name || one.ends_with('.' + name); });
    if (from == all.end()) return false;
    ++from;
  }
  return true;
}

// Waits until a dump shows these Lua functions on one thread (innermost first), then looks ten
// times: each look must show them, with a native part that reaches the thread's first function, and
// some look or sample must be in `c_function`. A host that runs Lua in slices (haproxy: 10000
// instructions each) has moments between them without Lua on any stack. By turns: other
// functions of the same program work as long as these, or longer.
enum class Runs { always, nearly_always, in_slices, by_turns };
void check(Running& server, const std::vector<std::string>& functions, const std::string& c_function = {},
           Runs runs = Runs::always) {
  const auto find = [&](const nlohmann::json& json) -> const nlohmann::json* {
    for (const nlohmann::json& thread : json.at("threads")) {
      if (in_order(names(thread, "lua"), functions)) return &thread;
    }
    return nullptr;
  };
  const Words command = {"dump", "--json", "--pid", std::to_string(server.pid())};
  server.await("a dump that shows " + functions.front(), [&] {
    const Finished finished = luaspy(command);
    return finished.status == 0 && find(nlohmann::json::parse(finished.out)) != nullptr;
  });
  bool c_function_seen = c_function.empty();
  int between_slices = 0;
  for (int look = 0; look < 10; ++look) {
    const Finished finished = luaspy(command);
    INFO(finished.err << finished.out);
    REQUIRE(finished.status == 0);
    const nlohmann::json json = nlohmann::json::parse(finished.out);
    const nlohmann::json* const thread = find(json);
    if (runs != Runs::always && thread == nullptr) {
      ++between_slices;
      continue;
    }
    REQUIRE(thread != nullptr);
    CHECK(thread->at("native_complete") == true);
    for (const nlohmann::json& frame : thread->at("frames"))
      CHECK(frame.at("name") != "[native and Lua frames not joined]");
    const std::vector<std::string> c_functions = names(*thread, "c");
    c_function_seen |= std::ranges::find(c_functions, c_function) != c_functions.end();
  }
  CHECK(between_slices <= (runs == Runs::by_turns ? 9 : runs == Runs::in_slices ? 5 : 2));
  // A recording may see functions that single looks miss.
  const Finished recorded = luaspy({"record", "-d", "2", "-r", "500", "--max-stopped", "100", "-f", "folded", "-o", "-",
                                    "--pid", std::to_string(server.pid())});
  INFO(recorded.err << recorded.out);
  REQUIRE(recorded.status == 0);
  std::int64_t with_functions = 0, all = 0;
  for (const FoldedStack& stack : parse_folded(recorded.out)) {
    std::vector<std::string> innermost_first;
    for (auto frame = stack.frames.rbegin(); frame != stack.frames.rend(); ++frame) {
      innermost_first.push_back(frame->substr(0, frame->find(" (")));
      if (innermost_first.back() == "function")
        innermost_first.back() = base_name(frame->substr(10, frame->size() - 11));
      c_function_seen |= *frame == c_function + " [C]";
    }
    all += stack.count;
    if (in_order(innermost_first, functions)) with_functions += stack.count;
  }
  CHECK(all > 50);
  CHECK(static_cast<double>(with_functions) > (runs <= Runs::nearly_always ? 0.9
                                               : runs == Runs::in_slices   ? 0.7
                                                                           : 0.15) *
                                                  static_cast<double>(all));
  std::smatch complete;
  REQUIRE(std::regex_search(recorded.err, complete, std::regex("([0-9.]+) % reach")));
  CHECK(std::stod(complete[1]) >= 99.9);
  INFO("the C function " << c_function);
  CHECK(c_function_seen);
}

}  // namespace

TEST_CASE("redis runs a script", "[hosts]") {
  const Folder folder;
  const std::string socket = folder.path("socket");
  Running redis(host("redis") + Words{"--port", "0", "--unixsocket", socket, "--dir", folder.path(), "--save", "",
                                      "--appendonly", "no"});
  const Connection connection(redis, socket);
  connection.send(resp({"EVAL",
                        "local function busy(n) local x = 0 for i = 1, n do x = x + i % 7 end return x end\n"
                        "local function store(key) return redis.call('SET', key, 'x') ~= nil end\n"
                        "local function loop() while true do busy(1000) for i = 1, 20 do store(KEYS[1]) end end end\n"
                        "loop()\n"
                        "return 1",
                        "1", "key"}));
  check(redis, {"loop"}, "redis.call");
}

TEST_CASE("haproxy runs a task and an action", "[hosts]") {
  const Folder folder;
  const std::string socket = folder.path("socket"),
                    script = folder.write(
                        "spin.lua",
                        "local function leaf(n) local x = 0 for i = 1, n do x = x + i % 7 end return x end\n"
                        "local function middle() local x = 0 for i = 1, 100 do x = x + leaf(1000) end return x end\n"
                        "local function spin() while true do middle() core.yield() end end\n"
                        "core.register_task(function() core.msleep(1) spin() end)\n"
                        "core.register_service('spin', 'http', function(applet) spin() end)\n");
  const std::string config = folder.write(
      "config", fmt::format("global\n  nbthread 1\n  lua-load {}\n"
                            "defaults\n  mode http\n  timeout connect 60s\n  timeout client 60s\n  timeout server 60s\n"
                            "frontend front\n  bind unix@{}\n  http-request use-service lua.spin\n",
                            script, socket));
  Running haproxy(host("haproxy") + Words{"-db", "-f", config});
  check(haproxy, {"spin"}, {}, Runs::in_slices);
  const Connection connection(haproxy, socket);
  connection.send("GET / HTTP/1.0\r\n\r\n");
  check(haproxy, {"spin"}, {}, Runs::in_slices);
}

TEST_CASE("nmap runs a script", "[hosts]") {
  const Folder folder;
  const std::string script = folder.write(
      "spin.nse",
      "description = 'spins'\ncategories = {'safe'}\n"
      "local function leaf(n) local x = 0 for i = 1, n do x = x + i % 7 end return x end\n"
      "local function spin() while true do leaf(100000) end end\n"
      "prerule = function() return true end\n"
      "action = function() spin() return 'done' end\n");
  Running nmap(host("nmap") + Words{"-Pn", "-n", "-sn", "--script", script, "127.0.0.1"});
  check(nmap, {"leaf", "spin"});
}

TEST_CASE("tshark runs a listener", "[hosts]") {
  const Folder folder;
  // pcap: magic, version 2.4, zone, accuracy, length, link type 147 (for private use); one packet
  // of four bytes.
  const unsigned header[] = {0xa1b2c3d4, 0x00040002, 0, 0, 65535, 147, 0, 0, 4, 4, 0x41414141};
  const std::string capture = folder.write("capture.pcap",
                                           std::string(reinterpret_cast<const char*>(header), sizeof header));
  const std::string script = folder.write(
      "spin.lua",
      "local function leaf(n) local x = 0 for i = 1, n do x = x + i % 7 end return x end\n"
      "local function spin() while true do leaf(100000) end end\n"
      "local tap = Listener.new('frame')\n"
      "function tap.packet() spin() end\n");
  // As root tshark does not run scripts, and looks for its data in /usr. Therefore it runs as a
  // user who can read what tests of root have prepared.
  const Words not_root = {"setpriv",
                          "--reuid=65534",
                          "--regid=65534",
                          "--clear-groups",
                          "--inh-caps=-all,+dac_override",
                          "--ambient-caps=-all,+dac_override"};
  Words command = host("tshark");
  command.insert(command.begin() + 1, "HOME=" + folder.path());  // the first word is env
  Running tshark((::geteuid() == 0 ? not_root : Words{}) + command +
                 Words{"-n", "-X", "lua_script:" + script, "-r", capture});
  check(tshark, {"leaf", "spin"});
}

TEST_CASE("nginx runs a timer and a request", "[luajit_hosts]") {
  const Folder folder;
  Running nginx(Words{"/usr/bin/env", "-C", folder.path()} + host("nginx") + Words{"-p", folder.path()});
  nginx.read_until("READY");
  check(nginx, {"middle", "work", "in_coroutine"}, {}, Runs::in_slices);
  const Connection connection(nginx, folder.path("socket"));
  connection.send("GET /?rounds=1000000000 HTTP/1.0\r\n\r\n");
  check(nginx, {"middle", "work", "serve"}, {}, Runs::by_turns);
}

TEST_CASE("neovim runs a script", "[luajit_hosts]") {
  const Folder folder;
  Words command = host("neovim");
  command.insert(command.begin() + 1, {"HOME=" + folder.path(), "XDG_STATE_HOME=" + folder.path()});  // the first word
                                                                                                      // is env
  Running neovim(command +
                 Words{"--headless", "-u", "NONE", "-i", "NONE", "-n", "-S", workload("luajit/host-neovim.lua")});
  neovim.read_until("READY");
  // nvim_buf_call() does something of its own before and after it calls middle().
  check(neovim, {"middle", "with_buffer", "main chunk"}, "vim.api.nvim_buf_call", Runs::nearly_always);
}

TEST_CASE("tarantool runs fibers", "[luajit_hosts]") {
  const Folder folder;
  Running tarantool(Words{"/usr/bin/env", "-C", folder.path()} + host("tarantool") +
                    Words{workload("luajit/host-tarantool.lua")});
  tarantool.read_until("READY");
  check(tarantool, {"middle", "outer", "first_fiber"}, {}, Runs::by_turns);
  check(tarantool, {"middle", "outer", "second_fiber", "main chunk"}, {}, Runs::by_turns);
}

TEST_CASE("dnsdist runs a function of its configuration", "[luajit_hosts]") {
  Running dnsdist(host("dnsdist") +
                  Words{"--supervised", "--disable-syslog", "-C", workload("luajit/host-dnsdist.lua")});
  dnsdist.read_until("READY");
  check(dnsdist, {"middle", "work", "maintenance"}, {}, Runs::in_slices);
}

TEST_CASE("texluajit runs a script", "[luajit_hosts]") {
  const char* const name = GENERATE("debian-texluajit-bookworm", "debian-texluajit-jit-bookworm");
  Running texluajit(target(name).command + Words{workload("spin.lua"), "coroutine"});
  texluajit.read_until("READY");
  check(texluajit, {"rest", "second", "enter", "main chunk"});
}

TEST_CASE("texlua runs a script", "[hosts]") {
  Running texlua(host("texlua") + Words{workload("spin.lua"), "coroutine"});
  texlua.read_until("READY");
  check(texlua, {"rest", "second", "enter", "main chunk"});  // the coroutines' own functions have no names: C calls
                                                             // them
}

}  // namespace luaspy::live::hosts_test
