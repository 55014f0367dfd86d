// The proxies of an HAProxy that the test makes up.

#include "stack/haproxy_proxy.h"

#include <catch2/catch.hpp>
#include <cstring>
#include <string_view>
#include <vector>

#include "../luastate/image54.h"

namespace luaspy::haproxy_proxy_test {
namespace {

constexpr Address process_stream = 0x5000, applet_wakeup = 0x5100, process_task = 0x5200;

struct Server {
  Image54 image;
  bool is_haproxy = true;
  HaproxyProxies proxies{[this](const char* name) -> Address {
    const std::string_view text = name;
    if (!is_haproxy) return 0;
    return text == "process_stream" ? process_stream : text == "hlua_applet_wakeup" ? applet_wakeup : process_task;
  }};

  Address text(std::string_view text) {
    const Address at = image.object(text.size() + 40, 0);
    for (std::size_t i = 0; i < text.size(); ++i) image.put(at + i, text[i]);
    return at;
  }
  Address session(std::string_view frontend) {
    const Address proxy = image.object(13 << 10, 0), listener = image.object(64, 0), session = image.object(64, 0),
                  name = text(frontend), file = text("file");
    image.put(proxy, std::uint8_t{2});
    image.put(proxy + 0x800, file);  // twice, but no key
    image.put(proxy + 0x900, name);
    image.put(proxy + 0x1000, file);
    image.put(proxy + 0x1010, proxy + 1);  // the node's parent, and small numbers
    image.put(proxy + 0x1018, std::uint64_t{0x10005});
    image.put(proxy + 0x1020, name);
    image.put(listener, std::uint8_t{1});
    image.put(session, proxy);
    image.put(session + 8, listener);
    return session;
  }
  Address task(Address function, Address context) {
    const Address task = image.object(256, 0);
    image.put(task + 0x40, function);
    image.put(task + 0x48, context);
    return task;
  }
  Address stream(std::string_view frontend) {
    const Address stream = image.object(1600, 0);
    image.put(stream, std::uint8_t{9});
    image.put(stream + 0x30, session(frontend));
    image.put(stream + 0x80, task(process_stream, stream));
    return stream;
  }
  // Of a service that a stream uses.
  Address applet_of(Address stream) {
    const Address applet = image.object(256, 0), endpoint = image.object(128, 0), connector = image.object(128, 0);
    image.put(applet + 8, text("other"));
    image.put(applet + 0x38, endpoint);
    image.put(endpoint + 8, connector);
    image.put(connector + 0x18, stream);
    return applet;
  }
  // A coroutine that HAProxy has begun.
  Address coroutine(Address task) {
    const Address L = image.object(64, 0) + 16, hlua = image.object(128, 0);
    image.put(L - 8, hlua);
    image.put(hlua, L);
    image.put(hlua + 0x38, task);
    return L;
  }
  std::string look(Address L) {
    Joined joined;
    joined.from.lua.states.emplace_back().activation = {.L = L, .G = 0, .lua = &Image54::lua()};
    joined.from.lua.walked = joined.from.lua.running = 1;
    std::string value = proxies.value(joined, image, image).text;
    if (proxies.has_learned()) proxies.learn();
    return value;
  }
};

}  // namespace

TEST_CASE("haproxy: the frontend is that of the stream, or of the one that uses the applet", "[unit]") {
  Server server;
  const Address front = server.stream("front"), side = server.stream("side.door");
  const Address action = server.coroutine(server.task(process_stream, front)),
                service = server.coroutine(server.task(applet_wakeup, server.applet_of(side))),
                task = server.coroutine(server.task(process_task, 0));
  CHECK(server.look(action) == "(unknown)");  // where all that is was not known in the stop
  CHECK(server.look(action) == "front");
  CHECK(server.look(service) == "(unknown)");
  CHECK(server.look(service) == "side.door");
  CHECK(server.look(task) == "(no request)");
  CHECK(server.look(server.coroutine(server.task(process_stream, side))) == "side.door");
}

TEST_CASE("haproxy: a service that is seen first", "[unit]") {
  Server server;
  const Address service = server.coroutine(server.task(applet_wakeup, server.applet_of(server.stream("front"))));
  CHECK(server.look(service) == "(unknown)");
  CHECK(server.look(service) == "front");
}

TEST_CASE("haproxy: what is none of its own has no frontend", "[unit]") {
  Server server;
  const Address stream = server.stream("front"), L = server.coroutine(server.task(process_stream, stream));
  const Address own = server.image.object(64, 0) + 16;  // a coroutine of the program, whose extra space is another's
  server.image.put(own - 8, *server.image.get<Address>(L - 8));
  CHECK(server.look(own) == "");

  Server other;
  other.is_haproxy = false;
  CHECK(other.look(other.coroutine(other.task(process_stream, other.stream("front")))) == "");

  Server second;
  const Address broken = second.stream("front"), its = second.coroutine(second.task(process_stream, broken));
  (void)second.look(its);
  CHECK(second.look(its) == "front");
  const Address session = *second.image.get<Address>(broken + 0x30), proxy = *second.image.get<Address>(session);
  second.image.put(proxy + 0x900, second.text("a b"));  // no name of a proxy
  CHECK(second.look(its) == "(unknown)");
  second.image.put(session, Address{8});
  CHECK(second.look(its) == "(unknown)");
}

}  // namespace luaspy::haproxy_proxy_test
