// Streams of LuaJIT's own profilers against what its parsers, and a decoder of their own, say of them
// (luajit/README.md).

#include <fmt/format.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <fstream>
#include <map>
#include <sstream>
#include <vector>

#include "input/luajit_reader.h"
#include "input/memprof_stream.h"
#include "input/sysprof_stream.h"
#include "report/luajit_text.h"
#include "support/foreign_files.h"

namespace luaspy::luajit_stream_test {
namespace {

std::string luajit_file(const std::string& name) {
  std::ifstream file(std::string(LUASPY_TESTS) + "/unit/input/luajit/" + name + ".gz", std::ios::binary);
  REQUIRE(file);
  return foreign::gunzipped(file);
}

std::vector<std::string> text_lines(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

// The reference leaves the order of rows of equal numbers to chance: here all rows of a section, each with what
// belongs to it, are in the order of their texts. The summary is left as it is.
std::string in_order(const std::string& text) {
  std::string result;
  std::vector<std::string> rows;
  bool is_summary = false;
  for (const std::string& line : text_lines(text)) {
    is_summary |= line == "HEAP SUMMARY:";
    const bool is_title = line.ends_with("ATIONS") || is_summary;
    if (is_title) {
      std::ranges::sort(rows);
      for (const std::string& row : rows) result += row;
      rows.clear();
      result += line + "\n";
    } else if (line.empty() || line[0] == '\t') {
      rows.back() += line + "\n";
    } else {
      rows.push_back(line + "\n");
    }
  }
  return result;
}

std::string memprof(const std::string& stream, const MemprofTextOptions& options = {}) {
  std::istringstream in(luajit_file(stream));
  std::string torn;
  const Result<std::string> text = memprof_text(in, options, torn);
  REQUIRE(text);
  CHECK(torn == "");
  return *text;
}

std::string sysprof(const std::string& stream) {
  std::istringstream in(luajit_file(stream));
  std::string torn;
  const Result<std::string> text = sysprof_text(in, torn);
  REQUIRE(text);
  CHECK(torn == "");
  return *text;
}

// Calls `see` for each sample of a stream.
template <typename See>
void each_sample(const std::string& stream, const See& see) {
  std::istringstream in(luajit_file(stream));
  ByteReader bytes(in);
  LuajitSymbols symbols;
  REQUIRE(*read_luajit_head(bytes, symbols) == "ljp");
  CHECK(each_sysprof_sample(bytes, symbols, [&](const SysprofSample& sample) {
          see(sample, symbols);
          return true;
        }) == "");
}

std::string without_address(const std::string& text) { return text.substr(0, text.find(":0x")); }

const std::vector<std::string> sysprof_streams = {"sysprof_callgraph_joff", "sysprof_callgraph_joff_fullhost",
                                                  "sysprof_callgraph_jon", "sysprof_leaf", "sysprof_mixed_joff"};

}  // namespace

TEST_CASE("memprof's text is that of LuaJIT's parser", "[unit]") {
  for (const std::string stream : {"memprof", "memprof_jon"}) {
    INFO(stream);
    const std::string text = memprof(stream + ".bin");
    CHECK(text.size() == luajit_file(stream + ".parsed.txt").size());
    CHECK(in_order(text) == in_order(luajit_file(stream + ".parsed.txt")));
    CHECK(in_order(memprof(stream + ".bin", {.human_readable = true})) == in_order(luajit_file(stream + ".human.txt")));
    CHECK(memprof(stream + ".bin", {.leak_only = true}) == luajit_file(stream + ".leak_only.txt"));
  }
  CHECK(memprof("memprof.bin", {true, true}) == luajit_file("memprof.leak_only_human.txt"));
}

// What the parser of today shows: native frames only.
TEST_CASE("sysprof's native frames are those of LuaJIT's parser", "[unit]") {
  for (const std::string& stream : sysprof_streams) {
    INFO(stream);
    std::map<std::string, int> counts;
    each_sample(stream + ".bin", [&](const SysprofSample& sample, const LuajitSymbols& symbols) {
      std::string text;
      for (const LuajitPlace& place : sample.native) text += (text.empty() ? "" : ";") + symbols.text(place);
      ++counts[text];
    });
    std::string text;
    for (const auto& [stack, count] : counts) text += fmt::format("{};\t{}\n", stack, count);
    CHECK(text == luajit_file(stream + ".parsed_head.txt"));
  }
}

// The parser that showed Lua's frames where the native stack reaches lua_pcall(), as it does in this stream alone.
TEST_CASE("sysprof's stacks are those of the parser that joined Lua and C", "[unit]") {
  std::vector<std::string> expected;
  for (std::string& line : text_lines(luajit_file("sysprof_callgraph_joff_fullhost.parsed_c38929c3p.txt")))
    expected.push_back(line.replace(line.rfind("; "), 2, ";\t"));
  std::ranges::sort(expected);
  std::vector<std::string> lines = text_lines(sysprof("sysprof_callgraph_joff_fullhost.bin"));
  std::ranges::sort(lines);
  CHECK(lines == expected);
}

TEST_CASE("sysprof's states, stacks and traces are those of another decoder", "[unit]") {
  static const char* const states[] = {"INTERP", "LFUNC",  "FFUNC", "CFUNC", "GC",
                                       "EXIT",   "RECORD", "OPT",   "ASM",   "TRACE"};
  for (const std::string& stream : sysprof_streams) {
    INFO(stream);
    std::map<std::string, int> counts, expected;
    each_sample(stream + ".bin", [&](const SysprofSample& sample, const LuajitSymbols& symbols) {
      using Kind = SysprofSample::Call::Kind;
      std::string calls, native;
      for (const SysprofSample::Call& call : sample.calls) {
        calls += calls.empty() ? "" : ";";
        calls += call.kind == Kind::fast ? "F:" + symbols.fast_function(call.ffid)
                 : call.kind == Kind::c  ? "C:" + without_address(symbols.text(call.place))
                                         : symbols.text(call.place);
      }
      for (const LuajitPlace& place : sample.native)
        native += (native.empty() ? "" : ";") + without_address(symbols.text(place));
      std::string trace;
      if (sample.state == SysprofSample::State::trace) {
        const std::string text = symbols.text(sample.trace);  // "TRACE [5] started at @a.lua:7"
        trace = fmt::format("trace={} line {}", sample.trace.address, text.substr(text.rfind(':') + 1));
      }
      ++counts[fmt::format("{}\t{}\t{}\t{}", states[static_cast<std::size_t>(sample.state)], calls, native, trace)];
    });
    for (const std::string& line : text_lines(luajit_file(stream + ".decoded.txt"))) {
      if (line.starts_with('#')) continue;
      std::vector<std::string> columns;
      std::istringstream in(line);
      for (std::string column; std::getline(in, column, '\t');) columns.push_back(column);
      columns.resize(5);
      std::string trace = columns[4];
      if (!trace.empty()) trace = trace.substr(0, trace.find(' ')) + trace.substr(trace.rfind(" line "));
      expected[fmt::format("{}\t{}\t{}\t{}", columns[0], columns[2], columns[3], trace)] += std::stoi(columns[1]);
    }
    CHECK(counts == expected);
  }
}

TEST_CASE("a stream of sysprof is a profile with frames of Lua", "[unit]") {
  const Result<Profile> profile = foreign::read(luajit_file("sysprof_mixed_joff.bin"));
  REQUIRE(profile);
  CHECK(profile->about.kind == "a stream of LuaJIT's sysprof");
  CHECK(profile->about.unit == Unit::samples);
  CHECK(profile->about.torn == "");
  CHECK(profile->samples() == 587);
  CHECK(profile->samples_in(VmState::collecting) == 62);
  const std::string stacks = foreign::written("folded", *profile);
  INFO(stacks);
  CHECK(stacks.find("main;pmain [C];main chunk (mixed_sysprof.lua);function (mixed_sysprof.lua:6);tostring [C] ") !=
        std::string::npos);
  CHECK(stacks.find("_start") == std::string::npos);  // like Lua's own code, it is only shown if asked for
  CHECK(stacks.find("lj_BC") == std::string::npos);
  CHECK(foreign::written("folded", *foreign::read(luajit_file("sysprof_mixed_joff.bin"), {}, {.mode = Mode::all}))
            .find("_start;__libc_start_main") != std::string::npos);
}

TEST_CASE("on a trace, a stream of sysprof names the function where it starts", "[unit]") {
  const Result<Profile> profile = foreign::read(luajit_file("sysprof_callgraph_jon.bin"), {}, {.lines = true});
  REQUIRE(profile);
  CHECK(foreign::written("folded", *profile).find("main chunk (rfc_sysprof.lua) 237\n") != std::string::npos);
  CHECK(profile->samples_in(VmState::machine_code) == 521);
  std::ostringstream lines;
  find_format("folded")->write(*profile, {.lines = true}, lines);
  CHECK(lines.str().find("main chunk (rfc_sysprof.lua:~20) 237\n") != std::string::npos);
}

TEST_CASE("a stream of memprof is a profile of allocations", "[unit]") {
  const std::string stream = luajit_file("memprof.bin");
  const Result<Profile> bytes = foreign::read(stream);
  REQUIRE(bytes);
  CHECK(bytes->about.kind == "a stream of LuaJIT's memprof");
  CHECK(bytes->about.unit == Unit::bytes);
  // Sums of memprof.decoded.txt: allocations, then reallocations, but for the one of INTERNAL, which shrinks.
  CHECK(bytes->weight() == 582'206 + (276'040 - 1024) - (141'432 - 2048));
  RawWindow window;
  window.allocations = Unit::objects;
  CHECK(foreign::read(stream, window)->weight() == 8311);
  window = {};
  window.live = true;
  CHECK(foreign::read(stream, window)->weight() == 144'365);
  CHECK(foreign::read(stream, window)->samples() == 2292);
  window.allocations = Unit::objects;
  CHECK(foreign::read(stream, window)->weight() == 2292);
  CHECK(foreign::written("folded", *bytes).find("function (memprof_work.lua:7) 113541\n") != std::string::npos);
}

TEST_CASE("a torn stream of LuaJIT says its byte, wherever it is torn", "[unit]") {
  for (const std::string name : {"sysprof_leaf.bin", "memprof.bin"}) {
    const std::string whole = luajit_file(name);
    // The table of symbols comes first: nothing is known without it.
    for (std::size_t size = 7; size < 100'000; size += 9973)
      CHECK(foreign::error_of(whole.substr(0, size)).find(" byte ") != std::string::npos);
    for (std::size_t size = whole.size() - 2000; size < whole.size(); size += 97) {
      const Result<Profile> profile = foreign::read(whole.substr(0, size));
      REQUIRE(profile);
      CHECK(profile->about.torn.starts_with("byte "));
      CHECK(!profile->about.complete);
      CHECK(profile->samples() != 0);
    }
    const Result<Profile> cut = foreign::read(whole.substr(0, whole.size() - 1));
    REQUIRE(cut);
    CHECK(cut->about.torn == fmt::format("byte {}: the stream ends without its end mark", whole.size() - 1));
    std::string other = whole;
    other[3] = 7;
    CHECK(
        foreign::read(other).error().text ==
        "This is a stream of a profiler of LuaJIT, but its table of symbols is of version 7; luaspy reads version 3.");
  }
}

TEST_CASE("fast functions have names only in the build whose numbers are known", "[unit]") {
  const auto names = [](const std::string& library) {
    std::string table = std::string("ljs\x03\0\0\0", 7);
    const auto symbol = [&](char address, const std::string& name) {
      table += std::string("\x01", 1) + address + static_cast<char>(name.size()) + name;
    };
    symbol('\x10', library);
    table += '\x80';
    std::istringstream in(table);
    ByteReader bytes(in);
    LuajitSymbols symbols;
    CHECK(symbols.read_table(bytes) == "");
    return symbols.fast_function(18);
  };
  CHECK(names("lj_cf_print") == "tostring");
  CHECK(names("lj_cf_buffer_method_put") == "fast function 18");
  CHECK(names("main") == "fast function 18");
}

}  // namespace luaspy::luajit_stream_test
