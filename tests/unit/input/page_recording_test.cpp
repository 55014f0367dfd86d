// Pages carry their recording: what is read from a page is what was put into it, and damaged pages
// end early.

#include "input/page_recording.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <sstream>

#include "input/raw_reader.h"
#include "output/flamegraph.h"
#include "output/packed_recording.h"
#include "profile/raw_format.h"
#include "support/dice.h"
#include "support/raw_file.h"
#include "support/sample_profile.h"

namespace luaspy::page_recording_test {
namespace {

std::string page_with(std::string_view recording) {
  std::ostringstream page;
  write_flamegraph(sample_profile(), {.recording = recording}, page);
  return page.str();
}

std::string carried_by(const std::string& page) {
  std::istringstream in(page);
  return raw_bytes(in, std::size_t{1} << 24);
}

std::string random_bytes(std::size_t size) {
  Dice dice;
  std::string bytes;
  for (std::size_t i = 0; i < size; ++i) bytes += static_cast<char>(dice(256));
  return bytes;
}

}  // namespace

TEST_CASE("a page carries the bytes of its recording", "[unit]") {
  for (const unsigned size : {1U, 2U, 3U, 4U, 100U, 65'535U, 65'536U, 65'537U, 200'000U}) {
    const std::string bytes = random_bytes(size);
    CHECK(carried_by(page_with(bytes)) == bytes);
  }
  const std::string even(5'000'000, 'x');  // much larger than what it is packed into
  CHECK(carried_by(page_with(even)) == even);
  std::istringstream in(page_with(even));
  CHECK(raw_bytes(in, 4'999'999).empty());
}

TEST_CASE("the recording in a page ends after as much as its reader takes", "[unit]") {
  // What does not compress: there is more to read in the page, too.
  const std::string noise = random_bytes(1'000'000);
  for (const std::size_t most : {std::size_t{0}, std::size_t{1}, std::size_t{65'536}, std::size_t{999'999}}) {
    std::istringstream page(page_with(noise));
    PageRecording recording(page, most);
    REQUIRE(recording.found());
    std::istream inside(&recording);
    std::ostringstream out;
    out << inside.rdbuf();
    CHECK(out.str() == noise.substr(0, most));
    CHECK(recording.read() <= static_cast<std::int64_t>(page.view().size()));
  }
}

TEST_CASE("of a page, it is told how much of its file is read", "[unit]") {
  std::string recording = sample_recording(Unit::nanoseconds);
  const std::string noise = random_bytes(1'000'000);
  for (std::size_t i = 0; i < 20; ++i) recording += raw_block(raw_record(0x7f, noise.substr(50'000 * i, 50'000)));
  std::istringstream page(page_with(recording));
  const auto size = static_cast<std::int64_t>(page.view().size());
  std::vector<std::int64_t> told;
  REQUIRE(read_raw(page, {}, {}, true, [&](std::int64_t bytes) { told.push_back(bytes); }));
  REQUIRE(told.size() >= 20);
  CHECK(std::ranges::is_sorted(told));
  CHECK(told.front() < size / 2);
  CHECK(told.back() > size / 2);
  CHECK(told.back() <= size);
}

// 64 MiB are the most that luaspy writes, and the most that it reads.
TEST_CASE("a page with more than 64 MiB of recording is not read to its end, and not taken out", "[unit][slow]") {
  const auto bytes_of = [](std::size_t size) {
    std::istringstream page(page_with(std::string(size, 'x')));
    return raw_bytes(page, raw::most_carried).size();
  };
  CHECK(bytes_of(raw::most_carried) == raw::most_carried);
  CHECK(bytes_of(raw::most_carried + 1) == 0);
  // Records that a reader skips, without an end.
  std::string recording = sample_recording(Unit::nanoseconds);
  const std::string block = raw_block(raw_record(0x7f, std::string(1 << 20, '\0')));
  while (recording.size() <= raw::most_carried) recording += block;
  std::istringstream page(page_with(recording)), raw(recording);
  const Result<Profile> in_page = read_raw(page, {}), alone = read_raw(raw, {});
  REQUIRE(in_page);
  REQUIRE(alone);
  CHECK(in_page->samples() == sample_profile().samples());
  CHECK(alone->about.complete);
  CHECK(!in_page->about.complete);
}

TEST_CASE("the recording in a page is read like a raw recording", "[unit]") {
  const std::string recording = sample_recording(Unit::nanoseconds);
  std::istringstream raw(recording), page(page_with(recording));
  const Result<Profile> one = read_raw(raw, {.lines = true}), other = read_raw(page, {.lines = true});
  REQUIRE(one);
  REQUIRE(other);
  CHECK(one->about.complete == other->about.complete);
  std::ostringstream first, second;
  write_flamegraph(*one, {}, first), write_flamegraph(*other, {}, second);
  CHECK(first.str() == second.str());
}

TEST_CASE("pages without a recording, and damaged ones", "[unit][slow]") {
  const auto error_of = [](const std::string& page) {
    std::istringstream in(page);
    const Result<Profile> read = read_raw(in, {});
    REQUIRE(!read);
    return read.error().text;
  };
  const std::string mark(raw::page_mark);
  for (const std::string& page : {page_with(""), std::string("<html>"), std::string("<"), '<' + mark.substr(0, 20)})
    CHECK(error_of(page).find("carries no recording") != std::string::npos);
  for (const char* const after : {"", "A", "AAAA", "!", "H4sIAAAAAAAAAw==", "\xff\xff"})
    CHECK(error_of("<" + mark + after).find("no raw recording") != std::string::npos);
  // The mark is found after something that begins like it.
  const std::string recording = sample_recording(Unit::nanoseconds), page = page_with(recording);
  CHECK(carried_by("<" + mark.substr(0, 30) + page) == recording);
  // Cut off, or with another character: never more than there was, and nothing but an end.
  const std::size_t begin = page.find(mark) + mark.size();
  const std::string large = page_with(random_bytes(100'000));
  for (std::size_t cut = begin; cut < large.size(); cut += 997)
    CHECK(random_bytes(100'000).starts_with(carried_by(large.substr(0, cut))));
  Dice dice;
  for (int i = 0; i < rounds(300); ++i) {
    std::string bad = page;
    for (int n = 0; n < 3; ++n)
      bad[begin + dice(static_cast<unsigned>(page.size() - begin))] = static_cast<char>(dice(256));
    std::istringstream in(bad);
    const Result<Profile> read = read_raw(in, {});
    if (read) CHECK(read->samples() <= sample_profile().samples());
  }
}

}  // namespace luaspy::page_recording_test
