// The files of luaspy heap, of objects that the workload known_objects.lua makes.

#include <catch2/catch.hpp>

#include <algorithm>
#include <array>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "support/harness.h"

namespace luaspy::live::heap_output_test {
namespace {

using Json = nlohmann::json;

std::string heap_file(const Running& lua, const Folder& folder, const std::string& file, const Words& options = {}) {
  const Finished done = luaspy(Words{"heap", "--pid", std::to_string(lua.pid()), "-o", folder.path(file)} + options);
  INFO(done.err);
  CHECK(done.status == 0);
  CHECK(done.err.find(folder.path(file)) != std::string::npos);
  return read_file(folder.path(file));
}

std::vector<Json> json_lines(const std::string& text) {
  std::vector<Json> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(Json::parse(line));
  return lines;
}

struct KnownHeap {
  Json root;
  std::vector<Json> objects;
  std::map<std::string, const Json*> by_address;
  std::map<std::string, int> classes;  // live objects

  explicit KnownHeap(const std::string& text) {
    objects = json_lines(text);
    REQUIRE(!objects.empty());
    root = objects.front();
    objects.erase(objects.begin());
    for (const Json& object : objects) {
      by_address[object.at("address")] = &object;
      if (!object.contains("dead")) ++classes[object.at("class")];
    }
  }
  std::int64_t live_bytes() const { return root.at("live_bytes"); }
};

void check_lines(const KnownHeap& heap) {
  std::int64_t live = 0, live_bytes = 0, dead = 0, bytes = heap.root.at("other_bytes");
  for (const Json& object : heap.objects) {
    const std::int64_t size = object.at("size");
    bytes += size;
    if (object.contains("dead")) {
      ++dead;
      continue;
    }
    ++live;
    live_bytes += size;
    const std::int64_t retained = object.at("retained");
    CHECK(retained >= size);
    CHECK(object.contains("path") == (static_cast<double>(retained) >= 0.01 * static_cast<double>(heap.live_bytes())));
    const std::string dominator = object.at("dominator");
    if (dominator != "root") CHECK(heap.by_address.at(dominator)->at("retained") >= retained);
    for (const Json& reference : object.at("references")) CHECK(heap.by_address.contains(reference.at("to")));
  }
  CHECK(heap.by_address.size() == heap.objects.size());
  CHECK(heap.root.at("live") == live);
  CHECK(heap.root.at("live_bytes") == live_bytes);
  CHECK(heap.root.at("dead") == dead);
  const std::int64_t counter = heap.root.at("counter");
  CHECK(std::abs(bytes - counter) <= counter / 1000);
}

void check_known(const KnownHeap& heap) {
  CHECK(heap.classes.at("{body, id, when}") == 3000);
  CHECK(heap.classes.at("Account") == 100);
  CHECK(heap.classes.at("{next, value}") == 499);
  CHECK(heap.classes.at("{secret}") == 10);
  CHECK(heap.classes.at("{entries}") == 1);
  int sleepers = 0, dead = 0, metatables = 0, upvalues = 0;
  std::string entries_path;
  for (const Json& object : heap.objects) {
    dead += object.contains("dead") && object.at("type") == "table";
    if (object.contains("dead")) continue;
    sleepers += object.at("type") == "coroutine" &&
                object.at("class").get<std::string>().find("known_objects.lua:15") != std::string::npos;
    for (const Json& reference : object.at("references")) {
      metatables += object.at("class") == "Account" && reference.at("link") == "metatable";
      upvalues += reference.at("link") == "upvalue" && reference.at("name") == "queue";
      if (reference.at("name") != "entries" || reference.at("link") != "entry") continue;
      const Json& entries = *heap.by_address.at(reference.at("to"));
      CHECK(entries.at("references").size() == 3000);
      entries_path = entries.at("path");
    }
  }
  CHECK(sleepers == 20);
  CHECK(metatables == 100);
  CHECK(upvalues == 1);
  CHECK(entries_path == "package.loaded.cachemod.entries");
  CHECK(dead >= 49);  // a register may still have the last one of 50
}

struct FoundHeap {
  std::size_t objects = 0, states = 0;
  std::int64_t bytes = 0;
};

void check_heapsnapshot(const Json& file, const FoundHeap& heap) {
  const auto nodes = file.at("nodes").get<std::vector<std::uint64_t>>();
  const auto edges = file.at("edges").get<std::vector<std::uint64_t>>();
  const std::size_t strings = file.at("strings").size();
  const Json& about = file.at("snapshot");
  const std::size_t fields = about.at("meta").at("node_fields").size();
  REQUIRE(fields == 7);
  REQUIRE(nodes.size() == fields * about.at("node_count").get<std::size_t>());
  REQUIRE(edges.size() == 3 * about.at("edge_count").get<std::size_t>());
  // The root, and for each state itself, what Lua has for itself, and garbage.
  REQUIRE(nodes.size() / fields == heap.objects + 3 * heap.states + 1);
  std::set<std::uint64_t> ids;
  std::uint64_t count = 0, bytes = 0;
  constexpr std::uint64_t synthetic = 9;
  for (std::size_t i = 0; i < nodes.size(); i += fields) {
    CHECK(nodes[i] < about.at("meta").at("node_types")[0].size());
    CHECK(nodes[i + 1] < strings);
    const bool is_rest = i != 0 && nodes[i] == synthetic;
    CHECK(nodes[i + 2] % 2 == (is_rest ? 0 : 1));
    ids.insert(nodes[i + 2]);
    if (!is_rest) bytes += nodes[i + 3];
    count += nodes[i + 4];
  }
  CHECK(ids.size() == nodes.size() / fields);
  CHECK(count == edges.size() / 3);
  CHECK(static_cast<std::int64_t>(bytes) == heap.bytes);
  constexpr std::uint64_t element = 1, hidden = 4;
  for (std::size_t i = 0; i < edges.size(); i += 3) {
    CHECK(edges[i] < about.at("meta").at("edge_types")[0].size());
    CHECK((edges[i] == element || edges[i] == hidden || edges[i + 1] < strings));
    CHECK((edges[i + 2] % fields == 0 && edges[i + 2] < nodes.size()));
  }
  // The first edges are the root's, and lead to the states.
  CHECK(nodes[4] == 3 * heap.states);
  for (std::size_t i = 0; i < heap.states; ++i) {
    const auto edge = edges.begin() + static_cast<std::ptrdiff_t>(3 * i);
    CHECK(std::vector(edge, edge + 3) == std::vector<std::uint64_t>{element, i + 1, (i + 1) * fields});
  }
}

void check_folded(const std::string& text, const KnownHeap& heap) {
  std::int64_t bytes = 0;
  std::size_t deepest = 0;
  std::map<std::string, std::int64_t> lines;
  for (const FoldedStack& stack : parse_folded(text)) {
    std::string frames;
    for (const std::string& frame : stack.frames) frames += (frames.empty() ? "" : ";") + frame;
    bytes += lines[frames] = stack.count;
    deepest = std::max(deepest, stack.frames.size());
  }
  CHECK(bytes == heap.live_bytes());
  CHECK(deepest == 100);  // of some 300 tables in each other
  const std::string entries = "package.loaded;cachemod;entries";
  std::int64_t bodies = 0;
  for (const Json& object : heap.objects)
    bodies += object.contains("class") && object.at("class") == "{body, id, when}" ? object.at("size").get<int>() : 0;
  CHECK(lines.at(entries + ";{body, id, when}") == bodies);
  CHECK(lines.contains(entries + ";{body, id, when};string"));
  CHECK(lines.contains("_G;accounts;Account"));
  // The 499 nodes below the first one are one box.
  CHECK(lines.at("_G;list;next") == 499 * lines.at("_G;list"));
}

Json data_of(const std::string& page) {
  constexpr std::string_view begin = "id=\"data\">";
  const std::size_t from = page.find(begin);
  REQUIRE(from != std::string::npos);
  const std::size_t first = from + begin.size();
  return Json::parse(page.substr(first, page.find("</script>", first) - first));
}

// The boxes of one snapshot of a page, with all states together.
struct PageBoxes {
  std::map<std::string, std::int64_t> bytes;  // of each box, by the labels on the way to it
  std::int64_t all_objects = 0, all_bytes = 0;

