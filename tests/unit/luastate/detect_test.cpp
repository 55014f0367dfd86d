#include "luastate/detect.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstring>

namespace luaspy::detect_test {
namespace {

const AddressSpace library_space = AddressSpace::parse(
    "10000-20000 r-xp 00000000 08:01 42 /opt/libhost.so\n"
    "20000-30000 r--p 00010000 08:01 42 /opt/libhost.so\n");

// The bytes of that library, of which the second part may be gone.
class UnmappedLibrary : public Memory {
 public:
  bool read(Address address, std::span<std::byte> into) const override {
    ++reads;
    if (is_unmapped && address >= 0x20000) return false;
    std::ranges::fill(into, std::byte{});
    if (address == 0x20000) std::memcpy(into.data(), ident.data(), ident.size());
    return true;
  }
  std::string ident = "$LuaVersion: Lua 5.4.6  Copyright (C) 1994-2023 Lua.org, PUC-Rio $";
  bool is_unmapped = false;
  mutable int reads = 0;
};

const Detector::VersionOf version_of_it = [](const Mapping&) { return FileVersion{}; };

}  // namespace

TEST_CASE("an image that is unmapped while it is searched is searched again", "[unit]") {
  UnmappedLibrary library;
  KnownImages known;
  Detector detector;
  library.is_unmapped = true;
  CHECK_FALSE(detector.update(library_space, library, &known, version_of_it));
  CHECK(detector.is_incomplete());
  CHECK(known.empty());  // other processes may map it whole
  library.is_unmapped = false;
  CHECK(detector.update(library_space, library, &known, version_of_it));
  REQUIRE(detector.images().size() == 1);
  CHECK(detector.images()[0].version == "5.4.6");
  CHECK_FALSE(detector.is_incomplete());
  CHECK(known.size() == 1);
}

TEST_CASE("a version has no more characters than versions have", "[unit]") {
  UnmappedLibrary library;
  for (const std::string& before : {std::string("$LuaVersion: Lua 5.4."), std::string("LuaJIT 2.1.")}) {
    library.ident = before + std::string(300, '6');
    Detector detector;
    detector.update(library_space, library);
    REQUIRE(detector.images().size() == 1);
    CHECK(detector.images()[0].version.size() < 60);
  }
}

TEST_CASE("an image that can never be read is searched a few times only", "[unit]") {
  UnmappedLibrary library;
  library.is_unmapped = true;
  Detector detector;
  for (int i = 0; i < 10; ++i) CHECK_FALSE(detector.update(library_space, library));
  CHECK_FALSE(detector.is_incomplete());
  const int reads = library.reads;
  CHECK_FALSE(detector.update(library_space, library));
  CHECK(library.reads == reads);
}

}  // namespace luaspy::detect_test
