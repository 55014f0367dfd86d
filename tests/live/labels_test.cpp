// What samples are labelled with, compared with what the program itself has measured.

#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <cmath>
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>

#include "support/harness.h"

namespace luaspy::live {
namespace {

// Of how many samples, by the name at the beginning of a value.
std::map<std::string, double> shares_in(const std::string& file, double& samples) {
  const Finished reported = luaspy({"report", file, "--json"});
  INFO(reported.err);
  REQUIRE(reported.status == 0);
  const nlohmann::json json = nlohmann::json::parse(reported.out);
  std::map<std::string, double> shares;
  samples = json["recording"]["samples"].get<double>();
  for (const auto& each : json["labels"]["coroutine"]) {
    const auto value = each["value"].get<std::string>();
    shares[value.substr(0, value.find(' '))] += each["samples"].get<double>() / samples;
  }
  return shares;
}

void check(const std::string& name) {
  const Folder folder;
  const std::string file = folder.path("labels.luaspy");
  Words command = target(name).command;
  command.insert(command.end(), {workload("coroutine_shares.lua"), "2"});
  Running running(command);
  running.read_until("READY");
  const Finished recorded = luaspy({"record", "--label", "coroutine", "-f", "raw", "-o", file, "-r", "500",
                                    "--max-stopped", "100", "--pid", std::to_string(running.pid())});
  CHECK(running.wait() == 0);
  const std::string said = running.rest();
  INFO(name << ": " << said << recorded.err);
  REQUIRE(recorded.status == 0);
  double reader = 0, writer = 0, main = 0;
  REQUIRE(std::sscanf(said.c_str(), "reader %lf writer %lf main %lf", &reader, &writer, &main) == 3);
  const double all = reader + writer + main;
  double samples = 0;
  const std::map<std::string, double> shares = shares_in(file, samples);
  REQUIRE(samples > 200);
  for (const auto& [label, expected] :
       {std::pair("read_orders", reader / all), {"write_orders", writer / all}, {"(main)", main / all}}) {
    const auto found = shares.find(label);
    INFO(label << " " << expected);
    REQUIRE(found != shares.end());
    // Five standard deviations, and a little for what is between two calls of os.clock().
    CHECK(std::abs(found->second - expected) < 5 * std::sqrt(expected * (1 - expected) / samples) + 0.02);
  }
  const Finished rows = luaspy({"report", file, "--by", "coroutine"});
  INFO(rows.out);
  CHECK(rows.status == 0);
  CHECK(rows.out.find("read_orders (") < rows.out.find("write_orders ("));
  CHECK(rows.out.find("write_orders (") < rows.out.find("  (main)\n"));
}

}  // namespace

TEST_CASE("each sample says in which coroutine it was", "[live][labels]") {
  for (const char* const name : {"debian-lua5.1-bookworm", "debian-lua5.4-bookworm", "debian-luajit-bookworm"})
    check(name);
}

TEST_CASE("each sample says in which coroutine it was, on all Luas", "[live][labels][all]") {
  for (const char* const name : {"debian-lua5.2-bookworm", "debian-lua5.3-bookworm", "debian-lua5.5-sid",
                                 "luajit-2.1.newest-gc32", "luajit-2.0.20260330-gc32"})
    check(name);
}

TEST_CASE("a label that no sample has is told with those that there are", "[live][labels]") {
  const Folder folder;
  const std::string script = folder.write("a.lua", "local t = os.clock() while os.clock() - t < 0.3 do end"),
                    with = folder.path("with.luaspy"), without = folder.path("without.luaspy");
  for (const bool labelled : {true, false}) {
    Words words = {"record", "-f", "raw", "-o", labelled ? with : without};
    if (labelled) words.insert(words.end(), {"--label", "coroutine"});
    words.push_back("--");
    for (const std::string& word : target("debian-lua5.4-bookworm").command) words.push_back(word);
    words.push_back(script);
    REQUIRE(luaspy(words).status == 0);
  }
  const Finished wrong = luaspy({"report", with, "--by", "fiber"});
  CHECK(wrong.status == 2);
  CHECK(wrong.err.find("--by fiber: no sample has such a label. There is: coroutine. Or --by samples, --by time.") !=
        std::string::npos);
  const Finished none = luaspy({"report", without, "--by", "coroutine"});
  CHECK(none.status == 2);
  CHECK(none.err.find("This recording has none") != std::string::npos);
}

}  // namespace luaspy::live
