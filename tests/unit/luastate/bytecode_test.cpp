// Prototypes made by hand: the name that a caller has for its callee, and reading a Proto from
// memory. tests/oracle/oracle.cpp tests that names agree with real Luas; this tests code that no
// compiler generates, and one case of everything else.

#include "luastate/bytecode.h"

#include <catch2/catch.hpp>

#include <limits>
#include <map>
#include <random>

#include "luastate/opcode.h"
#include "luastate/puc/puc_lua.h"
#include "luastate/strings.h"
#include "support/dice.h"

using namespace luaspy;

namespace {

struct Arguments {
  int a = 0, b = 0, c = 0, k = 0, bx = 0, ax = 0, jump = 0;
};

std::uint32_t put(Field field, int value) {
  return (static_cast<std::uint32_t>(value) & ((1U << field.width) - 1)) << field.position;
}

std::uint32_t word(Bytecode bytecode, std::string_view name, Arguments arguments = {}) {
  const Encoding& encoding = encoding_of(bytecode);
  for (std::size_t i = 0; i < encoding.opcodes.size(); ++i) {
    if (encoding.opcodes[i].name != name) continue;
    std::uint32_t bits = put(encoding.opcode, static_cast<int>(i)) | put(encoding.a, arguments.a) |
                         put(encoding.b, arguments.b) | put(encoding.c, arguments.c) | put(encoding.bx, arguments.bx);
    if (arguments.k != 0) bits |= put(encoding.k, arguments.k);
    if (arguments.ax != 0) bits = put(encoding.opcode, static_cast<int>(i)) | put(encoding.ax, arguments.ax);
    if (arguments.jump == 0) return bits;
    return bits | put(encoding.jump, arguments.jump + (1 << (encoding.jump.width - 1)) - 1);
  }
  FAIL("no opcode " << name);
  return 0;
}

struct Line {
  std::string_view name;
  Arguments arguments = {};
};

Prototype function(Bytecode bytecode, std::initializer_list<Line> code) {
  Prototype made;
  made.bytecode = bytecode;
  for (const Line& line : code) made.code.push_back(word(bytecode, line.name, line.arguments));
  made.constants = {"zero", "one", std::nullopt, "three", "_ENV"};
  made.upvalues = {"_ENV", "up"};
  return made;
}

std::string name_at(const Prototype& caller, int pc) {
  const std::optional<CallName> name = callee_name(caller, pc);
  return name ? std::string(name->what) + " " + name->name : "nothing";
}

std::string last_name(const Prototype& caller) { return name_at(caller, static_cast<int>(caller.code.size()) - 1); }

constexpr int rk = 256;  // 5.1 to 5.3: a constant
constexpr auto l51 = Bytecode::lua51, l52 = Bytecode::lua52, l53 = Bytecode::lua53, l54 = Bytecode::lua54,
               l55 = Bytecode::lua55;
constexpr Bytecode all[] = {l51, l52, l53, l54, l55};

}  // namespace

TEST_CASE("5.1: names of called values") {
  CHECK(last_name(function(l51, {{"GETGLOBAL", {.bx = 1}}, {"CALL"}})) == "global one");
  CHECK(last_name(function(l51, {{"GETTABLE", {.c = rk | 3}}, {"CALL"}})) == "field three");
  CHECK(last_name(function(l51, {{"LOADK", {.a = 1, .bx = 1}}, {"GETTABLE", {.c = 1}}, {"CALL"}})) == "field ?");
  CHECK(last_name(function(l51, {{"GETTABLE", {.c = rk | 2}}, {"CALL"}})) == "field ?");
  CHECK(last_name(function(l51, {{"SELF", {.c = rk | 1}}, {"CALL"}})) == "method one");
  CHECK(last_name(function(l51, {{"SELF", {.c = rk | 1}}, {"CALL", {.a = 1}}})) == "method one");
  CHECK(last_name(function(l51, {{"GETUPVAL", {.b = 1}}, {"TAILCALL"}})) == "upvalue up");
  CHECK(last_name(function(l51, {{"GETUPVAL", {.a = 1, .b = 1}}, {"MOVE", {.a = 2, .b = 1}}, {"CALL", {.a = 2}}})) ==
        "upvalue up");
  CHECK(last_name(function(l51, {{"LOADK", {.bx = 1}}, {"CALL"}})) == "nothing");
  CHECK(last_name(function(l51, {{"ADD"}})) == "metamethod __add");
  CHECK(last_name(function(l51, {{"LOADNIL", {.a = 0, .b = 3}}, {"CALL", {.a = 2}}})) == "nothing");
  Prototype loop = function(l51, {{"MOVE"}, {"TFORLOOP", {.a = 1}}});
  loop.locals = {{"a", 0, 2}, {"(for generator)", 0, 2}};
  CHECK(last_name(loop) == "for iterator for iterator");
}

