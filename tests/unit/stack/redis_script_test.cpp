// What a Redis that the test makes up runs: its registry, and what it keeps on its stack.

#include "stack/redis_script.h"

#include <catch2/catch.hpp>
#include <string_view>

#include "../luastate/image54.h"

namespace luaspy::redis_script_test {
namespace {

struct Server {
  static constexpr std::uint8_t light_userdata = 2;
  Image54 image;
  const Image54::Tagged key = image.string("__RUN_CTX__");
  Names names{image};
  RedisScripts scripts;

  // A scriptRunCtx.
  Image54::Tagged context(std::string_view name, std::uint64_t start_time = 1) {
    const Address text = image.object(name.size() + 40, 0), at = image.object(64, 0);
    for (std::size_t i = 0; i < name.size(); ++i) image.put(text + i, name[i]);
    const Address client = image.object(64, 0);
    image.put(client, std::uint64_t{7});  // its number
    image.put(at, text);
    image.put(at + 8, client);
    image.put(at + 32, start_time);
    return {at, light_userdata};
  }
  // A luaFuncCallCtx of Valkey 9.0. A pointer of its module may look like the name of a function.
  Image54::Tagged call_context(std::string_view name, std::uint64_t start_time = 1) {
    const Address run = image.object(64, 0), at = image.object(64, 0), module = image.object(64, 0);
    const Image54::Tagged context = this->context(name, start_time);
    image.put(module, std::uint64_t{0x5556'5758'5960});
    image.put(run, image.object(8, 0));
    image.put(run + 8, *image.get<Address>(context.word));
    image.put(run + 40, start_time);
    image.put(at, module);
    image.put(at + 8, run);
    return {at, light_userdata};
  }
  Address state_with(Image54::Tagged value) {
    const Address G = image.state({});
    set_registry(G, image.table({{image.string("other"), image.string("x")}, {key, value}}));
    return G;
  }
  void set_registry(Address G, Image54::Tagged table) {
    image.put(G + Image54::lua().registry_slot(0), table.word);
    image.put(G + Image54::lua().registry_slot(0) + 8, table.tag);
  }
  HostRequest look(Address G) {
    Joined joined;
    joined.from.lua.states.emplace_back().activation = {.L = 0, .G = G, .lua = &Image54::lua()};
    joined.from.lua.walked = joined.from.lua.running = 1;
    HostRequest request = scripts.value(joined, names, image, image);
    if (scripts.has_learned()) scripts.learn();
    return request;
  }
};

}  // namespace

TEST_CASE("redis: what it runs is in its registry, once it is known where", "[unit]") {
  Server server;
  const std::string sha1(40, 'a');
  const Address G = server.state_with(server.context(sha1));
  CHECK(server.look(G).text == "(unknown)");  // where the registry has it was not known in the stop
  const HostRequest first = server.look(G);
  CHECK(first.text == sha1);
  CHECK(first.identity.id != 0);
  const auto now = [&](Image54::Tagged value) { server.set_registry(G, server.image.table({{server.key, value}})); };
  now(server.context("my_function"));
  CHECK(server.look(G).text == "my_function");
  now({});  // nil: nothing runs
  CHECK(server.look(G).text == "");
}

TEST_CASE("redis: Valkey 9.0 keeps a call, which points to what runs", "[unit]") {
  Server server;
  const Address G = server.state_with(server.call_context("my_function", 1000));
  (void)server.look(G);
  CHECK(server.look(G).text == "my_function");
  server.set_registry(G, server.image.table({{server.key, server.call_context("a b")}}));
  CHECK(server.look(G).text == "(unknown)");
  server.set_registry(G, server.image.table({{server.key, server.context("of_redis")}}));
  CHECK(server.look(G).text == "of_redis");
}

TEST_CASE("redis: nothing is believed of a key that has moved", "[unit]") {
  Server server;
  const Address G = server.state_with(server.context("f"));
  (void)server.look(G);
  CHECK(server.look(G).text == "f");
  // The key was collected and made again; its text is still where it was.
  server.set_registry(G, server.image.table({{server.image.string("__RUN_CTX__"), server.context("g")}}));
  CHECK(server.look(G).text == "(unknown)");
  CHECK(server.look(G).text == "g");
}

TEST_CASE("redis: the same script is another request when it has begun at another time", "[unit]") {
  Server server;
  const Image54::Tagged context = server.context("f", 1000);
  const Address G = server.state_with(context);
  (void)server.look(G);
  const std::uint64_t id = server.look(G).identity.id;
  CHECK(server.look(G).identity.id == id);
  server.image.put(context.word + 32, std::uint64_t{1001});
  CHECK(server.look(G).identity.id != id);
}

TEST_CASE("redis: what is no name is not shown", "[unit]") {
  Server server;
  const Address G = server.state_with(server.context("ok"));
  (void)server.look(G);
  for (const Image54::Tagged value : {server.context(""), server.context("a b"), server.context("\x01\x02"),
                                      Image54::Tagged{0x10, 2}, Image54::Tagged{0, 2}, server.image.string("text")}) {
    server.set_registry(G, server.image.table({{server.key, value}}));
    const HostRequest request = server.look(G);
    CHECK((request.text == "(unknown)" || (value.tag != Server::light_userdata && request.text.empty())));
    CHECK(request.identity.id == 0);
  }
}

TEST_CASE("redis: a Lua without that key is no Redis, and is not asked each time", "[unit]") {
  Server server;
  const Address G = server.image.state({});
  CHECK(server.look(G).text == "");
  const Address later = server.state_with(server.context("f"));
  server.set_registry(G, server.image.table({{server.key, server.context("f")}}));
  int looks = 1;
  while (server.look(G).text.empty()) ++looks;
  CHECK(looks < 4);
  CHECK(server.look(G).text == "f");
  CHECK(server.look(later).text == "(unknown)");
}

}  // namespace luaspy::redis_script_test
