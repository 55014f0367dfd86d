#pragma once
// Which HTTP request a Lua of nginx (OpenResty, Kong, APISIX) works for: --label request, --label trace.
// lua-nginx-module keeps the ngx_http_request_t in the lua_State of each coroutine (lua_setexdata of OpenResty's
// LuaJIT; ngx_http_lua_util.h, ngx_http_lua_set_req). Where that has what is asked for is found by what it says, since
// servers are stripped and the struct differs from version to version (ngx_http_request.h: headers_in, which begins
// with a list of all headers; start_sec, start_msec, method, http_version, request_line, uri, args, exten,
// unparsed_uri, method_name, http_protocol, schema, out, main, one behind the other).

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "luastate/running.h"
#include "stack/host_request.h"
#include "stack/one_stack.h"

namespace luaspy {

class NginxRequests {
 public:
  // `traces`: also HostRequest::trace, by the header "traceparent" (W3C Trace Context, 3.2).
  explicit NginxRequests(bool traces = false) : traces_(traces) {}

  // In the stop: touches what value() needs. Only what learn() has made known is looked for.
  void touch(const Memory& memory, const Located& located) const;
  // After it: "GET /index.html", the method and the path without arguments, of a subrequest its own; "(unknown)" where
  // it cannot be read; "(no request)" in a timer and where else nginx has made one up; "" if this is no Lua of nginx.
  // `stopped`: what the stop has read. `live`: the memory as it is now.
  HostRequest value(const Joined& joined, const Memory& stopped, const Memory& live);
  // Of a coroutine that is suspended: the same, by what has been learned so far. "" also where its request does not
  // know it (any more): a coroutine that nobody resumes is left as it is, and its request's memory serves others.
  HostRequest of_suspended(const Memory& memory, const Lua& lua, Address G, Address L) const;

  bool has_learned() const { return has_learned_; }
  // No stop may be in touch() meanwhile.
  void learn();
  // The process has become another program.
  void forget() { *this = NginxRequests(traces_); }

 private:
  static constexpr std::size_t longest_text = 200;  // bytes of a path
  // An ngx_str_t and its bytes, in memory that the caller gives: in the stop, nothing is allocated.
  class Text {
   public:
    // It says that it has so many bytes.
    std::uint64_t length() const { return length_; }
    // Them, up to longest_text + 1; "": it has none, or they cannot be read.
    std::string_view bytes() const { return {bytes_.data(), size_}; }
    // False: not even its length can be read.
    bool read(const Memory& memory, Address place);

   private:
    std::uint64_t length_ = 0;
    std::size_t size_ = 0;
    std::array<char, longest_text + 1> bytes_{};
  };
  // Where an ngx_http_request_t has them: bytes from its begin. The same for all.
  struct Places {
    std::optional<std::uint32_t> request_line{}, headers{}, main{};
    bool operator==(const Places&) const = default;
  };
  struct Texts {
    bool is_made_up = false;  // the request has none
    Text method, path, traceparent;
    bool has_headers = false;  // all that may have it could be read
    RequestIdentity identity{};
  };
  static Address request_of(const Memory& memory, Address L);
  static bool knows(const Memory& memory, Address request, Address L);
  static bool is_request_line(const Memory& memory, Address place);
  static bool is_list_of_headers(const Memory& memory, Address place);
  static Places find_places(const Memory& memory, Address request);
  void read_texts(const Memory& memory, Address request, Texts& texts) const;  // in the stop: touches them
  bool read_traceparent(const Memory& memory, Address request, Text& text) const;
  RequestIdentity identity_of(const Memory& memory, Address request) const;
  bool lacks_places() const { return !places_.request_line || !places_.main || (traces_ && !places_.headers); }
  HostRequest unknown_request() const;
  HostRequest request_with(const Texts& texts) const;
  static bool has_exdata(const Memory& memory, const Lua& lua, Address G);
  bool may_have_requests(const ActiveState& state, const Memory& live);

  bool traces_;
  std::unordered_map<Address, bool> has_exdata_, new_has_exdata_;  // by global_State
  Places places_, new_places_;
  int tries_ = 0;  // to find places
  bool has_learned_ = false;
};

}  // namespace luaspy
