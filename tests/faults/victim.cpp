#include "victim.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>

namespace luaspy::faults {
namespace {

struct LuaSource {
  std::string folder, library;
};

// A line of sources.tsv or luajit-sources.tsv (tests/targets/prepare.sh): version, folder with
// headers, static library.
LuaSource source(Lua lua) {
  std::ifstream in(std::string(LUASPY_TARGETS) + (lua == Lua::puc ? "/sources.tsv" : "/luajit-sources.tsv"));
  LuaSource found;
  for (std::string line; std::getline(in, line);) {
    std::istringstream fields(line);
    std::string version, folder, library;
    std::getline(fields, version, '\t'), std::getline(fields, folder, '\t'), std::getline(fields, library, '\t');
    const bool wanted = lua == Lua::puc ? version.starts_with("5.4.") : version == "2.1.newest" && found.folder.empty();
    if (wanted) found = {folder, library};
  }
  if (found.folder.empty()) give_up("no Lua in the tables of " LUASPY_TARGETS);
  return found;
}

void compile(const Folder& folder, const Words& command) {
  Child compiler(command, {.errors = folder.path("errors")});
  if (compiler.wait(60) != 0) give_up("cannot compile: " + read_file(folder.path("errors")));
}

// Compiled once per campaign.
struct Programs {
  Folder folder;
  std::string path[2];

  Programs() {
    const std::string sources = LUASPY_TESTS "/faults/programs/";
    const Words options = {"gcc", "-std=gnu11", "-g", "-O2", "-Wall", "-Wextra", "-Werror", "-pthread"};
    Words command = options;
    command.insert(command.end(), {"-shared", "-fPIC", "-o", folder.path("plugin.so"), sources + "plugin.c"});
    compile(folder, command);
    for (const Lua lua : {Lua::puc, Lua::luajit}) {
      const LuaSource from = source(lua);
      std::string& program = path[lua == Lua::luajit] = folder.path(lua == Lua::puc ? "victim" : "victim-luajit");
      command = options;
      command.insert(command.end(),
                     {"-Wl,-E", "-I" + from.folder, "-I" + from.folder + "/src", "-o", program, sources + "victim.c",
                      sources + "modes.c", sources + "signals.c", sources + "traps.c", from.library, "-lm", "-ldl"});
      compile(folder, command);
    }
  }
};

std::string field(const std::string& status, const std::string& name) {
  const std::size_t at = status.find(name);
  if (at == std::string::npos) return {};
  std::istringstream rest(status.substr(at + name.size()));
  std::string word;
  rest >> word;
  return word;
}

constexpr double patience_s = 20;  // the machine may be busy

}  // namespace

std::string victim_program(Lua lua) {
  static const Programs programs;
  return programs.path[lua == Lua::luajit];
}

Board* map_board(const std::string& path) {
  write_file(path, std::string(sizeof(Board), '\0'));
  ::chmod(path.c_str(), 0666);
  const int file = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  void* const memory = ::mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  ::close(file);
  if (memory == MAP_FAILED) give_up("cannot map a board");
  return static_cast<Board*>(memory);
}

Victim::Victim(Lua lua, const std::string& mode, const std::string& argument) {
  const std::string path = folder_.path("board"), said = folder_.path("said");
  board_ = map_board(path);
  write_file(said, "");
  ::chmod(said.c_str(), 0666);
  Words command = {victim_program(lua), path, mode};
  if (!argument.empty()) command.push_back(argument);
  process_ = std::make_unique<Child>(command, Child::Files{.output = said, .errors = said});
  const double deadline = now_s() + patience_s;
  while (read_file(said).empty()) {
    if (!process_->alive() || now_s() > deadline) give_up("a victim does not start: " + mode);
    sleep_ms(0.5);
  }
}

Victim::~Victim() {
  process_.reset();
  ::munmap(board_, sizeof *board_);
}

pid_t Victim::looked_at() const {
  const auto worker = static_cast<pid_t>(__atomic_load_n(&board_->worker, __ATOMIC_SEQ_CST));
  return worker != 0 ? worker : process_->pid();
}

std::string Victim::pid() const { return std::to_string(looked_at()); }

Victim::Held Victim::held() const {
  Held held;
  std::error_code none;
  for (const auto& task : std::filesystem::directory_iterator(fmt::format("/proc/{}/task", looked_at()), none)) {
    const std::string status = read_file(task.path().string() + "/status");
    const std::string tracer = field(status, "TracerPid:"), state = field(status, "State:");
    held.traced += !tracer.empty() && tracer != "0";
    held.stopped += state == "t" || state == "T";
  }
  return held;
}

std::optional<std::string> Victim::still_held() const {
  const double deadline = now_s() + 2;
  for (;;) {
    const Held now = held();
    if (now.traced == 0 && now.stopped == 0) return std::nullopt;
    if (now_s() > deadline) return fmt::format("{} threads traced, {} stand still", now.traced, now.stopped);
    sleep_ms(0.5);
  }
}

std::optional<std::string> Victim::harm(bool may_be_stopped) const {
  if (!process_->alive()) return "it has ended";
  if (!may_be_stopped) {
    if (std::optional<std::string> why = still_held()) return why;
  }
  const auto progress = [this] { return __atomic_load_n(&board_->progress, __ATOMIC_SEQ_CST); };
  const std::uint64_t before = progress();
  const double deadline = now_s() + patience_s;
  while (progress() == before) {
    if (!process_->alive()) return "it has ended";
    if (now_s() > deadline) return "it does not go on";
    sleep_ms(0.2);
  }
  if (board_->wrong != 0) return fmt::format("{} wrong results, the first: {}", board_->wrong, board_->what);
  return std::nullopt;
}

std::optional<std::string> left_over() {
  // A copy that writes a file when luaspy is killed (system/background.h) ends by itself.
  const double deadline = now_s() + patience_s;
  int left = 0;
  while ((left = orphans_that_run("luaspy")) != 0 && now_s() < deadline) sleep_ms(1);
  return left == 0 ? std::nullopt : std::optional(fmt::format("{} processes of luaspy are left", left));
}

Victims::~Victims() = default;

void Victims::replace() {
  if (victim_ != nullptr) events_ += victim_->board().events;
  victim_.reset();
  lua_ = lua_ == Lua::puc ? Lua::luajit : Lua::puc;
  victim_ = std::make_unique<Victim>(lua_, mode_);
}

Victim& Victims::next() {
  constexpr int rounds_of_one = 20;
  if (rounds_++ % rounds_of_one == 0) replace();
  return *victim_;
}

void Victims::check() {
  std::optional<std::string> why = victim_->harm(mode_ == "stops");
  if (!why) why = left_over();
  if (!why) return;
  campaign_.harmed(fmt::format("{} (victim {} with {})", *why, mode_, lua_ == Lua::puc ? "PUC Lua" : "LuaJIT"));
  rounds_ = 0;
}

std::uint64_t Victims::events() { return events_ + (victim_ != nullptr ? victim_->board().events : 0); }

}  // namespace luaspy::faults
