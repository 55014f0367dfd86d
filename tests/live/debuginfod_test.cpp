// Symbols from a debuginfod server: fetched if that is asked for, and only then.

#include <arpa/inet.h>
#include <fmt/format.h>
#include <sys/socket.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>

#include "support/harness.h"

namespace luaspy::live::debuginfod_test {
namespace {

// A port that nobody listens at.
int free_port() {
  const int socket = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  REQUIRE(::bind(socket, reinterpret_cast<sockaddr*>(&address), size) == 0);
  REQUIRE(::getsockname(socket, reinterpret_cast<sockaddr*>(&address), &size) == 0);
  ::close(socket);
  return ntohs(address.sin_port);
}

std::string build_id_of(const std::string& program) {
  const std::string notes = run({"readelf", "-n", program}).out, mark = "Build ID: ";
  const std::size_t at = notes.find(mark);
  REQUIRE(at != std::string::npos);
  return notes.substr(at + mark.size(), notes.find('\n', at) - at - mark.size());
}

}  // namespace

TEST_CASE("symbols are fetched from debuginfod servers if that is asked for", "[debuginfod]") {
  const Folder folder;
  const std::string program = compile(folder, "unprotected", source_version("5.4.")), served = folder.path("served"),
                    stripped = folder.path("stripped"), cache = folder.path("cache");
  std::filesystem::create_directory(served);
  REQUIRE(run({"objcopy", "--only-keep-debug", program, served + "/program.debug"}).status == 0);
  REQUIRE(run({"strip", "-o", stripped, program}).status == 0);
  const std::string servers = fmt::format("DEBUGINFOD_URLS=http://127.0.0.1:{}", free_port());
  const std::string port = servers.substr(servers.rfind(':') + 1);
  Running server({"sh", "-c", "exec debuginfod -F -p \"$1\" -d :memory: \"$2\" >/dev/null 2>&1", "sh", port, served});
  Running running({stripped, "turns"});
  running.read_until("READY");
  const std::string pid = std::to_string(running.pid()), id = build_id_of(stripped);
  int tries = 0;
  server.await("the server", [&] {  // a cache for each try, since failures are kept
    const std::string own_cache = folder.path(fmt::format("cache-{}", ++tries));
    const Words find = {"debuginfod-find", "debuginfo", id};
    return run(Words{"env", "NO_PROXY=*", servers, "DEBUGINFOD_CACHE_PATH=" + own_cache} + find).status == 0;
  });

  const auto dump = [&](const Words& options) {
    const Words command = {"env",          "NO_PROXY=*", servers,  "DEBUGINFOD_CACHE_PATH=" + cache,
                           luaspy_program, "dump",       "--mode", "all"};
    const Finished finished = run(command + options + Words{"--pid", pid});
    INFO(finished.err);
    REQUIRE(finished.status == 0);
    return finished.out;
  };
  const std::string without = dump({}), with = dump({"--debuginfod"});
  INFO(without << "\n" << with);
  CHECK(without.find(" luaV_execute (stripped)") == std::string::npos);
  CHECK(with.find(" luaV_execute (stripped)") != std::string::npos);
  CHECK(with.find("~luaV_execute") == std::string::npos);
  CHECK(std::filesystem::exists(cache + "/" + id + "/debuginfo"));

  const std::string other_cache = folder.path("unused");
  for (const Words& command : {Words{"dump"}, Words{"record", "-d", "1", "-f", "folded", "-o", "-"}}) {
    const Words environment = {"env", "NO_PROXY=*", servers, "DEBUGINFOD_CACHE_PATH=" + other_cache, luaspy_program};
    CHECK(run(environment + command + Words{"--pid", pid}).status == 0);
  }
  CHECK_FALSE(std::filesystem::exists(other_cache));  // nobody was asked
  const Finished recorded = run({"env", "NO_PROXY=*", servers, "DEBUGINFOD_CACHE_PATH=" + cache, luaspy_program,
                                 "record", "--debuginfod", "--mode", "all", "-d", "2", "-f", "folded", "-o", "-",
                                 "--pid", pid});
  INFO(recorded.err << recorded.out);
  CHECK(recorded.status == 0);
  CHECK(recorded.out.find(";luaV_execute (stripped)") != std::string::npos);
}

TEST_CASE("no sample waits for a debuginfod server", "[debuginfod]") {
  const Folder folder;
  const std::string program = compile(folder, "unprotected", source_version("5.4.")),
                    stripped = folder.path("stripped");
  REQUIRE(run({"strip", "-o", stripped, program}).status == 0);
  // A server that takes each connection and never answers.
  Running server({"python3", "-c",
                  "import socket\n"
                  "server = socket.create_server(('127.0.0.1', 0))\n"
                  "print(server.getsockname()[1])\n"
                  "print('READY', flush=True)\n"
                  "kept = []\n"
                  "while True: kept.append(server.accept())\n"});
  const std::vector<std::string> lines = server.read_until("READY");
  REQUIRE(lines.size() == 1);
  // The command outlives the recording: it is given 5 s of CPU time.
  const Finished recorded = run({"env",
                                 "NO_PROXY=*",
                                 "DEBUGINFOD_TIMEOUT=40",
                                 "DEBUGINFOD_URLS=http://127.0.0.1:" + lines[0],
                                 "DEBUGINFOD_CACHE_PATH=" + folder.path("cache"),
                                 luaspy_program,
                                 "record",
                                 "--debuginfod",
                                 "--idle",
                                 "-d",
                                 "2",
                                 "-f",
                                 "folded",
                                 "-o",
                                 "-",
                                 "--",
                                 "sh",
                                 "-c",
                                 "ulimit -t 5; exec \"$0\" turns >/dev/null 2>&1",
                                 stripped});
  INFO(recorded.err << recorded.out);
  std::int64_t samples = 0;
  for (const FoldedStack& stack : parse_folded(recorded.out)) samples += stack.count;
  CHECK(samples > 150);  // of 200, with those at which a busy machine lets it wait
}

TEST_CASE("--debuginfod says what it needs", "[debuginfod]") {
  const Finished no_server = run(
      {"env", "-u", "DEBUGINFOD_URLS", luaspy_program, "dump", "--debuginfod", "--pid", "1"});
  CHECK(no_server.status == 2);
  CHECK(no_server.err == "luaspy: --debuginfod asks the servers in DEBUGINFOD_URLS, but it names none.\n");
  const Finished no_client = run({"/usr/bin/env", "PATH=/nowhere", "DEBUGINFOD_URLS=http://127.0.0.1:9", luaspy_program,
                                  "dump", "--debuginfod", "--pid", "1"});
  CHECK(no_client.status == 2);
  CHECK(no_client.err ==
        "luaspy: --debuginfod needs elfutils' program debuginfod-find (Debian: package debuginfod).\n");
}

}  // namespace luaspy::live::debuginfod_test