TEST_CASE("5.1: jumps are taken, captures and counts are not instructions") {
  CHECK(
      last_name(function(l51, {{"GETGLOBAL", {.bx = 0}}, {"JMP", {.jump = 1}}, {"GETGLOBAL", {.bx = 1}}, {"CALL"}})) ==
      "global zero");
  CHECK(last_name(function(
            l51, {{"GETGLOBAL", {.a = 0, .bx = 0}}, {"CLOSURE", {.a = 1}}, {"MOVE"}, {"GETUPVAL"}, {"CALL"}})) ==
        "global zero");
  CHECK(last_name(function(l51, {{"GETGLOBAL"}, {"SETLIST", {.a = 1, .c = 0}}, {"CALL"}, {"CALL"}})) == "global zero");
  Prototype ended = function(l51, {{"CLOSURE"}, {"GETUPVAL", {.b = 1}}, {"CALL"}});
  CHECK(last_name(ended) == "nothing");
  ended.locals = {{"f", 1, 1}};
  CHECK(last_name(ended) == "upvalue up");
}

// local function f() end; t.g = function() end; local h = function() end
TEST_CASE("the local variables in which functions are defined") {
  using Names = std::vector<std::string>;
  for (const Bytecode version : {l52, l53, l54, l55}) {
    Prototype parent = function(version, {{"CLOSURE", {.a = 0}},
                                          {"CLOSURE", {.a = 1, .bx = 1}},
                                          {"MOVE", {.a = 2}},
                                          {"CLOSURE", {.a = 1, .bx = 2}},
                                          {"CALL"}});
    parent.locals = {{"f", 1, 5}, {"h", 4, 5}};
    CHECK(locals_of_closures(parent) == Names{"f", "", "h"});
    parent.locals = {{"f", 0, 5}};  // assigned to a variable that exists
    CHECK(locals_of_closures(parent) == Names{"", "", ""});
    parent.locals.clear();
    CHECK(locals_of_closures(parent) == Names{"", "", ""});
  }
  Prototype captures = function(l51, {{"CLOSURE", {.a = 1}}, {"MOVE"}, {"GETUPVAL"}, {"CALL"}});
  captures.locals = {{"x", 0, 4}, {"f", 3, 4}};
  CHECK(locals_of_closures(captures) == Names{"f"});
  Prototype compiled = function(Bytecode::luajit, {{"KNIL"}, {"FNEW", {.a = 0}}, {"RET0"}});
  compiled.locals = {{"f", 2, 3}};
  CHECK(locals_of_closures(compiled) == Names{"f"});
}

