// The requests of an nginx that the test makes up: what is believed of them, and what is not.

#include "stack/nginx_request.h"

#include <array>
#include <catch2/catch.hpp>
#include <cstring>
#include <map>
#include <string_view>

#include "luastate/luajit/layouts.h"
#include "luastate/luajit/luajit_lua.h"

namespace luaspy {
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
  NginxRequests requests;

  std::string look(Address request) {
    server.put(L + 96, request);
    Joined joined;
    RunningState& state = joined.from.lua.states.emplace_back();
    state.activation = {.L = L, .G = G, .lua = &lua};
    joined.from.lua.walked = joined.from.lua.running = 1;
    std::string value = requests.value(joined, server, server);
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

}  // namespace luaspy
