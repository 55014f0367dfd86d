// What is said in a message for OpenTelemetry, and that its bytes and its JSON say the same.

#include "output/otlp.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/varint.h"
#include "output/otlp_wire.h"
#include "support/foreign_files.h"
#include "support/framed.h"
#include "support/otlp_samples.h"
#include "support/sample_profile.h"

namespace luaspy::otlp_test {
namespace {

using Json = nlohmann::json;

Profile two_threads() {
  Profile profile;
  profile.about.executable = "/usr/bin/lua5.4";
  profile.about.luaspy = "1.0";
  profile.about.pid = 7;
  profile.about.rate = 100;
  profile.about.started_s = 1'000;
  profile.about.duration_ns = 40'000'000;
  profile.about.luas = {"Lua 5.4.3-5.4.9"};
  const Frame main = {Frame::Kind::native, "main", "lua5.4", 0, 0}, work = {Frame::Kind::lua, "work", "a.lua", 3, 4};
  FramedSample sample;
  sample.stack = {main, work};
  sample.vm_state = VmState::interpreting;
  add_framed(profile, {8, "lua"}, {10'000'000, 10'000'000}, sample);
  add_framed(profile, {9, "lua"}, {10'000'000, 10'000'000}, sample);
  sample.stack = {main};
  sample.state = Sample::State::sleeping;
  add_framed(profile, {8, "lua"}, {20'000'000, 9'000'000}, sample);
  return profile;
}

Json json_of(const Profile& profile, const OtlpAttributes& known = {}) {
  OtlpBuilder builder;
  builder.add(profile, {}, known);
  return Json::parse(otlp::to_json(builder.message()));
}

// The fields of a message in protobuf's wire format: by number, what is in them.
using Fields = std::multimap<int, std::string>;
Fields fields_of(std::string_view bytes) {
  Fields fields;
  auto next = bytes.begin();
  while (next != bytes.end()) {
    const std::uint64_t tag = read_varint(next, bytes.end()).value();
    std::uint64_t size = 8;
    if (tag % 8 == 0) {
      fields.emplace(static_cast<int>(tag / 8), std::to_string(read_varint(next, bytes.end()).value()));
      continue;
    }
    if (tag % 8 == 2) size = read_varint(next, bytes.end()).value();
    REQUIRE(size <= static_cast<std::uint64_t>(bytes.end() - next));
    fields.emplace(static_cast<int>(tag / 8), std::string(next, next + static_cast<std::ptrdiff_t>(size)));
    next += static_cast<std::ptrdiff_t>(size);
  }
  return fields;
}
const std::string& one(const Fields& fields, int number) {
  REQUIRE(fields.count(number) == 1);
  return fields.find(number)->second;
}

}  // namespace

TEST_CASE("otlp: threads of one name are one, what ran and what slept are two profiles", "[unit]") {
  const Json json = json_of(two_threads());
  const Json& tables = json.at("dictionary");
  const Json& strings = tables.at("stringTable");
  REQUIRE(json.at("resourceProfiles").size() == 1);
  const Json& profiles = json.at("/resourceProfiles/0/scopeProfiles/0/profiles"_json_pointer);
  REQUIRE(profiles.size() == 2);
  const auto text = [&](const Json& of, const char* key) { return strings.at(of.at(key).get<std::size_t>()); };

  const Json& ran = profiles.at(0);
  CHECK(text(ran.at("sampleType"), "typeStrindex") == "samples");
  CHECK(text(ran.at("sampleType"), "unitStrindex") == "count");
  CHECK(text(ran.at("periodType"), "typeStrindex") == "cpu");
  CHECK(ran.at("period") == "10000000");
  CHECK(ran.at("timeUnixNano") == "1000000000000");
  CHECK(ran.at("durationNano") == "40000000");
  CHECK(ran.at("profileId").get<std::string>().size() == 32);
  REQUIRE(ran.at("samples").size() == 1);
  CHECK(ran.at("samples").at(0).at("values") == Json({"2"}));

  const Json& slept = profiles.at(1);
  CHECK(text(slept.at("sampleType"), "typeStrindex") == "off_cpu");
  CHECK(slept.at("samples").at(0).at("values") == Json({"9000000"}));
  CHECK(slept.at("profileId") != ran.at("profileId"));

  // Innermost first.
  const auto name = [&](const Json& location) {
    return text(tables.at("functionTable").at(location.at("lines").at(0).at("functionIndex").get<std::size_t>()),
                "nameStrindex");
  };
  const Json& stack = tables.at("stackTable").at(ran.at("samples").at(0).at("stackIndex").get<std::size_t>());
  const Json& innermost = tables.at("locationTable").at(stack.at("locationIndices").at(0).get<std::size_t>());
  CHECK(name(innermost) == "work (a.lua:3)");
  CHECK(innermost.at("lines").at(0).at("line") == "4");
  const Json& type = tables.at("attributeTable").at(innermost.at("attributeIndices").at(0).get<std::size_t>());
  CHECK(text(type, "keyStrindex") == "profile.frame.type");
  CHECK(type.at("value").at("stringValue") == "lua");
}

TEST_CASE("otlp: entry 0 of each table is empty, and every index has an entry", "[unit]") {
  const Json tables = json_of(two_threads()).at("dictionary");
  CHECK(tables.at("stringTable").at(0) == "");
  for (const char* const table :
       {"mappingTable", "locationTable", "functionTable", "linkTable", "attributeTable", "stackTable"}) {
    CAPTURE(table);
    CHECK(tables.at(table).at(0) == Json::object());
  }
}

TEST_CASE("otlp: a process has its own resource; what the sender knows comes first", "[unit]") {
  Profile profile = two_threads();
  ThreadInfo child = {20, "worker", 20, "child"};
  FramedSample sample;
  sample.stack = {{Frame::Kind::lua, "work", "a.lua", 3, 4}};
  add_framed(profile, child, {30'000'000, 10'000'000}, sample);
  const Json resources = json_of(profile, {{"service.name", "shop"}, {"host.name", "here"}}).at("resourceProfiles");
  REQUIRE(resources.size() == 2);
  const auto value = [&](std::size_t resource, std::string_view key) -> std::string {
    for (const Json& attribute : resources.at(resource).at("resource").at("attributes")) {
      if (attribute.at("key") == key) return attribute.at("value").begin()->get<std::string>();
    }
    return "none";
  };
  CHECK(value(0, "service.name") == "shop");
  CHECK(value(0, "host.name") == "here");
  CHECK(value(0, "process.pid") == "7");
  CHECK(value(0, "process.executable.path") == "/usr/bin/lua5.4");
  CHECK(value(0, "process.runtime.name") == "Lua");
  CHECK(value(0, "process.runtime.version") == "5.4.3-5.4.9");
  CHECK(value(1, "process.pid") == "20");
  CHECK(value(1, "process.executable.name") == "child");
  CHECK(value(1, "process.executable.path") == "none");
}

TEST_CASE("otlp: what a process has executed is a resource of its own", "[unit]") {
  Profile profile = two_threads();
  FramedSample sample;
  sample.stack = {{Frame::Kind::lua, "work", "a.lua", 3, 4}};
  add_framed(profile, {20, "sh", 20, "sh", 1}, {30'000'000, 10'000'000}, sample);
  add_framed(profile, {20, "lua", 20, "lua", 2}, {40'000'000, 10'000'000}, sample);
  CHECK(json_of(profile).at("resourceProfiles").size() == 3);
}

TEST_CASE("otlp: bytes say what JSON says", "[unit]") {
  OtlpBuilder builder;
  builder.add(two_threads(), {});
  const std::string bytes = otlp::to_protobuf(builder.message());
  const Json json = Json::parse(otlp::to_json(builder.message()));
  const Fields message = fields_of(bytes), tables = fields_of(one(message, 2));
  const std::map<int, const char*> names = {{1, "mappingTable"}, {2, "locationTable"}, {3, "functionTable"},
                                            {4, "linkTable"},    {5, "stringTable"},   {6, "attributeTable"},
                                            {7, "stackTable"}};
  for (const auto& [number, name] : names) CHECK(tables.count(number) == json.at("dictionary").at(name).size());
  std::vector<std::string> strings;
  for (auto [at, end] = tables.equal_range(5); at != end; ++at) strings.push_back(at->second);
  CHECK(Json(strings) == json.at("dictionary").at("stringTable"));

  const Fields scope = fields_of(one(fields_of(one(message, 1)), 2));
  REQUIRE(scope.count(2) == 2);
  const Fields ran = fields_of(scope.find(2)->second);
  CHECK(one(ran, 4) == "40000000");
  CHECK(one(ran, 6) == "10000000");
  CHECK(one(ran, 7).size() == 16);
  CHECK(one(ran, 3) == std::string("\x00\x10\xa5\xd4\xe8\x00\x00\x00", 8));  // 10¹², fixed64
  CHECK(one(fields_of(one(ran, 2)), 4) == "\x02");                           // packed
}

// Without the samples of sleeping threads, whose number the message does not have.
TEST_CASE("otlp: stacks have the numbers that folded stacks have", "[unit]") {
  for (const Unit unit : {Unit::nanoseconds, Unit::bytes, Unit::objects}) {
    const Result<Profile> profile = foreign::read(sample_recording(unit), {0, {}, "lua5.4"});
    REQUIRE(profile);
    std::map<std::string, std::int64_t> stacks;
    std::int64_t collecting = 0;
    for (const otlp_samples::OtlpProfile& each : otlp_samples::profiles_of(foreign::written("otlp", *profile))) {
      CHECK(each.time_ns == static_cast<std::uint64_t>(profile->about.started_s) * 1'000'000'000);
      CHECK(each.duration_ns == static_cast<std::uint64_t>(profile->about.duration_ns));
      CHECK(each.period == (unit == Unit::nanoseconds ? 10'000'000 : 1));
      for (const otlp_samples::OtlpSample& sample : each.samples) {
        std::string stack;
        for (std::string frame : sample.frames) {
          std::ranges::replace(frame, ';', ':');
          stack += (stack.empty() ? "" : ";") + frame;
        }
        stacks[stack] += sample.value;
        if (sample.attributes.at("luaspy.vm_state") == name(VmState::collecting)) collecting += sample.value;
      }
    }
    std::string folded;
    for (const auto& [stack, value] : stacks) folded += stack + ' ' + std::to_string(value) + '\n';
    CHECK(folded == foreign::written("folded", *profile));
    if (unit == Unit::nanoseconds) CHECK(collecting == profile->samples_in(VmState::collecting));
  }
}

TEST_CASE("otlp: what slept has the time that it slept", "[unit]") {
  const Profile profile = foreign::profile_of(sample_recording(Unit::nanoseconds));
  std::int64_t slept = 0;
  for (const otlp_samples::OtlpProfile& each : otlp_samples::profiles_of(foreign::written("otlp", profile))) {
    if (each.type != "off_cpu") continue;
    for (const otlp_samples::OtlpSample& sample : each.samples) slept += sample.value;
  }
  CHECK(slept == 10'000'000);
}

TEST_CASE("otlp: bytes and objects are values of their own", "[unit]") {
  for (const Unit unit : {Unit::bytes, Unit::objects}) {
    Profile profile = two_threads();
    profile.about.unit = unit;
    const Json json = json_of(profile);
    const Json& profiles = json.at("/resourceProfiles/0/scopeProfiles/0/profiles"_json_pointer);
    REQUIRE(profiles.size() == 1);
    const Json& strings = json.at("dictionary").at("stringTable");
    CHECK(strings.at(profiles.at(0).at("sampleType").at("typeStrindex").get<std::size_t>()) ==
          (unit == Unit::bytes ? "alloc_space" : "alloc_objects"));
    std::int64_t sum = 0;
    for (const Json& sample : profiles.at(0).at("samples"))
      sum += std::stoll(sample.at("values").at(0).get<std::string>());
    CHECK(sum == 29'000'000);
  }
}

}  // namespace luaspy::otlp_test
