// luaspy doctor: what it finds and reports, and that the report has no private data of a program.

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <regex>

#include "support/harness.h"

namespace luaspy::live::doctor_test {
namespace {

// A secret in the environment, the arguments, and in names and values of the Lua program.
const Words with_secret = {"env", "VARIABLE=envsecret"};
const std::string code =
    "luasecret_function = load('local t = {} for i = 1, 1e6 do t[i % 9] = \"luasecret_value\" .. i % 9 end', "
    "'=luasecret_chunk') "
    "local kept = {luasecret_key = 'luasecret_value'} io.write('READY\\n') io.flush() while kept do "
    "luasecret_function() end";

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

// The report about a process, checked to contain no secret.
std::string report(pid_t pid) {
  const Finished finished = luaspy({"doctor", "--pid", std::to_string(pid)});
  INFO(finished.out << finished.err);
  CHECK(finished.status == 0);
  CHECK(finished.err.empty());
  CHECK_FALSE(has(finished.out, "secret"));
  for (const char* const part :
       {"luaspy doctor, ", "== System\n", "ptrace_scope", "== Process\n", "== Detection\n", "== Threads",
        "== Layouts tried on ", "== Files with code\n", "build-id ", ".eh_frame_hdr of ", "== Mappings\n", "[stack]"}) {
    INFO(part);
    CHECK(has(finished.out, part));
  }
  return finished.out;
}

}  // namespace

TEST_CASE("a report about PUC Lua", "[doctor][smoke]") {
  Running program(with_secret + lua({"-e", code, "argsecret"}));
  program.read_until("READY");
  const std::string text = report(program.pid());
  INFO(text);
  CHECK(has(text, "recognised by \"$LuaVersion: Lua 5.4"));
  CHECK(has(text, "luaV_execute is "));
  CHECK(has(text, ", executes Lua"));
  CHECK(has(text, "with_lua 1"));
  CHECK(has(text, "native_complete 1"));
  CHECK(has(text, "cross-links hold"));
  CHECK(std::regex_search(text, std::regex(R"(lua_State 0x[0-9a-f]+ of 0x[0-9a-f]+, Lua 5\.4)")));
  CHECK(std::regex_search(text, std::regex(R"(\* Lua 5\.4\S+: fits at \d+ \(first 0x)")));
  // The other layouts of the series are tried, and the report says why they are rejected.
  CHECK(std::regex_search(text, std::regex(R"(  Lua 5\.1\S*: (fits nowhere|nothing looks like its lua_State))")));
  CHECK(std::regex_search(text, std::regex(R"(      not at \d+ \(first 0x[0-9a-f]+\): )")));
}

TEST_CASE("a report about LuaJIT", "[doctor][smoke]") {
  Running program(with_secret + lua({"-e", code, "argsecret"}, luajit));
  program.read_until("READY");
  const std::string text = report(program.pid());
  INFO(text);
  CHECK(has(text, "recognised by \"LuaJIT 2.1"));
  CHECK(has(text, "LuaJIT's virtual machine is "));
  CHECK(has(text, "with_lua 1"));
  CHECK(has(text, "cross-links hold"));
  CHECK(has(text, "fields of global_State: vmstate "));
}

TEST_CASE("a report about a process without Lua", "[doctor]") {
  Running program(with_secret + Words{"python3", "-c",
                                      "import sys; kept = 'luasecret'; print('READY', flush=True); sys.stdin.read()",
                                      "argsecret"});
  program.read_until("READY");
  const std::string text = report(program.pid());
  INFO(text);
  CHECK(has(text, "None of them identifies itself as one."));
  CHECK(has(text, "no lua_State runs on it"));
  CHECK(has(text, "No image with a Lua core"));
  CHECK_FALSE(has(text, ": fits at "));
}

TEST_CASE("a report about a user's process, in a file, with a saved stop", "[doctor]") {
  const Folder folder;
  // As root: a process of another user.
  const Words as_user = ::geteuid() == 0 ? Words{"setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"}
                                         : Words{};
  // setpriv itself executes the program: others may not search the folder of the checkout.
  Words command = with_secret + lua({"-e", code, "argsecret"});
  const auto executable = std::ranges::find(command, target(lua54).command.back());
  REQUIRE(executable != command.end());
  command.insert(executable, as_user.begin(), as_user.end());
  Running program(command);
  program.read_until("READY");
  const Finished finished = luaspy(
      {"doctor", "--pid", std::to_string(program.pid()), "-o", folder.path("report"), "--save", folder.path("stop")});
  INFO(finished.err);
  CHECK(finished.status == 0);
  CHECK(finished.out.empty());
  CHECK(has(finished.err, "It contains registers and memory of the target"));
  const std::string text = read_file(folder.path("report")), stop = read_file(folder.path("stop"));
  CHECK(has(text, "with_lua 1"));
  CHECK_FALSE(has(text, "secret"));
  CHECK(stop.starts_with("luaspy stop 1\n"));
  CHECK(has(stop, "\nregister rsp "));
  CHECK(has(stop, "\nmemory "));
  CHECK(has(stop, "\nexpect main chunk (luasecret_chunk"));
  CHECK(program.alive());
}

TEST_CASE("a process that luaspy may not look at is worth a report, too", "[doctor]") {
  const Folder folder;
  // pid 1 is root's; as root, luaspy gives up its rights.
  Words command = {luaspy_program, "doctor", "--pid", "1"};
  if (::geteuid() == 0) command = Words{"setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"} + command;
  const Finished finished = run(command);
  INFO(finished.out << finished.err);
  CHECK(finished.status == 4);
  CHECK(has(finished.out, "luaspy's rights: Uid "));
  CHECK(has(finished.out, "luaspy may not look at it."));
}

TEST_CASE("a report that cannot be written is an error", "[doctor]") {
  Running program(lua({"-e", "io.write('READY\\n') io.flush() io.read()"}));
  program.read_until("READY");
  CHECK(luaspy({"doctor", "--pid", std::to_string(program.pid()), "-o", "/no/such/folder/report"}).status == 8);
}

}  // namespace luaspy::live::doctor_test
