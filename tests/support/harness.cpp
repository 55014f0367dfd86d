#include "support/harness.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "support/test_case.h"

namespace luaspy::live {
namespace {

constexpr int patience_ms = 60'000;

std::array<int, 2> pipe_ends() {
  std::array<int, 2> ends{};
  REQUIRE(::pipe2(ends.data(), O_CLOEXEC) == 0);
  return ends;
}

// Reads available bytes; false at the end of the stream.
bool read_some(int file, std::string& into) {
  std::array<char, 65536> buffer;
  const ssize_t count = ::read(file, buffer.data(), buffer.size());
  if (count > 0) into.append(buffer.data(), static_cast<std::size_t>(count));
  return count > 0;
}

void wait_for_data(int file, const char* what) {
  pollfd entry{file, POLLIN, 0};
  const int ready = ::poll(&entry, 1, patience_ms);
  INFO(what);
  REQUIRE(ready == 1);
}

std::vector<TargetSpec> read_table(const std::string& file) {
  std::ifstream in(std::string(LUASPY_TARGETS) + "/" + file);
  std::vector<TargetSpec> table;
  for (std::string line; std::getline(in, line);) {
    std::istringstream fields(line);
    TargetSpec spec;
    std::string command;
    std::getline(fields, spec.name, '\t');
    std::getline(fields, spec.version, '\t');
    std::getline(fields, spec.kind, '\t');
    std::getline(fields, command, '\t');
    std::getline(fields, spec.core, '\t');
    std::getline(fields, spec.variant, '\t');
    std::istringstream words(command);
    for (std::string word; words >> word;) spec.command.push_back(word);
    table.push_back(spec);
  }
  return table;
}

std::string compile_program(const std::string& program, const std::string& name, const Words& options) {
  Words command = {"gcc",
                   "-std=gnu11",
                   "-g",
                   "-O2",
                   "-Wall",
                   "-Wextra",
                   "-Werror",
                   "-pthread",
                   "-o",
                   program,
                   std::string(LUASPY_TESTS) + "/live/programs/" + name + ".c"};
  command.insert(command.end(), options.begin(), options.end());
  const Finished compiled = run(command);
  INFO("compiling " << program << ": " << compiled.err);
  REQUIRE(compiled.status == 0);
  return program;
}

// What is prepared. The functions without `all_` are those of a test case that is another one if more is prepared.
const std::vector<TargetSpec>& all_targets() {
  static const std::vector<TargetSpec> table = read_table("targets.tsv");
  return table;
}

const std::vector<TargetSpec>& all_numbers() {
  static const std::vector<TargetSpec> table = read_table("numbers.tsv");
  return table;
}

const std::vector<TargetSpec>& all_luajits() {
  static const std::vector<TargetSpec> table = read_table("luajits.tsv");
  return table;
}

// The fields of both tables: version, folder with headers, static library; luajit-sources.tsv has a
// fourth: whether references have 64 bits.
const std::vector<TargetSpec>& all_sources() {
  static const std::vector<TargetSpec> known = [] {
    std::vector<TargetSpec> all = read_table("sources.tsv");
    for (TargetSpec& source : read_table("luajit-sources.tsv")) {
      source.name += source.command == Words{"yes"} ? "-gc64" : "-gc32";
      all.push_back(source);
    }
    return all;
  }();
  return known;
}

const std::vector<TargetSpec>& with_tag(const std::vector<TargetSpec>& luas) {
  if (!test::has_tag("luas"))
    FAIL("a test case that asks which Luas are prepared needs the tag [luas] (tests/CMakeLists.txt)");
  return luas;
}

TargetSpec find_host(const std::string& name) {
  for (const char* const table : {"hosts.tsv", "luajit-hosts.tsv"}) {
    for (const TargetSpec& spec : read_table(table)) {
      if (spec.name == name) return spec;
    }
  }
  FAIL("no host " << name << " in the tables of " LUASPY_TARGETS);
  throw 0;
}

}  // namespace

const std::vector<TargetSpec>& targets() { return with_tag(all_targets()); }
const std::vector<TargetSpec>& numbers() { return with_tag(all_numbers()); }
const std::vector<TargetSpec>& luajits() { return with_tag(all_luajits()); }
const std::vector<TargetSpec>& sources() { return with_tag(all_sources()); }

const TargetSpec& target(const std::string& name) {
  for (const auto* table : {&all_targets(), &all_numbers(), &all_luajits()}) {
    for (const TargetSpec& spec : *table) {
      if (spec.name == name) return spec;
    }
  }
  FAIL("no target " << name << " in the tables of " LUASPY_TARGETS);
  throw 0;
}

Words sanitized(const std::string& kind) {
  for (const TargetSpec& spec : read_table("sanitizers.tsv")) {
    if (spec.variant == kind) return spec.command;
  }
  FAIL("no Lua of " << kind << " in the tables of " LUASPY_TARGETS);
  throw 0;
}

Words command_of(const TargetSpec& spec, Jit jit) {
  Words command = spec.command;
  INFO(spec.name);
  REQUIRE(command.back().ends_with("/luajit"));
  command.push_back(jit == Jit::on ? "-jon" : "-joff");
  return command;
}

Words operator+(Words left, const Words& right) {
  left.insert(left.end(), right.begin(), right.end());
  return left;
}

Words lua(const Words& arguments, const std::string& name) { return target(name).command + arguments; }

Words lua_for_all(const Folder& folder, const Words& arguments) {
  const TargetSpec& spec = target(lua54);
  const Words environment(spec.command.begin(), spec.command.end() - 1);
  std::istringstream needed(run(environment + Words{"ldd", spec.core}).out + " " + spec.core);
  const std::filesystem::path to = folder.path("lua");
  std::filesystem::create_directories(to);
  for (std::string word; needed >> word;) {
    const std::filesystem::path file = word;
    if (word.starts_with(LUASPY_TARGETS))
      std::filesystem::copy_file(file, to / file.filename(), std::filesystem::copy_options::skip_existing);
  }
  return Words{"/usr/bin/env", "LD_LIBRARY_PATH=" + to.string(), to / std::filesystem::path(spec.core).filename()} +
         arguments;
}

Words host(const std::string& name) { return find_host(name).command; }

std::string core_of_host(const std::string& name) { return find_host(name).core; }

std::string workload(const std::string& file) { return std::string(LUASPY_WORKLOADS) + "/" + file; }

std::string place(const std::string& file, const std::string& definition) {
  std::istringstream script(read_file(workload(file)));
  int number = 0;
  for (std::string line; std::getline(script, line);) {
    ++number;
    if (line.starts_with(definition)) return file + ":" + std::to_string(number) + ")";
  }
  FAIL("no line of " << file << " starts with: " << definition);
  return {};
}

Finished run(const Words& command, const std::string& input) {
  const std::array<int, 2> in = pipe_ends(), out = pipe_ends(), err = pipe_ends();
  Child child(command, {.input_fd = in[0], .output_fd = out[1], .errors_fd = err[1]});
  for (const int end : {in[0], out[1], err[1]}) ::close(end);
  REQUIRE(::write(in[1], input.data(), input.size()) == static_cast<ssize_t>(input.size()));
  ::close(in[1]);
  Finished finished;
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(patience_ms);
  std::array<pollfd, 2> files{pollfd{out[0], POLLIN, 0}, pollfd{err[0], POLLIN, 0}};
  int open = 2;
  bool late = false;
  while (open > 0 && !late) {
    late = ::poll(files.data(), files.size(), patience_ms) == 0 || std::chrono::steady_clock::now() > deadline;
    for (pollfd& file : files) {
      if (file.revents == 0 || file.fd < 0) continue;
      if (!read_some(file.fd, file.fd == out[0] ? finished.out : finished.err)) {
        ::close(file.fd);
        file.fd = -1;
        --open;
      }
    }
  }
  if (late) child.signal(SIGKILL);
  const std::optional<int> status = child.wait(patience_ms / 1e3);
  INFO(command[0] << " took longer than a minute; it said: " << finished.out << finished.err);
  REQUIRE_FALSE(late);
  REQUIRE(status.has_value());
  finished.status = *status;
  return finished;
}

const std::string luaspy_program = [] {
  const char* const said = std::getenv("LUASPY_PROGRAM");
  return std::string(said != nullptr ? said : LUASPY_PROGRAM);
}();

Finished luaspy(const Words& arguments) {
  Words command = {luaspy_program};
  command.insert(command.end(), arguments.begin(), arguments.end());
  return run(command);
}

std::string compile(const Folder& folder, const std::string& name, const std::string& lua_version,
                    const Words& options) {
  Words libraries;
  for (const TargetSpec& source : all_sources()) {
    if (source.name == lua_version)
      libraries = {"-DLUA", "-I" + source.version, "-I" + source.version + "/src", source.kind, "-lm", "-ldl"};
  }
  INFO("a Lua " << lua_version << " in the tables of " LUASPY_TARGETS);
  REQUIRE(lua_version.empty() == libraries.empty());
  return compile_program(folder.path(name + lua_version), name, libraries + options);
}

std::string compile_shared(const Folder& folder, const std::string& name) {
  return compile_program(folder.path(name + ".so"), name, {"-shared", "-fPIC"});
}

std::string compile_several(const Folder& folder, const std::string& name, const Words& lua_versions, Symbols symbols) {
  const std::string source = std::string(LUASPY_TESTS) + "/live/programs/" + name + ".c";
  Words command = {"gcc", "-O2", "-o", folder.path(name), source};
  const std::vector<TargetSpec>& luas = all_sources();
  for (std::size_t i = 0; i < lua_versions.size(); ++i) {
    const auto lua = std::ranges::find(luas, lua_versions[i], &TargetSpec::name);
    INFO("a Lua " << lua_versions[i] << " in the tables of " LUASPY_TARGETS);
    REQUIRE(lua != luas.end());
    const std::string part = "part_" + std::to_string(i), object = folder.path(part + ".o");
    const std::string script =
        "set -e; gcc -std=gnu11 -O2 -Wall -Wextra -Werror -I\"$1\" -I\"$1/src\" -DPART=\"$3\" -DNAME=\"\\\"=$3\\\"\" "
        "-c -o \"$5.one\" \"$4\"; ld -r -o \"$5\" \"$5.one\" \"$2\";" +
        std::string(symbols == Symbols::local
                        ? "objcopy --keep-global-symbol=\"$3\" \"$5\""
                        : "nm --defined-only -g \"$5\" | while read -r _ _ n; do [ \"$n\" = \"$3\" ] || echo \"$n "
                          "$3_$n\"; done >\"$5.names\"; objcopy --redefine-syms=\"$5.names\" \"$5\"");
    const Finished made = run({"/bin/sh", "-c", script, "sh", lua->version, lua->kind, part, source, object});
    INFO(made.err);
    REQUIRE(made.status == 0);
    command.push_back(object);
  }
  command.insert(command.end(), {"-lm", "-ldl"});
  const Finished linked = run(command);
  INFO(linked.err);
  REQUIRE(linked.status == 0);
  return folder.path(name);
}

std::string source_version(const std::string& start) {
  std::string newest;
  for (const TargetSpec& source : all_sources()) {
    if (source.name.starts_with(start)) newest = std::max(newest, source.name);  // a digit each
  }
  INFO("a Lua " << start << " in the tables of " LUASPY_TARGETS);
  REQUIRE(!newest.empty());
  return newest;
}

Words prepared(const Words& names) {
  with_tag(all_targets());
  if (read_file(LUASPY_TARGETS "/prepared") == "all\n") return names;
  const auto is_there = [](const std::string& name) {
    const auto is_name = [&](const TargetSpec& spec) { return spec.name == name; };
    const auto begins_so = [&](const TargetSpec& spec) { return spec.name.starts_with(name); };
    return std::ranges::any_of(all_targets(), is_name) || std::ranges::any_of(all_luajits(), is_name) ||
           std::ranges::any_of(all_sources(), begins_so);
  };
  Words there;
  std::ranges::copy_if(names, std::back_inserter(there), is_there);
  REQUIRE(!there.empty());
  return there;
}

Words with_errors(const std::string& file, const Words& command) {
  Words words = {"/bin/sh", "-c", "file=$1; shift; exec \"$@\" 2>\"$file\"", "sh", file};
  words.insert(words.end(), command.begin(), command.end());
  return words;
}

std::vector<FoldedStack> parse_folded(const std::string& text) {
  std::vector<FoldedStack> stacks;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    INFO("folded line: " << line);
    const std::size_t space = line.rfind(' ');
    REQUIRE(space != std::string::npos);
    FoldedStack stack;
    stack.count = std::stoll(line.substr(space + 1));
    std::istringstream frames(line.substr(0, space));
    for (std::string frame; std::getline(frames, frame, ';');) stack.frames.push_back(frame);
    stacks.push_back(stack);
  }
  return stacks;
}

