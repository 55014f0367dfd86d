#include "attach/by_tid.h"

#include <catch2/catch.hpp>

namespace luaspy::by_tid_test {
namespace {

// Counts how often a number is looked at: that is what grows with the square in a list that is searched.
struct Counted {
  explicit Counted(pid_t its) : number(its) {}
  pid_t tid() const { return ++looks, number; }
  pid_t number;
  static inline std::int64_t looks = 0;
};

std::vector<pid_t> numbers(ByTid<Counted>& threads) {
  std::vector<pid_t> numbers;
  for (const auto& thread : threads.all()) numbers.push_back(thread->number);
  return numbers;
}

// Looks that it takes to add `count` threads and to remove them again, in an order of their own.
std::int64_t looks_of(pid_t count) {
  Counted::looks = 0;
  ByTid<Counted> threads;
  for (pid_t i = 0; i < count; ++i) threads.add(std::make_shared<Counted>(i));
  for (pid_t i = 0; i < count; ++i) threads.remove(static_cast<pid_t>((std::int64_t{i} * 7919) % count));
  CHECK(threads.all().empty());
  return Counted::looks;
}

}  // namespace

TEST_CASE("twice as many threads take twice as long to add and to remove", "[by_tid]") {
  const std::int64_t some = looks_of(1000), many = looks_of(10'000);
  CHECK(some <= 4 * 1000);
  CHECK(many <= 4 * 10'000);
}

TEST_CASE("threads are found by their numbers and keep their order", "[by_tid]") {
  ByTid<Counted> threads;
  for (const pid_t tid : {5, 3, 9, 7}) threads.add(std::make_shared<Counted>(tid));
  threads.remove(3);
  threads.remove(4);
  CHECK(threads.find(3) == nullptr);
  CHECK(threads.find(9)->number == 9);
  CHECK(numbers(threads) == std::vector<pid_t>{5, 9, 7});
  const auto again = std::make_shared<Counted>(9);
  threads.add(again);
  CHECK(threads.find(9) == again);
  CHECK(numbers(threads) == std::vector<pid_t>{5, 7, 9});
  threads.clear();
  CHECK(threads.all().empty());
  CHECK(threads.find(5) == nullptr);
}

}  // namespace luaspy::by_tid_test
