// Limits of what a raw recording is believed.

#include "input/raw_reader.h"

#include <fmt/format.h>
#include <malloc.h>

#include <catch2/catch.hpp>
#include <sstream>

#include "output/format.h"
#include "output/write_options.h"
#include "support/raw_file.h"

namespace luaspy::raw_reader_test {
namespace {

Result<Profile> read(const std::string& records) {
  std::istringstream in(raw_head() + raw_block(records));
  return read_raw(in, {});
}

std::string unit() { return raw_record(raw::about, raw_text(raw::unit_key) + raw_text("nanoseconds")); }

std::size_t allocated() { return ::mallinfo2().uordblks + ::mallinfo2().hblkhd; }

}  // namespace

// Records that compress well, and which take more memory than file.
TEST_CASE("a raw recording does not become much larger in memory", "[unit][figures]") {
  constexpr std::size_t most = 400 << 20;
  // Strings that no frame uses: empty ones, and long ones.
  for (const std::size_t length : {std::size_t{0}, std::size_t{20}, std::size_t{60'000}}) {
    const std::string one = raw_record(raw::string, std::string(length, '\x1b'));
    std::string records;
    while (records.size() < std::size_t{1} << 20) records += one;
    const std::string block = raw_block(records);
    std::string file = raw_head();
    while (file.size() + block.size() < raw::most_carried) file += block;
    std::istringstream in(std::move(file));
    const std::size_t before = allocated();
    std::size_t during = 0;
    const Result<Profile> profile = read_raw(in, {}, {}, true,
                                             [&](std::int64_t) { during = std::max(during, allocated()); });
    REQUIRE(profile);
    INFO(length << ": " << static_cast<double>(during - before) / 1e6 << " MB");
    CHECK(!profile->about.complete);
    CHECK(during - before < most);
  }
  // Files of one byte, with long names.
  std::string records;
  for (int i = 0; i < 64'000; ++i)
    records += raw_record(raw::source,
                          raw_text(fmt::format("{:05}{}", i, std::string(1010, '\x1b'))) + std::string("\0x", 2));
  const std::size_t before = allocated();
  const Result<Profile> profile = read(records);
  REQUIRE(profile);
  INFO(static_cast<double>(allocated() - before) / 1e6 << " MB");
  CHECK(!profile->sources.empty());
  CHECK(!profile->about.complete);
  CHECK(allocated() - before < most / 2);
}

TEST_CASE("no time of the beginning is beyond a date", "[unit]") {
  for (const char* const text :
       {"1152921504606846976", "144115188075855872", "253402300800", "99999999999999999999", "-1", "253402300799"}) {
    const Result<Profile> profile = read(unit() + raw_record(raw::about, raw_text("started_s") + raw_text(text)));
    REQUIRE(profile);
    INFO(text);
    CHECK(profile->about.started_s >= 0);
    CHECK(profile->about.started_s <= 253'402'300'799);
    for (const Format& format : formats()) {
      if (format.write == nullptr) continue;
      std::ostringstream out;
      format.write(*profile, {}, out);
      if (format.name == "flamegraph") CHECK(out.str().find("Recorded") != std::string::npos);
    }
  }
}

TEST_CASE("heaps that make no sense end the recording", "[unit]") {
  const auto numbers = [](std::initializer_list<std::uint64_t> fields) {
    std::string body;
    for (const std::uint64_t field : fields) put_varint(body, field);
    return body;
  };
  const auto state = [&](std::uint64_t pid) { return raw_record(raw::state, numbers({pid, 0x1000})); };
  const auto heap = [&](std::uint64_t number, std::uint64_t flags, std::uint64_t change) {
    return raw_record(raw::heap, numbers({number, flags, change}));
  };
  const std::string begin = unit() + raw_record(raw::about, raw_text("complete") + raw_text("1")) + state(1);
  const std::uint64_t most = HeapReading::most_bytes;
  const std::string last_phase = heap(0, 4, 0);
  for (const std::string& good :
       {heap(0, 0, most), heap(0, 0, 7) + heap(0, raw::has_shrunk, 7), last_phase, state(2) + heap(1, 0, 1)}) {
    const Result<Profile> profile = read(begin + good);
    REQUIRE(profile);
    CHECK(profile->about.complete);
    CHECK(!profile->heaps.empty());
  }
  std::string many;
  for (std::size_t i = 0; i < HeapChanges::most_states; ++i) many += state(i);
  for (const std::string& bad : {heap(1, 0, 1), heap(0, 5, 0), heap(0, 0, most + 1), heap(0, raw::has_shrunk, 1),
                                 heap(0, 0, most) + heap(0, 0, 1), many, raw_record(raw::heap, numbers({0, 0}))}) {
    const Result<Profile> profile = read(begin + bad);
    REQUIRE(profile);
    CHECK(!profile->about.complete);
  }
}

TEST_CASE("marks of later releases are left out, and those that make no sense end the recording", "[unit]") {
  const auto mark = [](std::initializer_list<std::uint64_t> fields) {
    std::string body;
    for (const std::uint64_t field : fields) put_varint(body, field);
    return raw_record(raw::mark, body);
  };
  const std::string begin = unit() + raw_record(raw::about, raw_text("complete") + raw_text("1")) +
                            raw_record(raw::string, "a.lua") + raw_record(raw::string, "why\x1b[31m");
  const std::string good = mark({0, 5'000, 7, 0, 12, 3, 1});
  const Result<Profile> profile = read(begin + mark({4, 1, 7, 0, 1, 1, 1}) + good +
                                       mark({2, 6'000, 7, 0, 0, 0, 1, 99}));
  REQUIRE(profile);
  CHECK(profile->about.complete);
  REQUIRE(profile->marks.size() == 2);
  CHECK(profile->marks[0] == Mark{Mark::Kind::abort, 5'000, 7, "a.lua", 12, 3, "why\\x1b[31m"});
  CHECK(profile->marks[1].kind == Mark::Kind::flush);
  constexpr std::uint64_t too_large = std::uint64_t{1} << 61;
  for (const std::string& bad :
       {mark({0, 5'000, 7, 2, 12, 3, 1}), mark({0, 5'000, 7, 0, 12, 3, 2}), mark({0, 5'000, 7, 0, 12, 3}),
        mark({0, too_large, 7, 0, 12, 3, 1}), mark({0, 1, 7, 0, 1ULL << 31, 3, 1})}) {
    const Result<Profile> read_so = read(begin + good + bad);
    REQUIRE(read_so);
    CHECK(!read_so->about.complete);
    CHECK(read_so->marks.size() == 1);
  }
  std::string many;
  for (std::size_t i = 0; i <= most_marks; ++i) many += good;
  const Result<Profile> bounded = read(begin + many);
  REQUIRE(bounded);
  CHECK(bounded->marks.size() == most_marks);
}

TEST_CASE("looks at suspended coroutines that make no sense end the recording", "[unit]") {
  const auto look = [](std::initializer_list<std::uint64_t> fields) {
    std::string body;
    for (const std::uint64_t field : fields) put_varint(body, field);
    return raw_record(raw::suspended, body);
  };
  const auto read_suspended = [](const std::string& records) {
    std::istringstream in(raw_head() + raw_block(records));
    RawWindow window;
    window.suspended = true;
    return read_raw(in, {}, window, false);
  };
  const std::string begin = unit() + raw_record(raw::about, raw_text("complete") + raw_text("1")) +
                            raw_record(raw::string, "lua a.lua");
  const std::string good = look({5'000, 5'000, 7, 1, 0, 0x1000, 2, 2, 0, 0, 0, 40, 300, 200, 0, 0, 1, 0, 99});
  const Result<Profile> profile = read_suspended(begin + good);
  REQUIRE(profile);
  CHECK(profile->about.complete);
  CHECK(profile->samples() == 41);
  CHECK(profile->weight() == 41 * 5'000);
  CHECK(profile->suspended.most == 41);
  CHECK(profile->suspended.unread == 2);
  CHECK(profile->threads().size() == 2);
  CHECK(read(begin + good)->samples() == 0);
  REQUIRE(read(begin + good)->waits != nullptr);
  CHECK(read(begin + good)->waits->samples() == 41);
  constexpr std::uint64_t too_large = std::uint64_t{1} << 61, large = std::uint64_t{1} << 59;
  for (const std::string& bad : {look({5'000, 5'000, 7, 1, 1, 0x1000, 0, 0}),                    // process
                                 look({5'000, 5'000, 7, 1, 0, 0x1000, 0, 2, 0, 0, 0, 40, 300}),  // groups
                                 look({5'000, 5'000, 7, 1, 0, 0x1000, 0, 1, 201, 0, 0, 1, 0}),   // number
                                 look({5'000, 5'000, 7, 1, 0, 0x1000, 0, 1, 0, 1, 0, 1, 0}),     // stack
                                 look({5'000, 5'000, 7, 1, 0, 0x1000, 0, 1, 0, 0, 1, 1, 0}),     // labels
                                 look({too_large, 5'000, 7, 1, 0, 0x1000, 0, 0}),                // at
                                 look({5'000, large, 7, 1, 0, 0x1000, 0, 1, 0, 0, 0, 8, 0}),     // weight
                                 look({5'000, 5'000, 7, 1, 0, 0x1000, 0})}) {
    const Result<Profile> cut = read_suspended(begin + good + bad + good);
    REQUIRE(cut);
    CHECK(!cut->about.complete);
    CHECK(cut->samples() == 41);
  }
  // Whatever a file says, it has few threads.
  std::string many;
  for (std::uint64_t pid = 0; pid < 10'000; ++pid) many += look({5'000, 1, pid, 1, 0, 1, 0, 1, 0, 0, 0, 1, 0});
  const Result<Profile> bounded = read_suspended(begin + many);
  REQUIRE(bounded);
  CHECK(bounded->about.complete);
  CHECK(bounded->samples() == 10'000);
  CHECK(bounded->threads().size() <= 4096);
}

}  // namespace luaspy::raw_reader_test
