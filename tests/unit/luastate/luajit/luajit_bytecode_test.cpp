// LuaJIT's functions made by hand: names and paths of their callees, and reading a GCproto from
// memory. tests/oracle/luajit_oracle.cpp tests that names agree with real LuaJITs.

#include <catch2/catch.hpp>

#include <cstring>
#include <limits>
#include <random>

#include "luastate/bytecode.h"
#include "luastate/luajit/layouts.h"
#include "luastate/luajit/luajit_functions.h"
#include "luastate/luajit/luajit_lua.h"
#include "luastate/luajit/luajit_opcodes.h"
#include "luastate/luajit/luajit_tables.h"
#include "luastate/names.h"

namespace luaspy::luajit_bytecode_test {
namespace {

using Root = ValuePath::Root;

struct Arguments {
  int a = 0, b = 0, c = 0, d = 0;
};

struct Line {
  std::string_view name;
  Arguments arguments = {};
};

std::uint32_t number_of(std::string_view name) {
  for (std::uint32_t i = 0; i < opcode_tables::luajit.size(); ++i) {
    if (opcode_tables::luajit[i].name == name) return i;
  }
  FAIL("no opcode " << name);
  return 0;
}

std::uint32_t word(const Line& line) {
  const auto bits = [](int value, int position) { return static_cast<std::uint32_t>(value) << position; };
  const Arguments& given = line.arguments;
  return number_of(line.name) | bits(given.a, 8) |
         (given.d != 0 ? bits(given.d, 16) : bits(given.c, 16) | bits(given.b, 24));
}

constexpr std::uint32_t old_header = 89, new_header = 96;  // BC_FUNCF to 2026-07, and since

Prototype function(std::initializer_list<Line> code, Bytecode bytecode = Bytecode::luajit,
                   std::uint32_t header = old_header) {
  Prototype made;
  made.bytecode = bytecode;
  made.code.push_back(header);
  for (const Line& line : code) made.code.push_back(word(line));
  made.constants = {"zero", "one", std::nullopt, "three"};
  made.upvalues = {"first", "up"};
  return made;
}

int last(const Prototype& caller) { return static_cast<int>(caller.code.size()) - 1; }

std::string last_name(const Prototype& caller) {
  const std::optional<CallName> name = callee_name(caller, last(caller));
  return name ? std::string(name->what) + " " + name->name : "nothing";
}

// "slot 1 .three [2]"
std::string last_path(const Prototype& caller) {
  const ValuePath path = callee_path(caller, last(caller));
  constexpr std::string_view roots[] = {"unknown", "slot", "upvalue", "global", "closure", "event"};
  std::string text(roots[static_cast<std::size_t>(path.root)]);
  if (path.root == Root::unknown) return text;
  if (path.root == Root::event) {
    text += " " + std::string(path.event);
    for (const int operand : path.operands) text += " " + std::to_string(operand);
    return text;
  }
  text += " " + std::to_string(path.index);
  for (const ValuePath::Key& key : path.keys) {
    text += key.is_element ? " [" + std::to_string(key.index) + "]"
                           : " ." + caller.constants.at(static_cast<std::size_t>(key.index)).value_or("?");
  }
  return text;
}

}  // namespace

TEST_CASE("LuaJIT: names of called values") {
  for (const std::uint32_t header : {old_header, new_header}) {
    const auto made = [header](std::initializer_list<Line> code) { return function(code, Bytecode::luajit, header); };
    CHECK(last_name(made({{"GGET", {.a = 4, .d = 1}}, {"CALL", {.a = 4}}})) == "global one");
    CHECK(last_name(made({{"UGET", {.a = 4, .d = 1}}, {"CALL", {.a = 4}}})) == "upvalue up");
    CHECK(last_name(made({{"UGET", {.a = 4, .d = 9}}, {"CALL", {.a = 4}}})) == "upvalue ?");
    CHECK(last_name(made({{"TGETS", {.a = 4, .b = 2, .c = 3}}, {"CALL", {.a = 4}}})) == "field three");
    CHECK(last_name(made({{"TGETS", {.a = 4, .b = 2, .c = 2}}, {"CALL", {.a = 4}}})) == "field ?");
    CHECK(last_name(made({{"TGETV", {.a = 4, .b = 2, .c = 3}}, {"CALL", {.a = 4}}})) == "nothing");
    CHECK(last_name(made({{"UGET", {.a = 9, .d = 1}}, {"MOV", {.a = 4, .d = 9}}, {"CALLM", {.a = 4}}})) ==
          "upvalue up");
    CHECK(last_name(made({{"UGET", {.a = 1, .d = 1}}, {"CALLT", {.a = 1}}})) == "upvalue up");
    CHECK(last_name(made({{"UGET", {.a = 1, .d = 1}}, {"ITERC", {.a = 4}}})) == "for iterator for iterator");
    CHECK(last_name(made({{"UGET", {.a = 4, .d = 1}}, {"KNIL", {.a = 3, .d = 5}}, {"CALL", {.a = 4}}})) == "nothing");
    CHECK(last_name(made({{"UGET", {.a = 4, .d = 1}}, {"KNIL", {.a = 5, .d = 6}}, {"CALL", {.a = 4}}})) ==
          "upvalue up");
    CHECK(last_name(made({{"UGET", {.a = 4, .d = 1}}, {"CALL", {.a = 3}}, {"CALL", {.a = 4}}})) == "nothing");
    CHECK(last_name(made({{"UGET", {.a = 4, .d = 1}}, {"JMP"}, {"GGET", {.a = 4, .d = 1}}, {"CALL", {.a = 4}}})) ==
          "global one");
    CHECK(last_name(made({{"CALL", {.a = 4}}})) == "nothing");
    CHECK(last_name(made({})) == "nothing");
    CHECK(last_name(made({{"ADDVN"}})) == "metamethod __add");
    CHECK(last_name(made({{"ISGT"}})) == "metamethod __le");
    CHECK(last_name(made({{"TNEW"}})) == "metamethod __gc");
    CHECK(last_name(made({{"GSET"}})) == "metamethod __newindex");
    CHECK(last_name(made({{"JLOOP"}})) == "nothing");
    CHECK(last_name(made({{"RET1"}})) == "nothing");
  }
}

TEST_CASE("LuaJIT: a path has a bounded number of fields") {
  for (const std::size_t fields : {ValuePath::most_keys, ValuePath::most_keys + 1}) {
    Prototype made = function({{"UGET", {.a = 4, .d = 1}}});
    for (std::size_t i = 0; i < fields; ++i) made.code.push_back(word({"TGETS", {.a = 4, .b = 4, .c = 3}}));
    made.code.push_back(word({"CALL", {.a = 4}}));
    CHECK(callee_path(made, last(made)).keys.size() == (fields == ValuePath::most_keys ? fields : 0));
  }
}

TEST_CASE("LuaJIT: a method's object is where the pointer size says") {
  const std::initializer_list<Line> wide = {
      {"MOV", {.a = 6, .d = 2}}, {"TGETS", {.a = 4, .b = 2, .c = 1}}, {"CALL", {.a = 4}}};
  const std::initializer_list<Line> narrow = {
      {"MOV", {.a = 5, .d = 2}}, {"TGETS", {.a = 4, .b = 2, .c = 1}}, {"CALL", {.a = 4}}};
  CHECK(last_name(function(wide)) == "method one");
  CHECK(last_name(function(narrow)) == "field one");
  CHECK(last_name(function(wide, Bytecode::luajit_gc32)) == "field one");
  CHECK(last_name(function(narrow, Bytecode::luajit_gc32)) == "method one");
}

TEST_CASE("LuaJIT: where a called value was got from") {
  CHECK(last_path(function({{"GGET", {.a = 4, .d = 1}}, {"CALL", {.a = 4}}})) == "global 1");
  CHECK(last_path(function({{"UGET", {.a = 4, .d = 1}}, {"CALL", {.a = 4}}})) == "upvalue 1");
  CHECK(last_path(function({{"MOV", {.a = 4, .d = 1}}, {"CALL", {.a = 4}}})) == "slot 1");
  CHECK(last_path(function({{"ITERC", {.a = 4}}})) == "slot 1");
  CHECK(last_path(function({{"TGETS", {.a = 4, .b = 1, .c = 3}}, {"CALL", {.a = 4}}})) == "slot 1 .three");
  CHECK(last_path(function({{"UGET", {.a = 4, .d = 1}},
                            {"TGETS", {.a = 4, .b = 4, .c = 1}},
                            {"TGETB", {.a = 4, .b = 4, .c = 2}},
                            {"CALL", {.a = 4}}})) == "upvalue 1 .one [2]");
  CHECK(last_path(function({{"FNEW", {.a = 4, .d = 2}}, {"CALL", {.a = 4}}})) == "closure 2");
  CHECK(last_path(function({{"TGETV", {.a = 4, .b = 4, .c = 1}}, {"CALL", {.a = 4}}})) == "unknown");
  CHECK(last_path(function({{"CALL", {.a = 4}}, {"CALL", {.a = 4}}})) == "unknown");
  CHECK(last_path(function({{"CALLT", {.a = 4}}})) == "unknown");
  // Register 1 is another value when the call runs.
  CHECK(last_path(function({{"MOV", {.a = 4, .d = 1}}, {"KSHORT", {.a = 1, .d = 7}}, {"CALL", {.a = 4}}})) ==
        "unknown");
  // The object of a method, if it is only in the call.
  CHECK(
      last_path(function(
          {{"CALL", {.a = 4}}, {"MOV", {.a = 6, .d = 4}}, {"TGETS", {.a = 4, .b = 4, .c = 1}}, {"CALL", {.a = 4}}})) ==
      "slot 6 .one");
  CHECK(last_path(function({{"UGET", {.a = 4, .d = 1}},
                            {"MOV", {.a = 6, .d = 4}},
                            {"TGETS", {.a = 4, .b = 4, .c = 1}},
                            {"CALL", {.a = 4}}})) == "upvalue 1 .one");
  CHECK(last_path(function({{"ADDVV", {.a = 4, .b = 1, .c = 2}}})) == "event add 1 2");
  CHECK(last_path(function({{"ISLT", {.a = 4, .d = 2}}})) == "event lt 4 2");
  CHECK(last_path(function({{"LEN", {.a = 4, .d = 2}}})) == "event len 2");
  CHECK(last_path(function({{"CAT", {.a = 4, .b = 5, .c = 7}}})) == "event concat 10 11");
  CHECK(last_path(function({{"CAT", {.a = 4, .b = 5, .c = 7}}}, Bytecode::luajit_gc32)) == "event concat 8 9");
  CHECK(last_path(function({{"GGET", {.a = 4, .d = 2}}})) == "event index -1");
  CHECK(last_path(function({{"TSETM", {.a = 4, .d = 2}}})) == "event newindex 3");
  CHECK(last_path(function({{"TNEW", {.a = 4}}})) == "unknown");
  Prototype named = function(
      {{"KSHORT", {.a = 9}}, {"MOV", {.a = 4, .d = 9}}, {"KNIL", {.a = 9, .d = 9}}, {"CALL", {.a = 4}}});
  named.locals.assign(10, {"x", 0, 9});
  CHECK(last_path(named) == "unknown");
}

TEST_CASE("LuaJIT: random bytecode takes bounded time") {
  std::mt19937 random(3);
  for (const Bytecode bytecode : {Bytecode::luajit, Bytecode::luajit_gc32}) {
    Prototype caller = function({}, bytecode);
    caller.code.resize(20000);
    for (std::uint32_t& instruction : caller.code) instruction = static_cast<std::uint32_t>(random());
    for (int pc = -1; pc <= 20000; ++pc) {
      callee_name(caller, pc);
      callee_path(caller, pc);
    }
    caller.code.assign(1 << 22, word({"MOV", {.a = 4, .d = 4}}));
    caller.code.back() = word({"CALL", {.a = 4}});
    callee_path(caller, last(caller));
    CHECK(last_name(caller) == "nothing");
  }
}

namespace {

// A block of memory in which LuaJIT's objects can be laid out.
class Image : public Memory {
 public:
  explicit Image(bool gc64) : layout(gc64 ? layout_rows::luajit_gc64 : layout_rows::luajit_gc32) {
    layout.str_len = gc64 ? 20 : 16;
    layout.str_data = gc64 ? 24 : 20;
    layout.G_registry = 272;
    layout.G_cur_L = 368;
    bytes_.reserve(1 << 16);
  }