TEST_CASE("5.2 and 5.3: names of called values") {
  for (Bytecode version : {l52, l53}) {
    CHECK(last_name(function(version, {{"GETTABUP", {.b = 0, .c = rk | 1}}, {"CALL"}})) == "global one");
    CHECK(last_name(function(version, {{"GETTABUP", {.b = 1, .c = rk | 1}}, {"CALL"}})) == "field one");
    CHECK(last_name(function(version, {{"GETTABLE", {.c = rk | 3}}, {"CALL"}})) == "field three");
    CHECK(last_name(function(version, {{"LOADK", {.a = 1, .bx = 1}}, {"GETTABLE", {.c = 1}}, {"CALL"}})) ==
          "field one");
    CHECK(last_name(function(version, {{"SELF", {.c = rk | 1}}, {"CALL"}})) == "method one");
    CHECK(last_name(function(version, {{"LOADK", {.bx = 1}}, {"CALL"}})) == "constant one");
    CHECK(last_name(function(version, {{"LOADK", {.bx = 2}}, {"CALL"}})) == "nothing");
    CHECK(last_name(function(version, {{"LOADKX"}, {"EXTRAARG", {.ax = 3}}, {"CALL"}})) == "constant three");
    CHECK(last_name(function(version, {{"GETUPVAL", {.b = 1}}, {"CALL"}})) == "upvalue up");
    CHECK(last_name(function(version, {{"GETUPVAL", {.b = 1}}, {"JMP", {.jump = 1}}, {"GETUPVAL"}, {"CALL"}})) ==
          "nothing");
    CHECK(last_name(function(version, {{"TFORCALL"}})) == "for iterator for iterator");
    CHECK(last_name(function(version, {{"CONCAT"}})) == "metamethod __concat");
    CHECK(last_name(function(version, {{"SETTABUP"}})) == "metamethod __newindex");
    CHECK(last_name(function(version, {{"NOT"}})) == "nothing");
    Prototype environment = function(version, {{"MOVE"}, {"GETTABLE", {.a = 1, .c = rk | 1}}, {"CALL", {.a = 1}}});
    environment.locals = {{"_ENV", 0, 9}};
    CHECK(last_name(environment) == "global one");
  }
  CHECK(last_name(function(l53, {{"IDIV"}})) == "metamethod __idiv");
  CHECK(last_name(function(l53, {{"BNOT"}})) == "metamethod __bnot");
}

TEST_CASE("5.4 and 5.5: names of called values") {
  for (Bytecode version : {l54, l55}) {
    CHECK(last_name(function(version, {{"GETTABUP", {.b = 0, .c = 1}}, {"CALL"}})) == "global one");
    CHECK(last_name(function(version, {{"GETFIELD", {.b = 1, .c = 3}}, {"CALL"}})) == "field three");
    CHECK(last_name(function(version, {{"GETI", {.b = 1, .c = 3}}, {"CALL"}})) == "field integer index");
    CHECK(last_name(function(version, {{"LOADK", {.a = 1, .bx = 1}}, {"GETTABLE", {.c = 1}}, {"CALL"}})) ==
          "field one");
    CHECK(last_name(function(version, {{"GETUPVAL", {.a = 1, .b = 0}}, {"GETFIELD", {.b = 1, .c = 1}}, {"CALL"}})) ==
          "global one");
    CHECK(last_name(function(version, {{"LOADK", {.a = 1, .bx = 4}}, {"GETFIELD", {.b = 1, .c = 1}}, {"CALL"}})) ==
          "field one");
    CHECK(last_name(function(version, {{"SELF", {.c = 1, .k = 1}}, {"CALL"}})) == "method one");
    CHECK(last_name(function(version, {{"MMBIN", {.c = 6}}})) == "metamethod __add");
    CHECK(last_name(function(version, {{"MMBINK", {.c = 24}}})) == "metamethod __close");
    CHECK(last_name(function(version, {{"MMBINI", {.c = 25}}})) == "nothing");
    CHECK(last_name(function(version, {{"ADD"}})) == "nothing");
    CHECK(last_name(function(version, {{"GTI"}})) == "metamethod __lt");
    CHECK(last_name(function(version, {{"EQK"}})) == "nothing");
    CHECK(last_name(function(version, {{"RETURN"}})) == "metamethod __close");
    CHECK(last_name(function(version, {{"TFORCALL"}})) == "for iterator for iterator");
    CHECK(last_name(function(version, {{"GETUPVAL"}, {"JMP", {.jump = 1}}, {"GETUPVAL"}, {"CALL"}})) == "nothing");
  }
  CHECK(last_name(function(l54, {{"LOADI", {.a = 2}}, {"SELF", {.c = 2}}, {"CALL"}})) == "method ?");
  CHECK(last_name(function(l55, {{"SELF", {.c = 1}}, {"CALL"}})) == "method one");
  CHECK(last_name(function(l55, {{"LOADK", {.a = 1, .bx = 1}}, {"GETVARG", {.c = 1}}, {"CALL"}})) == "field one");
}

