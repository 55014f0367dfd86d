// What writing takes in memory.

#include <malloc.h>

#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <streambuf>

#include "output/format.h"

namespace luaspy {
namespace {

std::size_t allocated() { return ::mallinfo2().uordblks; }

// Counts what is written, and looks every now and then how much memory is in use.
class Watch : public std::streambuf {
 public:
  Watch() { setp(buffer_.data(), buffer_.data() + buffer_.size()); }
  std::size_t bytes() const { return bytes_ + static_cast<std::size_t>(pptr() - pbase()); }
  std::size_t most_allocated() const { return most_; }

 private:
  int_type overflow(int_type byte) override {
    bytes_ += buffer_.size();
    most_ = std::max(most_, allocated());
    setp(buffer_.data(), buffer_.data() + buffer_.size());
    return sputc(traits_type::to_char_type(byte));
  }

  std::array<char, 1 << 14> buffer_;
  std::size_t bytes_ = 0, most_ = 0;
};

}  // namespace

TEST_CASE("writing many samples takes little memory", "[unit]") {
  constexpr int count = 200'000;
  Profile profile;
  Sample sample;
  for (int i = 0; i < count; ++i) {
    sample.stack = {{Frame::Kind::native, "main", "lua", 0, 0}, {Frame::Kind::lua, "work", "a.lua", 1, i * 79 % 200}};
    sample.vm_state = static_cast<VmState>(i % 3);
    profile.add({1, "one"}, {i * 1'000'000, 1'000'000 - i % 7}, sample);
  }
  for (const Format& format : formats()) {
    if (format.write == nullptr) continue;
    INFO(format.name);
    Watch watch;
    std::ostream out(&watch);
    const std::size_t before = allocated();
    format.write(profile, {}, out);
    CHECK(watch.bytes() > (format.needs_order ? 10 * count : 10));
    CHECK(std::max(watch.most_allocated(), before) - before < 2'000'000);
  }
}

}  // namespace luaspy
