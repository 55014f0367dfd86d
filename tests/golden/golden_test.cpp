// Every writer on one profile that has each kind of frame, two threads, losses and hostile names: byte for byte what the
// files beside this one say.

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>
#include <sstream>

#include "golden.h"
#include "output/format.h"

namespace luaspy {
namespace {

Frame lua(std::string name, std::string file, int defined, int line) { return {Frame::Kind::lua, std::move(name), std::move(file), defined, line}; }
Frame native(std::string name, std::string file) { return {Frame::Kind::native, std::move(name), std::move(file), 0, 0}; }

Profile sample_profile() {
  Profile profile;
  profile.target = "lua5.4 \"my script\".lua";
  profile.duration_ns = 50'000'000;
  profile.rate = 100;
  const Frame main = native("main", "lua5.4"), chunk = lua("main chunk", "app/main.lua", 0, 30), unknown = native("lua5.4+0x17920", "lua5.4");
  const Frame work = lua("work", "app/main.lua", 10, 12), same_work = lua("function", "app/main.lua", 10, 14);
  const Frame gsub = {Frame::Kind::c, "string.gsub", "lua5.4", 0, 0}, tail = {Frame::Kind::marker, "(...tail calls...)", {}, 0, 0};
  const Frame hostile = lua("a;b<script>alert(1)</script>\\x1b[31m", "[string \"x;y...\"]", 1, 2), waits = {Frame::Kind::marker, "[epoll_wait]", {}, 0, 0};
  const Profile::Thread first = {100, "lua5.4"}, second = {101, "worker; \"two\""};
  const auto add = [&](const Profile::Thread& thread, std::int64_t weight_ms, Stack stack) {
    Sample sample;
    sample.quality.stacks = 1;
    sample.stack = std::move(stack);
    profile.add(thread, weight_ms * 1'000'000, sample);
  };
  add(first, 10, {main, chunk, work});
  add(first, 10, {main, chunk, same_work, gsub});
  add(second, 10, {main, waits});
  add(first, 11, {main, chunk, work});
  add(first, 9, {main, chunk, tail, hostile, unknown});
  add(second, 9, {main, chunk, work});
  Sample lost;
  lost.loss = Loss::ended;
  profile.add(second, 10'000'000, lost);
  profile.add_loss(Loss::late, 2);
  profile.add_idle();
  profile.settle_names();
  return profile;
}

std::string written(const char* format, const WriteOptions& options) {
  std::ostringstream out;
  find_format(format)->write(sample_profile(), options, out);
  return out.str();
}

}  // namespace

TEST_CASE("folded", "[golden]") {
  golden::check("sample.folded", written("folded", {}));
  golden::check("sample.lines.folded", written("folded", {.lines = true, .threads = true}));
}

TEST_CASE("speedscope", "[golden]") {
  golden::check("sample.speedscope.json", written("speedscope", {}));
  const nlohmann::json json = nlohmann::json::parse(written("speedscope", {.lines = true}));
  REQUIRE(json.at("profiles").size() == 2);
  for (const nlohmann::json& profile : json.at("profiles")) {
    REQUIRE(profile.at("samples").size() == profile.at("weights").size());
    std::int64_t total = 0;
    for (const nlohmann::json& weight : profile.at("weights")) total += weight.get<std::int64_t>();
    CHECK(profile.at("endValue") == total);
  }
}

TEST_CASE("a function has one name in a profile, and every tick is counted", "[golden]") {
  const Profile profile = sample_profile();
  for (const Frame& frame : profile.frames()) CHECK(frame.name != "function");
  CHECK(profile.samples() == 6);
  CHECK(profile.losses(Loss::ended) == 1);
  CHECK(profile.total_losses() == 3);
  CHECK(profile.idle() == 1);
  const std::vector<Profile::Hot> hottest = profile.hottest();
  REQUIRE(!hottest.empty());
  CHECK(hottest.front().function.name == "work");
  CHECK(hottest.front().own == 3);
  CHECK(hottest.front().total == 4);
}

}  // namespace luaspy
