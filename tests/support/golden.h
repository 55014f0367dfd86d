#pragma once
// Output compared byte for byte with the files in tests/golden. LUASPY_UPDATE_GOLDEN=1 writes them
// again; check the difference before you commit it.

#include <catch2/catch.hpp>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>

namespace luaspy::golden {

inline void check(const std::string& file, const std::string& text) {
  const std::string path = LUASPY_TESTS "/golden/" + file;
  if (std::getenv("LUASPY_UPDATE_GOLDEN") != nullptr) std::ofstream(path) << text;
  std::ifstream in(path);
  std::stringstream expected;
  expected << in.rdbuf();
  REQUIRE(in);
  CHECK(text == expected.str());
}

}  // namespace luaspy::golden
