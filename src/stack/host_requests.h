#pragma once
// --label request, whatever the host is.

#include <utility>

#include "base/label_expression.h"
#include "stack/haproxy_proxy.h"
#include "stack/nginx_request.h"
#include "stack/redis_script.h"

namespace luaspy {

class HostRequests {
 public:
  // HostRequest::trace and ::phase only if they are asked for.
  HostRequests(const LabelChoice& choice, NginxRequests::LoadsOf loads_of, HaproxyProxies::FunctionAt function_at)
      : nginx_({choice.traces, choice.phases, std::move(loads_of)}), haproxy_(std::move(function_at)) {}

  // In the stop: touches what value() needs.
  void touch(const Memory& memory, const Located& located) const {
    nginx_.touch(memory, located);
    redis_.touch(memory, located);
    haproxy_.touch(memory, located);
  }
  // After it. No text: the Lua that runs works for nothing that is known. `stopped`: what the stop has read. `live`:
  // the memory as it is now.
  HostRequest value(const Joined& joined, Names& names, const Memory& stopped, const Memory& live) {
    HostRequest request = nginx_.value(joined, stopped, live);
    if (request.text.empty()) request = redis_.value(joined, names, stopped, live);
    return request.text.empty() ? haproxy_.value(joined, stopped, live) : request;
  }
  // Of a coroutine that is suspended: only nginx has such.
  HostRequest of_suspended(const Memory& memory, const Lua& lua, Address G, Address L) const {
    return nginx_.of_suspended(memory, lua, G, L);
  }
  bool has_learned() const { return nginx_.has_learned() || redis_.has_learned() || haproxy_.has_learned(); }
  // No stop may be in touch() meanwhile.
  void learn() {
    nginx_.learn();
    redis_.learn();
    haproxy_.learn();
  }
  // The process has become another program.
  void forget() {
    nginx_.forget();
    redis_.forget();
    haproxy_.forget();
  }

 private:
  NginxRequests nginx_;
  RedisScripts redis_;
  HaproxyProxies haproxy_;
};

}  // namespace luaspy