  bool read(Address address, std::span<std::byte> into) const override {
    if (address < base || address - base > bytes_.size() || bytes_.size() - (address - base) < into.size())
      return false;
    std::memcpy(into.data(), bytes_.data() + (address - base), into.size());
    return true;
  }
  Address reserve(std::size_t size) {
    const Address address = base + bytes_.size();
    bytes_.resize((bytes_.size() + size + 7) / 8 * 8);
    return address;
  }
  template <typename T>
  void put(Address address, T value) {
    std::memcpy(bytes_.data() + (address - base), &value, sizeof value);
  }
  void put_ref(Address address, Address value) {
    layout.gc64 ? put(address, value) : put(address, static_cast<std::uint32_t>(value));
  }
  std::uint64_t value(Address object, std::uint8_t gct) const {
    return ~std::uint64_t{gct} << (layout.gc64 ? 47 : 32) | object;
  }

  Address object(std::size_t size, std::uint8_t gct) {
    const Address at = reserve(size);
    put(at + layout.L_gct, gct);
    return at;
  }

  Address string(std::string_view text) {
    const Address at = object(layout.str_data + text.size() + 1u, luajit::gct_string);
    put(at + layout.str_len, static_cast<std::uint32_t>(text.size()));
    for (std::size_t i = 0; i < text.size(); ++i) put(at + layout.str_data + i, text[i]);
    return at;
  }