TEST_CASE("locals are named by the order of those alive") {
  for (Bytecode version : all) {
    Prototype caller = function(version, {{"CALL", {.a = 1}}, {"CALL", {.a = 1}}, {"CALL", {.a = 1}}});
    caller.locals = {{"gone", 0, 1}, {"first", 0, 9}, {"second", 1, 9}};
    CHECK(name_at(caller, 0) == "local first");
    CHECK(name_at(caller, 1) == "local second");
    CHECK(is_call(version, caller.code[0]));
  }
}

TEST_CASE("which instructions are calls, and where their function is") {
  for (Bytecode version : all) {
    const Prototype caller = function(version,
                                      {{"CALL"}, {"TAILCALL"}, {"UNM"}, {version == l51 ? "TFORLOOP" : "TFORCALL"}});
    CHECK(is_call(version, caller.code[0]));
    CHECK(is_call(version, caller.code[1]));
    CHECK_FALSE(is_call(version, caller.code[2]));
    CHECK_FALSE(is_call(version, caller.code[3]));
    CHECK(called_register(version, function(version, {{"CALL", {.a = 5}}}).code[0]) == 5);
    CHECK(called_register(version, function(version, {{"TAILCALL", {.a = 6}}}).code[0]) == 6);
    CHECK_FALSE(is_tail_call(version, caller.code[0]));
    CHECK(is_tail_call(version, caller.code[1]));
    CHECK_FALSE(is_tail_call(version, ~std::uint32_t{0}));
    CHECK_FALSE(called_register(version, caller.code[2]));
    CHECK_FALSE(is_call(version, ~std::uint32_t{0}));  // there is no opcode with this number
  }
}

TEST_CASE("an instruction out of range has no name") {
  for (Bytecode version : all) {
    const Prototype caller = function(version, {{"CALL"}});
    for (int pc : {-1, 1, std::numeric_limits<int>::min(), std::numeric_limits<int>::max()}) {
      CHECK_FALSE(callee_name(caller, pc));
    }
    CHECK_FALSE(callee_name(function(version, {}), 0));
  }
}

TEST_CASE("bytecode that no compiler makes") {
  for (Bytecode version : all) {
    Prototype moves = function(version, {});
    for (int reg = 1; reg < 256; ++reg) moves.code.push_back(word(version, "MOVE", {.a = reg, .b = reg - 1}));
    moves.code.push_back(word(version, "CALL", {.a = 255}));
    CHECK(last_name(moves) == "nothing");
    CHECK(last_name(function(version, {{"MOVE", {.a = 1, .b = 1}}, {"CALL", {.a = 1}}})) == "nothing");
    CHECK(last_name(function(version, {{"MOVE", {.a = 1, .b = 2}}, {"MOVE", {.a = 2, .b = 1}}, {"CALL", {.a = 2}}})) ==
          "nothing");
    for (int jump : {-65000, 65000, -1, -2, 1}) {
      const Prototype jumps = function(version, {{"GETUPVAL", {.b = 1}}, {"JMP", {.jump = jump}}, {"CALL"}});
      CHECK(last_name(jumps) == "upvalue up");
    }
    CHECK(last_name(function(version, {{"GETUPVAL", {.b = 99}}, {"CALL"}})) == "upvalue ?");
    Prototype last = function(version, {{"CALL"}});
    last.code.insert(last.code.begin(), {0xffffffff, 0});
    CHECK(callee_name(last, 0) == std::nullopt);
  }
  CHECK(last_name(function(l51, {{"GETGLOBAL", {.bx = 99}}, {"CALL"}})) == "global ?");
}

