// No thread of a target runs during a standstill, and all run after it.

#include "attach/standstill.h"

#include <array>
#include <catch2/catch.hpp>
#include <string>

#include "support/harness.h"

namespace luaspy::live::standstill_test {

TEST_CASE("nothing moves in a standstill", "[family]") {
  const Folder folder;
  Running program({compile(folder, "counters")});
  const std::vector<std::string> lines = program.read_until("READY");
  REQUIRE(lines.size() == 1);
  const Address counters = std::stoull(lines[0], nullptr, 16);
  Result<Process> process = Process::open(program.pid());
  REQUIRE(process);
  Target target(std::move(*process), std::chrono::seconds(2));
  using Counts = std::array<std::uint64_t, 5>;
  const auto counts = [&] { return target.memory().get<Counts>(counters).value(); };
  Counts last{};
  int whole = 0;
  for (int round = 0; round < 50; ++round) {
    Standstill standstill(target);
    CHECK(standstill.members().size() >= 6);
    const Counts before = counts();
    bool moved = false;
    for (int i = 0; i < 200; ++i) moved |= counts() != before;
    // A thread may be found asleep while it creates another one: then it can wake up, and this is
    // reported.
    const bool undisturbed = standstill.undisturbed();
    CHECK((!moved || !undisturbed));
    whole += undisturbed;
    // One that was not stopped in time has been given up, and all run already.
    CHECK((standstill.resume().count() > 0 || !undisturbed));
    program.await("it counts on", [&] { return counts() != before; });
    CHECK(before != last);
    last = before;
  }
  CHECK(whole >= 25);
}

TEST_CASE("a thread that is held stands still: stopped if it runs, left alone if it sleeps", "[family]") {
  Running working(lua({"-e", "print('READY') io.flush() while true do end"}));
  Running waiting(lua({"-e", "print('READY') io.flush() io.read() print('AGAIN') io.flush() io.read()"}));
  for (Running* const program : {&working, &waiting}) {
    const bool works = program == &working;
    INFO((works ? "it works" : "it waits"));
    program->read_until("READY");
    Result<Process> process = Process::open(program->pid());
    REQUIRE(process);
    Target target(std::move(*process), std::chrono::seconds(2));
    const std::shared_ptr<Thread> thread = target.process().threads().front();
    if (!works) program->await("it reads", [&] { return thread->state().kind == ThreadState::Kind::sleeping; });
    HeldThread held(target, thread);
    CHECK(held.stands_still());
    CHECK(held.sleeps() == !works);
    CHECK((held.stop() != nullptr) == works);
    CHECK(held.has_not_run());
    CHECK(target.process().address_space().find(held.registers().sp()) != nullptr);
    CHECK(thread->state_letter() == (works ? 't' : 'S'));
    if (works) {
      CHECK(held.resume().count() > 0);
      CHECK(thread->state_letter() != 't');
      continue;
    }
    program->send("\n");
    program->read_until("AGAIN");
    CHECK_FALSE(held.has_not_run());
    CHECK(held.resume().count() == 0);
  }
}

// The kernel ends all other threads first, and a traced thread has not ended until its tracer has
// been notified.
TEST_CASE("exec goes on, whichever thread stands still", "[family]") {
  const std::string who = GENERATE("first", "second"), held = GENERATE("first", "second");
  INFO(who << " executes, " << held << " stands still");
  const Folder folder;
  Running program({compile(folder, "execs"), who});
  const pid_t second = std::stoi(program.read_until("READY").at(0));
  Result<Process> process = Process::open(program.pid());
  REQUIRE(process);
  Target target(std::move(*process), std::chrono::seconds(2));
  const pid_t tid = held == "first" ? program.pid() : second;
  {
    Target::Stop stop(target, tid);
    REQUIRE(stop.outcome() == Target::Stop::Outcome::stopped);
    program.send("\n");
    // If another thread executes, this one is killed while it is stopped; else it executes once it
    // runs again.
    if (who != held)
      program.await("it has been killed", [&] { return Thread(program.pid(), tid).state_letter() != 't'; });
  }
  program.await("the new program says AGAIN", [&] {
    target.tracer().let_go_pending();
    return target.process().executable().ends_with("execs") &&
           read_file("/proc/" + std::to_string(program.pid()) + "/cmdline").ends_with(std::string("again\0", 6));
  });
  program.read_until("AGAIN");
  // It can be stopped, and then runs again.
  for (int round = 0; round < 3; ++round) {
    Target::Stop stop(target, program.pid());
    CHECK(stop.outcome() == Target::Stop::Outcome::stopped);
  }
  CHECK(!target.tracer().has_pending());
  program.await("it runs", [&] { return Thread(program.pid(), program.pid()).state_letter() == 'R'; });
}

// A stop is reported once: code that waits for any child, or any thread, may consume the report
// that other code waits for.
TEST_CASE("a stop that somebody else has heard of is taken, and the thread runs again", "[family]") {
  const Folder folder;
  Running program(lua({folder.write("spin.lua", "print('READY') io.flush() while true do end")}));
  program.read_until("READY");
  Result<Process> process = Process::open(program.pid());
  REQUIRE(process);
  Target target(std::move(*process), std::chrono::seconds(2));
  Tracer tracer(std::chrono::seconds(2));
  Stop stop(tracer, target, program.pid(), Stop::Later{});
  REQUIRE(stop.outcome() == Stop::Outcome::pending);
  REQUIRE(system::wait_for(program.pid(), true).kind == system::WaitStatus::Kind::stopped);
  CHECK(Thread(program.pid(), program.pid()).state_letter() == 't');
  CHECK(stop.adopt_unreported());
  CHECK(stop.outcome() == Stop::Outcome::stopped);
  CHECK(stop.registers().pc() != 0);
  stop.resume();
  program.await("it runs", [&] { return Thread(program.pid(), program.pid()).state_letter() == 'R'; });
  CHECK(!stop.adopt_unreported());
}

}  // namespace luaspy::live::standstill_test
