#pragma once
// Which HTTP request a Lua of nginx (OpenResty, Kong, APISIX) works for: --label request. lua-nginx-module keeps the
// ngx_http_request_t in the lua_State of each coroutine (lua_setexdata of OpenResty's LuaJIT; ngx_http_lua_util.h,
// ngx_http_lua_set_req). Where that has its strings is found by what they say, since servers are stripped and the
// struct differs from version to version (ngx_http_request.h: request_line, uri, args, exten, unparsed_uri,
// method_name, http_protocol, one behind the other).

#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "luastate/running.h"
#include "stack/one_stack.h"

namespace luaspy {

inline constexpr std::string_view request_label = "request";

class NginxRequests {
 public:
  // In the stop: touches what value() needs. Only what learn() has made known is looked for.
  void touch(const Memory& memory, const Located& located) const;
  // After it: "GET /index.html", the method and the path without arguments, of a subrequest its own; "(unknown)" where
  // it cannot be read; "(no request)" in a timer and where else nginx has made one up; "" if this is no Lua of nginx.
  // `stopped`: what the stop has read. `live`: the memory as it is now.
  std::string value(const Joined& joined, const Memory& stopped, const Memory& live);

  bool has_learned() const { return has_learned_; }
  // No stop may be in touch() meanwhile.
  void learn();
  // The process has become another program.
  void forget();

 private:
  // Its text in memory.
  struct Text {
    std::uint64_t size = 0;
    Address at = 0;
  };
  static std::optional<Text> text_at(const Memory& memory, Address place);
  static std::optional<std::string> read(const Memory& memory, const Text& text);
  static Address request_of(const Memory& memory, Address L);
  static std::optional<std::uint32_t> find_request_line(const Memory& memory, Address request);
  static bool is_request_line(const Memory& memory, Address place);
  struct Texts {
    bool is_made_up = false;  // the request has none
    std::optional<std::string> method{}, path{};
  };
  Texts texts_of(const Memory& memory, Address request) const;  // in the stop: touches them
  static std::string text_of(const Texts& texts);
  bool may_have_requests(const ActiveState& state, const Memory& live);

  std::unordered_map<Address, bool> has_exdata_, new_has_exdata_;  // by global_State
  std::optional<std::uint32_t> request_line_, new_request_line_;   // bytes from the request on; the same for all
  bool has_learned_ = false;
};

}  // namespace luaspy
