// A raw recording of time that has allocations, too: each can be read without the other.

#include <catch2/catch.hpp>
#include <sstream>

#include "input/raw_reader.h"
#include "output/raw.h"
#include "support/raw_file.h"

namespace luaspy::raw_allocations_test {
namespace {

constexpr std::int64_t a_second = 1'000'000'000;

// 8 seconds: a sample of time in each, and half a second later, in every other one, an allocation.
std::string file_with_allocations() {
  std::ostringstream out;
  EventTables tables;
  StackTable& stacks = tables.stacks;
  const ThreadId thread = tables.threads.intern({7, "lua", 7, "lua a.lua"});
  RawWriter writer(tables, Unit::nanoseconds, out);
  const FrameId main = stacks.intern(Frame{Frame::Kind::lua, "main chunk", "a.lua", 0, 9});
  const FrameId work = stacks.intern(Frame{Frame::Kind::lua, "work", "a.lua", 1, 2});
  const StackId outer = stacks.intern(StackTable::Node{empty_stack, main}),
                inner = stacks.intern(StackTable::Node{outer, work});
  for (int i = 1; i <= 8; ++i) {
    Sample facts;
    facts.vm_state = i % 4 == 0 ? VmState::collecting : VmState::interpreting;
    facts.stopped_ns = 1000;
    facts.quality = {1, 1, 1};
    facts.stack = outer;
    writer.sample(thread, {i * a_second, a_second}, facts);
    writer.loss(Loss::late, 1);
    if (i % 2 != 0) continue;
    facts.vm_state = VmState::interpreting;
    facts.stack = inner;
    writer.allocation(thread, {i * a_second + a_second / 2, 1000 * i, i}, facts);
  }
  Metadata about;
  about.duration_ns = 9 * a_second, about.sampled_ns = 5 * a_second;
  about.ticks = 8, about.allocations = 4, about.complete = true;
  writer.about(about);
  writer.flush();
  return out.str();
}

Result<Profile> read_window(const std::string& file, const RawWindow& window) {
  std::istringstream in(file);
  return read_raw(in, {}, window);
}

}  // namespace

TEST_CASE("samples of time are read as if there were no allocations", "[unit]") {
  const Result<Profile> time = read_window(file_with_allocations(), {});
  REQUIRE(time);
  CHECK(time->about.unit == Unit::nanoseconds);
  CHECK(time->about.complete);
  CHECK(time->samples() == 8);
  CHECK(time->weight() == 8 * a_second * 9 / 5);  // what was looked at stands for the pauses, too
  CHECK(time->samples_in(VmState::collecting) == 2);
  CHECK(time->losses(Loss::late) == 8);
  CHECK(time->quality().stacks == 8);
  CHECK(time->about.ticks == 8);
  CHECK(time->about.allocations == 4);
  CHECK(time->about.looked_ns() == 5 * a_second);
}

TEST_CASE("the allocations of a recording of time, in bytes and in objects", "[unit]") {
  const std::string file = file_with_allocations();
  const Result<Profile> bytes = read_window(file, {.allocations = Unit::bytes}),
                        objects = read_window(file, {.allocations = Unit::objects});
  REQUIRE(bytes);
  REQUIRE(objects);
  CHECK(bytes->about.unit == Unit::bytes);
  CHECK(bytes->samples() == 4);
  CHECK(bytes->weight() == 20'000);
  CHECK(bytes->total_losses() == 0);
  CHECK(bytes->quality().stacks == 4);
  CHECK(bytes->stops().count() == 4);
  CHECK(bytes->about.ticks == 4);
  CHECK(bytes->about.looked_ns() == 4 * a_second);
  CHECK(objects->about.unit == Unit::objects);
  CHECK(objects->weight() == 20);
  const Result<Profile> late = read_window(
      file, {.from_ns = 4 * a_second, .to_ns = 6 * a_second + a_second * 3 / 4, .allocations = Unit::bytes});
  CHECK(late->weight() == 10'000);
  CHECK(read_window(file, {.thread = "other", .allocations = Unit::bytes})->samples() == 0);
}

TEST_CASE("an allocation that refers to nothing ends the recording", "[unit]") {
  const std::string file = file_with_allocations();
  const auto with = [&](std::initializer_list<std::uint64_t> fields) {
    std::string body;
    for (const std::uint64_t field : fields) put_varint(body, field);
    return file + raw_block(raw_record(raw::allocation, body));
  };
  CHECK(read_window(with({0, 0, 2, 0, 10, 1}), {.allocations = Unit::bytes})->weight() == 20'010);
  CHECK(read_window(with({0, 0, 2, 0, 10, 1}), {})->about.complete);
  for (const auto& bad : {with({1, 0, 2, 0, 10, 1}), with({0, 0, 3, 0, 10, 1}), with({0, 0, 2, 0, 10}),
                          with({0, 9 << 4, 2, 0, 10, 1}), with({0, 0, 2, 1ULL << 62, 10, 1})}) {
    const Result<Profile> read = read_window(bad, {.allocations = Unit::bytes});
    CHECK(!read->about.complete);
    CHECK(read->weight() == 20'000);
    CHECK(!read_window(bad, {})->about.complete);
  }
}

}  // namespace luaspy::raw_allocations_test
