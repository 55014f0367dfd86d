#include "sending/delivery.h"

#include <catch2/catch.hpp>
#include <deque>
#include <vector>

namespace luaspy::delivery_test {
namespace {

using namespace std::chrono_literals;
using Kind = Outcome::Kind;

// Answers with these, one after another, and with the last one for ever.
class Scripted : public HttpClient {
 public:
  explicit Scripted(std::deque<Result<HttpAnswer>> answers) : answers_(std::move(answers)) {}
  Result<HttpAnswer> post(const HttpRequest& request) override {
    sent.push_back(request.body);
    Result<HttpAnswer> answer = answers_.front();
    if (answers_.size() > 1) answers_.pop_front();
    return answer;
  }
  std::vector<std::string> sent;

 private:
  std::deque<Result<HttpAnswer>> answers_;
};

const HttpRequest request = {"http://engine/path", {}, "body"};
const Error away = {Cause::output, "Could not resolve host: engine."};

Outcome outcome(int status, const std::string& body = {}) {
  Scripted client({HttpAnswer{status, body, {}}});
  return send_once(client, request);
}

// Time passes only in sleep().
struct Clock {
  std::chrono::steady_clock::time_point now{};
  std::vector<RetryPause::Duration> slept;
  DeliveryOptions options(std::chrono::seconds patience) {
    DeliveryOptions made;
    made.patience = patience;
    made.now = [this] { return now; };
    made.sleep = [this](RetryPause::Duration duration) {
      slept.push_back(duration);
      now += duration;
      return true;
    };
    return made;
  }
};

}  // namespace

TEST_CASE("an answer says whether to try again", "[unit]") {
  for (const int status : {200, 202, 204}) CHECK(outcome(status).kind == Kind::delivered);
  for (const int status : {408, 429, 500, 502, 503, 504, 599}) CHECK(outcome(status).kind == Kind::again);
  for (const int status : {301, 302, 400, 401, 403, 404, 413, 415, 422, 501, 505})
    CHECK(outcome(status).kind == Kind::refused);
  Scripted nobody({away});
  CHECK(send_once(nobody, request).kind == Kind::again);
}

TEST_CASE("a page for people is no success", "[unit]") {
  Scripted client({HttpAnswer{200, "<html>", {}, "HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\n"}});
  const Outcome outcome = send_once(client, request);
  CHECK(outcome.kind == Kind::refused);
  CHECK(outcome.why == "http://engine/path answered 200: a page for people, not for programs: the path may be wrong.");
}

TEST_CASE("an engine's refusal is one line of its own words, and cannot change the terminal", "[unit]") {
  CHECK(outcome(404).why == "http://engine/path answered 404.");
  CHECK(outcome(400, "  no such\r\ntenant.\n").why == "http://engine/path answered 400: no such  tenant.");
  CHECK(outcome(400, "\x1b[31m").why == R"(http://engine/path answered 400: \x1b[31m.)");
  CHECK(outcome(400, std::string(5000, 'a')).why.size() < 400);
}

TEST_CASE("waits double up to a minute, at random, and never below what the engine asks for", "[unit]") {
  RetryPause retry_pause(1);
  for (const std::chrono::seconds most : {1s, 2s, 4s, 8s, 16s, 32s, 60s, 60s, 60s}) {
    const RetryPause::Duration wait = retry_pause.next({});
    CHECK(wait >= most / 2);
    CHECK(wait <= most);
  }
  CHECK(retry_pause.next(200s) == 200s);
  CHECK(retry_pause.next(86400s) == 300s);
  retry_pause.reset();
  CHECK(retry_pause.next({}) <= 1s);
  RetryPause other(2);
  CHECK(other.next({}) != RetryPause(1).next({}));
}

TEST_CASE("a request is sent until it is there", "[unit]") {
  Clock clock;
  RetryPause retry_pause(1);
  Scripted client({away, HttpAnswer{503, {}, {}}, HttpAnswer{429, {}, 7s}, HttpAnswer{200, {}, {}}});
  std::vector<std::string> said;
  DeliveryOptions options = clock.options(60s);
  options.say = [&](const std::string& text) { said.push_back(text); };
  CHECK(deliver(client, request, retry_pause, options));
  CHECK(client.sent == std::vector<std::string>(4, "body"));
  REQUIRE(clock.slept.size() == 3);
  CHECK(clock.slept[2] == 7s);
  REQUIRE(said.size() == 3);
  CHECK(said[0].starts_with("Could not resolve host: engine. Again in "));
  CHECK(said[2] == "http://engine/path answered 429. Again in 7.0 s.");
}

TEST_CASE("what is refused is not sent again, and patience ends", "[unit]") {
  Clock clock;
  RetryPause retry_pause(1);
  Scripted refusing({HttpAnswer{400, "bad", {}}});
  CHECK(deliver(refusing, request, retry_pause, clock.options(60s)).error().text ==
        "http://engine/path answered 400: bad.");
  CHECK(refusing.sent.size() == 1);

  Scripted busy({HttpAnswer{503, {}, {}}});
  CHECK_FALSE(deliver(busy, request, retry_pause, clock.options(30s)));
  CHECK(clock.now.time_since_epoch() <= 30s);
  CHECK(busy.sent.size() >= 5);

  Scripted asking({HttpAnswer{429, {}, 100s}});  // it would be too late
  CHECK_FALSE(deliver(asking, request, retry_pause, clock.options(30s)));
  CHECK(asking.sent.size() == 1);

  Scripted interrupted({HttpAnswer{503, {}, {}}});
  DeliveryOptions options = clock.options(30s);
  options.sleep = [](RetryPause::Duration) { return false; };
  CHECK_FALSE(deliver(interrupted, request, retry_pause, options));
  CHECK(interrupted.sent.size() == 1);
}

}  // namespace luaspy::delivery_test
