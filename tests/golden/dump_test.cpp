// The output of dump, for people and for programs: for saved stops (replay/stops) and for
// everything else that a look can contain.

#include <fmt/format.h>
#include <catch2/catch.hpp>

#include "dump/dump_json.h"
#include "dump/dump_text.h"
#include "support/golden.h"
#include "support/load_stop.h"

namespace luaspy::golden_dump_test {
namespace {

ThreadLook saved(int tid, const char* file, VmState vm_state) {
  ThreadLook thread;
  thread.tid = tid, thread.name = file;
  thread.stack = replay::replay(replay::load_stop(fmt::format(LUASPY_TESTS "/replay/stops/{}.stop", file))).stack;
  thread.sample.vm_state = vm_state;
  thread.sample.quality.native_complete = 1;
  thread.sample.stopped_ns = 21'000;
  thread.times.on_cpu = 1'500'000'000;
  return thread;
}

ThreadLook waiting(int tid) {
  ThreadLook thread;
  thread.tid = tid, thread.name = "worker \"two\"";
  thread.sample.state = Sample::State::sleeping;
  thread.sample.vm_state = VmState::c;
  const Frame chunk = {Frame::Kind::lua, "main chunk", "app/main.lua", 0, 30},
              get = {Frame::Kind::lua, "get", "app/net.lua", 10, 12};
  thread.stack = {{Frame::Kind::native, "main", "lua5.4", 0, 0},
                  chunk,
                  get,
                  {Frame::Kind::c, "lock", "host", 0, 0},
                  {Frame::Kind::marker, "[futex]", {}, 0, 0}};
  thread.details.resize(thread.stack.size());
  thread.details[1].source = SourceLine{"local body = get(\"x\")", true};
  thread.details[2].source = SourceLine{"lock(name)", false};
  thread.details[2].variables = CallVariables{{{Variable::Kind::parameter, "name", "\"x\\27[31m\""},
                                               {Variable::Kind::local, "t", "{1, 2, size = 3}"},
                                               {Variable::Kind::vararg, "(vararg) 1", "nil"},
                                               {Variable::Kind::upvalue, "_ENV", "<globals>"}},
                                              {}};
  thread.details[3].variables = CallVariables{{{Variable::Kind::temporary, "(C temporary) 1", "\"x\""}}, {}};
  thread.details[1].variables = CallVariables{{}, "it is in machine code"};
  Wait wait;
  wait.system_call = "futex";
  wait.text = fmt::format("futex(wait for a mutex held by thread {})", tid == 102 ? 103 : 102);
  wait.futex = 0x7f0000001000;
  wait.mutex_owner = tid == 102 ? 103 : 102;
  wait.wchan = "futex_wait_queue";
  thread.wait = wait;
  return thread;
}

ThreadLook in_kernel() {
  ThreadLook thread;
  thread.tid = 104, thread.name = "reader";
  thread.sample.state = Sample::State::sleeping;
  thread.stack = {{Frame::Kind::native, "main", "lua5.4", 0, 0},
                  {Frame::Kind::kernel, "read", "[kernel]", 0, 0},
                  {Frame::Kind::kernel, "fuse_dev_read", "[fuse]", 0, 0},
                  {Frame::Kind::marker, "[read]", {}, 0, 0}};
  Wait wait;
  wait.system_call = "read";
  wait.text = "read(fd 3: /dev/fuse)";
  thread.wait = wait;
  return thread;
}

StateReport state() {
  StateReport report;
  report.G = 0x55550010, report.lua = "Lua 5.4.3-5.4.9";
  report.collector.known = true;
  report.collector.phase = "GCSpropagate", report.collector.mode = "generational", report.collector.bytes = 12'345'678;
  report.objects = 200'000, report.garbage = 3, report.hooked = 1, report.complete = true;
  report.counts[static_cast<std::size_t>(CoroutineStatus::suspended)] = 9'000;
  report.counts[static_cast<std::size_t>(CoroutineStatus::not_started)] = 1;
  const Frame worker = {Frame::Kind::lua, "worker", "app/main.lua", 40, 44};
  CoroutineGroup many, one;
  many.count = 9'000, many.status = CoroutineStatus::suspended, many.began = worker, many.examples = {0x5000, 0x6000};
  many.stack = {worker,
                {Frame::Kind::lua, "receive", "app/net.lua", 20, 23},
                {Frame::Kind::c, "coroutine.yield", "lua5.4", 0, 0}};
  one.count = 1, one.status = CoroutineStatus::not_started, one.began = worker, one.examples = {0x7000};
  report.groups = {many, one};
  return report;
}

std::vector<ProcessLook> looks() {
  ProcessLook look;
  look.pid = 100, look.command = "server app/main.lua";
  LuaImage image;
  image.path = "/usr/bin/lua5.4", image.version = "5.4.4";
  look.images = {image};
  look.layouts = {"Lua 5.4.3-5.4.9"};
  look.threads = {saved(100, "5.4.4-coroutine", VmState::interpreting),
                  saved(101, "luajit-inlined", VmState::machine_code), waiting(102), waiting(103)};
  look.threads[0].cpu_wait = CpuWait{1'000'000'000, 260'000'000, {}, 700'000'000};
  ThreadLook lost;
  lost.tid = 104, lost.name = "lost", lost.sample.loss = Loss::not_stopped;
  look.threads.push_back(lost);
  look.deadlocks = {{102, 103}};
  look.states = {state()};
  look.stood_still_ns = 2'345'678;
  ProcessLook later = look;
  later.time = 1;
  later.threads[0].cpu_wait.reset();
  later.threads[0].times.on_cpu += 990'000'000;
  later.threads[0].stack.resize(3);
  later.disturbed = true;
  return {look, later};
}

}  // namespace

TEST_CASE("dump writes what it saw", "[golden]") {
  const std::vector<ProcessLook> all = looks();
  golden::check("dump.txt",
                to_text(all[0], true) + "\n" + to_text(all[1], all[0], false) + to_text(movements(all), all));
  golden::check("dump.json", to_json({all}, true));
}

TEST_CASE("dump writes frames of the kernel before what the thread waits for", "[golden]") {
  ProcessLook look;
  look.pid = 100, look.command = "reader app/main.lua";
  look.threads = {in_kernel()};
  golden::check("dump.kernel.txt", to_text(look, false));
  golden::check("dump.kernel.json", to_json({{look}}, false));
}

}  // namespace luaspy::golden_dump_test
