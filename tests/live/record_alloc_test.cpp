// record --alloc: samples of time and of allocations in turns, and what the collector costs by who
// allocates (workloads/two_sites.lua).

#include <catch2/catch.hpp>
#include <cmath>
#include <map>
#include <regex>

#include "support/breakpoints.h"
#include "support/harness.h"
#include "support/skip.h"

namespace luaspy::live::record_alloc_test {
namespace {

double number_in(const std::string& text, const std::string& expression) {
  std::smatch match;
  CAPTURE(expression, text);
  REQUIRE(std::regex_search(text, match, std::regex(expression)));
  return std::stod(match[1]);
}

struct CollectorRow {
  double own_time = 0, total_time = 0, own_bytes = 0, total_bytes = 0;
};

std::map<std::string, CollectorRow> rows_of(const std::string& text) {
  std::map<std::string, CollectorRow> rows;
  const std::regex row(R"(\n +([\d.]+) +([\d.]+) +([\d.]+) +([\d.]+)  ([^\n]+))");
  for (std::sregex_iterator at(text.begin(), text.end(), row), end; at != end; ++at)
    rows[(*at)[5].str()] = {std::stod((*at)[1]), std::stod((*at)[2]), std::stod((*at)[3]), std::stod((*at)[4])};
  return rows;
}

const CollectorRow& row_at(const std::map<std::string, CollectorRow>& rows, const std::string& definition) {
  const std::string place = live::place("two_sites.lua", definition);
  for (const auto& [function, row] : rows) {
    if (function.ends_with(place)) return row;
  }
  FAIL("no row for " << definition);
  return rows.begin()->second;
}

}  // namespace

TEST_CASE("record --alloc: what the collector costs is divided by who allocates", "[alloc_command]") {
  const Folder folder;
  Running running(lua({workload("two_sites.lua")}));
  running.read_until("READY");
  const std::string page = folder.path("page.html"), raw = folder.path("my.luaspy");
  const Finished done = luaspy({"record", "--alloc", "--max-cost", "15", "-r", "400", "--pid",
                                std::to_string(running.pid()), "-d", "3", "-o", page});
  if (!has_breakpoints()) {
    CHECK_THAT(done.err, Catch::Contains("luaspy heap --every needs none"));
    return test::skip(no_breakpoints);
  }
  INFO(done.err);
  REQUIRE(done.status == 0);
  CHECK_THAT(done.err, Catch::Contains("The garbage collector takes") &&
                           Catch::Contains("samples of allocations, too, in turns"));
  REQUIRE(luaspy({"report", page, "-o", raw}).status == 0);

  const std::string view = luaspy({"report", raw, "--collector", "--top", "1000"}).out;
  CAPTURE(view);
  const double collecting = number_in(view, R"(collector takes ([\d.]+) %)");
  const double seen = number_in(luaspy({"report", raw}).out, R"(garbage collector ([\d.]+) %)");
  CHECK(collecting == seen);
  CHECK(collecting > 5);
  CHECK(collecting < 60);
  const std::map<std::string, CollectorRow> rows = rows_of(view);
  double own_time = 0, own_bytes = 0;
  for (const auto& [function, row] : rows) {
    own_time += row.own_time, own_bytes += row.own_bytes;
    CAPTURE(function);
    CHECK(row.own_time <= row.total_time);
    CHECK(std::abs(row.own_time - row.own_bytes * collecting / 100) < 0.15);
    CHECK(std::abs(row.total_time - row.total_bytes * collecting / 100) < 0.15);
  }
  const double rounding = 0.05 * static_cast<double>(rows.size());
  CHECK(std::abs(own_time - collecting) <= rounding + 0.05);
  CHECK(std::abs(own_bytes - 100) <= rounding);
  // 80 and 20 % of the bytes.
  const CollectorRow &most = row_at(rows, "local function most"), &least = row_at(rows, "local function least");
  CHECK(std::abs(most.own_bytes - 80) < 17);
  CHECK(most.own_time > least.own_time);

  // The same of the page, and what a file without allocations answers.
  CHECK(luaspy({"report", page, "--collector", "--top", "1000"}).out == view);
  const std::vector<FoldedStack> of_bytes = parse_folded(
      luaspy({"report", raw, "--unit", "bytes", "-f", "folded", "-o", "-"}).out);
  std::int64_t all = 0, of_most = 0;
  for (const FoldedStack& stack : of_bytes) {
    all += stack.count;
    if (stack.frames.back().ends_with(live::place("two_sites.lua", "local function most"))) of_most += stack.count;
  }
  CHECK(std::abs(100.0 * static_cast<double>(of_most) / static_cast<double>(all) - most.own_bytes) < 0.1);
}

TEST_CASE("record --alloc: a program that it starts, and a recording without allocations", "[alloc_command][smoke]") {
  if (!has_breakpoints()) return test::skip(no_breakpoints);
  const Folder folder;
  const std::string raw = folder.path("my.luaspy");
  const std::string script = folder.write("ends.lua",
                                          "local stop = os.clock() + 0.8\n"
                                          "while os.clock() < stop do local t = { 1, 2 } end\n"
                                          "os.exit(3)\n");
  const Finished done = luaspy(Words{"record", "--alloc", "-o", raw, "--"} + lua({script}));
  CAPTURE(done.err);
  CHECK(done.status == 3);
  CHECK_THAT(done.err, Catch::Contains("the target has ended") && Catch::Contains("samples of allocations, too"));
  CHECK(luaspy({"report", raw, "--unit", "objects"}).status == 0);

  const std::string without = folder.path("without.luaspy");
  REQUIRE(luaspy(Words{"record", "-o", without, "--"} + lua({script})).status == 3);
  for (const Words& asked : {Words{"--collector"}, Words{"--unit", "bytes"}}) {
    const Finished refused = luaspy(Words{"report", without} + asked);
    CHECK(refused.status == 11);
    CHECK_THAT(refused.err, Catch::Contains("no samples of allocations. `luaspy record --alloc` takes them."));
  }
}

}  // namespace luaspy::live::record_alloc_test