  struct Pair {
    Address key;
    std::uint64_t value;
  };
  // The hash part is one unordered chain, because luaspy does not use hashes.
  Address table(std::initializer_list<Pair> pairs, Address metatable = 0) {
    const Address at = object(64, luajit::gct_table);
    std::uint32_t size = 1;
    while (size < pairs.size()) size *= 2;
    Address node = reserve(size * layout.node_size);
    put_ref(at + layout.tab_node, node);
    put(at + layout.tab_hmask, size - 1);
    put_ref(at + layout.tab_metatable, metatable);
    for (std::uint32_t i = 0; i < size; ++i) put(node + i * layout.node_size, ~std::uint64_t{0});
    for (const Pair& pair : pairs) {
      put(node + layout.node_val, pair.value);
      put(node + layout.node_key, value(pair.key, luajit::gct_string));
      node += layout.node_size;
    }
    return at;
  }

  Address closure(Address proto, Address env, Address upvalue = 0) {
    const Address at = object(64, luajit::gct_function);
    put_ref(at + layout.fn_env, env);
    put_ref(at + layout.fn_pc, proto + layout.pt_size);
    put_ref(at + layout.fn_uvptr, upvalue);
    return at;
  }

  // "@f.lua":10-400, of three instructions on lines 10, 12 and 400, with constants, an upvalue and
  // locals.
  Address proto(std::initializer_list<Line> code = {{"GGET", {.a = 4, .d = 1}}, {"CALL", {.a = 4}}}) {
    const Address source = string("@f.lua"), key = string("key");
    name = string("name");
    const std::size_t count = code.size() + 1;
    const std::size_t kgc = (layout.pt_size + 4 * count + 7) / 8 * 8, k = kgc + 3u * layout.ref_size,
                      lines = (k + 7) / 8 * 8, names = lines + 2 * (count - 1);
    constexpr std::string_view debug("up\0x\0\x01\x02\x01\x00\x80\x01\x00", 12);
    const Address at = object(names + debug.size(), luajit::gct_proto);
    put(at + layout.pt_numparams, std::uint8_t{2});
    put(at + layout.pt_sizebc, static_cast<std::uint32_t>(count));
    put(at + layout.pt_sizept, static_cast<std::uint32_t>(names + debug.size()));
    put(at + layout.pt_sizekgc, std::uint32_t{3});
    put(at + layout.pt_sizeuv, std::uint8_t{1});
    put_ref(at + layout.pt_k, at + k);
    put_ref(at + layout.pt_chunkname, source);
    put(at + layout.pt_firstline, 10);
    put(at + layout.pt_numline, 390);
    put_ref(at + layout.pt_lineinfo, at + lines);
    put_ref(at + layout.pt_uvinfo, at + names);
    put_ref(at + layout.pt_varinfo, at + names + 3);
    put(at + layout.pt_size, old_header);
    Address next = at + layout.pt_size;
    for (const Line& line : code) put(next += 4, word(line));
    put_ref(at + k - layout.ref_size, key);
    put_ref(at + k - 2u * layout.ref_size, name);
    put_ref(at + k - 3u * layout.ref_size, at);
    put(at + lines, std::uint16_t{2});
    if (count > 2) put(at + lines + 2, std::uint16_t{390});
    for (std::size_t i = 0; i < debug.size(); ++i) put(at + names + i, debug[i]);
    return at;
  }

