#include "heapdump/heap_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <numeric>
#include <string>
#include <unordered_map>
#include <utility>

#include "base/json_text.h"
#include "base/text.h"
#include "base/time_text.h"
#include "base/version.h"
#include "heap/heap_diff.h"
#include "heap/object_names.h"
#include "heap/suspects.h"
#include "heapdump/heap_page_tree.h"
#include "heapdump/heap_words.h"
#include "output/flamegraph_page.h"

namespace luaspy {
namespace {

constexpr double least_box = 1.0 / 20'000;  // of the whole
constexpr std::size_t most_boxes = 30'000, most_classes = 5000, most_paths = 1000, most_leads = 10;
constexpr std::uint64_t most_steps = 50'000'000;  // references that are looked at to find paths: some seconds

std::string state_name(const HeapAnalysis& analysis) {
  return fmt::format("{} at {:#x}", analysis.lua().name(), analysis.global_state());
}

template <typename Each>
void put_list(std::ostream& out, const Each& each, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) out << (i == 0 ? "" : ",") << each(i);
}

class Page {
 public:
  Page(const std::vector<PageHeap>& heaps, std::ostream& out) : heaps_(heaps), out_(out) {
    for (const PageHeap& heap : heaps_) {
      for (const HeapAnalysis* const state : heap.states) {
        if (!state->is_known()) continue;
        if (std::ranges::find(states_, state->global_state(), &State::G) == states_.end())
          states_.push_back({state->global_state(), state_name(*state)});
      }
    }
  }

  void write() {
    add_states();
    joined_ = tree_.join_small(least_box, most_boxes, heaps_.size());
    out_ << flamegraph_head << R"({"version":2,"mode":"native","nothing":{},"unit":"bytes","states":[""],)" << '\n';
    if (heaps_.size() > 1)
      out_ << R"("comparison":{"by":"bytes","scale":1,"noise":0,"least_difference":0,"least_ratio":0},)" << '\n';
    out_ << "\"sets\":[";
    for (std::size_t i = 0; i < heaps_.size(); ++i) write_set(i);
    out_ << "],\n";
    write_nodes();
    write_frames();
    out_ << ",\n\"heap\":{";
    write_paths();
    write_leads();
    write_classes();
    out_ << "},\n\"strings\":[" << joined(strings_, ",\n") << "]}" << flamegraph_middle << flamegraph_tail;
  }

 private:
  struct State {
    Address G = 0;
    std::string name;
  };
  // A line of text at the top of the page, about the class in the box, or about the box.
  struct Lead {
    std::uint32_t node = 0, its_class = HeapPageTree::no_class;
    std::string text;
    std::int64_t bytes = 0;
  };

  void add_states() {
    for (std::uint32_t state = 0; state < states_.size(); ++state) {
      const HeapAnalysis* const now = state_of(heaps_.size() - 1, state);
      const HeapAnalysis* const then = state_of(0, state);
      const std::uint32_t root = tree_.state_root(state, states_[state].name, states_.size() == 1);
      std::unordered_set<Node> holders;
      std::vector<Suspect> found;
      HeapDiff diff;
      if (heaps_.size() > 1 && now != nullptr && then != nullptr) diff = difference(*then, *now);
      else if (heaps_.size() == 1 && now != nullptr) found = suspects(*now);
      diff.growths.resize(std::min(most_leads, diff.growths.size()));
      for (const Suspect& each : found) holders.insert(each.holder);
      for (const HeapDiff::Growth& each : diff.growths) holders.insert(each.holder);
      for (std::size_t heap = 0; heap < heaps_.size(); ++heap) {
        const HeapAnalysis* const analysis = state_of(heap, state);
        if (analysis == nullptr) continue;
        const HeapBoxes boxes = heap_boxes(*analysis, 100, holders);
        const std::vector<std::uint32_t> numbers = tree_.add(boxes, classes_of(*analysis, boxes), root, heap);
        if (heap + 1 != heaps_.size()) continue;
        const auto node_of = [&](Node holder) {
          const auto box = boxes.of.find(holder);
          return box != boxes.of.end() ? numbers[box->second] : root;
        };
        add_leads(*analysis, found, node_of);
        add_leads(*analysis, diff.growths, node_of);
      }
    }
    std::ranges::stable_sort(leads_, std::greater(), &Lead::bytes);
    leads_.resize(std::min(most_leads, leads_.size()));
    if (leads_.empty())
      leads_.push_back({.text = heaps_.size() == 1 ? "No object holds a tenth of the memory." : "Nothing has grown."});
  }

  // That of the largest object.
  std::vector<std::uint32_t> classes_of(const HeapAnalysis& analysis, const HeapBoxes& boxes) {
    std::vector<std::uint32_t> classes(boxes.boxes.size(), HeapPageTree::no_class);
    for (std::size_t i = 1; i < classes.size(); ++i)
      classes[i] = tree_.class_number(analysis.classes()[analysis.class_of(boxes.boxes[i].largest)]);
    return classes;
  }

