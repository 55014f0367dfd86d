#include "heapdump/heapsnapshot.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <numeric>
#include <string>
#include <unordered_map>

#include "base/json_text.h"
#include "base/text_buffer.h"
#include "heap/object_names.h"
#include "heapdump/heapsnapshot_ids.h"
#include "luastate/strings.h"
#include "profile/amount_text.h"

namespace luaspy {
namespace {

// The types, by their places in `node_types` and `edge_types`.
enum class NodeType : std::uint8_t { string = 2, object = 3, code = 4, closure = 5, synthetic = 9 };
enum class EdgeType : std::uint8_t { context, element, property, internal, hidden, shortcut, weak };
constexpr std::uint64_t node_fields = 7;
constexpr std::uint64_t most_nodes = std::numeric_limits<std::uint32_t>::max() / node_fields;
constexpr std::string_view meta =
    R"({"snapshot":{"meta":{)"
    R"("node_fields":["type","name","id","self_size","edge_count","trace_node_id","detachedness"],)"
    R"("node_types":[["hidden","array","string","object","code","closure","regexp","number","native","synthetic",)"
    R"("concatenated string","sliced string","symbol","bigint","object shape"],)"
    R"("string","number","number","number","number","number"],)"
    R"("edge_fields":["type","name_or_index","to_node"],)"
    R"("edge_types":[["context","element","property","internal","hidden","shortcut","weak"],"string_or_number","node"],)"
    R"("trace_function_info_fields":["function_id","name","script_name","script_id","line","column"],)"
    R"("trace_node_fields":["id","function_info_index","count","size","children"],)"
    R"("sample_fields":["timestamp_us","last_assigned_id"],)"
    R"("location_fields":["object_index","script_id","line","column"]})";

constexpr std::uint32_t no_ordinal = ~std::uint32_t{0};

NodeType type_of(ObjectType type) {
  switch (type) {
    case ObjectType::string:
      return NodeType::string;
    case ObjectType::lua_function:
    case ObjectType::c_function:
      return NodeType::closure;
    case ObjectType::prototype:
    case ObjectType::trace:
      return NodeType::code;
    default:
      return NodeType::object;
  }
}

// Texts that many nodes and edges share. Not more of them than `most`: a program may have millions
// of different numbers as keys.
class Texts {
 public:
  std::uint32_t number(std::string text) {
    constexpr std::size_t most = 1 << 20;
    if (all_.size() >= most) {
      const auto known = numbers_.find(text);
      if (known != numbers_.end()) return known->second;
      text = "…";
    }
    const auto [known, is_new] = numbers_.try_emplace(std::move(text), static_cast<std::uint32_t>(all_.size()));
    if (is_new) all_.push_back(&known->first);
    return known->second;
  }
  const std::vector<const std::string*>& all() const { return all_; }

 private:
  std::unordered_map<std::string, std::uint32_t> numbers_;
  std::vector<const std::string*> all_;
};

class Writer {
 public:
  Writer(std::span<const HeapAnalysis* const> analyses, const HeapsnapshotAllocations& allocations,
         const std::function<void(double)>& told, std::ostream& out)
      : ids_(analyses), allocations_(allocations), told_(told), out_(out) {
    for (const HeapAnalysis* const analysis : analyses)
      states_.push_back({analysis, std::make_unique<ObjectNames>(*analysis), {}, {}, {}, {}, {}, 0, {}});
    next_ordinal_ = static_cast<std::uint32_t>(first_rest() + rests_of_a_state * states_.size());
  }

