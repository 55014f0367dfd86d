#include "dump/core_look.h"

#include <fmt/format.h>
#include <string.h>
#include <sys/syscall.h>

#include <algorithm>

#include "attach/waits/futex.h"
#include "system/call_names.h"

namespace luaspy {
namespace {

std::string end_text(const CoreFile& core) {
  if (core.signal() == 0) return {};
  std::string text = fmt::format("signal {} ({})", core.signal(), ::strsignal(core.signal()));
  if (core.signal_address()) text += fmt::format(" at {:#x}", *core.signal_address());
  return text;
}

std::optional<Wait> wait_of(const CoreFile& core, const CoreFile::Thread& thread) {
  if (thread.system_call < 0) return std::nullopt;
  Wait wait;
  std::string name = system_call_name(thread.system_call);  // "[read]"
  wait.system_call = wait.text = name.substr(1, name.size() - 2);
  if (thread.system_call != SYS_futex) return wait;
  const auto live = [&](pid_t tid) {
    return std::ranges::find(core.threads(), tid, &CoreFile::Thread::tid) != core.threads().end() ? tid : 0;
  };
  const FutexWait futex = explain_futex(live, thread.arguments, core);
  wait.futex = futex.address;
  if (futex.kind == FutexWait::Kind::mutex && futex.owner != 0)
    wait.mutex_owner = futex.owner,
    wait.text += fmt::format("(wait for the mutex at {:#x} held by thread {})", futex.address, futex.owner);
  if (futex.kind == FutexWait::Kind::join)
    wait.joined_thread = futex.owner, wait.text += fmt::format("(wait for thread {} to end)", futex.owner);
  return wait;
}

class CoreLook {
 public:
  CoreLook(const CoreFile& core, const CoreLookOptions& options)
      : core_(core),
        options_(options),
        sources_(SourceFiles::of_core(core.written_ns())),
        reader_(core, core, stacks_, options.merging, options.limits) {
    reader_.lua().names().use_sources(&sources_);
  }

  Result<ProcessLook> look(const std::string& path) {
    if (reader_.images().empty()) reader_.try_all_layouts();
    ProcessLook look;
    look.pid = core_.pid();
    look.command = core_.command();
    look.core = CoreFacts{path, end_text(core_), core_.missing_bytes(), {}};
    for (const CoreFile::MissingFile& file : core_.missing_files())
      look.core->missing_files.push_back({file.path, file.differs});
    for (const CoreFile::Thread& thread : core_.threads()) look.threads.push_back(look_at(thread));
    if (options_.inspect.coroutines) add_coroutines(look);
    else read_collectors(core_, reader_, look);
    if (options_.inspect.compilers) read_compilers(core_, reader_, look);
    SourceLines sources(sources_);
    complete(look, options_.inspect.mode, sources, reader_);
    if (!options_.merging.native_only && !reader_.has_state()) return no_lua(path);
    return look;
  }

 private:
  ThreadLook look_at(const CoreFile::Thread& thread) {
    ThreadLook look;
    look.tid = thread.tid;
    look.times.on_cpu = thread.on_cpu_ns;
    const bool sleeps = thread.system_call >= 0;
    const StackReader::Finished* const finished = reader_.look(thread.registers);
    if (finished != nullptr) look.sample = finished->sample;
    look.sample.state = sleeps ? Sample::State::sleeping : Sample::State::running;
    if (finished == nullptr) {
      look.sample.loss = Loss::unreadable;
      return look;
    }
    look.stack = stacks_.frames_of(look.sample.stack);
    active_.push_back(finished->active());
    if (options_.inspect.locals) look.details = read_variables(reader_, *finished, options_.inspect.values, room_);
    if (options_.inspect.compilers) add_functions(functions_of(*finished), look);
    if (sleeps) look.stack.push_back(marker(system_call_name(thread.system_call)));
    look.wait = wait_of(core_, thread);
    return look;
  }

  void add_coroutines(ProcessLook& look) {
    Coroutines coroutines(core_, coroutine_limits(options_.inspect), &reader_.lua().names());
    reader_.find_states();
    coroutines.find(reader_.space(), reader_.lua().global_states());
    coroutines.keep();
    (void)coroutines.confirm(active_);
    look.states = coroutines.report(reader_.lua().names(), reader_.native_code());
  }

  Error no_lua(const std::string& path) const {
    if (!reader_.images().empty() && reader_.layouts_to_try().empty())
      return {Cause::unsupported,
              fmt::format("{} has {}, which luaspy does not support.", path, reader_.images().front().name())};
    if (!reader_.images().empty())
      return {Cause::not_initialised, fmt::format("{} is mapped in {}, but there is no lua_State in its memory: Lua "
                                                  "was not initialised yet, or that memory is not in the file.",
                                                  reader_.images().front().name(), path)};
    std::string text = fmt::format("No Lua in {} ({}). Looked for a Lua core in:", path, core_.command());
    for (const std::string& file : reader_.searched()) text += "\n  " + file;
    return {Cause::no_lua, text + "\nand, in its memory, for states of every Lua that luaspy reads."};
  }

  const CoreFile& core_;
  const CoreLookOptions& options_;
  CountingRoom room_{1 << 20};  // nothing stands still
  SourceFiles sources_;
  StackTable stacks_;
  StackReader reader_;
  std::vector<std::vector<ActiveState>> active_;
};

}  // namespace

Result<ProcessLook> look_at(const CoreFile& core, const std::string& path, const CoreLookOptions& options) {
  return CoreLook(core, options).look(path);
}

}  // namespace luaspy
