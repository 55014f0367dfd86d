#include "sending/engine.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <set>

#include "profile/recorded.h"
#include "sending/profile_part.h"
#include "support/foreign_files.h"
#include "support/framed.h"
#include "support/otlp_samples.h"

namespace luaspy::engine_test {
namespace {

// So many stacks of this depth, each seen once more often than the one before.
Profile many_stacks(int count, int depth, Unit unit = Unit::nanoseconds) {
  Profile profile;
  profile.about.unit = unit;
  profile.about.luaspy = "1.0";
  profile.about.command = "/usr/bin/lua5.4 shop.lua --token=s3cret";
  profile.about.pid = 7;
  profile.about.started_s = 1'000;
  profile.about.duration_ns = 1'000'000'000;
  FramedSample sample;
  for (int i = 0; i < count; ++i) {
    sample.stack = {{Frame::Kind::native, "main", "lua5.4", 0, 0}};
    for (int level = 1; level < depth; ++level)
      sample.stack.push_back({Frame::Kind::lua, "work", "a.lua", level, 100'000 + i});
    add_framed(profile, {7, "lua", 7, profile.about.command}, {1, 2 * (i + 1), i + 1}, sample);
  }
  return profile;
}

std::vector<HttpRequest> requests_of(Engine engine, const Profile& profile) {
  const KnownProfile known = {&profile, {{"service.name", "shop"}}};
  return requests_for({engine, "http://engine/path", {{"X-Scope-OrgID", "me"}}}, {&known, 1});
}

struct Sent {
  std::size_t different = 0, depth = 0;  // samples that are not the same; frames of the deepest stack
  std::int64_t samples = 0, started_s = 0;
};

Sent sent_in(Engine engine, const std::string& body) {
  if (engine != Engine::otlp) {
    const Profile part = foreign::profile_of(body);
    return {part.counts().size(), depth_of(part), part.samples(), part.about.started_s};
  }
  const std::vector<otlp_samples::OtlpProfile> profiles = otlp_samples::profiles_of(foreign::gunzipped(body));
  REQUIRE(profiles.size() == 1);
  Sent sent = {profiles[0].samples.size(), 0, 0, static_cast<std::int64_t>(profiles[0].time_ns / 1'000'000'000)};
  for (const otlp_samples::OtlpSample& each : profiles[0].samples) {
    sent.depth = std::max(sent.depth, each.frames.size());
    sent.samples += each.value;
  }
  return sent;
}

}  // namespace

TEST_CASE("what is too large for one message of an engine is sent in parts", "[unit]") {
  constexpr int stacks = 16'001;
  const Profile profile = many_stacks(stacks, 2);
  for (const Engine engine : {Engine::pyroscope, Engine::otlp}) {
    CAPTURE(engine_names[static_cast<std::size_t>(engine)]);
    const std::vector<HttpRequest> requests = requests_of(engine, profile);
    CHECK(requests.size() == 2);
    std::int64_t samples = 0;
    for (const HttpRequest& each : requests) {
      CHECK(each.headers.back().first == "X-Scope-OrgID");
      const Sent part = sent_in(engine, each.body);
      CHECK(part.different <= 16'000);
      CHECK(part.started_s == 1'000);
      samples += part.samples;
    }
    CHECK(samples == profile.samples());
  }
  CHECK(requests_of(Engine::pyroscope, many_stacks(100, 2)).size() == 1);
}

TEST_CASE("allocations have the names that Pyroscope knows memory by, and nothing that it takes for CPU time",
          "[unit]") {
  const std::string time = foreign::gunzipped(requests_of(Engine::pyroscope, many_stacks(3, 2)).front().body);
  constexpr std::string_view samples = "\x07samples";  // a string of the table, with its length
  CHECK(time.find(samples) != std::string::npos);
  for (const auto& [unit, name] : {std::pair{Unit::bytes, "alloc_space"}, {Unit::objects, "alloc_objects"}}) {
    const Profile profile = many_stacks(3, 2, unit);
    const std::string sent = foreign::gunzipped(requests_of(Engine::pyroscope, profile).front().body);
    CHECK(sent.find(name) != std::string::npos);
    CHECK(sent.find(samples) == std::string::npos);
    CHECK(foreign::profile_of(sent).weight() == profile.weight());
  }
}

TEST_CASE("a label is there once, with the value that the user gives it", "[unit]") {
  const Profile profile = many_stacks(1, 2);
  const KnownProfile known = {&profile, {{"host.name", "web1"}, {"host_name", "web2"}, {"host.name", "web3"}}};
  const std::string url = requests_for({Engine::pyroscope, "http://engine", {}}, {&known, 1}).front().url;
  CHECK(url.find("web1") != std::string::npos);
  CHECK(url.find("web2") == std::string::npos);
  CHECK(url.find("web3") == std::string::npos);
}

TEST_CASE("messages that are made at once begin at different times", "[unit]") {
  const Profile one = many_stacks(1, 2), other = many_stacks(1, 2);
  const std::vector<KnownProfile> workers = {{&one, {{"service.name", "shop"}}}, {&other, {{"service.name", "shop"}}}};
  const std::vector<HttpRequest> requests = requests_for({Engine::pyroscope, "http://engine", {}}, workers);
  REQUIRE(requests.size() == 2);
  CHECK(foreign::gunzipped(requests[0].body) != foreign::gunzipped(requests[1].body));
  std::set<std::string> ids;
  for (const HttpRequest& each : requests_of(Engine::otlp, many_stacks(20'000, 2))) {
    const std::string bytes = foreign::gunzipped(each.body);
    constexpr std::string_view tag = "\x3a\x10";  // profile_id: field 7, 16 bytes
    ids.insert(bytes.substr(bytes.find(tag), 18));
  }
  CHECK(ids.size() == 2);
}

TEST_CASE("no message is larger than the engine takes at once", "[unit][figures]") {
  const Profile profile = many_stacks(300, 990);
  for (const Engine engine : {Engine::pyroscope, Engine::otlp}) {
    CAPTURE(engine_names[static_cast<std::size_t>(engine)]);
    const std::vector<HttpRequest> requests = requests_of(engine, profile);
    CHECK(requests.size() > 1);
    for (const HttpRequest& each : requests)
      CHECK(foreign::gunzipped(each.body).size() <= (engine == Engine::pyroscope ? 2U : 4U) << 20);
  }
}

TEST_CASE("a stack that is too deep for Pyroscope keeps its ends", "[unit]") {
  const Profile profile = many_stacks(1, 5'000);
  CHECK(depth_of(profile) == 5'000);
  const Profile sent = foreign::profile_of(requests_of(Engine::pyroscope, profile).front().body);
  CHECK(depth_of(sent) == 1'000);
  const std::vector<FrameId> frames = sent.stack(sent.situations().front().stack);
  CHECK(sent.frames()[frames[0]].name == "main");
  CHECK(sent.frames()[frames[1]].name == "[...]");
  CHECK(sent.frames()[frames[2]].line_defined == 4'002);
  CHECK(sent.frames()[frames.back()].line_defined == 4'999);
  CHECK(sent_in(Engine::otlp, requests_of(Engine::otlp, profile).front().body).depth == 5'000);
}

TEST_CASE("Pyroscope's 422 is tried again only if it is of the moment", "[unit]") {
  const HttpRequest request = requests_of(Engine::pyroscope, many_stacks(1, 2)).front();
  const auto again = [&](int status, const std::string& words) {
    return request.verdict({status, words, {}}).kind == Verdict::Kind::again;
  };
  CHECK(again(422, "pushing IngestInput-pprof failed resource_exhausted: push rate limit (4.0 MiB) exceeded"));
  CHECK(again(422, "pushing IngestInput-pprof failed empty ring"));
  CHECK_FALSE(again(422, "pushing IngestInput-pprof failed invalid_argument: profile with labels is too old"));
  CHECK_FALSE(again(400, "push rate limit"));
}

TEST_CASE("Parca has a profile only if gRPC's status is 0, in a header or in the trailers", "[unit]") {
  using Kind = Verdict::Kind;
  const HttpRequest request = requests_of(Engine::parca, many_stacks(1, 2)).front();
  const auto kind = [&](const std::string& headers, const std::string& body) {
    return request.verdict({200, body, {}, headers}).kind;
  };
  const std::string trailers("\x80\0\0\0\x10grpc-status: 0\r\n", 21);
  CHECK(kind("", std::string(5, '\0') + trailers) == Kind::as_status);
  CHECK(kind("Grpc-Status: 0\r\n", "") == Kind::as_status);
  CHECK(kind("Grpc-Status: 3\r\nGrpc-Message: invalid label name: 1a\r\n", "") == Kind::refused);
  CHECK(kind("Grpc-Status: 14\r\n", "") == Kind::again);
  for (const std::string body : {"", "none", "\x80\xff\xff\xff\xff", "\x80\x01"})
    CHECK(kind("", body) == Kind::refused);
  CHECK(request.verdict({404, "", {}}).kind == Kind::as_status);
}

TEST_CASE("no argument of a command leaves the machine", "[unit]") {
  const Profile profile = many_stacks(2, 2);
  for (const Engine engine : {Engine::pyroscope, Engine::otlp}) {
    const std::string sent = foreign::gunzipped(requests_of(engine, profile).front().body);
    CHECK(sent.find("lua5.4") != std::string::npos);
    CHECK(sent.find("s3cret") == std::string::npos);
    CHECK(sent.find("shop.lua") == std::string::npos);
  }
  CHECK(program_in("nginx: worker process") == "nginx");
  CHECK(program_in("/usr/bin/redis-server *:6379") == "redis-server");
  CHECK(program_in("").empty());
}

TEST_CASE("a URL without a path gets the engine's", "[unit]") {
  const auto url = [](Engine engine, const std::string& text) { return destination(engine, text)->url; };
  CHECK(url(Engine::otlp, "http://a:4318") == "http://a:4318/v1development/profiles");
  CHECK(url(Engine::otlp, "https://a/") == "https://a/v1development/profiles");
  CHECK(url(Engine::otlp, "http://a/own") == "http://a/own");
  CHECK(url(Engine::otlp, "http://a/own/") == "http://a/own/");
  CHECK(url(Engine::pyroscope, "http://[::1]:4040") == "http://[::1]:4040/ingest");
  CHECK(url(Engine::pyroscope, "http://a?x=y") == "http://a?x=y");
  CHECK(url(Engine::parca, "http://a") == "http://a/parca.profilestore.v1alpha1.ProfileStoreService/WriteRaw");
}

TEST_CASE("what is no URL of HTTP, or has a password, is refused without repeating the password", "[unit]") {
  for (const std::string text : {"", "a", "a:4318", "file:///etc/passwd", "http://", "https:///path", "HTTP//a"})
    CHECK(destination(Engine::otlp, text).error().cause == Cause::usage);
  const Error error = destination(Engine::otlp, "https://me:secret@host/path").error();
  CHECK(error.text.find("secret") == std::string::npos);
  CHECK(destination(Engine::otlp, "https://host/path@x"));
}

}  // namespace luaspy::engine_test
