// What samples are labelled with, compared with what the program itself has measured.

#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <future>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <string>
#include <utility>

#include "live/server.h"
#include "support/harness.h"

namespace luaspy::live::live_labels_test {
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

// By line of the workload: which address the function there serves.
std::map<int, std::string> served_at(const std::string& workload_name) {
  std::istringstream in(read_file(workload(workload_name)));
  std::map<int, std::string> served;
  int number = 1;
  for (std::string line; std::getline(in, line); ++number) {
    const std::size_t begin = line.find("[\""), end = line.find("\"] = function");
    if (begin != std::string::npos && end != std::string::npos)
      served[number] = line.substr(begin + 2, end - begin - 2);
  }
  return served;
}

// Samples with this value of a label: which addresses they were serving, by the functions on their stacks. The
// innermost one counts; not while handle() is called for another request inside of it.
std::map<std::string, double> served_by(const std::string& workload_name, const std::string& file,
                                        const std::string& label) {
  const Finished folded = luaspy({"report", file, "--label", label, "-f", "folded", "-o", "-"});
  INFO(label << ": " << folded.err);
  REQUIRE((folded.status == 0 || folded.status == 11));
  std::map<std::string, double> addresses;
  const std::map<int, std::string> served = served_at(workload_name);
  const std::string name = workload_name.substr(workload_name.rfind('/') + 1);
  std::istringstream lines(folded.out);
  for (std::string line; std::getline(lines, line);) {
    std::size_t innermost = 0;
    std::string address;
    for (const auto& [number, uri] : served) {
      const std::size_t at = line.rfind(fmt::format("{}:{})", name, number));
      if (at != std::string::npos && at >= innermost) innermost = at, address = uri;
    }
    const std::size_t handle = line.rfind("handle (");
    if (!address.empty() && (handle == std::string::npos || handle < innermost))
      addresses[address] += std::stod(line.substr(line.rfind(' ')));
  }
  return addresses;
}

// What is read of requests, compared with what the stacks show and with what the program has measured.
void check_requests(const std::string& name) {
  constexpr double most_unknown = 0.2;  // where a pause ends before all is read: on a busy machine
  const Folder folder;
  const std::string file = folder.path("requests.luaspy");
  Words command = target(name).command;
  command.insert(command.end(), {workload("label_requests.lua"), "2"});
  Running running(command);
  running.read_until("READY");
  const Finished recorded = luaspy({"record",
                                    "--label",
                                    "uri=req.uri",
                                    "--label",
                                    "user=session.user",
                                    "--label",
                                    "page=_G.app.current.page",
                                    "--label",
                                    "from=req.head.from",
                                    "--label",
                                    "many=req.id",
                                    "--label",
                                    "second=req[2]",
                                    "-f",
                                    "raw",
                                    "-o",
                                    file,
                                    "-r",
                                    "500",
                                    "--max-stopped",
                                    "100",
                                    "--pid",
                                    std::to_string(running.pid())});
  CHECK(running.wait() == 0);
  std::istringstream said(running.rest());
  INFO(name << ": " << said.str() << recorded.err);
  REQUIRE(recorded.status == 0);
  const Finished reported = luaspy({"report", file, "--json"});
  const nlohmann::json json = nlohmann::json::parse(reported.out);
  const auto samples = json["recording"]["samples"].get<double>();
  REQUIRE(samples > 200);
  const auto share_of = [&](const std::string& label, const std::string& value) {
    for (const auto& each : json["labels"][label]) {
      if (each["value"] == value) return each["samples"].get<double>() / samples;
    }
    return 0.0;
  };
  for (const std::string label : {"uri", "user", "page", "from", "many"}) {
    INFO(label);
    CHECK(share_of(label, "(unknown)") <= most_unknown);
  }
  const double unknown = share_of("uri", "(unknown)");
  std::string uri;
  for (double expected = 0; said >> uri >> expected;) {
    const double found = share_of("uri", uri) + (uri == "/f" ? share_of("uri", "/sub") : 0);
    INFO(uri << " " << expected << ", unknown " << unknown);
    CHECK(found < expected + 5 * std::sqrt(expected * (1 - expected) / samples) + 0.01);
    CHECK(found > expected - unknown - 5 * std::sqrt(expected * (1 - expected) / samples) - 0.01);
  }
  // In machine code, the calls that LuaJIT has inlined are those of a place nearby: for some instructions, they are
  // those of the request for which the code was made (docs/reading-frames.md).
  const double near = name.find("luajit") != std::string::npos ? samples / 200 : 0;
  const auto check_served = [&](const std::string& label, const std::set<std::string>& right) {
    double wrong = 0, all = 0;
    for (const auto& [address, count] : served_by("label_requests.lua", file, label)) {
      all += count;
      if (!right.contains(address)) wrong += count;
    }
    INFO(label);
    CHECK(wrong <= near);
    CHECK(all > 0);
  };
  for (const auto& [line, address] : served_at("label_requests.lua")) {
    check_served("uri=^" + address + "$", {address});
    if (address != "/sub") check_served("second=^" + address + "$", {address});
    check_served("user=^user of " + address + "$", {address});
    check_served("page=^page of " + address + "$", {address});
  }
  check_served("from=^outside$", {"/a", "/b", "/c", "/d", "/e", "/f"});
  check_served("from=^/f$", {"/sub"});
  CHECK(json["labels"]["many"].size() > 50);
}

// A sample of how many of this request: its share of all.
double share_of_request(const nlohmann::json& json, const std::string& value) {
  for (const auto& each : json["labels"]["request"]) {
    if (each["value"] == value) return each["samples"].get<double>() / json["recording"]["samples"].get<double>();
  }
  return 0;
}

}  // namespace

