// The names of functions in tables of 5.4 that the test makes; tests/live/names_test.cpp has real
// ones.

#include "luastate/loaded_functions.h"

#include <fmt/format.h>

#include <catch2/catch.hpp>

#include "base/text.h"
#include "image54.h"

namespace luaspy::loaded_functions_test {
namespace {

struct Loaded {
  Image54 image;
  LoadedFunctions functions;
  void read(Address G) { functions.read(Image54::lua(), image, G); }
  const LoadedFunctions::Function* of(Address proto) const {
    return functions.lua_function(proto, Image54::lua().mark(image, proto));
  }
  // "table|key" of a function's first name; "shared" and "none".
  static std::string text(const LoadedFunctions::Function* function) {
    if (function == nullptr || function->names.empty()) return "none";
    return function->is_shared ? "shared" : fmt::format("{}|{}", function->names[0].table, function->names[0].key);
  }
  std::string name(Address proto) const { return text(of(proto)); }
  std::string closure(Image54::Tagged closure, Address proto) const {
    const auto* const name = functions.closure(closure.word, proto, Image54::lua().mark(image, proto));
    return name != nullptr ? fmt::format("{}|{}", name->table, name->key) : "none";
  }
};

}  // namespace

TEST_CASE("functions are named by the module, the class and the part that have them", "[loaded_functions]") {
  Loaded loaded;
  Image54& image = loaded.image;
  std::vector<Address> protos;
  for (int line = 1; line < 8; ++line) protos.push_back(image.proto(line));
  const auto f = [&](std::size_t number) { return image.closure(protos[number]); };
  const auto part = image.fields({{"audit", f(2)}, {"deeper", image.fields({{"no", f(3)}})}});
  const auto account = image.fields({{"make", f(1)}, {"__index", part}}, image.fields({{"__add", f(4)}}).word);
  const Address G = image.state(
      {{"bank", image.fields({{"total", f(0)}, {"Account", account}})}, {"run", f(5)}},
      {{"FILE*", image.fields({{"__gc", image.light(0x7100)}, {"read", image.light(0x7200)}})},
       {"a table", image.fields({{"__gc", f(6)}})}});
  loaded.read(G);
  CHECK(loaded.name(protos[0]) == "bank|total");
  CHECK(loaded.name(protos[1]) == "bank.Account|make");
  CHECK(loaded.name(protos[2]) == "bank.Account|audit");
  CHECK(loaded.name(protos[3]) == "none");
  CHECK(loaded.name(protos[4]) == "bank.Account|__add");
  CHECK(loaded.name(protos[5]) == "|run");
  CHECK(loaded.name(protos[6]) == "none");
  CHECK(Loaded::text(loaded.functions.c_function(0x7000)) == "|print");
  CHECK(Loaded::text(loaded.functions.c_function(0x7200)) == "file|read");
  CHECK(loaded.functions.c_function(0x7200)->names[0].level == LoadedFunctions::Level::object);
  // Another function at that address.
  image.put(protos[0] + 44, 100);
  CHECK(loaded.name(protos[0]) == "none");
}

TEST_CASE("a module that is a class and knows its name has it, wherever in the table that is", "[loaded_functions]") {
  for (const bool is_first : {false, true}) {
    Loaded loaded;
    Image54& image = loaded.image;
    const Address proto = image.proto(1);
    std::vector<std::pair<std::string, Image54::Tagged>> fields = {{"f", image.closure(proto)}};
    fields.insert(is_first ? fields.begin() : fields.end(), {"__name", image.string("Account")});
    loaded.read(image.state({{"bank.account", image.fields(fields)}}));
    CHECK(loaded.name(proto) == "Account|f");
  }
}

TEST_CASE("two states: reading one forgets nothing of the other", "[loaded_functions]") {
  Loaded loaded;
  Image54& image = loaded.image;
  struct Shop {
    Address proto;
    Image54::Tagged buy, sell;
  };
  std::vector<Shop> shops;
  std::vector<Address> states;
  for (Address i = 0; i < 2; ++i) {
    const Address proto = image.proto(1);
    shops.push_back({proto, image.closure(proto), image.closure(proto)});
    states.push_back(
        image.state({{fmt::format("shop{}", i), image.fields({{"buy", shops[i].buy}, {"sell", shops[i].sell}})},
                     {"string", image.fields({{"gmatch", image.light(0x7700 + i)}})}}));
  }
  for (int times = 0; times < 2; ++times) {
    for (const Address G : states) loaded.read(G);
    for (std::size_t i = 0; i < 2; ++i) {
      CHECK(loaded.name(shops[i].proto) == "shared");
      CHECK(loaded.closure(shops[i].buy, shops[i].proto) == fmt::format("shop{}|buy", i));
      CHECK(loaded.closure(shops[i].sell, shops[i].proto) == fmt::format("shop{}|sell", i));
      CHECK(loaded.functions.c_function_named(states[i], "string", "gmatch") == 0x7700 + i);
    }
  }
  CHECK(loaded.functions.c_function_named(0x9990, "string", "gmatch") == 0);
  // A closure that its own state has no more.
  image.put(image.nodes_of({image.get<Address>(states[0] + 64).value(), 69}) + 8, std::uint8_t{0});
  loaded.read(states[0]);
  CHECK(loaded.closure(shops[1].buy, shops[1].proto) == "shop1|buy");
}

TEST_CASE("for each state, misses make it be read, ever more rarely", "[loaded_functions]") {
  Loaded loaded;
  const std::vector<Address> states = {loaded.image.state({}), loaded.image.state({})};
  for (const Address G : states) {
    for (int miss = 1; miss <= 70; ++miss) {
      INFO(miss);
      const bool is_due = miss == 1 || miss == 4 || miss == 16 || miss == 64;
      CHECK(loaded.functions.read_for_miss(Image54::lua(), loaded.image, G, false) == is_due);
    }
  }
  // What is new is found although the last miss of its kind was long ago.
  const Address proto = loaded.image.proto(1);
  const Address G = loaded.image.state({{"late", loaded.image.fields({{"f", loaded.image.closure(proto)}})}});
  CHECK(loaded.functions.read_for_miss(Image54::lua(), loaded.image, G, true));
  CHECK(loaded.name(proto) == "late|f");
}

TEST_CASE("more tables than are read, and tables that have each other", "[loaded_functions]") {
  Loaded loaded;
  Image54& image = loaded.image;
  constexpr int tables = 20'000, most_tables = 1 << 14;
  std::vector<Address> protos;
  std::vector<std::pair<std::string, Image54::Tagged>> all;
  for (int i = 0; i < tables; ++i) {
    protos.push_back(image.proto(i + 1));
    all.emplace_back(fmt::format("t{:05}", i), image.fields({{"f", image.closure(protos.back())}}));
  }
  const auto many = image.fields(all);
  const auto ring = image.fields({{"self", {}}, {"__index", {}}}, many.word);
  image.put(image.nodes_of(ring), ring.word);
  image.put(image.nodes_of(ring) + 8, ring.tag);
  image.put(image.nodes_of(ring) + 24, ring.word);
  image.put(image.nodes_of(ring) + 32, ring.tag);
  loaded.read(image.state({{"many", many}, {"ring", ring}}));
  int found = 0;
  for (int i = 0; i < tables; ++i) {
    const std::string name = loaded.name(protos[static_cast<std::size_t>(i)]);
    found += name == fmt::format("many.t{:05}|f", i);
  }
  CHECK(found > most_tables - 10);
  CHECK(found < most_tables);
}

TEST_CASE("torn tables, strings and functions are left out", "[loaded_functions]") {
  for (int torn = 0; torn < 8; ++torn) {
    INFO(torn);
    Loaded loaded;
    Image54& image = loaded.image;
    const Address whole = image.proto(1), other = image.proto(2);
    const auto name = image.string("f");
    const auto function = image.closure(other);
    const auto bad = image.table({{name, function}});
    const Address G = image.state({{"good", image.fields({{"f", image.closure(whole)}})}, {"torn", bad}});
    if (torn == 0) image.put(bad.word + 11, std::uint8_t{30});      // 2^30 nodes
    if (torn == 1) image.put(bad.word + 24, Address{0xdead'0000});  // nodes that are not there
    if (torn == 2) image.put(bad.word + 8, std::uint8_t{4});        // no table
    if (torn == 3) image.put(image.nodes_of(bad) + 16, Address{0xdead'0000});
    if (torn == 4) image.put(name.word + 8, std::uint8_t{5});             // no string
    if (torn == 5) image.put(image.nodes_of(bad), Address{0xdead'0000});  // no closure
    if (torn == 6) image.put(function.word + 24, Address{0xdead'0000});   // no Proto
    if (torn == 7) image.put(bad.word + 40, Address{0xdead'0000});        // no metatable
    loaded.read(G);
    CHECK(loaded.name(whole) == "good|f");
    if (torn != 6) CHECK(loaded.name(other) == (torn == 7 ? "torn|f" : "none"));
  }
}

TEST_CASE("names are short, and can be shown", "[loaded_functions]") {
  Loaded loaded;
  Image54& image = loaded.image;
  const std::string hostile =
                        "a\x9b"
                        "31m;\n\xff\xc2\x9b\x1b]0;",
                    letters =
                        "\x9b"
                        "31mEVIL\xff";
  const std::string longer(190, 'x');
  std::vector<Address> protos;
  const auto f = [&] { return image.closure(protos.emplace_back(image.proto(static_cast<int>(protos.size()) + 1))); };
  const auto module = [&](const std::string& own) {
    return image.fields({{"__name", image.string(own)},
                         {hostile, f()},
                         {longer, f()},
                         {std::string(300, 'y'), f()},
                         {hostile + "t", image.fields({{"f", f()}})}});
  };
  loaded.read(image.state({{hostile, module(hostile)}, {"a", module(letters)}, {"b", module(longer)}},
                          {{hostile + "c", image.fields({{"__gc", f()}})}}));
  int named = 0;
  for (const Address proto : protos) {
    const auto* const function = loaded.of(proto);
    if (function == nullptr) continue;
    for (const LoadedFunctions::Name& name : function->names) {
      ++named;
      for (const std::string& text : {std::string(name.table), name.key}) {
        INFO(text);
        CHECK(printable(text, text.size()) == text);
        CHECK(text.size() < 500);
      }
    }
  }
  CHECK(named >= 10);
}

}  // namespace luaspy::loaded_functions_test
