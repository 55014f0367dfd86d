#include "system/write_behind.h"

#include <catch2/catch.hpp>
#include <condition_variable>
#include <mutex>
#include <sstream>
#include <string>

namespace luaspy::system {
namespace {

// A file that does not write before it is let.
class HeldUp : public std::stringbuf {
 public:
  void let_go() {
    const std::lock_guard held(lock_);
    goes_ = true;
    let_.notify_all();
  }
  // Somebody writes, and is held up.
  void await_writer() {
    std::unique_lock held(lock_);
    let_.wait(held, [&] { return writes_; });
  }
  bool fails = false;

 protected:
  std::streamsize xsputn(const char* bytes, std::streamsize count) override {
    std::unique_lock held(lock_);
    writes_ = true;
    let_.notify_all();
    let_.wait(held, [&] { return goes_; });
    return fails ? 0 : std::stringbuf::xsputn(bytes, count);
  }

 private:
  std::mutex lock_;
  std::condition_variable let_;
  bool goes_ = false, writes_ = false;
};

}  // namespace

TEST_CASE("who writes does not wait for a file that is held up, and nothing is lost or changes places", "[unit]") {
  HeldUp file;
  std::ostream to(&file);
  std::string expected;
  WriteBehind behind(to);
  for (int i = 0; i < 100'000; ++i) {
    const std::string line = std::to_string(i) + '\n';
    behind << line;
    expected += line;
    if (i % 1000 == 0) behind.flush();
  }
  behind.put('x');
  CHECK(behind.good());
  CHECK(file.str().empty());
  file.let_go();
  behind.finish();
  CHECK(behind.good());
  CHECK(file.str() == expected + 'x');
}

TEST_CASE("what waits to be written is bounded: then who writes waits, too", "[unit]") {
  HeldUp file;
  std::ostream to(&file);
  constexpr std::size_t most = 1000;
  WriteBehind behind(to, most);
  behind << std::string(most, 'a') << std::flush;
  file.await_writer();  // it has taken that
  behind << std::string(most, 'b') << std::flush;
  std::thread writes([&] { behind << std::string(most, 'c') << std::flush; });
  CHECK(file.str().empty());
  file.let_go();
  writes.join();
  behind.finish();
  CHECK(file.str() == std::string(most, 'a') + std::string(most, 'b') + std::string(most, 'c'));
}

TEST_CASE("a file that cannot be written fails the stream", "[unit]") {
  HeldUp file;
  file.fails = true;
  file.let_go();
  std::ostream to(&file);
  WriteBehind behind(to);
  behind << "text";
  behind.finish();
  CHECK_FALSE(behind);
  behind.clear();
  behind << "more" << std::flush;
  CHECK_FALSE(behind);
}

}  // namespace luaspy::system
