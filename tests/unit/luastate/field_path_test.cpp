// Chains of fields in memory that was read in a stop: what is learned, and when it is doubted.

#include "luastate/field_path.h"

#include <catch2/catch.hpp>
#include <map>

#include "image54.h"

namespace luaspy::field_path_test {
namespace {

// Like a stop: what is read while it is open can be read afterwards, and nothing else.
class StopMemory : public Memory {
 public:
  explicit StopMemory(const Memory& target) : target_(target) {}
  bool read(Address address, std::span<std::byte> into) const override {
    if (is_open_) {
      ++reads;
      if (!target_.read(address, into)) return false;
      for (std::size_t i = 0; i < into.size(); ++i) bytes_[address + i] = into[i];
      return true;
    }
    for (std::size_t i = 0; i < into.size(); ++i) {
      const auto known = bytes_.find(address + i);
      if (known == bytes_.end()) return false;
      into[i] = known->second;
    }
    return true;
  }
  // Keeps nothing, as a snapshot's.
  void read_batch(std::span<Request> requests) const override {
    if (is_open_) target_.read_batch(requests);
    else Memory::read_batch(requests);
  }
  void close() { is_open_ = false; }
  mutable int reads = 0;

 private:
  const Memory& target_;
  bool is_open_ = true;
  mutable std::map<Address, std::byte> bytes_;
};

using Tagged = Image54::Tagged;

Value table_value(Tagged table) { return {Value::Type::table, table.word}; }

// req.head.uri, as label_values.cpp asks for it, one look after the other.
struct Looks {
  static constexpr FieldPaths::KeyId head = 0, uri = 1;
  Image54 image;
  Address G = image.state({});
  ActiveState at{.L = 0, .G = G, .lua = &Image54::lua()};
  FieldPaths paths{{"head", "uri"}};
  const std::vector<FieldPaths::KeyId> fields = {head, uri};
  int reads = 0;

