#pragma once
// For which proxy of HAProxy a Lua works: --label request. The struct hlua of a coroutine is in its extra space (lua.h,
// lua_getextraspace; hlua.c, hlua_sethlua). It has the task that runs it, whose function says what its context is: a
// stream (actions, fetches, converters, filters), an applet (services), or nothing that a client has asked for
// (core.register_task). A stream has its session, and that the frontend. Where they have these differs from version to
// version, and is found by what it says (include/haproxy/*-t.h).

#include <array>
#include <functional>
#include <optional>
#include <string_view>

#include "luastate/running.h"
#include "stack/host_request.h"
#include "stack/one_stack.h"

namespace luaspy {

class HaproxyProxies {
 public:
  // Where the program has the function of this name that it exports; 0: there is none. Asked for once, after a stop.
  using FunctionAt = std::function<Address(const char* function)>;
  explicit HaproxyProxies(FunctionAt function_at) : function_at_(std::move(function_at)) {}

  // In the stop: touches what value() needs. Only what learn() has made known is looked for.
  void touch(const Memory& memory, const Located& located) const;
  // After it: the name of the frontend; "(no request)" in a task; "(unknown)" where it cannot be read; "" if this is no
  // Lua of HAProxy. `stopped`: what the stop has read. `live`: the memory as it is now.
  HostRequest value(const Joined& joined, const Memory& stopped, const Memory& live);

  bool has_learned() const { return new_places_ != places_; }
  // No stop may be in touch() meanwhile.
  void learn() { places_ = new_places_; }
  // The process has become another program.
  void forget() { *this = HaproxyProxies(function_at_); }

 private:
  // The functions of tasks (struct task, process) that run Lua.
  struct Functions {
    Address stream = 0, applet = 0, task = 0;
  };
  // Bytes from the begin of each struct. The same for all.
  struct Places {
    std::optional<std::uint32_t> task{}, process{};  // in a struct hlua; in a struct task, right before the context
    std::optional<std::uint32_t> session{}, id{};    // in a struct stream; in a struct proxy
    std::optional<std::array<std::uint32_t, 3>> stream{};  // from an applet's context on: in it, and in what is pointed
                                                           // to
    bool operator==(const Places&) const = default;
  };
  struct Task {
    Address function = 0, context = 0;
  };
  using Room = std::array<char, 256>;
  static std::optional<Address> hlua_of(const Memory& memory, Address L);
  static std::optional<std::uint32_t> find_id(const Memory& memory, Address proxy);
  static bool is_session(const Memory& memory, Address at);
  std::optional<Task> task_of(const Memory& memory, Address hlua, const Places& places) const;
  Address stream_of(const Memory& memory, const Task& task, const Places& places) const;
  std::string_view name_of(const Memory& memory, Address stream, Room& room) const;
  bool is_stream(const Memory& memory, Address at, std::uint32_t process) const;
  void find_task(const Memory& memory, Address hlua, Places& places) const;
  void find_session(const Memory& memory, Address stream, Places& places) const;
  void find_stream(const Memory& memory, Address applet, Places& places) const;
  void look_for_places(const Memory& live, Address hlua);

  FunctionAt function_at_;
  std::optional<Functions> functions_;
  Places places_, new_places_;
  int tries_ = 0;  // to find places
};

}  // namespace luaspy