  Result<HeapsnapshotSizes> write() {
    std::uint64_t nodes = next_ordinal_;
    for (State& state : states_) nodes += static_cast<std::uint64_t>(state.analysis->all_live().count);
    if (nodes > most_nodes)
      return Error{Cause::output,
                   fmt::format("A .heapsnapshot can have {} objects; this heap has {}.", most_nodes, nodes)};
    for (State& state : states_) count(state);
    first_text_ = 1 + strings_ + ephemerons_;
    name_functions();
    out_.put("{},\"node_count\":{},\"edge_count\":{},\"trace_function_count\":{}}},\n\"nodes\":[", meta, nodes, edges_,
             functions_.size());
    write_nodes();
    out_ << "],\n\"edges\":[";
    write_edges();
    out_ << "],\n\"trace_function_infos\":[";
    write_functions();
    out_ << "],\n\"trace_tree\":[";
    write_trace_tree(allocations_, out_);
    out_ << "],\n\"samples\":[],\n\"locations\":[],\n\"strings\":[";
    write_strings();
    out_ << "]}\n";
    out_.flush();
    return sizes_;
  }

 private:
  // A value that is there as long as its key is, in a weak table that is there, too.
  struct Ephemeron {
    Node key = 0, table = 0, value = 0;
  };
  struct State {
    const HeapAnalysis* analysis;
    std::unique_ptr<ObjectNames> names;
    std::vector<std::uint32_t> ordinals;     // by Node, among all nodes of the file
    std::vector<std::uint32_t> edge_counts;  // by Node
    std::vector<std::uint32_t> texts;        // by Node: of a string its number among strings
    std::vector<Ephemeron> ephemerons;       // in the order of their tables
    std::vector<std::uint32_t> by_key;       // indices of them
    std::uint32_t first_ephemeron = 0;       // the number of its text among those of all states
    std::vector<std::uint32_t> class_texts;  // by ClassNumber

    const ObjectGraph& graph() const { return analysis->graph(); }
    bool has(Node node) const { return node != root_node && analysis->is_live(node); }
  };
  struct Edge {
    EdgeType type = EdgeType::internal;
    std::uint32_t name = 0;
  };
  // What the VM's own counter has beside the objects that can be reached: without it, the sum that DevTools shows would
  // be smaller. Its nodes come after those of the states.
  struct Rest {
    std::string name;
    std::uint64_t bytes = 0;
    std::uint32_t id = 0;  // even: those of objects are odd
  };
  static constexpr std::size_t rests_of_a_state = 2;
  std::size_t first_rest() const { return 1 + states_.size(); }

  std::array<Rest, rests_of_a_state> rests_of(const State& state) const {
    const HeapAnalysis& its = *state.analysis;
    const std::string name = state_name(state);
    const std::uint32_t id = ids_.of(its.global_state()) + 1;
    const auto counter = static_cast<std::uint64_t>(std::max<std::int64_t>(its.collector().bytes, 0));
    const std::uint64_t objects = its.all_live().bytes + its.all_dead().bytes;
    return {{{fmt::format("{} itself", name), counter - std::min(objects, counter), id},
             {fmt::format("{}: garbage that is not freed yet", name), its.all_dead().bytes, id + 2}}};
  }

  static std::string state_name(const State& state) {
    return fmt::format("{} at {:#x}", state.analysis->lua().name(), state.analysis->global_state());
  }

  // ---- First: how many edges each node will have
  void count(State& state) {
    const ObjectGraph& graph = state.graph();
    state.ordinals.assign(graph.nodes(), no_ordinal);
    state.edge_counts.assign(graph.nodes(), 0);
    state.texts.assign(graph.nodes(), 0);
    state.first_ephemeron = ephemerons_;
    for (Node node = 1; node < graph.nodes(); ++node) {
      if (state.has(node)) state.ordinals[node] = next_ordinal_++;
    }
    for (const Root& root : graph.roots()) state.edge_counts[root_node] += find(state, root.to) != no_node;
    for (const Node node : {state.analysis->globals(), state.analysis->loaded()})
      state.edge_counts[root_node] += node != no_node && state.has(node);
    for (Node node = 1; node < graph.nodes(); ++node) {
      if (!state.has(node)) continue;
      report_progress(node, graph.nodes(), 0);
      const HeapObject object = graph.object(node);
      if (object.type == ObjectType::string) state.texts[node] = strings_++;
      visit(state, object, [&](const Reference& reference, Node to, bool) {
        ++state.edge_counts[node];
        if (reference.from == object.address) return;
        const Node key = find(state, reference.from);
        ++state.edge_counts[key];
        state.ephemerons.push_back({key, node, to});
      });
    }
    ephemerons_ += static_cast<std::uint32_t>(state.ephemerons.size());
    state.by_key.resize(state.ephemerons.size());
    std::iota(state.by_key.begin(), state.by_key.end(), 0);
    std::ranges::sort(state.by_key, {}, [&](std::uint32_t i) { return std::pair(state.ephemerons[i].key, i); });
    edges_ = std::accumulate(state.edge_counts.begin(), state.edge_counts.end(), edges_);
    edges_ += 1 + rests_of_a_state;  // from the root of the file
    state.class_texts.assign(state.analysis->classes().size(), no_ordinal);
  }