TEST_CASE("random bytecode takes bounded time") {
  std::mt19937 random(1);
  for (Bytecode version : all) {
    Prototype caller = function(version, {});
    caller.code.resize(20000);
    for (std::uint32_t& instruction : caller.code) instruction = static_cast<std::uint32_t>(random());
    for (int i = 0; i < 30000; ++i)
      caller.locals.push_back({"x", static_cast<int>(random() % 20000) - 9, static_cast<int>(random())});
    for (int pc = 0; pc < 20000; pc += 17) callee_name(caller, pc);
    caller.code.assign(1 << 22, word(version, "MOVE"));
    caller.code.front() = word(version, "CLOSURE");
    caller.code.back() = word(version, "CALL", {.a = 3});
    caller.locals.assign(30000, {"x", 1 << 23, 1 << 23});
    CHECK(last_name(caller) == "nothing");
  }
}

TEST_CASE("the line of an instruction") {
  Prototype plain;
  plain.line_defined = 7;
  CHECK(plain.line(3) == 7);
  plain.lines = {8, 9, 10};
  CHECK(plain.line(1) == 9);
  CHECK(plain.line(-5) == 8);
  CHECK(plain.line(99) == 10);
}

namespace {

// A block of memory in which a Proto can be laid out.
class Image : public Memory {
 public:
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

  Address string(const Layout& row, std::string_view text, bool is_long = false) {
    const Address object = reserve(row.string_data + text.size() + sizeof(Address));
    put<std::uint8_t>(object + 8, is_long ? 0x14 : 0x04);
    Address characters = object + row.string_data;
    if (row.string_form == StringForm::length_word || is_long) put<std::uint64_t>(object + row.string_len, text.size());
    if (row.string_form == StringForm::short_long && !is_long)
      put(object + row.string_shrlen, static_cast<std::uint8_t>(text.size()));
    if (row.string_form == StringForm::signed_short) {
      put(object + row.string_shrlen, static_cast<std::int8_t>(is_long ? -1 : static_cast<int>(text.size())));
      if (is_long) put(object + row.string_data, characters = reserve(text.size() + 1));
    }
    for (char c : text) put(characters++, c);
    return object;
  }

  // A function "@f.lua":10-20 of three instructions on lines 11, 400, 401, with a constant, an
  // upvalue and a local.
  Address proto(const Layout& row) {
    const Address object = reserve(row.p_size);
    put(object + 8, row.tag_proto);
    put(object + row.p_numparams, std::uint8_t{2});
    put(object + row.p_linedefined, 10);
    put(object + row.p_lastlinedefined, 20);
    put(object + row.p_source, string(row, "@f.lua"));
    array(object, row.p_code, row.p_sizecode, 3, 4);
    lines(object, row);
    const Address constants = array(object, row.p_k, row.p_sizek, 3, row.value_size);
    const auto value = [&](Address n) { return constants + n * row.value_size; };
    const bool old = row.tt_size == 4 && row.bytecode == Bytecode::lua51;
    put(constants, string(row, "short"));
    put<std::uint8_t>(value(0) + row.value_tt, old ? 0x04 : 0x44);
    put<std::uint8_t>(value(1) + row.value_tt, 3);
    put(value(2), string(row, std::string(300, 'l'), row.string_form != StringForm::length_word));
    put<std::uint8_t>(value(2) + row.value_tt, old ? 0x04 : 0x54);
    const Address upvalues = array(object, row.p_upvalues, row.p_sizeupvalues, 2, row.upvalue_desc_size);
    put(upvalues, string(row, "up"));
    const Address locals = array(object, row.p_locvars, row.p_sizelocvars, 1, 16);
    put(locals, string(row, "here"));
    put(locals + 8, 1);
    put(locals + 12, 3);
    return object;
  }

