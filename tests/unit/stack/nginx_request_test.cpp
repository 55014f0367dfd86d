// The requests of an nginx that the test makes up: what is believed of them, and what is not.

#include "stack/nginx_request.h"

#include <array>
#include <catch2/catch.hpp>
#include <cstring>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "luastate/luajit/layouts.h"
#include "luastate/luajit/luajit_lua.h"

namespace luaspy::nginx_request_test {
namespace {

class Server : public Memory {
 public:
  bool read(Address address, std::span<std::byte> into) const override {
    for (std::size_t i = 0; i < into.size(); ++i) {
      const auto known = bytes_.find(address + i);
      if (known == bytes_.end()) return false;
      into[i] = known->second;
    }
    return true;
  }
  template <typename T>
  void put(Address address, T value) {
    std::array<std::byte, sizeof(T)> bytes;
    std::memcpy(bytes.data(), &value, sizeof value);
    for (std::size_t i = 0; i < bytes.size(); ++i) bytes_[address + i] = bytes[i];
  }
  // An ngx_str_t.
  void put_text(Address place, std::string_view text) {
    const Address at = next_;
    next_ += 256;
    for (std::size_t i = 0; i < text.size(); ++i) put(at + i, text[i]);
    put(place, std::uint64_t{text.size()});
    put(place + 8, text.empty() ? Address{0} : at);
  }
  // An ngx_http_request_t: fields before its texts are other pointers and numbers.
  Address request(std::string_view line, std::string_view path, std::string_view method,
                  std::uint32_t signature = 0x50545448) {
    const Address request = next_, first = request + texts;
    next_ += 2048;
    for (Address at = 0; at < 2048; at += 8) put(request + at, at % 24 == 0 ? request + at : Address{3});
    put(request, signature);
    const std::string_view all[] = {line, path, "x=1", "", path, method, line.empty() ? "" : "HTTP/1.1"};
    for (std::size_t i = 0; i < std::size(all); ++i) put_text(first + 16 * i, all[i]);
    return request;
  }
  // Its headers_in: an ngx_list_t with one part.
  void put_headers(Address request, const std::vector<std::pair<std::string_view, std::string_view>>& headers,
                   std::uint64_t size = 56) {
    const Address list = request + 104, elements = next_;
    next_ += 20 * size;
    for (Address at = elements; at < next_; at += 8) put(at, Address{0});
    for (std::size_t i = 0; i < headers.size(); ++i) {
      put_text(elements + i * size + 8, headers[i].first);
      put_text(elements + i * size + 24, headers[i].second);
    }
    const Address words[] = {list + 8, elements, headers.size(), 0, size, 20, request};
    for (std::size_t i = 0; i < std::size(words); ++i) put(list + 8 * i, words[i]);
  }
  // What lua-nginx-module keeps for it: the thread that it began with, and one of another coroutine.
  void put_coroutines(Address request, Address entry, Address other) {
    constexpr Address size = 96;  // of an ngx_http_lua_co_ctx_t
    const Address contexts = next_, context = contexts + 64, list = context + 512, elements = list + 64;
    next_ += 2048;
    for (Address at = contexts; at < next_; at += 8) put(at, Address{0});
    put(request + 16, contexts);
    put(contexts + 8, request);  // of another module
    put(contexts + 24, context);
    put(context + 8, request);
    put(context + 32, list);
    put(context + 48, entry);
    const Address words[] = {list + 8, elements, 2, 0, size, 4, request};
    for (std::size_t i = 0; i < std::size(words); ++i) put(list + 8 * i, words[i]);
    put(elements + size + 8, other);
    put(elements + 2 * size + 8, Address{0x70000});  // behind its end
  }
  static constexpr Address texts = 912;

 private:
  std::map<Address, std::byte> bytes_;
  Address next_ = 0x100000;
};

// A coroutine of a LuaJIT whose main thread has so many bytes.
struct Looks {
  explicit Looks(Offset state_size)
      : lua([&] {
          LuajitLayout layout = layout_rows::luajit_gc64;
          layout.main_L_below = state_size;
          return LuajitLua(layout);
        }()) {}
  LuajitLua lua;
  static constexpr Address G = 0x20000, L = 0x30000;
  Server server;
  NginxRequests requests{{.traces = true}};

