#include "system/background.h"

#include <unistd.h>

#include <array>
#include <catch2/catch.hpp>

namespace luaspy::system {
namespace {

struct Pipe {
  Pipe() { REQUIRE(::pipe(ends.data()) == 0); }
  ~Pipe() {
    for (const int end : ends) ::close(end);
  }
  void put(char byte) const { (void)!::write(ends[1], &byte, 1); }
  char get() const {
    char byte = 0;
    (void)!::read(ends[0], &byte, 1);
    return byte;
  }
  std::array<int, 2> ends{};
};

}  // namespace

TEST_CASE("work in the background sees what was there when it began, and nobody waits for it", "[unit]") {
  Pipe go, done;
  Background background;
  char value = 'a';
  background.start([&] {
    (void)go.get();
    done.put(value);
    return true;
  });
  value = 'b';
  CHECK(background.is_busy());
  go.put('g');
  CHECK(done.get() == 'a');
  CHECK(background.finish());
  CHECK_FALSE(background.is_busy());
}

TEST_CASE("work that has failed is told once, also if it has ended before that is asked", "[unit]") {
  Background background;
  CHECK(background.finish());
  background.start([] { return false; });
  while (background.is_busy()) ::usleep(100);
  CHECK_FALSE(background.finish());
  CHECK(background.finish());
  background.start([] { return false; });
  CHECK_FALSE(background.finish());
  background.start([]() -> bool { ::_exit(3); });
  CHECK_FALSE(background.finish());
}

}  // namespace luaspy::system