  // "(unknown)", "nil", or the text.
  std::string look(Tagged root) {
    StopMemory stop(image);
    const auto follow = [&]() -> std::optional<Value> {
      const FieldPaths::State* const known = paths.find(G);
      return known != nullptr ? paths.follow(stop, *known, table_value(root), fields) : std::nullopt;
    };
    if (const std::optional<Value> touched = follow()) FieldPaths::touch_text(stop, *paths.find(G), *touched);
    stop.close();
    reads = stop.reads;
    const std::optional<Value> value = follow();
    FieldPaths::Lesson lesson;
    FieldPaths::Learned learned;
    if (!value || value->type == Value::Type::nil) {
      learned = paths.learn(image, at, table_value(root), fields, lesson);
      if (learned.something) paths.keep(G, std::move(lesson));
    }
    if (learned.something || (!value && !learned.nowhere)) return "(unknown)";
    if (!value || value->type == Value::Type::nil) return "nil";
    return FieldPaths::text(stop, *paths.find(G), *value).value_or("(unknown)");
  }
};

}  // namespace

TEST_CASE("fields are found by the addresses of their keys, once these are known", "[unit]") {
  Looks looks;
  Image54& image = looks.image;
  const Tagged head_key = image.string("head"), uri_key = image.string("uri");
  const auto request = [&](std::string_view uri) {
    const Tagged head = image.table({{image.string("accept"), image.string("*")}, {uri_key, image.string(uri)}});
    return image.table({{head_key, head}, {image.string("uri"), image.string("not this one")}});
  };
  CHECK(looks.look(request("/a")) == "(unknown)");
  CHECK(looks.look(request("/b")) == "/b");
  const std::string long_uri(300, 'x');
  CHECK(looks.look(request(long_uri)) == std::string(200, 'x') + "...");
  CHECK(looks.look(image.table({})) == "nil");
  CHECK(looks.look(image.table({{head_key, image.string("text")}})) == "(unknown)");
}

TEST_CASE("elements are found by their index, in the array and among the keys", "[unit]") {
  Image54 image;
  const Address G = image.state({});
  FieldPaths paths{{"1", "7"}};
  const ActiveState at{.L = 0, .G = G, .lua = &Image54::lua()};
  constexpr std::uint8_t integer = 3;
  const Tagged list = image.table({{{7, integer}, image.string("seventh")}, {image.string("x"), image.string("y")}});
  const auto element = [&](FieldPaths::KeyId key) {
    const std::vector<FieldPaths::KeyId> fields = {key};
    FieldPaths::Lesson lesson;
    (void)paths.learn(image, at, table_value(list), fields, lesson);
    paths.keep(G, std::move(lesson));
    const std::optional<Value> value = paths.follow(image, *paths.find(G), table_value(list), fields);
    return !value                            ? "(unknown)"
           : value->type == Value::Type::nil ? "nil"
                                             : *FieldPaths::text(image, *paths.find(G), *value);
  };
  CHECK(element(0) == "nil");
  CHECK(element(1) == "seventh");
}

TEST_CASE("a key that has been made anew is learned again, and never takes the value of another", "[unit]") {
  Looks looks;
  Image54& image = looks.image;
  const Tagged head_key = image.string("head"), first = image.string("uri");
  const auto request = [&](Tagged key) { return image.table({{head_key, image.table({{key, image.string("/a")}})}}); };
  CHECK(looks.look(request(first)) == "(unknown)");
  CHECK(looks.look(request(first)) == "/a");
  // The string was collected, and there is another one of its text, while its bytes are still there.
  const Tagged second = image.string("uri");
  CHECK(looks.look(request(second)) == "(unknown)");
  CHECK(looks.look(request(second)) == "/a");
  // At its address there is another text now.
  image.put_text(second.word, "url");
  CHECK(looks.look(request(second)) == "(unknown)");
  CHECK(looks.look(request(first)) == "(unknown)");
  CHECK(looks.look(request(first)) == "/a");
}

TEST_CASE("__index is followed where it is a table, and not without end", "[unit]") {
  Looks looks;
  Image54& image = looks.image;
  const Tagged index = image.string("__index"), head_key = image.string("head");
  const Tagged inner = image.table({{image.string("uri"), image.string("/inherited")}});
  const Tagged parent = image.table({{head_key, inner}});
  const Tagged child = image.table({{image.string("other"), inner}}, image.table({{index, parent}}).word);
  CHECK(looks.look(child) == "(unknown)");
  CHECK(looks.look(child) == "/inherited");
  // Its own metatable, so that it asks itself.
  const Tagged circle = image.table({{index, {}}});
  const Tagged itself = image.table({{index, circle}}, circle.word);
  image.put(image.nodes_of(circle), itself.word);
  image.put(image.nodes_of(circle) + 8, itself.tag);
  CHECK(looks.look(itself) == "(unknown)");
  const Tagged by_function = image.table({{image.string("x"), inner}},
                                         image.table({{index, image.light(0x7000)}}).word);
  CHECK(looks.look(by_function) == "(unknown)");
}

TEST_CASE("of a large table one node is read, once it is known where the key is", "[unit]") {
  Looks looks;
  Image54& image = looks.image;
  Image54::Entries entries;
  for (int i = 0; i < 5000; ++i) entries.emplace_back(image.string("key " + std::to_string(i)), image.string("x"));
  const Tagged uri_key = image.string("uri");
  const Tagged head = image.table({{uri_key, image.string("/a")}});
  entries.emplace_back(image.string("head"), head);
  const Tagged root = image.table(entries);
  CHECK(looks.look(root) == "(unknown)");
  CHECK(looks.look(root) == "/a");
  CHECK(looks.reads < 40);
  // The table has been given a new array of nodes: what was known of the old one helps no more.
  entries.insert(entries.begin(), {image.string("one more"), image.string("x")});
  const Tagged grown = image.table(entries);
  CHECK(looks.look(grown) == "(unknown)");
  CHECK(looks.look(grown) == "/a");
}

}  // namespace luaspy::field_path_test
