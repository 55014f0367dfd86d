#pragma once
// All objects of one global_State, and which refers to which: the input of dominators.h and paths.
// A node is a number, 4 bytes; references are kept without their names, which HeapReader tells again
// when somebody asks. 10 million objects with 30 million references take some 280 MB.

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "luastate/heap_reader.h"

namespace luaspy {

using Node = std::uint32_t;
// Refers to everything that a HeapReader calls a root. Not an object.
inline constexpr Node root_node = 0;
inline constexpr Node no_node = ~Node{0};

// References in one array: those of node n are to[first[n]] to to[first[n + 1] - 1].
struct Edges {
  using Position = std::uint32_t;
  static constexpr std::uint64_t most = ~Position{0};

  std::vector<Position> first;  // one more than there are nodes
  std::vector<Node> to;

  std::size_t nodes() const { return first.empty() ? 0 : first.size() - 1; }
  std::span<const Node> of(Node node) const {
    return std::span(to).subspan(first[node], first[node + 1] - first[node]);
  }
};

class ObjectGraph {
 public:
  struct Options {
    // Of the memory that is read. What cannot be in so much memory is left out, and is_complete() is
    // false: objects, references, and the sizes of objects that have references.
    std::uint64_t bytes = 1ULL << 40;
    std::function<void(std::uint64_t)> found;      // called now and then with how many objects were found
    std::function<void(std::uint64_t)> all_found;  // called once, with their number; all reads that follow
                                                   // are in order of addresses
    std::function<void(double part)> read;         // called now and then: how much of them was read
  };
  // Reads all objects through `reader`.
  ObjectGraph(const HeapReader& reader, const Options& options);

  std::size_t nodes() const { return objects_.size(); }  // with the root
  HeapObject object(Node node) const;                    // of the root: address 0, no size
  std::uint64_t size(Node node) const { return object(node).size; }
  ObjectType type(Node node) const;
  std::optional<Node> find(Address address) const;
  const Edges& edges() const { return edges_; }
  std::span<const Node> references(Node node) const { return edges_.of(node); }
  // What HeapReader::visit_roots() visits, which may look at every string for it.
  const std::vector<Root>& roots() const { return roots_; }
  // Every list was followed to its end.
  bool is_complete() const { return complete_; }

 private:
  // In ascending order of addresses.
  struct Packed {
    std::uint32_t low = 0;
    std::uint16_t high = 0;
    std::uint8_t type = 0, dead = 0;
    std::uint32_t size = 0;
    Address address() const { return Address{high} << 32 | low; }
  };
  // Addresses that lie close together: the first node of each page.
  struct Run {
    Address start = 0;
    std::vector<Node> first;  // by page; one more at the end
  };

  bool read_objects(const HeapReader& reader, const Options& options);
  bool bound_sizes(std::uint64_t bytes);
  void index_pages();
  bool read_references(const HeapReader& reader, const Options& options);
  void add_later(std::vector<std::pair<Node, Node>>& later);

  std::vector<Packed> objects_;
  std::unordered_map<Address, std::uint64_t> large_;  // sizes of 4 GiB and more
  std::vector<Run> runs_;
  std::vector<Root> roots_;
  Edges edges_;
  bool complete_ = false;
};

}  // namespace luaspy
