// Looks at suspended coroutines, counted.

#include <catch2/catch.hpp>

#include "profile/suspended_profile.h"
#include "profile/suspended_tracks.h"

namespace luaspy::suspended_test {
namespace {

constexpr std::int64_t s = 1'000'000'000;

SuspendedLook look_at(std::int64_t at_ns, std::int64_t weight_ns, int pid, std::vector<SuspendedGroup> groups) {
  return {at_ns, weight_ns, pid, static_cast<std::uint64_t>(pid), "lua", 0x1000, 0, std::move(groups)};
}

StackId place(EventTables& tables, int line) {
  return tables.stacks.intern(Stack{{Frame::Kind::lua, "wait", "a.lua", 1, line}});
}

}  // namespace

TEST_CASE("suspended coroutines are counted by place, with the most at once and the longest wait", "[unit]") {
  EventTables tables;
  const StackId first = place(tables, 2), second = place(tables, 3);
  const LabelsId labels = tables.labels.intern({{std::string(suspended_label), "worker (a.lua:7)"}});
  ViewOptions shape;
  shape.lines = true;
  SuspendedProfile counted(tables, shape, false);
  // Two processes are looked at in turn; in the second turn one of them is gone.
  counted.add(look_at(1 * s, 1 * s, 7, {{0, first, labels, 10, 0}, {1, first, labels, 1, 0}}));
  counted.add(look_at(1 * s, 1 * s, 8, {{0, first, labels, 5, 0}, {0, second, no_labels, 2, 0}}));
  counted.add(look_at(4 * s, 3 * s, 7, {{0, first, labels, 4, 3 * s}, {1, second, labels, 1, 0}}));
  counted.finish();
  const Profile& profile = counted.profile();
  CHECK(profile.suspended.looks == 2);
  CHECK(profile.suspended.looked_ns == 4 * s);
  CHECK(profile.suspended.most == 18);
  CHECK(average_suspended(profile) == Approx((18 * 1 + 5 * 3) / 4.0));
  CHECK(suspended_summary(profile) == "8.2 on average, 18 at most; looked 2 times in 4.0 s");
  CHECK(profile.samples() == 23);
  REQUIRE(profile.suspended.places.size() == 3);
  std::int64_t most_first = 0, longest = 0;
  for (const auto& [at, extremes] : profile.suspended.places) {
    most_first = std::max(most_first, extremes.most);
    longest = std::max(longest, extremes.longest_ns);
  }
  CHECK(most_first == 16);
  CHECK(longest == 3 * s);
  REQUIRE(profile.threads().size() == 3);  // others and number 1 of process 7, others of process 8
  CHECK(profile.threads()[1].tid == 1);
  CHECK(profile.threads()[1].name == "worker (a.lua:7)");
}

TEST_CASE("looks of several recordings are added up", "[unit]") {
  Profile all(false);
  for (const std::int64_t count : {10, 30}) {
    EventTables tables;
    ViewOptions shape;
    shape.lines = true;
    SuspendedProfile counted(tables, shape, false);
    counted.add(look_at(2 * s, 2 * s, 7, {{0, place(tables, 2), no_labels, count, 0}}));
    counted.finish();
    all.add_all(counted.profile(), {});
  }
  CHECK(average_suspended(all) == Approx(20));
  CHECK(suspended_summary(all) == "20.0 on average, 30 at most; looked 2 times in 4.0 s");
  REQUIRE(all.suspended.places.size() == 1);
  CHECK(all.suspended.places.begin()->second.most == 30);
}

TEST_CASE("a track has the waits of a coroutine, and joins those that go on", "[unit]") {
  EventTables tables;
  const StackId first = place(tables, 2), second = place(tables, 3);
  ViewOptions shape;
  shape.lines = true;
  ProfileBuilder into(tables, shape, true);
  SuspendedTracks tracks(tables, into);
  const auto see = [&](std::int64_t at_s, StackId stack, std::int64_t longest_s) {
    tracks.add(look_at(at_s * s, 1 * s, 7, {{1, stack, no_labels, 1, longest_s * s}, {0, stack, no_labels, 9, 0}}));
  };
  see(1, first, 0);
  see(2, first, 1);  // it has waited on
  see(3, first, 0);  // it is there again
  see(4, second, 0);
  see(9, second, 5);  // nothing is known of the time between
  REQUIRE(into.profile().tracks.size() == 1);
  const SuspendedTrack& track = into.profile().tracks[0];
  CHECK(title_of(track) == "coroutine 1");
  REQUIRE(track.waits.size() == 4);
  const std::vector<std::pair<std::int64_t, std::int64_t>> times = {{0, 2}, {2, 3}, {3, 4}, {8, 9}};
  for (std::size_t i = 0; i < times.size(); ++i) {
    CHECK(track.waits[i].start_ns == times[i].first * s);
    CHECK(track.waits[i].end_ns == times[i].second * s);
  }
  CHECK(track.waits[0].stack == track.waits[1].stack);
  CHECK(track.waits[1].stack != track.waits[2].stack);
}

TEST_CASE("a slow request has the waits of its coroutines, as far as they were seen", "[unit]") {
  EventTables tables;
  const StackId first = place(tables, 2), second = place(tables, 3);
  const LabelsId slow = tables.labels.intern({{std::string(suspended_label), "a"}, {"slow", "GET /a, 5 ms"}});
  ViewOptions shape;
  shape.lines = true;
  ProfileBuilder into(tables, shape, true);
  SuspendedTracks tracks(tables, into);
  for (const auto& [at_s, stack] : {std::pair(1, first), {2, first}, {4, second}})
    tracks.add(
        look_at(at_s * s, 1 * s, 7, {{1, stack, slow, 1, 0}, {2, second, slow, 1, 0}, {3, first, no_labels, 1, 0}}));
  const Profile& profile = into.profile();
  REQUIRE(profile.request_waits.size() == 1);
  CHECK(profile.request_waits[0].request == "GET /a, 5 ms");
  CHECK(profile.request_waits[0].pid == 7);
  std::vector<std::pair<std::int64_t, std::int64_t>> times;
  for (const SuspendedTrack::Wait& wait : profile.request_waits[0].waits)
    times.emplace_back(wait.start_ns / s, wait.end_ns / s);
  CHECK(times == std::vector<std::pair<std::int64_t, std::int64_t>>{{1, 2}, {4, 4}});
  CHECK(profile.tracks.size() == 1);  // of the other coroutine
}

}  // namespace luaspy::suspended_test