TEST_CASE("nginx: the request for which a Lua works", "[live][labels][all]") {
  const std::string lua = "luajit/label-nginx.lua";
  const Folder folder;
  const std::string file = folder.path("requests.luaspy");
  Running nginx(nginx_with("label-nginx", folder));
  nginx.read_until("READY");
  std::future<Finished> recording = std::async(std::launch::async, [&] {
    return luaspy({"record", "--label", "request", "--label", "trace", "-d", "4", "-r", "500", "--max-stopped", "100",
                   "-f", "raw", "-o", file, "--pid", std::to_string(nginx.pid())});
  });
  // One request after the other; of each as many.
  const Words asked = {"/a?x=1", "/b", "/sleep", "/main?y", "/thread", "/socket", "/coroutine"};
  for (std::size_t n = 0; recording.wait_for(std::chrono::seconds(0)) != std::future_status::ready; ++n) {
    const Connection connection(nginx, folder.path("socket"));
    connection.send(fmt::format("GET {} HTTP/1.0\r\nHost: x\r\nTraceParent: 00-{:032x}-{:016x}-01\r\n\r\n",
                                asked[n % asked.size()], 1 + n % asked.size(), 7));
    CHECK(connection.rest().find(" 200 OK") != std::string::npos);
  }
  const Finished recorded = recording.get();
  INFO(recorded.err);
  REQUIRE(recorded.status == 0);
  const nlohmann::json json = nlohmann::json::parse(luaspy({"report", file, "--json"}).out);
  const auto samples = json["recording"]["samples"].get<double>();
  REQUIRE(samples > 300);
  // What each takes beside what "/b" takes: milliseconds of work, as the module has them.
  const double whole = share_of_request(json, "GET /b") / 3;
  for (const auto& [request, ms] : {std::pair("GET /a", 1),
                                    {"GET /sleep", 2},
                                    {"GET /main", 2},
                                    {"GET /sub", 2},
                                    {"GET /thread", 2},
                                    {"GET /socket", 2},
                                    {"GET /asked", 1},
                                    {"GET /coroutine", 2}}) {
    const double share = share_of_request(json, request), expected = whole * ms;
    INFO(request << " " << expected);
    CHECK(std::abs(share - expected) < 5 * std::sqrt(2 * expected / samples) + 0.02);
  }
  CHECK(share_of_request(json, "(no request)") > 0.01);  // of the timer
  CHECK(share_of_request(json, "(unknown)") < 0.2);
  double near = samples / 200;  // as for LuaJIT in check_requests()
  for (const auto& [line, address] : served_at(lua)) {
    const std::string request = address == "(no request)" ? "\\(no request\\)" : "GET " + address;
    double right = 0;
    for (const auto& [served, count] : served_by(lua, file, "request=^" + request + "$")) {
      if (served == address) right += count;
      else near -= count;
    }
    INFO(request);
    CHECK(right > 0);
  }
  CHECK(near >= 0);
  // Which span has asked; a subrequest is asked for by the one that has asked for its parent.
  for (std::size_t n = 0; n < asked.size(); ++n) {
    const std::string path = asked[n].substr(0, asked[n].find('?')), span = fmt::format("{:032x}-{:016x}", n + 1, 7);
    const Finished of_span = luaspy({"report", file, "--label", "trace=^" + span + "$", "--json"});
    INFO(span << of_span.err);
    REQUIRE(of_span.status == 0);
    const nlohmann::json requests = nlohmann::json::parse(of_span.out)["labels"]["request"];
    std::set<std::string> values;
    for (const auto& each : requests) values.insert(each["value"]);
    CHECK(values ==
          (path == "/main" ? std::set<std::string>{"GET /main", "GET /sub"} : std::set<std::string>{"GET " + path}));
  }
}