  static Node find(const State& state, Address address) {
    const std::optional<Node> node = state.graph().find(address);
    return node && state.has(*node) ? *node : no_node;
  }

  // The references of an object to others of the file.
  template <typename Visit>
  void visit(const State& state, const HeapObject& object, Visit visit) const {
    const auto visit_one = [&](const Reference& reference, bool is_weak) {
      const Node to = find(state, reference.to);
      if (to == no_node || (reference.from != object.address && find(state, reference.from) == no_node)) return;
      visit(reference, to, is_weak);
    };
    const HeapReader& reader = state.analysis->reader();
    reader.visit_references(object, [&](const Reference& reference) { visit_one(reference, false); });
    reader.visit_weak_references(object, [&](const Reference& reference) { visit_one(reference, true); });
  }

  // ---- Nodes
  void write_nodes() {
    out_.put("{},{},{},0,{},0,0", static_cast<int>(NodeType::synthetic), text(""), HeapsnapshotIds::root,
             (1 + rests_of_a_state) * states_.size());
    for (const State& state : states_)
      out_.put(",\n{},{},{},0,{},0,0", static_cast<int>(NodeType::object), text(state_name(state)),
               ids_.of(state.analysis->global_state()), state.edge_counts[root_node]);
    for (const State& state : states_) {
      for (const Rest& rest : rests_of(state))
        out_.put(",\n{},{},{},{},0,0,0", static_cast<int>(NodeType::synthetic), text(rest.name), rest.id,
                 capped(rest.bytes));
    }
    for (State& state : states_) {
      for (Node node = 1; node < state.graph().nodes(); ++node) {
        if (!state.has(node)) continue;
        report_progress(node, state.graph().nodes(), 1);
        const HeapObject object = state.graph().object(node);
        out_.put(",\n{},{},{},{},{},{},0", static_cast<int>(type_of(object.type)), name_of(state, node, object),
                 ids_.of(object.address), capped(object.size), state.edge_counts[node],
                 allocations_.number_of_call(object.address));
      }
    }
  }

  std::uint32_t capped(std::uint64_t size) {
    constexpr std::uint64_t most = std::numeric_limits<std::uint32_t>::max();
    if (size > most) ++sizes_.capped, sizes_.bytes_capped += size - most;
    return static_cast<std::uint32_t>(std::min(size, most));
  }

  std::uint32_t name_of(State& state, Node node, const HeapObject& object) {
    if (object.type == ObjectType::string) return 1 + state.texts[node];
    if (object.type == ObjectType::prototype) return text(state.names->text(object));
    std::uint32_t& known = state.class_texts[state.analysis->class_of(node)];
    if (known == no_ordinal) known = text(class_text(state, node, object));
    return known;
  }

  // DevTools takes names that begin with < for HTML.
  static std::string class_text(const State& state, Node node, const HeapObject& object) {
    if (type_of(object.type) == NodeType::closure) return state.names->function_name(object.address);
    std::string name = state.analysis->classes()[state.analysis->class_of(node)].name;
    if (name.starts_with('<') || name.starts_with("Detached <")) name.insert(0, "class ");
    return name;
  }

