#include "sending/outbox.h"

#include <catch2/catch.hpp>
#include <vector>

namespace luaspy::outbox_test {
namespace {

using namespace std::chrono_literals;

HttpRequest request(const std::string& body) { return {"http://engine", {}, body}; }

// Answers as it is told, and keeps what was sent.
class Told : public HttpClient {
 public:
  struct Log {
    std::mutex lock;
    std::vector<int> statuses;  // the last one for ever
    std::vector<std::string> bodies;
  };
  explicit Told(Log& log) : log_(log) {}
  Result<HttpAnswer> post(const HttpRequest& sent) override {
    const std::lock_guard lock(log_.lock);
    log_.bodies.push_back(sent.body);
    const int status = log_.statuses.front();
    if (log_.statuses.size() > 1) log_.statuses.erase(log_.statuses.begin());
    return HttpAnswer{status, "", {}};
  }

 private:
  Log& log_;
};

}  // namespace

TEST_CASE("a queue that is full drops the oldest, and counts them", "[unit]") {
  SendQueue queue(4096);
  CHECK(queue.first() == std::nullopt);
  for (int i = 0; i < 5; ++i) queue.add(request(std::string(400, static_cast<char>('a' + i))));
  CHECK(queue.size() == 2);
  CHECK(queue.dropped() == 3);
  CHECK(queue.bytes() <= 4096);
  REQUIRE(queue.first() == 3);
  CHECK(queue.find(3)->body[0] == 'd');
  CHECK(queue.find(2) == nullptr);
  queue.add(request(std::string(5000, 'x')));  // alone too large
  CHECK(queue.dropped() == 4);
  CHECK(queue.size() == 2);
  queue.remove(2);  // it was dropped while it was being sent
  CHECK(queue.size() == 2);
  queue.remove(3);
  CHECK(queue.find(4)->body[0] == 'e');
  queue.remove(4);
  CHECK(queue.size() == 0);
  CHECK(queue.bytes() == 0);
}

TEST_CASE("what is refused is lost, and said once; the rest is sent in order", "[unit]") {
  Told::Log log;
  log.statuses = {200, 400, 400, 200};
  std::vector<std::string> said;
  {
    Outbox outbox(std::make_unique<Told>(log), 1 << 20, 1, [&](const std::string& text) { said.push_back(text); });
    for (const char* const body : {"a", "b", "c", "d"}) outbox.add(request(body));
    outbox.finish(10s);
    const OutboxCounts counts = outbox.counts();
    CHECK(counts.sent == 2);
    CHECK(counts.sent_bytes == 2);
    CHECK(counts.refused == 2);
    CHECK(counts.dropped == 0);
    CHECK(counts.waiting == 0);
  }
  CHECK(log.bodies == std::vector<std::string>{"a", "b", "c", "d"});
  REQUIRE(said.size() == 2);
  CHECK(said[0] == "http://engine answered 400. This message is lost.");
  CHECK(said[1] == "The engine takes profiles again.");
}

TEST_CASE("an engine that is busy gets the same request again; an outbox ends at once", "[unit]") {
  Told::Log log;
  log.statuses = {503, 200};
  {
    Outbox outbox(std::make_unique<Told>(log), 1 << 20, 1, [](const std::string&) {});
    outbox.add(request("a"));
    outbox.finish(10s);
    CHECK(outbox.counts().sent == 1);
  }
  CHECK(log.bodies == std::vector<std::string>{"a", "a"});
  log.statuses = {503};
  Outbox outbox(std::make_unique<Told>(log), 1 << 20, 1, [](const std::string&) {});
  outbox.add(request("b"));
  outbox.finish(10ms);
  CHECK(outbox.counts().waiting == 1);
}

}  // namespace luaspy::outbox_test