TEST_CASE("nginx: the phase in which a request is", "[live][labels][all]") {
  const Folder folder;
  const std::string file = folder.path("phases.luaspy"), content = "content_by_lua_block";
  const Words phases = {"set", "rewrite", "access", "content", "header_filter", "body_filter", "log", "timer"};
  const Words command = nginx_with("phase-nginx", folder);
  std::string text = read_file(folder.path("nginx.conf"));
  std::string added = "set_by_lua_block $x { return require('phase-nginx').set() }\n";
  for (const char* const phase : {"rewrite", "access", "header_filter", "body_filter", "log"})
    added += fmt::format("{0}_by_lua_block {{ require('phase-nginx').{0}() }}\n", phase);
  text.insert(text.find(content), added);
  (void)folder.write("nginx.conf", text);
  Running nginx(command);
  nginx.read_until("READY");
  std::future<Finished> recording = std::async(std::launch::async, [&] {
    return luaspy({"record", "--label", "phase", "-d", "4", "-r", "500", "--max-stopped", "100", "-f", "raw", "-o",
                   file, "--pid", std::to_string(nginx.pid())});
  });
  while (recording.wait_for(std::chrono::seconds(0)) != std::future_status::ready) {
    const Connection connection(nginx, folder.path("socket"));
    connection.send("GET / HTTP/1.0\r\nHost: x\r\n\r\n");
    CHECK(connection.rest().find(" 200 OK") != std::string::npos);
  }
  const Finished recorded = recording.get();
  INFO(recorded.err);
  REQUIRE(recorded.status == 0);
  double all = 0, wrong = 0, unknown = 0;
  const nlohmann::json json = nlohmann::json::parse(luaspy({"report", file, "--json"}).out);
  INFO(json["labels"].dump(2));
  for (const auto& each : json["labels"]["phase"]) {
    all += each["samples"].get<double>();
    if (each["value"] == "(unknown)") unknown += each["samples"].get<double>();
  }
  REQUIRE(all > 300);
  CHECK(unknown < 0.2 * all);
  for (const std::string& phase : phases) {
    const Finished folded = luaspy({"report", file, "--label", "phase=^" + phase + "$", "-f", "folded", "-o", "-"});
    INFO(phase << "\n" << folded.out << folded.err);
    std::istringstream lines(folded.out);
    double right = 0;
    for (std::string line; std::getline(lines, line);) {
      const double count = std::stod(line.substr(line.rfind(' ')));
      for (const std::string& other : phases) {
        if (line.find("phase-nginx." + other + " ") == std::string::npos) continue;
        (other == phase ? right : wrong) += count;
        break;
      }
    }
    CHECK(right > 3);
  }
  CHECK(wrong < 1 + all / 200);  // as for LuaJIT in check_requests()
}