  void add_leads(const HeapAnalysis& analysis, const std::vector<Suspect>& found, const auto& node_of) {
    ObjectNames names(analysis);
    for (const Suspect& each : found) {
      const std::uint32_t its_class = each.is_class
                                          ? tree_.class_number(analysis.classes()[each.held.front().its_class])
                                          : HeapPageTree::no_class;
      leads_.push_back({node_of(each.holder), its_class, of_state(analysis) + suspect_text(analysis, names, each),
                        static_cast<std::int64_t>(each.retained)});
    }
  }
  void add_leads(const HeapAnalysis& analysis, const std::vector<HeapDiff::Growth>& found, const auto& node_of) {
    ObjectNames names(analysis);
    for (const HeapDiff::Growth& each : found) {
      if (each.grown() <= 0) continue;
      leads_.push_back({node_of(each.holder), tree_.class_number(analysis.classes()[each.its_class]),
                        of_state(analysis) + growth_text(analysis, names, each), each.grown()});
    }
  }

  // What a line begins with that is about one of several states.
  std::string of_state(const HeapAnalysis& analysis) const {
    return states_.size() == 1 ? "" : fmt::format("In {}: ", state_name(analysis));
  }

  // Of the snapshot; nullptr: it has no such state.
  const HeapAnalysis* state_of(std::size_t heap, std::size_t state) const {
    const auto& all = heaps_[heap].states;
    const auto found = std::ranges::find_if(
        all, [&](const HeapAnalysis* each) { return each->is_known() && each->global_state() == states_[state].G; });
    return found != all.end() ? *found : nullptr;
  }

  std::uint32_t string(const std::string& text) {
    const auto [place, added] = string_numbers_.try_emplace(text, static_cast<std::uint32_t>(strings_.size()));
    if (added) strings_.push_back(json_in_html(text));
    return place->second;
  }

  std::vector<std::pair<std::string, std::string>> facts_of(std::size_t heap) const {
    const HeapSnapshot& snapshot = *heaps_[heap].snapshot;
    constexpr std::int64_t second = 1'000'000'000;
    std::vector<std::pair<std::string, std::string>> facts = {
        {"Process", std::to_string(snapshot.pid)},
        {"Taken",
         fmt::format("{} UTC, by luaspy {}", utc_text(snapshot.taken_ns / second, "%Y-%m-%d %H:%M:%S"), version)}};
    if (const std::string text = standstill_text(snapshot); !text.empty()) facts.emplace_back("The process", text);
    for (const HeapAnalysis* const state : heaps_[heap].states) {
      if (state->is_known()) facts.emplace_back(state_name(*state), totals_text(*state) + ". " + counter_text(*state));
    }
    if (heap + 1 == heaps_.size() && joined_.boxes != 0)
      facts.emplace_back(
          "Joined", fmt::format("{} box{} of less than {}, with {} together",
                                count_text(static_cast<std::int64_t>(joined_.boxes)), joined_.boxes == 1 ? "" : "es",
                                size_text(joined_.least), size_text(joined_.bytes)));
    return facts;
  }

  std::vector<std::string> doubts_of(std::size_t heap) const {
    std::vector<std::string> doubts;
    if (std::string doubt = doubt_text(*heaps_[heap].snapshot); !doubt.empty()) doubts.push_back(std::move(doubt));
    for (const HeapAnalysis* const state : heaps_[heap].states) {
      if (const std::string doubt = doubt_text(*state); !doubt.empty())
        doubts.push_back(fmt::format("{}: {}", state_name(*state), doubt));
    }
    return doubts;
  }

  void write_set(std::size_t heap) {
    const std::string_view label = heaps_.size() == 1 ? "" : heap == 0 ? "before" : "after";
    out_ << (heap == 0 ? "" : ",\n") << "{\"label\":" << json_in_html(label)
         << ",\"target\":" << json_in_html(printable(heaps_[heap].snapshot->command, 1 << 12)) << ",\"facts\":[";
    const auto facts = facts_of(heap);
    put_list(
        out_,
        [&](std::size_t i) { return '[' + json_in_html(facts[i].first) + ',' + json_in_html(facts[i].second) + ']'; },
        facts.size());
    const std::vector<std::string> doubts = doubts_of(heap);
    out_ << "],\"doubts\":[";
    put_list(
        out_, [&](std::size_t i) { return json_in_html(doubts[i]); }, doubts.size());
    out_ << "],\n\"threads\":[";
    std::string_view separator;
    for (std::uint32_t state = 0; state < states_.size(); ++state) {
      const HeapAnalysis* const analysis = state_of(heap, state);
      if (analysis == nullptr) continue;
      out_ << std::exchange(separator, ",\n") << "{\"tid\":0,\"name\":" << json_in_html(state_name(*analysis))
           << R"(,"process":"","start":0,"runs":[)";
      write_runs(heap, state);
      out_ << "],\n\"classes\":[";
      write_class_rows(*analysis);
      out_ << "]}";
    }
    out_ << "]}";
  }

