#include "heaps.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/display_text.h"
#include "heapdump/heap_file.h"
#include "heapdump/heap_jsonl.h"
#include "heapdump/heap_profile.h"
#include "heapdump/heapsnapshot.h"
#include "heapreport/heap_questions.h"
#include "heapreport/heap_text.h"
#include "output/format.h"
#include "output/write_options.h"

namespace luaspy::fuzz {
namespace {

constexpr int lines_of_a_table = 5;

// Words in which a change does something: those of objects, and all that are not 0.
void find_words(CopiedHeap& heap) {
  constexpr Address header = 64, page = 4096;
  std::vector<Address>& words = heap.image.words;
  for (const MemoryImage::Part& part : heap.snapshot.memory->parts()) {
    const std::span<const std::byte> bytes(part.bytes, part.size);
    heap.image.runs.push_back({part.start, {bytes.begin(), bytes.end()}});
    for (std::size_t at = 0; at + 8 <= bytes.size(); at += 8) {
      if (load<std::uint64_t>(bytes, at) != 0) words.push_back(part.start + at);
    }
  }
  for (std::size_t i = 0; i < heap.snapshot.states.size(); ++i) {
    for (Address at = 0; at < page; at += 8) words.push_back(heap.snapshot.states[i].G + at);
    const ObjectGraph& graph = heap.analyses[i]->graph();
    for (Node node = 1; node < graph.nodes(); ++node) {
      for (Address at = 0; at < header; at += 8) words.push_back(graph.object(node).address / 8 * 8 + at);
    }
  }
  std::ranges::sort(words);
  words.erase(std::unique(words.begin(), words.end()), words.end());
}

std::vector<CopiedHeap> load_heaps() {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(LUASPY_TESTS "/fuzz/corpus/objects")) {
    if (entry.path().extension() == ".luaheap") paths.push_back(entry.path());
  }
  std::ranges::sort(paths);
  std::vector<CopiedHeap> heaps(paths.size());
  for (std::size_t i = 0; i < paths.size(); ++i) {
    Result<HeapSnapshot> snapshot = read_heap_file(paths[i].string());
    if (!snapshot) std::fprintf(stderr, "%s\n", snapshot.error().text.c_str());
    expect(snapshot.has_value(), "a copied heap can be read");
    heaps[i].snapshot = std::move(*snapshot);
    heaps[i].analyses = analyse(heaps[i].snapshot, *heaps[i].snapshot.memory);
    heaps[i].image.name = paths[i].stem().string();
    find_words(heaps[i]);
  }
  return heaps;
}

// Each object once, all in the sums.
void expect_sound(const HeapAnalysis& analysis) {
  const ObjectGraph& graph = analysis.graph();
  for (Node node = 2; node < graph.nodes(); ++node)
    expect(graph.object(node - 1).address < graph.object(node).address, "each object is there once");
  const Total live = analysis.all_live(), dead = analysis.all_dead();
  expect(live.count + dead.count + 1 == static_cast<std::int64_t>(graph.nodes()), "each object is live or dead");
  std::int64_t in_classes = 0;
  for (const ObjectClass& its : analysis.classes()) {
    in_classes += its.count;
    expect_printable(its.name, 2000, "a class");
  }
  expect(in_classes == live.count, "each live object is of one class");
}

void expect_json(const std::string& text) { expect(nlohmann::json::accept(text), "JSON is JSON"); }

// As heap() prints it.
void expect_text(const std::string& text) { expect_plain(without_invisible(text), "a report is harmless"); }

std::string answers_of(const HeapAnalysis& analysis) {
  constexpr std::size_t asked_objects = 4, asked_classes = 3;
  const ObjectGraph& graph = analysis.graph();
  std::string text;
  for (std::size_t i = 1; i <= asked_objects && graph.nodes() > 1; ++i) {
    const auto node = static_cast<Node>(1 + i * 7919 % (graph.nodes() - 1));
    const std::string address = fmt::format("{:#x}", graph.object(node).address);
    text += answers(analysis, {.path = address, .retained_by = {}, .of_class = {}, .object = address}, lines_of_a_table,
                    Paint());
  }
  for (std::size_t i = 0; i < std::min(asked_classes, analysis.classes().size()); ++i) {
    const std::string& name = analysis.classes()[i * 31 % analysis.classes().size()].name;
    text += answers(analysis, {.path = name, .retained_by = name, .of_class = name, .object = {}}, lines_of_a_table,
                    Paint());
  }
  return text;
}

void ask_growth(const Analyses& analyses, const Analyses& before) {
  for (std::size_t i = 0; i < analyses.size(); ++i) {
    if (!analyses[i]->is_known()) continue;
    const HeapDiff same = difference(*analyses[i], *analyses[i]);
    expect(same.growths.empty() && same.classes.empty(), "nothing has grown since then");
    if (i >= before.size() || !before[i]->is_known()) continue;
    const HeapDiff diff = difference(*before[i], *analyses[i]);
    expect_text(to_text(diff, *analyses[i], 0.5, lines_of_a_table, Paint()));
    expect_json(to_json(diff, *analyses[i], 1, 0.5, lines_of_a_table));
  }
}

}  // namespace

const std::vector<CopiedHeap>& copied_heaps() {
  static const std::vector<CopiedHeap> heaps = load_heaps();
  return heaps;
}

Analyses analyse(const HeapSnapshot& snapshot, const Memory& memory) {
  Analyses analyses;
  for (const HeapSnapshot::State& state : snapshot.states) {
    analyses.push_back(
        std::make_unique<HeapAnalysis>(memory, *state.lua, state.G, HeapAnalysis::Options{snapshot.bytes, {}, {}}));
  }
  return analyses;
}

void ask(unsigned questions, const HeapSnapshot& snapshot, const Analyses& analyses, const Analyses& before) {
  std::vector<const HeapAnalysis*> known;
  for (const auto& analysis : analyses) {
    if (!analysis->is_known()) continue;
    known.push_back(analysis.get());
    expect_sound(*analysis);
    if ((questions & report) != 0) expect_text(to_text(*analysis, lines_of_a_table, Paint()));
    if ((questions & objects_and_classes) != 0) expect_text(answers_of(*analysis));
  }
  if ((questions & report) != 0) expect_text(head_text(snapshot));
  if ((questions & json) != 0) expect_json(to_json(snapshot, analyses, lines_of_a_table));
  if ((questions & growth) != 0) ask_growth(analyses, before);
  std::ostringstream out;
  if ((questions & profile) != 0) {
    const auto folded = std::ranges::find(formats(), "folded", &Format::name);
    folded->write(heap_profile(snapshot, known), {}, out);
    expect_plain(out.str(), "stacks are harmless");
  }
  if ((questions & lines) != 0) {
    out.str({});
    write_heap_jsonl(known, {}, out);
    std::istringstream in(out.str());
    for (std::string line; std::getline(in, line);) expect_json(line);
  }
  if ((questions & chrome) != 0) {
    out.str({});
    expect(write_heapsnapshot(known, {}, out).has_value(), "a .heapsnapshot has room");
    expect_json(out.str());
  }
}

}  // namespace luaspy::fuzz
