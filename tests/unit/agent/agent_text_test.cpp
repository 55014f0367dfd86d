#include "agent/agent_text.h"

#include <catch2/catch.hpp>

#include "agent/control.h"

namespace luaspy::agent_text_test {
namespace {

AgentState example_state() {
  AgentState state;
  state.sums.processes = {{811, "ngi\"nx", "LuaJIT 2.1", 100, 2, 1'500'000'000, 3 << 19, 7}};
  state.sums.samples = 150, state.sums.lost = 3;
  state.rate = 9.5, state.wanted_rate = 19, state.cpu = 0.008, state.most_cpu = 0.01, state.cpu_ns = 2'000'000'000;
  state.to = "http://collector:4318";
  state.outbox.sent = 7, state.outbox.waiting = 1, state.outbox.trouble = "Could not connect.";
  return state;
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("heaps of Luas that have run lately, and rounds of their collectors", "[unit]") {
  const RecentHeaps::Time now{std::chrono::hours(1)};
  const auto heap = [](Address G, std::int64_t bytes, std::uint8_t white) {
    HeapReading reading;
    reading.G = G, reading.bytes = bytes, reading.dead_white = white;
    return std::vector{reading};
  };
  RecentHeaps heaps;
  heaps.add(heap(1, 100, 1), now);
  heaps.add(heap(2, 1000, 1), now);
  CHECK(heaps.bytes(now) == 1100);
  heaps.add(heap(1, 120, 2), now + std::chrono::seconds(50));
  heaps.add(heap(1, 130, 2), now + std::chrono::seconds(51));
  heaps.add(heap(1, 90, 1), now + std::chrono::seconds(52));
  CHECK(heaps.bytes(now + std::chrono::seconds(53)) == 1090);
  CHECK(heaps.bytes(now + std::chrono::seconds(61)) == 90);  // the other one may be closed
  CHECK(heaps.collections() == 2);
}

TEST_CASE("the status of an agent, for people", "[unit]") {
  AgentState state = example_state();
  const std::string text = status_text(state);
  CHECK(has(text, "1 Lua programs, 150 samples, 3 lost\n9.5 Hz of 19; 0.80 % of a CPU of 1\n"));
  CHECK(has(text,
            "sends to http://collector:4318: 7 messages, 0.0 kB; 0 refused, 0 dropped, 1 waiting (0.0 kB)\n  Could not "
            "connect.\n"));
  CHECK(has(text, "     811  ngi\"nx  100 samples, 2 lost; stood still 1500.0 ms; Lua heap 1.5 MiB  LuaJIT 2.1\n"));
  CHECK_FALSE(has(text, "keeps"));
  state.kept = FlightRecorder::Size{1 << 20, std::chrono::seconds(90), true};
  state.to = "";
  CHECK(has(status_text(state), "sends nothing\nkeeps the last 90 s in 1.0 MiB, which is full; 0 snapshots written\n"));
}

TEST_CASE("the numbers of an agent, for Prometheus", "[unit]") {
  const std::string text = metrics_text(example_state());
  CHECK(has(text, "# TYPE luaspy_agent_samples_total counter\nluaspy_agent_samples_total 150\n"));
  CHECK(has(text, "luaspy_agent_messages_total{result=\"sent\"} 7\n"));
  CHECK(has(text, "luaspy_agent_cpu_seconds_total 2\n"));
  CHECK(has(text, "luaspy_process_stopped_seconds_total{pid=\"811\",name=\"ngi\\\"nx\"} 1.5\n"));
  CHECK(has(text, "luaspy_process_lua_heap_bytes{pid=\"811\",name=\"ngi\\\"nx\"} 1572864\n"));
  CHECK(has(text, "luaspy_process_lua_collections_total{pid=\"811\",name=\"ngi\\\"nx\"} 7\n"));
  CHECK_FALSE(has(text, "luaspy_agent_kept"));
}

TEST_CASE("the pages of an agent are one", "[unit]") {
  const AgentState state = example_state();
  CHECK(http_answer("GET /metrics HTTP/1.1\r\nHost: x", state).starts_with("HTTP/1.1 200 OK\r\n"));
  CHECK(http_answer("GET /metrics?x=y HTTP/1.0", state).starts_with("HTTP/1.1 200 OK\r\n"));
  CHECK(http_answer("HEAD /metrics HTTP/1.1", state).ends_with("\r\n\r\n"));
  CHECK(http_answer("GET / HTTP/1.1", state).starts_with("HTTP/1.1 404 "));
  CHECK(http_answer("POST /metrics HTTP/1.1", state).starts_with("HTTP/1.1 405 "));
  CHECK(http_answer("", state).starts_with("HTTP/1.1 405 "));
}

TEST_CASE("where an agent may listen for HTTP", "[unit]") {
  CHECK((parse_address("9100")->host == "127.0.0.1" && parse_address("9100")->port == 9100));
  CHECK((parse_address("0.0.0.0:0")->host == "0.0.0.0" && parse_address("[::1]:9100")->host == "::1"));
  for (const char* const wrong : {"", ":", ":9100", "x", "1:65536", "1:-1", "9100 "})
    CHECK_FALSE(parse_address(wrong).has_value());
}

}  // namespace luaspy::agent_text_test