  PageBoxes(const Json& data, std::size_t set) {
    const Json& outer = data.at("nodes").at("outer");
    std::vector<std::string> names(outer.size());
    for (std::size_t i = 1; i < names.size(); ++i) {
      const std::string& before = names[outer[i].get<std::size_t>()];
      const auto frame = data.at("nodes").at("frame")[i].get<std::size_t>();
      const auto text = data.at("frames").at("text")[frame].get<std::size_t>();
      names[i] = before + (before.empty() ? "" : ";") + data.at("strings")[text].get<std::string>();
    }
    for (const Json& state : data.at("sets")[set].at("threads")) {
      const auto runs = state.at("runs").get<std::vector<std::int64_t>>();
      for (std::size_t i = 0; i < runs.size(); i += 5) {
        all_objects += runs[i + 2];
        bytes[names.at(static_cast<std::size_t>(runs[i]))] += runs[i + 3];
        all_bytes += runs[i + 3];
      }
    }
  }
};

// How many objects of each class there are, as the page's table has it.
std::map<std::string, std::int64_t> classes_of(const Json& data, std::size_t set) {
  std::map<std::string, std::int64_t> counts;
  for (const Json& state : data.at("sets")[set].at("threads")) {
    const auto rows = state.at("classes").get<std::vector<std::int64_t>>();
    for (std::size_t i = 0; i < rows.size(); i += 4) {
      const auto text = data.at("heap").at("classes").at("text")[static_cast<std::size_t>(rows[i])].get<std::size_t>();
      counts[data.at("strings")[text]] += rows[i + 1];
    }
  }
  return counts;
}

std::set<std::string> paths_of(const Json& data) {
  std::set<std::string> paths;
  const Json& pairs = data.at("heap").at("paths");
  for (std::size_t i = 1; i < pairs.size(); i += 2) paths.insert(data.at("strings")[pairs[i].get<std::size_t>()]);
  return paths;
}

void check_page(const Json& data, const KnownHeap& heap) {
  const PageBoxes boxes(data, 0);
  CHECK(boxes.all_bytes == heap.live_bytes());
  CHECK(boxes.all_objects == heap.root.at("live"));
  std::int64_t bodies = 0;
  for (const Json& object : heap.objects)
    bodies += object.contains("class") && object.at("class") == "{body, id, when}" ? object.at("size").get<int>() : 0;
  CHECK(boxes.bytes.at("package.loaded;cachemod;entries;{body, id, when}") == bodies);
  const auto classes = classes_of(data, 0);
  CHECK(classes.at("Account (table)") == 100);
  CHECK(classes.at("{body, id, when} (table)") == 3000);
  CHECK(classes.at("string") == heap.classes.at("string"));
  CHECK(paths_of(data).contains("package.loaded.cachemod.entries"));
  const std::string lead = data.at("heap").at("leads")[0][1];
  CHECK(lead.find("is held by package.loaded.cachemod.entries: 3,000 tables {body, id, when}") != std::string::npos);
}

}  // namespace

TEST_CASE("heaps as files have what the program made", "[heap_output][luas]") {
  const std::string name = GENERATE(
      from_range(prepared({"debian-lua5.1-bookworm", "debian-lua5.2-bookworm", "debian-lua5.3-bookworm",
                           "debian-lua5.4-bookworm", "debian-lua5.5-sid", "debian-luajit-bookworm"})));
  CAPTURE(name);
  const Folder folder;
  Running running(lua({workload("known_objects.lua")}, name));
  running.read_until("READY");
  const KnownHeap heap(heap_file(running, folder, "known.jsonl"));
  check_lines(heap);
  check_known(heap);
  check_heapsnapshot(Json::parse(heap_file(running, folder, "known.heapsnapshot")),
                     {heap.root.at("live"), 1, heap.live_bytes()});
  check_folded(heap_file(running, folder, "known.folded"), heap);
  check_page(data_of(heap_file(running, folder, "known.html")), heap);
}

TEST_CASE("a page of differences has what the program made in between", "[heap_output]") {
  const Folder folder;
  Running running(lua({workload("known_objects.lua")}));
  running.read_until("READY");
  heap_file(running, folder, "before.luaheap");
  running.send("\n");
  running.read_until("READY");
  heap_file(running, folder, "now.luaheap");
  const Words files = {folder.path("before.luaheap"), folder.path("now.luaheap")};
  const Finished done = luaspy(Words{"heap", "--diff"} + files + Words{"-o", folder.path("diff.html")});
  CHECK(done.status == 0);
  CHECK(done.out.empty());
  CHECK(std::ranges::count(done.err, '\n') == 1);
  CHECK(done.err.find("diff.html: open it in a browser") != std::string::npos);
  CHECK(luaspy(Words{"heap", "--diff"} + files).out.find("{fresh} (table)") != std::string::npos);
  const Json data = data_of(read_file(folder.path("diff.html")));
  CHECK(data.at("comparison").at("by") == "bytes");
  CHECK_FALSE(classes_of(data, 0).contains("{fresh} (table)"));
  CHECK(classes_of(data, 1).at("{fresh} (table)") == 150);
  const std::string lead = data.at("heap").at("leads")[0][1];
  CHECK(lead.find("got +1 {[1…]} (table): +") != std::string::npos);
  // The same without files.
  const Finished watched = luaspy(
      {"heap", "--pid", std::to_string(running.pid()), "--every", "0.01", "-o", folder.path("same.html")});
  CHECK(watched.status == 0);
  CHECK(data_of(read_file(folder.path("same.html"))).at("heap").at("leads")[0][1] == "Nothing has grown.");
  constexpr int usage = 2;
  const Finished refused = luaspy(Words{"heap", "--diff"} + files + Words{"-o", folder.path("diff.jsonl")});
  CHECK(refused.status == usage);
  CHECK(refused.err.find("Only html shows what has changed") != std::string::npos);
  CHECK_FALSE(std::ifstream(folder.path("diff.jsonl")).good());
}

TEST_CASE("each Lua of a process has a root in the files of its heap", "[heap_output][luas]") {
  const std::string version = GENERATE_COPY(from_range(prepared({"5.1", "5.3.6", "5.4", "5.5"})));
  CAPTURE(version);
  const Folder folder;
  Running running({compile(folder, "states", source_version(version))});
  running.read_until("READY");
  FoundHeap heap;
  std::size_t suspended = 0;
  for (const Json& line : json_lines(heap_file(running, folder, "states.jsonl"))) {
    suspended += line.at("type") == "coroutine" && line.contains("class") &&
                 line.at("class").get<std::string>().find("function ([string") != std::string::npos;
    if (line.at("type") != "root") continue;
    ++heap.states;
    heap.objects += line.at("live").get<std::size_t>();
    heap.bytes += line.at("live_bytes").get<std::int64_t>();
  }
  CHECK(heap.states == 5);
  CHECK(suspended == 1 + 2 + 3 + 4 + 5);
  check_heapsnapshot(Json::parse(heap_file(running, folder, "states.heapsnapshot")), heap);
  std::int64_t bytes = 0;
  for (const FoldedStack& stack : parse_folded(heap_file(running, folder, "states.folded"))) bytes += stack.count;
  CHECK(bytes == heap.bytes);
  const Json data = data_of(heap_file(running, folder, "states.html"));
  CHECK(PageBoxes(data, 0).all_bytes == heap.bytes);
  std::set<std::string> roots;
  for (std::size_t i = 1; i < data.at("nodes").at("outer").size(); ++i) {
    const auto frame = data.at("nodes").at("frame")[i].get<std::size_t>();
    const auto text = data.at("frames").at("text")[frame].get<std::size_t>();
    if (data.at("nodes").at("outer")[i] == 0) roots.insert(data.at("strings")[text].get<std::string>());
  }
  CHECK(roots.size() == heap.states);
}

TEST_CASE("a heap snapshot says that it cannot have an object of 5 GiB", "[heap_output]") {
  constexpr std::int64_t size = std::int64_t{5} << 30, most = 0xffff'ffff;
  const Folder folder;
  Running running({compile(folder, "huge", source_version("5.4"))});
  running.read_until("READY");
  const KnownHeap heap(heap_file(running, folder, "huge.jsonl"));
  const auto largest = std::ranges::max_element(
      heap.objects, {}, [](const Json& object) { return object.at("size").get<std::int64_t>(); });
  const std::int64_t own = largest->at("size");
  CHECK(own >= size);
  CHECK(own < size + 100);  // its header
  CHECK(largest->at("class") == "userdata");
  const Finished done = luaspy(
      {"heap", "--pid", std::to_string(running.pid()), "-o", folder.path("huge.heapsnapshot")});
  CHECK(done.err.find(
            "luaspy: 1 object of 4 GiB or more has 4 GiB in the file, which can have no larger ones: 1.0 GiB are "
            "missing.") != std::string::npos);
  check_heapsnapshot(Json::parse(read_file(folder.path("huge.heapsnapshot"))),
                     {heap.root.at("live"), 1, heap.live_bytes() - own + most});
  std::int64_t bytes = 0;
  for (const FoldedStack& stack : parse_folded(heap_file(running, folder, "huge.folded"))) bytes += stack.count;
  CHECK(bytes == heap.live_bytes());
}

TEST_CASE("a heap is written by the formats of profiles", "[heap_output][smoke]") {
  const Folder folder;
  Running running(lua({workload("known_objects.lua")}));
  running.read_until("READY");
  const KnownHeap heap(heap_file(running, folder, "known.jsonl"));
  const Json speedscope = Json::parse(heap_file(running, folder, "known.speedscope.json")).at("profiles")[0];
  CHECK(speedscope.at("unit") == "bytes");
  CHECK(speedscope.at("endValue") == heap.live_bytes());
  const std::string stacks = heap_file(running, folder, "known.folded");
  CHECK(stacks.find("\ncoroutine;string ") != std::string::npos);  // a library: _G and package.loaded have it
  CHECK(heap_file(running, folder, "known.pb.gz").starts_with("\x1f\x8b"));
  CHECK(heap_file(running, folder, "known", {"-f", "html"}).find("\"unit\":\"bytes\"") != std::string::npos);
  // A snapshot that was kept says the same.
  heap_file(running, folder, "known.luaheap");
  const Finished again = luaspy({"heap", folder.path("known.luaheap"), "-o", folder.path("again.jsonl")});
  CHECK(again.status == 0);
  CHECK(read_file(folder.path("again.jsonl")) == read_file(folder.path("known.jsonl")));
  const Finished printed = luaspy({"heap", "--pid", std::to_string(running.pid()), "-o", "-", "-f", "folded"});
  check_folded(printed.out, heap);
  // What a name does not say is asked for, before anything is looked at.
  constexpr int usage = 2, output = 8;
  for (const std::string file : {"known.luaspy", "known.heap", "-"}) {
    const Finished refused = luaspy({"heap", "--pid", std::to_string(running.pid()), "-o", file});
    CHECK(refused.status == usage);
    CHECK(refused.err.find("heapsnapshot") != std::string::npos);
  }
  CHECK(luaspy({"heap", "--pid", std::to_string(running.pid()), "-o", folder.path("no/a.jsonl")}).status == output);
  CHECK(luaspy({"heap", "--pid", std::to_string(running.pid()), "-o", folder.path("a"), "-f", "chrometrace"}).status ==
        usage);
}

}  // namespace luaspy::live::heap_output_test
