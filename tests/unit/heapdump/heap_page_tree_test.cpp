// Boxes of two snapshots become one tree, and small ones are joined without losing anything.
#include "heapdump/heap_page_tree.h"

#include <catch2/catch.hpp>

#include <numeric>
#include <random>

using namespace luaspy;

namespace {

HeapBox box(std::uint32_t outer, std::string label, std::uint64_t bytes) {
  HeapBox made;
  made.outer = outer, made.label = std::move(label), made.bytes = bytes, made.objects = 1;
  return made;
}

ObjectClass class_named(std::string name) {
  ObjectClass its;
  its.name = std::move(name);
  return its;
}

std::uint64_t own(const HeapPageTree& tree, std::size_t snapshot) {
  return std::accumulate(
      tree.nodes().begin(), tree.nodes().end(), std::uint64_t{0},
      [&](std::uint64_t sum, const HeapPageTree::Node& node) { return sum + node.own[snapshot].bytes; });
}

std::string label(const HeapPageTree& tree, std::uint32_t node) { return tree.frames()[tree.nodes()[node].frame].text; }

}  // namespace

TEST_CASE("boxes of two snapshots are the same if their labels are", "[heapreport]") {
  HeapPageTree tree;
  const std::uint32_t root = tree.state_root(0, "Lua", true);
  REQUIRE(root == 0);
  const std::uint32_t form = tree.class_number(class_named("{a}")), other = tree.class_number(class_named("{a, b}"));
  HeapBoxes before, after;
  before.boxes = {box(0, "", 0), box(0, "_G", 100), box(1, "cache", 1000), box(1, "gone", 500)};
  after.boxes = {box(0, "", 0), box(0, "_G", 100), box(1, "cache", 3000), box(1, "fresh", 700)};
  const auto then = tree.add(before, {form, form, form, form}, root, 0);
  const auto now = tree.add(after, {form, form, other, form}, root, 1);
  CHECK(then[2] == now[2]);
  CHECK(then[3] != now[3]);
  (void)tree.join_small(0, 100, 2);
  const HeapPageTree::Node& cache = tree.nodes()[tree.now(now[2])];
  CHECK(cache.own[0].bytes == 1000);
  CHECK(cache.own[1].bytes == 3000);
  CHECK(tree.frames()[cache.frame].its_class == other);  // the class that it has now
  CHECK(tree.nodes()[0].total[0].bytes == 1600);
  CHECK(tree.nodes()[0].total[1].bytes == 3800);
  CHECK(tree.inside(tree.now(now[1]), form) == tree.now(now[3]));  // the largest of that class there
}

TEST_CASE("small boxes are joined, and many boxes, too", "[heapreport]") {
  const auto [least, most] = GENERATE(table<double, std::size_t>({{0, 1'000'000}, {0.001, 1'000'000}, {0, 500}}));
  CAPTURE(least, most);
  std::mt19937 random(4);  // NOLINT: the same in each run
  HeapBoxes boxes;
  boxes.boxes.push_back(box(0, "", 0));
  std::uint64_t bytes = 0;
  for (std::uint32_t i = 1; i < 20'000; ++i) {
    boxes.boxes.push_back(box(static_cast<std::uint32_t>(random() % i), std::to_string(i), random() % 1000));
    bytes += boxes.boxes.back().bytes;
  }
  HeapPageTree tree;
  const std::uint32_t its = tree.class_number(class_named("{a}"));
  const auto numbers = tree.add(boxes, std::vector<std::uint32_t>(boxes.boxes.size(), its), 0, 0);
  const HeapPageTree::Joined joined = tree.join_small(least, most, 1);
  CHECK(own(tree, 0) == bytes);
  CHECK(tree.nodes()[0].total[0].bytes == bytes);
  CHECK(tree.nodes()[0].total[0].objects == 19'999);
  CHECK(tree.nodes().size() <= 2 * most + 1);  // in each box that is left, one more
  std::size_t left = 0;
  for (std::uint32_t i = 1; i < tree.nodes().size(); ++i) {
    const HeapPageTree::Node& node = tree.nodes()[i];
    CHECK(node.outer < i);
    if (tree.frames()[node.frame].its_class == HeapPageTree::no_class) {
      CHECK(label(tree, i).ends_with(" smaller)"));
      continue;
    }
    ++left;
    CHECK(node.total[0].bytes >= joined.least);
  }
  CHECK(left + joined.boxes == 19'999);
  CHECK(left <= most);
  CHECK((joined.boxes == 0) == (least == 0 && most > 20'000));
  // What was joined is where it was.
  for (std::size_t i = 1; i < numbers.size(); ++i) {
    const std::uint32_t now = tree.now(numbers[i]);
    if (now != 0 && label(tree, now) != std::to_string(i)) CHECK(now == tree.now(numbers[boxes.boxes[i].outer]));
  }
}