  std::vector<std::byte>& bytes() { return bytes_; }

 private:
  static constexpr Address base = 0x10000;

  Address array(Address object, Offset pointer, Offset size, int count, std::size_t element) {
    const Address at = reserve(static_cast<std::size_t>(count) * element);
    put(object + pointer, at);
    put(object + size, count);
    return at;
  }

  void lines(Address object, const Layout& row) {
    const bool relative = row.p_abslineinfo != no_field;
    const Address at = array(object, row.p_lineinfo, row.p_sizelineinfo, 3, relative ? 1 : 4);
    if (!relative) {
      for (int i = 0; i < 3; ++i) put(at + 4 * static_cast<Address>(i), i == 0 ? 11 : 399 + i);
      return;
    }
    put(at, std::int8_t{1});
    put(at + 1, std::int8_t{-0x80});
    put(at + 2, std::int8_t{1});
    const Address bases = array(object, row.p_abslineinfo, row.p_sizeabslineinfo, 1, 8);
    put(bases, 1);
    put(bases + 4, 400);
  }

  std::vector<std::byte> bytes_;
};

}  // namespace

TEST_CASE("a Proto of every layout is read") {
  for (const Layout& row : layouts()) {
    INFO(row.name);
    Image image;
    const Address address = image.proto(row);
    const std::optional<Prototype> read = puc_lua(row).prototype(image, address);
    REQUIRE(read);
    CHECK(read->source == "@f.lua");
    CHECK(read->parameters == 2);
    CHECK(read->line_defined == 10);
    CHECK(read->last_line_defined == 20);
    CHECK(read->lines == std::vector{11, 400, 401});
    REQUIRE(read->constants.size() == 3);
    CHECK(read->constants[0] == "short");
    CHECK(read->constants[1] == std::nullopt);
    CHECK(read->constants[2] == std::string(200, 'l'));
    CHECK(read->upvalues == std::vector<std::string>{"up", "?"});
    REQUIRE(read->locals.size() == 1);
    CHECK(read->locals[0].name == "here");
    CHECK(read->locals[0].end_pc == 3);
    CHECK(read->code.size() == 3);
  }
}

TEST_CASE("a function's identity is what its source is, not where it is loaded") {
  for (const Layout& row : layouts()) {
    INFO(row.name);
    Image image;
    const Address first = image.proto(row), second = image.proto(row);
    const std::uint32_t identity = puc_lua(row).prototype(image, first)->identity();
    CHECK(identity != 0);
    CHECK(puc_lua(row).prototype(image, second)->identity() == identity);
    const Prototype read = *puc_lua(row).prototype(image, second);
    image.put(read.code_address + 4, 7);
    CHECK(puc_lua(row).prototype(image, second)->identity() != identity);
    image.put(read.code_address + 4, 0);
    CHECK(puc_lua(row).prototype(image, second)->identity() == identity);
    const Address constants = *image.get<Address>(second + row.p_k);
    image.put(constants + row.value_size, std::uint64_t{5});
    if (row.value_tt > 8) image.put(constants + row.value_size + 8, std::uint16_t{0x3fff});  // its exponent
    CHECK(puc_lua(row).prototype(image, second)->identity() != identity);
    image.put(constants + row.value_size, std::uint64_t{0});
    if (row.value_tt > 8) image.put(constants + row.value_size + 8, std::uint16_t{0});
    const Address children = image.reserve(16);
    image.put(children, first);
    image.put(children + 8, second);
    image.put(second + row.p_code + 8u, children);
    image.put(second + row.p_sizelineinfo + 4u, 2);
    CHECK(puc_lua(row).prototype(image, second)->children == std::vector<Address>{first, second});
  }
}