Running::Running(const Words& command) : Running(command, pipe_ends(), pipe_ends()) {}

Running::Running(const Words& command, const Pipe& input, const Pipe& output)
    : child_(command, {.input_fd = input[0], .output_fd = output[1], .errors_fd = STDERR_FILENO}),
      input_(input[1]),
      output_(output[0]) {
  ::close(input[0]);
  ::close(output[1]);
}

Running::~Running() {
  child_.signal(SIGKILL);
  close_input();
  ::close(output_);
}

std::optional<std::string> Running::next_line() {
  for (;;) {
    if (const std::size_t end = buffer_.find('\n'); end != std::string::npos) {
      std::string line = buffer_.substr(0, end);
      buffer_.erase(0, end + 1);
      return line;
    }
    wait_for_data(output_, "the target does not say what was waited for");
    if (!read_some(output_, buffer_)) return {};
  }
}

std::string Running::read_line() {
  const std::optional<std::string> line = next_line();
  REQUIRE(line);
  return *line;
}

std::vector<std::string> Running::read_until(const std::string& last) {
  std::vector<std::string> lines;
  for (;;) {
    const std::optional<std::string> line = next_line();
    INFO("the target ended without saying " << last << "; it said:\n"
                                            << Catch::StringMaker<std::vector<std::string>>::convert(lines) << buffer_);
    REQUIRE(line);
    if (*line == last) return lines;
    lines.push_back(*line);
  }
}