  // ---- Edges
  void write_edges() {
    std::string_view separator;
    const auto write_one = [&](Edge edge, std::uint64_t to) {
      out_.put("{}{},{},{}", separator, static_cast<int>(edge.type), edge.name, to * node_fields);
      separator = ",\n";
    };
    // Of the root: the states, then what is beside their objects.
    for (std::uint32_t i = 1; i < first_rest() + rests_of_a_state * states_.size(); ++i)
      write_one({EdgeType::element, i}, i);
    for (const State& state : states_) {
      for (const Root& root : state.graph().roots()) {
        const Node to = find(state, root.to);
        if (to != no_node) write_one({EdgeType::internal, text(state.names->name_of(root))}, state.ordinals[to]);
      }
      for (const auto& [name, node] :
           {std::pair("_G", state.analysis->globals()), std::pair("package.loaded", state.analysis->loaded())}) {
        if (node != no_node && state.has(node)) write_one({EdgeType::shortcut, text(name)}, state.ordinals[node]);
      }
    }
    for (State& state : states_) {
      std::uint32_t next = 0;  // ephemeron
      auto of_key = state.by_key.begin();
      for (Node node = 1; node < state.graph().nodes(); ++node) {
        if (!state.has(node)) continue;
        report_progress(node, state.graph().nodes(), 2);
        const HeapObject object = state.graph().object(node);
        visit(state, object, [&](const Reference& reference, Node to, bool is_weak) {
          const bool is_ephemeron = reference.from != object.address;
          const Edge edge = is_ephemeron ? ephemeron(state, next++) : edge_of(state, object, reference);
          write_one({is_weak ? EdgeType::weak : edge.type, is_weak ? weak_name(state, reference, edge) : edge.name},
                    state.ordinals[to]);
        });
        for (; of_key != state.by_key.end() && state.ephemerons[*of_key].key == node; ++of_key)
          write_one(ephemeron(state, *of_key), state.ordinals[state.ephemerons[*of_key].value]);
      }
    }
  }

  Edge ephemeron(const State& state, std::uint32_t index) const {
    return {EdgeType::internal, 1 + strings_ + state.first_ephemeron + index};
  }

  Edge edge_of(State& state, const HeapObject& from, const Reference& reference) {
    switch (reference.link) {
      case Link::entry: {
        const Value& key = reference.key;
        if (key.type == Value::Type::string) {
          const Node name = find(state, key.word);
          if (name != no_node && state.graph().type(name) == ObjectType::string)
            return {EdgeType::property, 1 + state.texts[name]};
        }
        if (const std::optional<std::uint32_t> index = index_of(key)) return {EdgeType::element, *index};
        return {EdgeType::property, text(state.names->name_of(from, reference))};
      }
      case Link::upvalue:
      case Link::slot:
        return {EdgeType::context, text(state.names->name_of(from, reference))};
      default:
        return {EdgeType::internal, text(state.names->name_of(from, reference))};
    }
  }

  static std::optional<std::uint32_t> index_of(const Value& key) {
    constexpr std::uint32_t most = std::numeric_limits<std::uint32_t>::max();
    if (key.type == Value::Type::integer && key.word <= most) return static_cast<std::uint32_t>(key.word);
    if (key.type != Value::Type::number || !(key.number() >= 0 && key.number() <= most)) return std::nullopt;
    const auto index = static_cast<std::uint32_t>(key.number());
    return static_cast<double>(index) == key.number() ? std::optional(index) : std::nullopt;
  }

  // Names of weak edges are texts, those of elements numbers.
  std::uint32_t weak_name(const State& state, const Reference& reference, const Edge& edge) {
    if (edge.type != EdgeType::element) return edge.name;
    return text(state.names->name_of({reference.from, ObjectType::table}, reference));
  }

  // ---- Allocations
  struct FunctionTexts {
    std::uint32_t name = 0, file = 0;
  };

  // Before all other texts, of which there may be too many.
  void name_functions() {
    for (const HeapsnapshotAllocations::Function& each : allocations_.functions)
      functions_.push_back({text(each.name), text(each.file)});
  }

  // Scripts have no ids: DevTools would link them to scripts of the page that it shows.
  void write_functions() {
    std::string_view separator;
    for (std::size_t i = 0; i < functions_.size(); ++i) {
      out_.put("{}{},{},{},0,{},0", separator, i, functions_[i].name, functions_[i].file,
               allocations_.functions[i].line);
      separator = ",\n";
    }
  }