  void write_runs(std::size_t heap, std::uint32_t state) {
    std::string_view separator;
    for (std::size_t i = 1; i < tree_.nodes().size(); ++i) {
      const HeapPageTree::Node& node = tree_.nodes()[i];
      if (node.state != state || node.own[heap].objects == 0) continue;
      out_ << std::exchange(separator, ",")
           << fmt::format("{},0,{},{},0", i, node.own[heap].objects, node.own[heap].bytes);
    }
  }

  void write_class_rows(const HeapAnalysis& analysis) {
    std::string_view separator;
    for (const ObjectClass* const each : largest_classes(analysis, most_classes)) {
      if (each->count == 0) continue;
      out_ << std::exchange(separator, ",")
           << fmt::format("{},{},{},{}", tree_.class_number(*each), each->count, each->bytes, each->retained);
    }
  }

  void write_nodes() {
    const auto& nodes = tree_.nodes();
    frame_numbers_.assign(tree_.frames().size(), -1);
    out_ << "\"nodes\":{\"outer\":[";
    put_list(
        out_, [&](std::size_t i) { return std::to_string(nodes[i].outer); }, nodes.size());
    out_ << "],\n\"frame\":[";
    put_list(
        out_,
        [&](std::size_t i) {
          if (i == 0) return std::string("-1");
          int& number = frame_numbers_[nodes[i].frame];
          if (number < 0) number = static_cast<int>(frames_.size()), frames_.push_back(nodes[i].frame);
          return std::to_string(number);
        },
        nodes.size());
    out_ << "]},\n";
  }

  void write_frames() {
    const auto frame = [&](std::size_t i) -> const HeapPageTree::Frame& { return tree_.frames()[frames_[i]]; };
    out_ << "\"frames\":{\"kind\":[";
    put_list(
        out_,
        [&](std::size_t i) {
          const std::uint32_t its = frame(i).its_class;
          return static_cast<int>(its == HeapPageTree::no_class ? HeapPageTree::Kind::joined
                                                                : tree_.classes()[its].kind);
        },
        frames_.size());
    out_ << "],\n\"text\":[";
    put_list(
        out_, [&](std::size_t i) { return string(frame(i).text); }, frames_.size());
    out_ << "],\n\"class\":[";
    put_list(
        out_, [&](std::size_t i) { return static_cast<std::int32_t>(frame(i).its_class); }, frames_.size());
    out_ << "]}";
  }

  void write_paths() {
    std::vector<std::uint32_t> order(tree_.nodes().size() - 1);
    std::iota(order.begin(), order.end(), 1U);
    const std::size_t last = heaps_.size() - 1;
    std::ranges::stable_sort(order, std::greater(),
                             [&](std::uint32_t i) { return tree_.nodes()[i].total[last].bytes; });
    order.resize(std::min(most_paths, order.size()));
    std::vector<std::unique_ptr<ObjectNames>> names(states_.size());
    std::uint64_t looked_at = 0;
    std::string_view separator;
    out_ << "\"paths\":[";
    for (const std::uint32_t i : order) {
      const HeapPageTree::Node& node = tree_.nodes()[i];
      const Node object = node.largest[last];
      if (object == no_node) continue;
      const HeapAnalysis& analysis = *state_of(last, node.state);
      auto& its = names[node.state];
      if (its == nullptr) its = std::make_unique<ObjectNames>(analysis);
      std::uint64_t looks = 0;
      for (const Node step : its->steps(object)) looks += analysis.graph().references(step).size();
      if (looked_at + looks > most_steps) continue;
      looked_at += looks;
      out_ << std::exchange(separator, ",") << fmt::format("{},{}", i, string(its->path(object)));
    }
    out_ << "],\n";
  }

  void write_leads() {
    out_ << "\"leads\":[";
    put_list(
        out_,
        [&](std::size_t i) {
          const Lead& lead = leads_[i];
          const std::uint32_t node = tree_.now(lead.node);
          const std::uint32_t shown = lead.its_class == HeapPageTree::no_class ? node
                                                                               : tree_.inside(node, lead.its_class);
          return fmt::format("[{},{}]", shown, json_in_html(lead.text));
        },
        leads_.size());
    out_ << "],\n";
  }

  void write_classes() {
    const auto& classes = tree_.classes();
    out_ << "\"classes\":{\"text\":[";
    put_list(
        out_, [&](std::size_t i) { return string(classes[i].text); }, classes.size());
    out_ << "],\n\"kind\":[";
    put_list(
        out_, [&](std::size_t i) { return static_cast<int>(classes[i].kind); }, classes.size());
    out_ << "]}";
  }

  const std::vector<PageHeap>& heaps_;
  std::ostream& out_;
  std::vector<State> states_;  // of all snapshots
  HeapPageTree tree_;
  HeapPageTree::Joined joined_;
  std::vector<Lead> leads_;
  std::vector<int> frame_numbers_;     // in the page, by number in tree_
  std::vector<std::uint32_t> frames_;  // those in the page
  std::vector<std::string> strings_;   // as JSON
  std::unordered_map<std::string, std::uint32_t> string_numbers_;
};

}  // namespace

void write_heap_page(const std::vector<PageHeap>& heaps, std::ostream& out) { Page(heaps, out).write(); }

}  // namespace luaspy