TEST_CASE("tarantool: the fiber that runs", "[live][labels][all]") {
  const Folder folder;
  const std::string file = folder.path("fibers.luaspy");
  Words command = host("tarantool");
  command.push_back(workload("luajit/fibers-tarantool.lua"));
  Running tarantool(command);
  tarantool.read_until("READY");
  const Finished recorded = luaspy({"record", "--label", "fiber", "-d", "4", "-r", "500", "--max-stopped", "100", "-f",
                                    "raw", "-o", file, "--pid", std::to_string(tarantool.pid())});
  INFO(recorded.err);
  REQUIRE(recorded.status == 0);
  const std::map<std::string, std::string> functions = {
      {"one", "in_one"},
      {"three", "in_three"},
      {"longlonglonglonglonglonglonglonglonglonglonglonglonglonglonglong"
       "longlonglonglong",
       "in_long"},
      {"renamed", "in_renamed"},
      {"short", "in_short"}};
  double all = 0, unknown = 0, wrong = 0;
  std::map<std::string, double> shares;
  const nlohmann::json json = nlohmann::json::parse(luaspy({"report", file, "--json"}).out);
  INFO(json["labels"].dump(2));
  for (const auto& each : json["labels"]["fiber"]) {
    all += each["samples"].get<double>();
    if (each["value"] == "(unknown)") unknown += each["samples"].get<double>();
    shares[each["value"]] = each["samples"].get<double>();
  }
  REQUIRE(all > 300);
  CHECK(unknown < 0.1 * all);
  for (const auto& [name, function] : functions) {
    const double expected = name == "three" ? 3. / 7 : 1. / 7;
    INFO(name);
    CHECK(std::abs(shares[name] / all - expected) < 5 * std::sqrt(expected * (1 - expected) / all) + 0.03);
    const Finished folded = luaspy({"report", file, "--label", "fiber=^" + name + "$", "-f", "folded", "-o", "-"});
    std::istringstream lines(folded.out);
    for (std::string line; std::getline(lines, line);) {
      for (const auto& [other_name, other] : functions) {
        if (other != function && line.find(';' + other + ' ') != std::string::npos)
          wrong += std::stod(line.substr(line.rfind(' ')));
      }
    }
  }
  CHECK(wrong < 1 + all / 200);  // as for LuaJIT in check_requests()
}

TEST_CASE("a label has the value that a variable had at the instant of the sample", "[live][labels]") {
  for (const char* const name : {"debian-lua5.1-bookworm", "debian-lua5.4-bookworm", "debian-luajit-bookworm"})
    check_requests(name);
}

TEST_CASE("a label has the value that a variable had, on all Luas", "[live][labels][all]") {
  for (const char* const name : {"debian-lua5.2-bookworm", "debian-lua5.3-bookworm", "debian-lua5.5-sid",
                                 "luajit-2.1.newest-gc32", "luajit-2.0.20260330-gc32"})
    check_requests(name);
}

TEST_CASE("labels that cannot be are refused", "[live][labels]") {
  for (const auto& [label, why] : {std::pair("fibre", "coroutine"),
                                   {"id=", "is not NAME=EXPR"},
                                   {"=x", "is not NAME=EXPR"},
                                   {"id=a..b", "is not NAME=EXPR"},
                                   {"id=f()", "is not NAME=EXPR"},
                                   {"time=x", "another one"}}) {
    const Finished refused = luaspy({"record", "--label", label, "--", "/bin/true"});
    INFO(label << ": " << refused.err);
    CHECK(refused.status == 2);
    CHECK(refused.err.find(why) != std::string::npos);
  }
}

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

}  // namespace luaspy::live::live_labels_test
