#pragma once
// What one Lua's heap says: what is alive, who holds what, and the classes of objects. Made once
// from memory that does not change; everything else (text, JSON, pages, comparisons) asks it.

#include <array>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "heap/dominators.h"
#include "heap/object_graph.h"
#include "luastate/code_names.h"
#include "luastate/lua.h"

namespace luaspy {

// Objects that are the same thing to the program: tables with the same keys or of the same class,
// closures of one function, coroutines that began with one.
struct ObjectClass {
  std::string name;  // "{body, id, when}", "Account", "function (app.lua:3)"
  ObjectType type = ObjectType::table;
  std::int64_t count = 0;
  std::uint64_t bytes = 0;     // of the objects themselves
  std::uint64_t retained = 0;  // what would become free with all of them
};
using ClassNumber = std::uint32_t;

struct Total {
  std::int64_t count = 0;
  std::uint64_t bytes = 0;
  void add(std::uint64_t size) { ++count, bytes += size; }
};

class HeapAnalysis {
 public:
  struct Options {
    std::uint64_t bytes = 1ULL << 40;                         // of the memory (object_graph.h)
    std::function<void(const char* step, double part)> told;  // a step, and how much of it is done (0 to 1)
    std::function<void(std::uint64_t)> all_found;             // as ObjectGraph::Options::all_found
    CodeNames* code = nullptr;                                // symbols of C functions; must outlive the analysis
  };
  // `memory` and `lua` must outlive it.
  HeapAnalysis(const Memory& memory, const Lua& lua, Address G, const Options& options);
  ~HeapAnalysis();
  HeapAnalysis(const HeapAnalysis&) = delete;
  HeapAnalysis& operator=(const HeapAnalysis&) = delete;

  // False if this Lua's lists are not known; then nothing else may be asked.
  bool is_known() const { return reader_ != nullptr; }
  const Memory& memory() const { return memory_; }
  const Lua& lua() const { return lua_; }
  Address global_state() const { return G_; }
  CodeNames* code() const { return code_; }
  const HeapReader& reader() const { return *reader_; }
  const ObjectGraph& graph() const { return *graph_; }

  // ---- Totals
  const CollectorState& collector() const { return collector_; }
  // All objects that can be reached, by type; all others: those that the sweep has yet to free, and
  // those that the collector has not found to be dead yet.
  const std::array<Total, object_types>& live() const { return live_; }
  const std::array<Total, object_types>& dead() const { return dead_; }
  Total all_live() const;
  Total all_dead() const;
  std::uint64_t other_bytes() const { return other_bytes_; }
  // All sizes, less what the VM's own counter says.
  std::int64_t difference() const;

  // ---- Who holds what
  bool is_live(Node node) const { return dominators_.is_reachable(node); }
  Node dominator(Node node) const { return dominators_.of[node]; }
  std::uint64_t retained(Node node) const { return dominators_.retained[node]; }
  std::span<const Node> dominated(Node node) const { return children_.of(node); }
  // The object before it on a path from the root that says most: through the globals and
  // package.loaded, through fields and upvalues, by few steps.
  Node before(Node node) const { return before_[node]; }
  std::span<const Node> all_before() const { return before_; }  // by node
  Node globals() const { return globals_; }
  Node loaded() const { return loaded_; }  // package.loaded; no_node: none

  // ---- Classes
  const std::vector<ObjectClass>& classes() const { return classes_; }
  ClassNumber class_of(Node node) const { return class_of_[node]; }

 private:
  void count();
  void find_named_roots();
  void find_paths();
  void sort_children();
  void classify(const Options& options);
  void sum_classes();

  const Memory& memory_;
  const Lua& lua_;
  Address G_;
  CodeNames* code_;
  std::unique_ptr<HeapReader> reader_;
  std::unique_ptr<ObjectGraph> graph_;
  CollectorState collector_;
  Dominators dominators_;
  Edges children_;  // of the tree of dominators
  std::vector<Node> before_;
  std::array<Total, object_types> live_{}, dead_{};
  std::uint64_t other_bytes_ = 0;
  Node globals_ = no_node, loaded_ = no_node;
  std::vector<ObjectClass> classes_;
  std::vector<ClassNumber> class_of_;
};

}  // namespace luaspy
