// What is said of command lines that are wrong: by the parser itself, without a process for each.

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "cli/options.h"

namespace luaspy::wrong_usage_test {
namespace {

using Words = std::vector<std::string>;

// What is written to standard error, which is a file in memory meanwhile. The exit status has to be 2.
std::string said_of(const Words& words) {
  Words all = {"luaspy"};
  all.insert(all.end(), words.begin(), words.end());
  std::vector<char*> argv;
  for (std::string& word : all) argv.push_back(word.data());
  argv.push_back(nullptr);
  const int file = ::memfd_create("said", 0), own = ::dup(2);
  ::dup2(file, 2);
  int exit_code = 0;
  const std::optional<Options> options = parse_options(static_cast<int>(all.size()), argv.data(), exit_code);
  ::dup2(own, 2);
  ::close(own);
  INFO("luaspy " << fmt::format("{}", fmt::join(words, " ")));
  CHECK(!options);
  CHECK(exit_code == 2);
  std::string said(10'000, '\0');
  const ssize_t size = ::pread(file, said.data(), said.size(), 0);
  ::close(file);
  said.resize(static_cast<std::size_t>(std::max<ssize_t>(size, 0)));
  return said;
}

// One line, in the user's words, with what to type.
void check_usage(const Words& words, const std::string& line) { CHECK(said_of(words) == "luaspy: " + line + "\n"); }

}  // namespace

TEST_CASE("wrong usage", "[unit]") {
  const std::string self = std::to_string(::getpid());
  check_usage({},
              "say what to do: luaspy record, report, top, dump, heap, alloc, ps, doctor, jit, view, push, "
              "agent, completion, manual "
              "(luaspy --help)");
  check_usage({"recrod", "--pid", self}, "there is no command recrod. Did you mean luaspy record?");
  check_usage({"frobnicate"},
              "there is no command frobnicate. There are: record, report, top, dump, heap, alloc, ps, doctor, "
              "jit, view, push, agent, completion, manual (luaspy --help)");
  check_usage({"record"}, "say what to look at: --pid PID, --name NAME, or -- and a command");
  check_usage({"dump"}, "say what to look at: --pid PID, --name NAME, or --core FILE");
  check_usage({"record", "-r", "0", "--pid", self}, "--rate: it has to be from 0.01 to 10000 (luaspy record --help)");
  check_usage({"record", "-r", "-5", "--pid", self}, "--rate: it has to be from 0.01 to 10000 (luaspy record --help)");
  check_usage({"record", "-r", "fast", "--pid", self}, "--rate: fast is not a number (luaspy record --help)");
  check_usage({"record", "-r", "10001", "--pid", self},
              "--rate: it has to be from 0.01 to 10000 (luaspy record --help)");
  check_usage({"record", "--max-stopped", "0", "--pid", self},
              "--max-stopped: it has to be from 0.01 to 100 (luaspy record --help)");
  check_usage({"record", "-d", "0", "--pid", self}, "--duration: it has to be more than 0 (luaspy record --help)");
  check_usage({"record", "-d", "abc", "--pid", self}, "--duration: abc is not a number (luaspy record --help)");
  CHECK(said_of({"record", "-f", "jpeg", "--pid", self})
            .starts_with("luaspy: --format: jpeg is not one of: flamegraph, "));
  CHECK(said_of({"record", "-f", "foldet", "--pid", self}).find("Did you mean folded?") != std::string::npos);
  check_usage({"record", "--mode", "java", "--pid", self},
              "--mode: java is not one of: merged, lua, native, all (luaspy record --help)");
  check_usage({"record", "-d", "nan", "--pid", self}, "--duration: nan is not a number (luaspy record --help)");
  for (const char* const number : {"inf", "1e300"})
    check_usage({"report", "a.luaspy", "--from", number},
                "--from: it has to be from -1000000000 to 1000000000 (luaspy report --help)");
  check_usage({"report", "a.luaspy", "--to", "nan"}, "--to: nan is not a number (luaspy report --help)");
  check_usage({"dump", "--count", "2.5", "--pid", self}, "--count: 2.5 is not a whole number (luaspy dump --help)");
  check_usage({"top", "--batch", "--count", "1e9", "--pid", self},
              "--count: 1e9 is not a whole number (luaspy top --help)");
  check_usage({"report", "a.luaspy", "--top", "99999999999999999999"},
              "--top: it has to be from 1 to 1000000 (luaspy report --help)");
  check_usage({"completion", "tcsh"}, "shell: tcsh is not one of: bash, zsh, fish (luaspy completion --help)");
  // An option that does not exist comes first: the word behind it may be its value, and is not a process.
  check_usage({"record", "--pid", self, "--duraton", "3"},
              "luaspy record has no option --duraton. Did you mean --duration?");
  for (const char* const command : {"record", "top", "dump", "heap", "alloc", "doctor", "jit"}) {
    check_usage({command, "--nonsense", "3", "--pid", self},
                fmt::format("luaspy {0} has no option --nonsense (luaspy {0} --help)", command));
    check_usage({command, "--pid", self, "-9", "3"},
                fmt::format("luaspy {0} has no option -9 (luaspy {0} --help)", command));
  }
  check_usage({"report", "a.luaspy", "--fucntion", "f"},
              "luaspy report has no option --fucntion. Did you mean --function?");
  check_usage({"ps", "--nonsense=3"}, "luaspy ps has no option --nonsense (luaspy ps --help)");
  check_usage({"dump", "--pid", self, "--duration", "3"},
              "luaspy dump has no option --duration; luaspy record, top, alloc, jit have it (luaspy dump --help)");
  check_usage({"record", "-sq", "3", "--pid", self}, "luaspy record has no option -q (luaspy record --help)");
  // No command.
  check_usage({"--pid", self}, "say what to do. Did you mean luaspy record --pid " + self + "? (luaspy --help)");
  check_usage({self},
              fmt::format("say what to do with process {0}. Did you mean luaspy record {0}? (luaspy --help)", self));
  check_usage({"--nonsense"},
              "luaspy has no option --nonsense. Say what to do: luaspy record, report, top, dump, heap, alloc, ps, "
              "doctor, jit, view, push, agent, completion, manual (luaspy --help)");
  // What does not go together, or not alone.
  check_usage({"record", "--pid", self, "--", "true"}, "--pid and a command do not go together (luaspy record --help)");
  check_usage({"dump", "--pid", self, "--name", "lua"}, "--pid and --name do not go together (luaspy dump --help)");
  check_usage({"report", "a.luaspy", "--diff", "b.luaspy", "c.luaspy"},
              "a recording and --diff do not go together (luaspy report --help)");
  check_usage({"heap", "--pid", self, "a.luaheap"}, "snapshots and --pid do not go together (luaspy heap --help)");
  check_usage({"record", "--max-cost", "3", "--pid", self}, "--max-cost needs --alloc (luaspy record --help)");
  check_usage({"report", "--diff", "a.luaspy"}, "--diff needs 2 values (luaspy report --help)");
  check_usage({"heap", "a", "b", "c"}, "luaspy heap takes no more than 2 of the words (luaspy heap --help)");
  check_usage({"heap", "--diff"}, "--diff needs snapshots (luaspy heap --help)");
  check_usage({"completion"}, "say which shell: bash, zsh or fish (luaspy completion --help)");
  check_usage({"dump", "--json=5", "--pid", self}, "--json takes no value (luaspy dump --help)");
  check_usage({"record", "--label", "corotine", "--pid", self},
              "--label: corotine is not one of: request, trace, phase, fiber, coroutine, plugin, NAME=EXPR. Did you "
              "mean coroutine? "
              "(luaspy record --help)");
  check_usage({"report", "--diff", "a.luaspy", "b.luaspy", "--by", "coroutine"},
              "--diff compares by samples, time or run, not by coroutine");
  check_usage({"record", "--nonsense", "--pid", self}, "luaspy record has no option --nonsense (luaspy record --help)");
  check_usage({"dump", "--lcoals", "--pid", self}, "luaspy dump has no option --lcoals. Did you mean --locals?");
  check_usage({"dump", "--pid"}, "--pid needs a value (luaspy dump --help)");
  check_usage({"dump", "--pid", self, "--pid", self}, "--pid is given more than once (luaspy dump --help)");
  check_usage({"dump", "a.lua", "--pid", self}, "luaspy dump does not take the word a.lua (luaspy dump --help)");
  const std::string ps = " is not a process number; luaspy ps lists those of Lua programs (luaspy dump --help)";
  check_usage({"dump", "--pid", "0"}, "--pid: 0" + ps);
  check_usage({"dump", "--pid", "12monkeys"}, "--pid: 12monkeys" + ps);
}

}  // namespace luaspy::wrong_usage_test
