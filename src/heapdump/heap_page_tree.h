#pragma once
// The boxes that a page shows (heap_page.h): of all Lua states, of one snapshot or of two. A box of
// the second snapshot is the same as one of the first if all labels on the way to it are: the class
// of a table may change while it is filled.

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "heapdump/heap_boxes.h"

namespace luaspy {

class HeapPageTree {
 public:
  static constexpr std::uint32_t no_class = ~std::uint32_t{0};
  // Colours of the page: data.js knows them by these numbers, which follow those of Frame::Kind.
  enum class Kind : std::uint8_t { table = 5, string, function, userdata, coroutine, joined };
  static Kind kind_of(ObjectType type);

  struct Class {
    std::string text;  // as class_text() has it
    Kind kind = Kind::table;
  };
  struct Frame {
    std::string text;
    std::uint32_t its_class = no_class;  // of the states' roots and of small boxes that are joined
  };
  struct Amount {
    std::uint64_t objects = 0, bytes = 0;
  };
  struct Node {
    std::uint32_t outer = 0;  // smaller than its own number
    std::uint32_t frame = 0;
    std::uint32_t state = 0;
    std::array<Amount, 2> own, total;                       // by snapshot
    std::array<luaspy::Node, 2> largest{no_node, no_node};  // the object that retains most, by snapshot
  };

  HeapPageTree() { nodes_.emplace_back(); }

  std::uint32_t class_number(const ObjectClass& its);
  // The outermost box of a state, if there are several; the root otherwise.
  std::uint32_t state_root(std::uint32_t state, const std::string& name, bool is_alone);
  // Returns the numbers of the boxes. `classes`: of each box but the first, a class_number().
  // `snapshot`: 0 or 1.
  std::vector<std::uint32_t> add(const HeapBoxes& boxes, const std::vector<std::uint32_t>& classes, std::uint32_t root,
                                 std::size_t snapshot);

  // Joins all boxes in one box that are smaller than `least` of the whole, in both snapshots, to
  // one; if more than `most` would be left, larger ones, too. Numbers change. Call once, after
  // everything has been added.
  struct Joined {
    std::uint64_t boxes = 0, bytes = 0;  // bytes: of the last snapshot
    std::uint64_t least = 0;             // bytes: smaller boxes were joined
  };
  Joined join_small(double least, std::size_t most, std::size_t snapshots);

  // A number from before join_small(): the box itself, or the one that it is in now.
  std::uint32_t now(std::uint32_t node) const { return now_[node]; }
  // The largest box directly in `outer` whose objects are of the class; `outer` if there is none.
  std::uint32_t inside(std::uint32_t outer, std::uint32_t its_class) const;

  const std::vector<Node>& nodes() const { return nodes_; }  // the first is the root, which has no frame
  const std::vector<Frame>& frames() const { return frames_; }
  const std::vector<Class>& classes() const { return classes_; }

 private:
  std::uint32_t frame_number(const std::string& text, std::uint32_t its_class);
  std::uint32_t child(std::uint32_t outer, const std::string& label, std::uint32_t its_class, std::uint32_t state);
  void sum();

  std::vector<Node> nodes_;
  std::vector<Frame> frames_;
  std::vector<Class> classes_;
  std::map<std::pair<ObjectType, std::string>, std::uint32_t> class_numbers_;
  std::map<std::pair<std::uint32_t, std::string>, std::uint32_t> frame_numbers_;
  std::unordered_map<std::string, std::uint32_t> label_numbers_;
  std::unordered_map<std::uint64_t, std::uint32_t> node_numbers_;  // by outer node and label
  std::vector<std::uint32_t> now_;
};

}  // namespace luaspy
