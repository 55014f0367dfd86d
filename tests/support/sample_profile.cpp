#include "support/sample_profile.h"

namespace luaspy {

Profile sample_profile() {
  Profile profile;
  profile.about = {"0.1.0",
                   "lua5.4 \"my script\".lua",
                   "/usr/bin/lua5.4",
                   100,
                   {"Lua 5.4.4"},
                   true,
                   "merged",
                   100,
                   10,
                   1'700'000'000,
                   50'000'000,
                   5,
                   true};
  const Frame main = native("main", "lua5.4"), chunk = lua("main chunk", "app/main.lua", 0, 30),
              unknown = native("lua5.4+0x17920", "lua5.4");
  const Frame work = lua("work", "app/main.lua", 10, 12), same_work = lua("function", "app/main.lua", 10, 14);
  const Frame gsub = {Frame::Kind::c, "string.gsub", "lua5.4", 0, 0},
              tail = {Frame::Kind::marker, "(...tail calls...)", {}, 0, 0};
  const Frame hostile = lua("a;b<script>alert(1)</script>\\x1b[31m", "[string \"x;y...\"]", 1, 2),
              waits = {Frame::Kind::marker, "[epoll_wait]", {}, 0, 0};
  const Profile::Thread first = {100, "lua5.4", 100, "lua5.4 my script.lua"},
                        second = {101, "worker; \"two\"", 100, "lua5.4 my script.lua"};
  const auto add = [&](const Profile::Thread& thread, std::int64_t at_ms, std::int64_t weight_ms, VmState state,
                       Stack stack) {
    Sample sample;
    sample.quality.stacks = 1;
    sample.vm_state = state;
    sample.state = state == VmState::none ? Sample::State::sleeping : Sample::State::running;
    sample.stopped_ns = sample.state == Sample::State::running ? 20'000 : 0;
    sample.stack = std::move(stack);
    profile.add(thread, {at_ms * 1'000'000, weight_ms * 1'000'000}, sample);
  };
  add(first, 10, 10, VmState::interpreting, {main, chunk, work});
  add(first, 20, 10, VmState::c, {main, chunk, same_work, gsub});
  add(second, 20, 10, VmState::none, {main, waits});
  add(first, 31, 11, VmState::collecting, {main, chunk, work});
  add(first, 40, 9, VmState::machine_code, {main, chunk, tail, hostile, unknown});
  add(second, 40, 9, VmState::interpreting, {main, chunk, work});
  Sample lost;
  lost.loss = Loss::ended;
  profile.add(second, {50'000'000, 10'000'000}, lost);
  profile.add_loss(Loss::late, 2);
  profile.add_idle();
  profile.settle_names();
  return profile;
}

}  // namespace luaspy
