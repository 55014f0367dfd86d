// Texts of chunks that are strings of the target, which may be collected while they are read, and
// functions on one line.

#include "luastate/known_definitions.h"

#include <fmt/format.h>

#include <catch2/catch.hpp>

#include "image54.h"
#include "luastate/names.h"

namespace luaspy::known_definitions_test {
namespace {

const std::string head = "-- " + std::string(300, 'x') + "\n";

std::string names(std::span<const Definition> all) {
  std::string text;
  for (const Definition& each : all) text += each.name + ";";
  return text;
}

class Files : public SourceTexts {
 public:
  std::optional<std::string> text(const std::string& file) override {
    ++reads;
    return file == "a.lua" ? std::optional(content) : std::nullopt;
  }
  std::string content = "function in_file() end";
  int reads = 0;
};

}  // namespace

TEST_CASE("the text of a chunk is read for each Proto, and believed only if it is that of the Proto",
          "[known_definitions]") {
  const PucLua& lua = Image54::lua();
  Image54 image;
  KnownDefinitions known;
  const Image54::Tagged text = image.string(head + "function alpha() end");
  const Address proto = image.proto(2, text.word);
  const auto found = [&](const Prototype& prototype, std::uint64_t mark) {
    return names(known.in_text_of(prototype, mark, lua, image));
  };
  const std::optional<Prototype> prototype = lua.prototype(image, proto);
  REQUIRE(prototype);
  REQUIRE(prototype->source.size() == 200);
  const std::uint64_t mark = lua.mark(image, proto);
  CHECK(found(*prototype, mark) == "alpha;");
  CHECK(found(*prototype, mark) == "alpha;");
  // Another text at its address that begins alike, of a Proto that begins alike.
  image.put_text(text.word, head + "function omega() end");
  CHECK(found(*prototype, mark) == "omega;");
  // One that begins otherwise; and the Proto is no longer the one that was read.
  image.put_text(text.word, "++");
  CHECK(found(*prototype, mark).empty());
  image.put_text(text.word, head + "function omega() end");
  CHECK(found(*prototype, mark) == "omega;");
  CHECK(found(*prototype, mark + 1).empty());
  image.put(proto + 44, 77);
  CHECK(found(*prototype, mark).empty());
}

TEST_CASE("short texts, files and names of chunks", "[known_definitions]") {
  const Image54 image;
  KnownDefinitions known;
  Files files;
  Prototype prototype;
  prototype.source_string = 0x5550;
  const auto found = [&](const std::string& source) {
    prototype.source = source;
    return names(known.in_text_of(prototype, 1, Image54::lua(), image));
  };
  CHECK(found("function short() end") == "short;");
  CHECK(found("=function name() end").empty());
  CHECK(found("@a.lua").empty());
  known.use(&files);
  for (int i = 0; i < 3; ++i) {
    CHECK(found("@a.lua") == "in_file;");
    CHECK(found("@b.lua").empty());
  }
  CHECK(files.reads == 2);
}

TEST_CASE("functions of one line are known by their place, as long as they are the same", "[known_definitions]") {
  const PucLua& lua = Image54::lua();
  Image54 image;
  Twins twins;
  const std::vector<Address> children = {image.proto(5), image.proto(7), image.proto(5), image.proto(5)};
  const Address proto = image.proto(1, 0, children);
  const std::optional<Prototype> parent = lua.prototype(image, proto);
  REQUIRE(parent);
  REQUIRE(parent->children == children);
  const std::uint32_t identity = lua.prototype(image, children[0])->identity();
  const std::uint64_t mark = lua.mark(image, proto);
  twins.read_children(lua, image, *parent, mark + 1, 3);
  CHECK(twins.find(children[0], identity) == nullptr);
  twins.read_children(lua, image, *parent, mark, Siblings::unknown);
  twins.read_children(lua, image, *parent, mark, 3);
  CHECK(twins.find(children[1], identity) == nullptr);
  std::uint32_t number = 0;
  for (const std::size_t child : {0U, 2U, 3U}) {
    const Twins::Twin* const twin = twins.find(children[child], identity);
    REQUIRE(twin != nullptr);
    CHECK(twin->number == number);
    CHECK(twin->siblings.parent == 3);
    CHECK(twin->siblings.number == static_cast<int>(number++));
    CHECK(twin->siblings.count == 3);
    CHECK(twins.find(children[child], identity + 1) == nullptr);
  }
}

TEST_CASE("what is first named while the target stands still is looked for afterwards", "[known_definitions]") {
  const PucLua& lua = Image54::lua();
  Image54 image;
  Files files;
  files.content = "t = {f = function() end, g = function() end}";
  Names names(image);
  names.use_sources(&files);
  const Address source = image.string("@a.lua").word;
  const std::vector<Address> children = {image.proto(1, source), image.proto(1, source)};
  const Address chunk = image.proto(0, source, children), loaded = image.proto(9, source);
  const Address G = image.state({{"module", image.fields({{"h", image.closure(loaded)}})}});
  const auto named = [&](Address proto) {
    LuaCall call;
    call.kind = LuaCall::Kind::lua, call.proto = proto, call.mark = lua.mark(image, proto);
    return names.label({lua, G, image}, call, nullptr, 0).frame();
  };
  const auto text = [&] {
    std::string all;
    for (const Address proto : {chunk, children[0], children[1], loaded}) all += named(proto).name + ' ';
    return all;
  };
  names.stand_still(true);
  for (int i = 0; i < 2; ++i) CHECK(text() == "main chunk function function function ");
  CHECK(files.reads == 0);
  const std::uint32_t first = named(children[0]).prototype, second = named(children[1]).prototype;
  CHECK(second == first + 1);
  names.stand_still(false);
  CHECK(text() == "main chunk t.f t.g module.h ");
  CHECK(files.reads == 1);
  CHECK(named(children[0]).prototype == first);
  CHECK(named(children[1]).prototype == second);
  CHECK_FALSE(named(children[0]).own_name);
  CHECK(named(loaded).own_name);
}

}  // namespace luaspy::known_definitions_test
