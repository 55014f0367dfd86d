// What a page is to carry is kept whole, or not at all.

#include "recording/carried_recording.h"

#include <catch2/catch.hpp>
#include <ostream>

namespace luaspy::carried_recording_test {

TEST_CASE("a recording in memory has an end, behind which nothing of it is kept", "[unit]") {
  CarriedRecording kept(10);
  std::ostream out(&kept);
  out << "12345" << '6' << "7890";
  CHECK(kept.bytes() == "1234567890");
  out << 'x';
  CHECK(kept.bytes().empty());
  out << "more";
  CHECK(kept.bytes().empty());
  CHECK(out.good());
}

TEST_CASE("a page's recording may have 64 MiB", "[unit]") {
  CarriedRecording kept;
  std::ostream out(&kept);
  const std::string piece(1 << 20, 'x');
  for (int i = 0; i < 64; ++i) out << piece;
  CHECK(kept.bytes().size() == raw::most_carried);
  out << 'x';
  CHECK(kept.bytes().empty());
}

}  // namespace luaspy::carried_recording_test