  // ---- Strings
  void write_strings() {
    // JavaScript's strings have at most half a gigabyte, and DevTools makes one of this array first.
    constexpr std::uint64_t most_bytes = 256 << 20, least = 16;
    const std::size_t limit = std::clamp<std::uint64_t>(most_bytes / (strings_ + 1), least, string_limit);
    out_ << "\"<dummy>\"";
    for (const State& state : states_) {
      for (Node node = 1; node < state.graph().nodes(); ++node) {
        if (!state.has(node) || state.graph().type(node) != ObjectType::string) continue;
        report_progress(node, state.graph().nodes(), 3);
        out_.put(",\n{}", json_text(string_text(state, state.graph().object(node).address, limit)));
      }
    }
    std::uint32_t number = 0;
    for (const State& state : states_) {
      for (const auto& [key, table, value] : state.ephemerons)
        out_.put(",\n{}", json_text(fmt::format("{} / part of key ({}) -> value ({}) pair in WeakMap (table @{})",
                                                ++number, with_id(state, key), with_id(state, value),
                                                ids_.of(state.graph().object(table).address))));
    }
    for (const std::string* const text : texts_.all()) out_.put(",\n{}", json_text(*text));
  }

  std::string with_id(const State& state, Node node) const {
    return fmt::format("{} @{}", state.analysis->classes()[state.analysis->class_of(node)].name,
                       ids_.of(state.graph().object(node).address));
  }

  // Ends with … where it is cut, and before a character that would be cut.
  static std::string string_text(const State& state, Address string, std::size_t limit) {
    const HeapAnalysis& its = *state.analysis;
    std::string text = read_string(its.memory(), its.lua(), string, limit).value_or("");
    if (text.size() < limit || string_length(its.memory(), its.lua(), string) == text.size()) return text;
    constexpr unsigned char continuation = 0x80, leading = 0xc0;
    std::size_t end = text.size();
    while (end > 0 && (static_cast<unsigned char>(text[end - 1]) & leading) == continuation) --end;
    if (end > 0 && (static_cast<unsigned char>(text[end - 1]) & continuation) != 0) text.resize(end - 1);
    return text + "…";
  }

  std::uint32_t text(std::string text) { return first_text_ + texts_.number(std::move(text)); }

  void report_progress(Node node, std::size_t nodes, int step) const {
    constexpr Node between = 1 << 14;
    constexpr double steps = 4;
    if (told_ && node % between == 0) told_((step + static_cast<double>(node) / static_cast<double>(nodes)) / steps);
  }

  HeapsnapshotIds ids_;
  const HeapsnapshotAllocations& allocations_;
  std::vector<FunctionTexts> functions_;
  const std::function<void(double)>& told_;
  TextBuffer out_;
  std::vector<State> states_;
  std::uint32_t next_ordinal_ = 0;
  std::uint32_t strings_ = 0, ephemerons_ = 0;
  std::uint64_t edges_ = 0;
  // Texts by number: "<dummy>", strings, ephemerons, `texts_`.
  std::uint32_t first_text_ = 0;
  Texts texts_;
  HeapsnapshotSizes sizes_;
};

}  // namespace

Result<HeapsnapshotSizes> write_heapsnapshot(std::span<const HeapAnalysis* const> analyses,
                                             const std::function<void(double)>& told, std::ostream& out,
                                             const HeapsnapshotAllocations& allocations) {
  return Writer(analyses, allocations, told, out).write();
}

std::string to_text(const HeapsnapshotSizes& sizes) {
  if (sizes.capped == 0) return "";
  return fmt::format(
      "luaspy: {} object{} of 4 GiB or more {} 4 GiB in the file, which can have no larger ones: {} are missing.\n",
      sizes.capped, sizes.capped == 1 ? "" : "s", sizes.capped == 1 ? "has" : "have",
      amount_text(static_cast<std::int64_t>(sizes.bytes_capped), Unit::bytes));
}

}  // namespace luaspy