TEST_CASE("a stripped Proto has no lines and no names") {
  for (const Layout& row : layouts()) {
    Image image;
    const Address address = image.proto(row);
    for (Offset size : {row.p_sizelineinfo, row.p_sizelocvars, row.p_sizeupvalues}) image.put(address + size, 0);
    image.put(address + row.p_source, Address{0});
    const std::optional<Prototype> read = puc_lua(row).prototype(image, address);
    REQUIRE(read);
    CHECK(read->source == "=?");
    CHECK(read->line(1) == 10);
    CHECK(read->lines.empty());
    CHECK(read->upvalues.empty());
  }
}

TEST_CASE("what is no Proto is refused") {
  for (const Layout& row : layouts()) {
    INFO(row.name);
    const auto broken = [&row](auto damage) {
      Image image;
      const Address address = image.proto(row);
      damage(image, address);
      return !puc_lua(row).prototype(image, address);
    };
    CHECK(broken([](Image& image, Address at) { image.put(at + 8, std::uint8_t{5}); }));
    for (Offset size : {row.p_sizecode, row.p_sizek, row.p_sizelineinfo, row.p_sizelocvars, row.p_sizeupvalues}) {
      for (int value : {-1, std::numeric_limits<int>::min(), std::numeric_limits<int>::max(), 1 << 23}) {
        CHECK(broken([=](Image& image, Address at) { image.put(at + size, value); }));
      }
    }
    CHECK(broken([&row](Image& image, Address at) { image.put(at + row.p_sizecode, 0); }));
    for (Offset pointer : {row.p_code, row.p_k, row.p_lineinfo, row.p_locvars, row.p_upvalues, row.p_source}) {
      for (Address value : {Address{0x8}, Address{0x7ffffff00000}, ~Address{0}}) {
        CHECK(broken([=](Image& image, Address at) { image.put(at + pointer, value); }));
      }
    }
    CHECK(broken([&row](Image& image, Address at) { image.put(at + row.p_source, at); }));
    CHECK_FALSE(puc_lua(row).prototype(Image(), 0));
    CHECK_FALSE(puc_lua(row).prototype(Image(), 0x10001));
  }
}

TEST_CASE("strings: short, long, empty, cut, and none") {
  for (const Layout& row : layouts()) {
    INFO(row.name);
    Image image;
    const bool longs = row.string_form != StringForm::length_word;
    CHECK(read_string(image, puc_lua(row), image.string(row, "abc")) == "abc");
    CHECK(read_string(image, puc_lua(row), image.string(row, "")) == "");
    CHECK(read_string(image, puc_lua(row), image.string(row, "abcdef"), 4) == "abcd");
    CHECK(read_string(image, puc_lua(row), image.string(row, std::string(60, 'x'), longs)) == std::string(60, 'x'));
    const Address wrong = image.string(row, "abc");
    image.put<std::uint8_t>(wrong + 8, 5);
    CHECK_FALSE(read_string(image, puc_lua(row), wrong));
    const Address endless = image.string(row, "abc", longs);
    image.put(endless + row.string_len, ~std::uint64_t{0});
    CHECK_FALSE(read_string(image, puc_lua(row), endless));
    CHECK_FALSE(read_string(image, puc_lua(row), 0));
    CHECK_FALSE(read_string(image, puc_lua(row), 0x7ffffff00000));
  }
}

TEST_CASE("damaged Protos do no harm", "[slow]") {
  std::mt19937 random(2);
  for (const Layout& row : layouts()) {
    for (int round = 0; round < rounds(2000); ++round) {
      Image image;
      const Address address = image.proto(row);
      for (int i = 0; i < 4; ++i) image.bytes()[random() % image.bytes().size()] = static_cast<std::byte>(random());
      const std::optional<Prototype> read = puc_lua(row).prototype(image, address);
      if (!read) continue;
      for (int pc = -1; pc <= 3; ++pc) {
        callee_name(*read, pc);
        read->line(pc);
      }
      CHECK(locals_of_closures(*read).size() <= read->code.size());
    }
  }
}