  LuaCall call(Address function, Address proto, Address slot, int pc) {
    LuaCall made;
    made.kind = LuaCall::Kind::lua;
    made.func = slot;
    made.closure = function;
    made.proto = proto;
    made.code = proto + layout.pt_size;
    made.size_code = *get<std::uint32_t>(proto + layout.pt_sizebc);
    std::vector<std::byte> fields(layout.pt_size);
    read(proto, fields);
    made.mark = mark_of(layout, fields);
    made.saved_pc = made.code + 4 * (static_cast<Address>(pc) + 1);
    return made;
  }

  LuajitLayout layout;
  Address name = 0;  // the GCstr "name", constant 1 of the last proto
  std::vector<std::byte>& bytes() { return bytes_; }

 private:
  static constexpr Address base = 0x10000;
  std::vector<std::byte> bytes_;
};

}  // namespace

TEST_CASE("a GCproto is read") {
  for (const bool gc64 : {true, false}) {
    Image image(gc64);
    const auto read = LuajitLua(image.layout).prototype(image, image.proto());
    REQUIRE(read);
    CHECK(read->bytecode == (gc64 ? Bytecode::luajit : Bytecode::luajit_gc32));
    CHECK(read->source == "@f.lua");
    CHECK(read->line_defined == 10);
    CHECK(read->last_line_defined == 400);
    CHECK_FALSE(read->is_main());
    CHECK(read->parameters == 2);
    CHECK(read->code.size() == 3);
    CHECK(read->lines == std::vector{10, 12, 400});
    CHECK(read->constants == std::vector<std::optional<std::string>>{"key", "name", std::nullopt});
    CHECK(read->upvalues == std::vector<std::string>{"up"});
    REQUIRE(read->locals.size() == 2);
    CHECK(read->locals[0].name == "x");
    CHECK(read->locals[0].start_pc == 1);
    CHECK(read->locals[0].end_pc == 3);
    CHECK(read->locals[1].name == "(for index)");
    CHECK(read->locals[1].start_pc == 1);
    CHECK(read->locals[1].end_pc == 129);
  }
}

TEST_CASE("a GCproto without debug information, a main chunk, and a function that LuaJIT brings") {
  for (const bool gc64 : {true, false}) {
    Image image(gc64);
    const Address at = image.proto();
    const LuajitLayout& layout = image.layout;
    image.put(at + layout.pt_firstline, 0);
    CHECK(LuajitLua(layout).prototype(image, at)->is_main());
    for (const Offset place : {layout.pt_lineinfo, layout.pt_uvinfo, layout.pt_varinfo}) image.put_ref(at + place, 0);
    image.put(at + layout.pt_numline, 0);
    const auto stripped = LuajitLua(layout).prototype(image, at);
    REQUIRE(stripped);
    CHECK_FALSE(stripped->is_main());
    CHECK(stripped->lines.empty());
    CHECK(stripped->upvalues.empty());
    image.put(at + layout.pt_firstline, -1);
    const auto builtin = LuajitLua(layout).prototype(image, at);
    REQUIRE(builtin);
    CHECK(builtin->source == "=[builtin:@f.lua]");
    CHECK(builtin->line_defined == 0);
    CHECK_FALSE(builtin->is_main());
  }
}

TEST_CASE("what is no GCproto is refused, and a damaged one does no harm") {
  for (const bool gc64 : {true, false}) {
    const auto broken = [gc64](auto damage) {
      Image image(gc64);
      const Address at = image.proto();
      damage(image, at);
      return !LuajitLua(image.layout).prototype(image, at);
    };
    const LuajitLayout row = Image(gc64).layout;
    CHECK(broken([&](Image& image, Address at) { image.put(at + row.pt_gct, std::uint8_t{5}); }));
    for (const Offset size : {row.pt_sizebc, row.pt_sizekgc, row.pt_sizept}) {
      for (const std::uint32_t value : {0xffffffffU, 0x80000000U, 1U << 23}) {
        CHECK(broken([=](Image& image, Address at) { image.put(at + size, value); }));
      }
    }
    CHECK(broken([&](Image& image, Address at) { image.put(at + row.pt_sizebc, 0); }));
    CHECK(broken([&](Image& image, Address at) { image.put(at + row.pt_numline, -1); }));
    CHECK(broken([&](Image& image, Address at) { image.put(at + row.pt_numline, std::numeric_limits<int>::max()); }));
    CHECK(broken([&](Image& image, Address at) { image.put(at + row.pt_sizeuv, std::uint8_t{255}); }));
    for (const Offset reference : {row.pt_k, row.pt_chunkname, row.pt_lineinfo, row.pt_uvinfo, row.pt_varinfo}) {
      for (const Address value : {Address{8}, Address{0x7fffff00}, Address{0xffffffff}}) {
        CHECK(broken([=](Image& image, Address at) { image.put_ref(at + reference, value); }));
      }
    }
    std::mt19937 random(4);
    for (int round = 0; round < 3000; ++round) {
      Image image(gc64);
      const Address at = image.proto();
      for (int i = 0; i < 4; ++i) image.bytes()[random() % image.bytes().size()] = static_cast<std::byte>(random());
      const auto read = LuajitLua(image.layout).prototype(image, at);
      for (int pc = -1; read && pc <= 3; ++pc) {
        callee_name(*read, pc);
        callee_path(*read, pc);
        read->line(pc);
      }
    }
  }
}

TEST_CASE("the mark of a GCproto stays when the collector and the compiler have been there") {
  for (const bool gc64 : {true, false}) {
    Image image(gc64);
    const Address at = image.proto();
    const auto mark = [&] { return image.call(0, at, 0, 0).mark; };
    const std::uint64_t before = mark();
    CHECK(before != 0);
    image.put(at + image.layout.pt_flags, std::uint8_t{0xff});
    image.put(at + image.layout.pt_flags + 1u, std::uint16_t{7});  // trace
    image.put(at + image.layout.L_gct - 1u, std::uint8_t{3});      // marked
    CHECK(mark() == before);
    image.put(at + image.layout.pt_firstline, 11);
    CHECK(mark() != before);
  }
}

TEST_CASE("LuaJIT: a name that a tail call made untrue is left out") {
  for (const bool gc64 : {true, false}) {
    Image image(gc64);
    const Address caller_proto = image.proto(), name = image.name, called_proto = image.proto(),
                  other_proto = image.proto();
    const Address stack = image.reserve(512);
    const Address called = image.closure(called_proto, 0), other = image.closure(other_proto, 0);
    const std::uint64_t called_value = image.value(called, luajit::gct_function);
    const Address env = image.table({{name, called_value}});
    const Address caller = image.closure(caller_proto, env);
    const LuajitLua lua(image.layout);
    Names names(image);
    const auto name_of = [&](Address function, Address proto, bool fresh = false) {
      const LuaCall outside = image.call(caller, caller_proto, stack, 2);
      LuaCall inside = image.call(function, proto, stack + 64, 1);
      inside.fresh = fresh;
      return *names.label({lua, 0, image}, inside, &outside, inside.saved_pc).name;
    };
    CHECK(name_of(called, called_proto) == "name");
    CHECK(name_of(other, other_proto) == "function");
    CHECK(name_of(called, called_proto, true) == "function");
    // By a metatable; and a path that leads nowhere confirms nothing.
    const Address index = image.string("__index");
    const Address behind = image.table({}, image.table({{index, image.value(env, luajit::gct_table)}}));
    image.put_ref(caller + image.layout.fn_env, behind);
    Names again(image);
    const LuaCall outside = image.call(caller, caller_proto, stack, 2),
                  inside = image.call(other, other_proto, stack + 64, 1);
    CHECK(*again.label({lua, 0, image}, inside, &outside, inside.saved_pc).name == "function");
    image.put_ref(caller + image.layout.fn_env, image.table({}));
    Names third(image);
    CHECK(*third.label({lua, 0, image}, inside, &outside, inside.saved_pc).name == "function");
  }
}

TEST_CASE("LuaJIT: tables that are none, and endless chains of metatables") {
  for (const bool gc64 : {true, false}) {
    Image image(gc64);
    const Address key = image.string("key"), index = image.string("__index");
    const Address loop = image.table({}), meta = image.table({{index, image.value(loop, luajit::gct_table)}});
    image.put_ref(loop + image.layout.tab_metatable, meta);
    CHECK_FALSE(get_field(image, image.layout, image.value(loop, luajit::gct_table), key));
    for (const std::uint32_t mask : {0xffffffffU, 2U, 1U << 20}) {
      image.put(loop + image.layout.tab_hmask, mask);
      CHECK_FALSE(get_field(image, image.layout, image.value(loop, luajit::gct_table), key));
    }
    CHECK_FALSE(get_field(image, image.layout, ~std::uint64_t{0}, key));
    CHECK_FALSE(get_element(image, image.layout, image.value(loop, luajit::gct_table), 1));
    CHECK_FALSE(read_function(image, image.layout, 0, loop));
    CHECK(loaded_table(image, image.layout, 0x10000) == 0);
  }
}

}  // namespace luaspy::luajit_bytecode_test