  std::string look(Address request) { return whole_look(request).text; }
  std::string trace(Address request) { return whole_look(request).trace; }
  HostRequest whole_look(Address request) {
    server.put(L + 96, request);
    Joined joined;
    RunningState& state = joined.from.lua.states.emplace_back();
    state.activation = {.L = L, .G = G, .lua = &lua};
    joined.from.lua.walked = joined.from.lua.running = 1;
    HostRequest value = requests.value(joined, server, server);
    if (requests.has_learned()) requests.learn();
    return value;
  }
};

}  // namespace

TEST_CASE("nginx: a request is its method and path, once it is known where its texts are", "[unit]") {
  Looks looks(112);
  Server& server = looks.server;
  const Address first = server.request("GET /a?x=1 HTTP/1.1", "/a", "GET");
  CHECK(looks.look(first) == "(unknown)");  // whether this LuaJIT has such a field was not known in the stop
  CHECK(looks.look(first) == "GET /a");
  CHECK(looks.look(server.request("POST /b HTTP/1.1", "/b/\x01", "POST")) == "POST /b/\\x01");
  CHECK(looks.look(server.request("GET /main HTTP/1.1", "/sub", "GET")) == "GET /sub");  // a subrequest
  CHECK(looks.look(server.request("", "", "")) == "(no request)");                       // of a timer
}

TEST_CASE("nginx: the span of the caller is what the request says in a header", "[unit]") {
  Looks looks(112);
  Server& server = looks.server;
  const std::string ids = "4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7";
  const auto request = [&](std::string_view value, std::string_view key = "traceparent", std::uint64_t size = 56) {
    const Address at = server.request("GET /a HTTP/1.1", "/a", "GET");
    server.put_headers(at, {{"Host", "x"}, {"other-value", "00-"}, {key, value}}, size);
    return at;
  };
  const Address first = request("00-" + ids + "-01");
  CHECK(looks.trace(first) == "(unknown)");
  CHECK(looks.trace(first) == ids);
  CHECK(looks.trace(request("00-" + ids + "-00", "TraceParent", 48)) == ids);  // nginx before 1.23
  CHECK(looks.trace(request("00-" + ids + "-01", "x-trace-pad")) == "");
  for (const char* const wrong : {"", "00-", "01-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
                                  "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b-701",
                                  "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
                                  "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
                                  "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01"}) {
    INFO(wrong);
    const std::string trace = looks.trace(request(wrong));
    CHECK((trace == "" || (trace == "(unknown)" && *wrong == '\0')));
  }
  const Address longer = request("00-" + ids.substr(0, 48) + "77-1");  // no span has 17 digits
  CHECK(looks.trace(longer) == "");
  // Its headers cannot be read.
  const Address torn = request("00-" + ids + "-01");
  server.put(torn + 104 + 8, Address{0x999000});
  CHECK(looks.trace(torn) == "(unknown)");
  CHECK(looks.look(torn) == "GET /a");
}

TEST_CASE("nginx: the headers of a subrequest, and more than 20 of them", "[unit]") {
  const std::string ids = "4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7";
  // The headers of the answer are a list of the same shape, which lies behind.
  const auto put_answer = [](Server& server, Address request) {
    const Address list = request + 400, words[] = {list + 8, request, 0, 0, 56, 20, request};
    for (std::size_t i = 0; i < std::size(words); ++i) server.put(list + 8 * i, words[i]);
  };
  Looks of_sub(112);
  const Address main = of_sub.server.request("GET /main HTTP/1.1", "/main", "GET"),
                sub = of_sub.server.request("GET /main HTTP/1.1", "/sub", "GET");
  for (const Address each : {main, sub}) {
    of_sub.server.put_headers(each, {{"traceparent", "00-" + ids + "-01"}});
    put_answer(of_sub.server, each);
  }
  of_sub.server.put(sub + 104, main + 112);  // the last part: a copy of its parent's list
  (void)of_sub.look(sub);
  CHECK(of_sub.trace(sub) == ids);
  CHECK(of_sub.trace(main) == ids);

  Looks of_many(112);
  Server& server = of_many.server;
  const Address request = server.request("GET /a HTTP/1.1", "/a", "GET"), second = server.request("", "", ""),
                part = second + 1000;
  server.put_headers(request, {{"Host", "x"}});
  server.put_headers(second, {{"traceparent", "00-" + ids + "-01"}});
  put_answer(server, request);
  const Address elements = server.get<Address>(second + 112).value();
  for (const auto& [place, word] : {std::pair(part, elements), {part + 8, Address{1}}, {part + 16, Address{0}}})
    server.put(place, word);
  server.put(request + 104, part);               // the last part
  server.put(request + 120, std::uint64_t{20});  // the first one is full
  server.put(request + 128, part);
  (void)of_many.look(request);
  CHECK(of_many.trace(request) == ids);
}

TEST_CASE("nginx: who has not asked for spans gets none", "[unit]") {
  Looks looks(112);
  looks.requests = NginxRequests({});
  const Address request = looks.server.request("GET /a HTTP/1.1", "/a", "GET");
  CHECK(looks.trace(request) == "");
  CHECK(looks.trace(request) == "");
  CHECK(looks.look(request) == "GET /a");
}

TEST_CASE("nginx: a request is told from another one of the same address", "[unit]") {
  Looks looks(112);
  Server& server = looks.server;
  const Address request = server.request("GET /a HTTP/1.1", "/a", "GET");
  const auto begin_at = [&](std::uint64_t sec, std::uint64_t ms) {
    server.put(request + Server::texts - 32, sec);
    server.put(request + Server::texts - 24, ms);
  };
  begin_at(1'700'000'000, 250);
  (void)looks.look(request);
  const RequestIdentity first = looks.whole_look(request).identity;
  CHECK(first.begun_ms == 1'700'000'000'250);
  CHECK(looks.whole_look(request).identity.id == first.id);
  begin_at(1'700'000'000, 251);
  CHECK(looks.whole_look(request).identity.id != first.id);
  begin_at(1'700'000'000, 1000);  // no milliseconds
  CHECK(looks.whole_look(request).identity.begun_ms == 0);
}

TEST_CASE("nginx: a subrequest is a part of the request that has made it", "[unit]") {
  Looks looks(112);
  Server& server = looks.server;
  const Address main = server.request("GET /main HTTP/1.1", "/main", "GET"),
                sub = server.request("GET /main HTTP/1.1", "/sub", "GET"),
                place = Server::texts + 16 * 7 + 24;  // behind `schema` and `out`
  for (const Address each : {main, sub}) server.put(each + place, main);
  server.put(main + Server::texts - 32, std::uint64_t{1'700'000'000});
  server.put(main + Server::texts - 24, std::uint64_t{1});
  (void)looks.look(sub);  // which does not tell where a request has it
  const RequestIdentity before = looks.whole_look(sub).identity;
  CHECK_FALSE(before.is_part);
  const RequestIdentity own = looks.whole_look(main).identity;
  CHECK_FALSE(own.is_part);
  const HostRequest part = looks.whole_look(sub);
  CHECK(part.text == "GET /sub");
  CHECK(part.identity.is_part);
  CHECK(part.identity.id == own.id);
  CHECK(part.identity.begun_ms == 1'700'000'000'001);
}

TEST_CASE("nginx: a suspended coroutine is for the request that knows it", "[unit]") {
  Looks looks(112);
  Server& server = looks.server;
  const Address first = server.request("GET /a HTTP/1.1", "/a", "GET"),
                second = server.request("GET /b HTTP/1.1", "/b", "GET");
  constexpr Address entry = 0x40000, light = 0x50000, gone = 0x60000, beyond = 0x70000;
  server.put_coroutines(first, entry, light);
  server.put_coroutines(second, 0x80000, 0x90000);
  const auto of = [&](Address L, Address request) {
    server.put(L + 96, request);
    return looks.requests.of_suspended(server, looks.lua, Looks::G, L);
  };
  CHECK(of(entry, first).text == "(unknown)");
  (void)looks.look(first);
  CHECK(of(entry, first).text == "GET /a");
  CHECK(of(light, first).text == "GET /a");
  CHECK(of(light, first).identity.id == looks.whole_look(first).identity.id);
  // Nobody has resumed them, and the memory of their request serves another one.
  CHECK(of(gone, first).text == "");
  CHECK(of(beyond, first).text == "");
  CHECK(of(entry, second).text == "");
  server.put(second + 16, Address{0x999000});
  CHECK(of(0x80000, second).text == "");
  Looks stock(96);
  CHECK(stock.requests.of_suspended(server, stock.lua, Looks::G, entry).text == "");
}

TEST_CASE("nginx: what is no request is not taken for one", "[unit]") {
  Looks looks(112);
  Server& server = looks.server;
  CHECK(looks.look(0) == "");
  CHECK(looks.look(server.request("", "", "")) == "(unknown)");  // nothing shows where the texts are
  CHECK(looks.look(server.request("GET a HTTP/1.1", "a", "GET")) == "(unknown)");
  CHECK(looks.look(server.request("GET /a HTTP/1.1", "/a", "PUT")) == "(unknown)");
  CHECK(looks.look(server.request("GET /a HTTP/1.1", "/a", "GET", 0x4d525453)) == "");  // of another module
  CHECK(looks.look(0x999000) == "");
  const Address good = server.request("GET /a HTTP/1.1", "/a", "GET");
  CHECK(looks.look(good) == "(unknown)");
  CHECK(looks.look(good) == "GET /a");
  server.put(good + Server::texts + 16, std::uint64_t{1} << 40);  // the length of its path
  CHECK(looks.look(good) == "(unknown)");
  // A LuaJIT without that field: what is behind its states is anything.
  Looks stock(96);
  CHECK(stock.look(stock.server.request("GET /a HTTP/1.1", "/a", "GET")) == "");
}

TEST_CASE("nginx: the phase is where the function for ngx.get_phase reads it", "[unit]") {
  Looks looks(112);
  Server& server = looks.server;
  const Address request = server.request("GET /a HTTP/1.1", "/a", "GET");
  server.put_coroutines(request, 0x40000, 0x50000);
  const auto all = server.get<Address>(request + 16).value(), context = server.get<Address>(all + 24).value();
  const auto put_phase = [&](std::uint16_t phase) { server.put(context + 420, phase); };
  int asked = 0;
  std::vector<Load> loads = {
      {0x100, 8, 0x200}, {0x200, 8, 3}, {request + 16, 8, all}, {all + 24, 8, context}, {context + 420, 2, 8}};
  looks.requests = NginxRequests({.phases = true, .loads_of = [&](const char* name, Address of) {
                                    CHECK(std::string_view(name) == "ngx_http_lua_ffi_get_phase");
                                    CHECK(of == request);
                                    return ++asked == 1 ? std::vector<Load>() : loads;  // its context was not there yet
                                  }});
  put_phase(8);
  const auto phase = [&] { return looks.whole_look(request).phase; };
  CHECK(phase() == "(unknown)");
  CHECK(phase() == "(unknown)");
  CHECK(phase() == "content");
  CHECK(asked == 2);
  for (const auto& [bit, name] : {std::pair(1, "set"),
                                  {2, "rewrite"},
                                  {0x10, "log"},
                                  {0x80, "timer"},
                                  {0x8000, "server_rewrite"},
                                  {0, "(unknown)"},
                                  {3, "phase 0x3"}}) {
    put_phase(static_cast<std::uint16_t>(bit));
    CHECK(phase() == name);
  }
  server.put(all + 24, Address{0});  // the module knows nothing of it
  CHECK(phase() == "(unknown)");
  CHECK(looks.whole_look(server.request("GET /b HTTP/1.1", "/b", "GET")).phase == "(unknown)");
}

TEST_CASE("nginx: a function that reads something else says no phase", "[unit]") {
  Looks looks(112);
  Server& server = looks.server;
  const Address request = server.request("GET /a HTTP/1.1", "/a", "GET");
  server.put_coroutines(request, 0x40000, 0x50000);
  const auto all = server.get<Address>(request + 16).value(), context = server.get<Address>(all + 24).value();
  server.put(context + 420, std::uint16_t{8});
  for (const std::vector<Load>& loads :
       std::vector<std::vector<Load>>{{},
                                      {{request + 16, 8, all}, {all + 24, 8, context}},
                                      {{request + 24, 8, all}, {all + 24, 8, context}, {context + 420, 2, 8}},
                                      {{request + 16, 8, all}, {all + 25, 8, context}, {context + 420, 2, 8}},
                                      {{request + 16, 8, all}, {all - 8, 8, context}, {context + 420, 2, 8}},
                                      {{request + 16, 8, all}, {all + 24, 8, context}, {context + 5000, 2, 8}},
                                      {{request + 16, 8, all}, {all + 24, 8, context}, {context + 420, 8, 8}}}) {
    looks.requests = NginxRequests({.phases = true, .loads_of = [&](const char*, Address) { return loads; }});
    for (int i = 0; i < 20; ++i) CHECK(looks.whole_look(request).phase == "(unknown)");
  }
}

}  // namespace luaspy::nginx_request_test