void Running::send(const std::string& text) {
  REQUIRE(::write(input_, text.data(), text.size()) == static_cast<ssize_t>(text.size()));
}

void Running::close_input() {
  if (input_ >= 0) ::close(input_);
  input_ = -1;
}

int Running::wait() {
  INFO("a program that should end does not");
  const std::optional<int> status = child_.wait(patience_ms / 1e3);
  REQUIRE(status.has_value());
  return *status;
}

void Running::await(const std::string& what, const std::function<bool()>& holds) {
  const int file = static_cast<int>(::syscall(SYS_pidfd_open, pid(), 0));
  REQUIRE(file >= 0);
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(patience_ms);
  bool ended = false, held = false;
  while (!(held = holds()) && !ended && std::chrono::steady_clock::now() < deadline) {
    pollfd entry{file, POLLIN, 0};
    ended = ::poll(&entry, 1, 3) == 1;
  }
  ::close(file);
  INFO("waited for: " << what << (ended ? "; the program has ended" : ""));
  REQUIRE((held || holds()));
}

std::string Running::rest() {
  while (read_some(output_, buffer_)) {
  }
  return buffer_;
}

nlohmann::json dump(pid_t pid, const Words& options) {
  Words arguments = {"dump", "--json", "--pid", std::to_string(pid)};
  arguments.insert(arguments.end(), options.begin(), options.end());
  const Finished finished = luaspy(arguments);
  INFO("luaspy dump: status " << finished.status << "\n" << finished.err << finished.out);
  REQUIRE(finished.status == 0);
  return nlohmann::json::parse(finished.out);
}

}  // namespace luaspy::live
