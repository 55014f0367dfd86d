#pragma once
// Which HTTP request a Lua of nginx (OpenResty, Kong, APISIX) works for: --label request, --label trace, --label phase.
// lua-nginx-module keeps the ngx_http_request_t in the lua_State of each coroutine (lua_setexdata of OpenResty's
// LuaJIT; ngx_http_lua_util.h, ngx_http_lua_set_req). Where that has what is asked for is found by what it says, since
// servers are stripped and the struct differs from version to version (ngx_http_request.h: headers_in, which begins
// with a list of all headers; start_sec, start_msec, method, http_version, request_line, uri, args, exten,
// unparsed_uri, method_name, http_protocol, schema, out, main, one behind the other). Where the phase is, the function
// says that lua-nginx-module exports for ngx.get_phase: it reads nothing else.

#include <array>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "arch/machine_code.h"
#include "luastate/running.h"
#include "stack/host_request.h"
#include "stack/one_stack.h"

namespace luaspy {

class NginxRequests {
 public:
  // What the exported function of this name reads if it is called with this argument; empty: there is no such function,
  // or it cannot be told. Asked for a few times, after a stop.
  using LoadsOf = std::function<std::vector<Load>(const char* function, Address argument)>;
  struct Wanted {
    bool traces = false;  // HostRequest::trace, by the header "traceparent" (W3C Trace Context, 3.2)
    bool phases = false;  // HostRequest::phase
    LoadsOf loads_of{};   // for phases
  };
  explicit NginxRequests(Wanted wanted) : wanted_(std::move(wanted)) {}

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
  void forget() { *this = NginxRequests(wanted_); }

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
  struct PhasePlace {
    std::uint32_t context = 0;  // of lua-nginx-module: bytes from the begin of the array of all contexts
    std::uint32_t phase = 0;    // bytes from the context's begin
    std::uint8_t bytes = 0;     // it has
    bool operator==(const PhasePlace&) const = default;
  };
  // Where an ngx_http_request_t has them: bytes from its begin. The same for all.
  struct Places {
    std::optional<std::uint32_t> request_line{}, headers{}, main{};
    std::optional<PhasePlace> phase{};
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
  std::optional<PhasePlace> find_phase(Address request) const;
  std::optional<std::uint32_t> phase_of(const Memory& memory, Address request) const;
  std::string phase_text(const Memory& memory, Address request) const;
  void read_texts(const Memory& memory, Address request, Texts& texts) const;  // in the stop: touches them
  bool read_traceparent(const Memory& memory, Address request, Text& text) const;
  RequestIdentity identity_of(const Memory& memory, Address request) const;
  bool lacks_places() const { return !places_.request_line || !places_.main || (wanted_.traces && !places_.headers); }
  void look_for_places(const Memory& live, Address request);
  HostRequest unknown_request() const;
  HostRequest request_with(const Texts& texts) const;
  static bool has_exdata(const Memory& memory, const Lua& lua, Address G);
  bool may_have_requests(const ActiveState& state, const Memory& live);

  Wanted wanted_;
  std::unordered_map<Address, bool> has_exdata_, new_has_exdata_;  // by global_State
  Places places_, new_places_;
  int tries_ = 0, phase_tries_ = 0;  // to find places
  bool has_learned_ = false;
};

}  // namespace luaspy
