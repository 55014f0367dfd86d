#include "base/text_buffer.h"

#include <catch2/catch.hpp>
#include <sstream>

namespace luaspy {

TEST_CASE("a buffer of text passes all of it on, in order", "[unit]") {
  std::ostringstream out;
  std::string expected;
  {
    TextBuffer text(out);
    text << "["
         << "{}";
    text.put("{}{{{:#x}}}", "a", 255);
    CHECK(out.str().empty());
    text.flush();
    CHECK(out.str() == "[{}a{0xff}");
    expected = out.str();
    for (int i = 0; i < 20'000; ++i) text.put(",{}", i), expected += "," + std::to_string(i);
    CHECK(out.str().size() > 1 << 16);  // it keeps a part
    CHECK(out.str().size() < expected.size());
  }
  CHECK(out.str() == expected);
}

}  // namespace luaspy
