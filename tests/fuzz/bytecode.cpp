// The name that a caller has for its callee, from arbitrary bytecode: a Prototype from the input.

#include "luastate/bytecode.h"

#include "fuzz.h"

namespace luaspy::fuzz {

void bytecode(Bytes bytes) {
  Input input(bytes);
  Prototype prototype;
  prototype.bytecode = static_cast<Bytecode>(input.take<std::uint8_t>() % 7);
  prototype.parameters = input.take<std::uint8_t>();
  prototype.line_defined = input.take<std::uint8_t>();
  const std::size_t constants = input.take<std::uint8_t>() % 32, upvalues = input.take<std::uint8_t>() % 8,
                    locals = input.take<std::uint8_t>() % 8;
  for (std::size_t i = 0; i < constants; ++i) {
    const std::size_t length = input.take<std::uint8_t>() % 8;
    if (length == 7) prototype.constants.emplace_back(std::nullopt);
    else prototype.constants.emplace_back(std::string(input.text(length)));
  }
  for (std::size_t i = 0; i < upvalues; ++i) prototype.upvalues.emplace_back(input.text(4));
  for (std::size_t i = 0; i < locals; ++i) {
    const int start = input.take<std::int8_t>(), end = input.take<std::int16_t>();
    prototype.locals.push_back({std::string(input.text(2)), start, end});
  }
  constexpr std::size_t most = 300;
  while (!input.empty() && prototype.code.size() < most) prototype.code.push_back(input.take<std::uint32_t>());
  if (prototype.code.size() % 2 == 0) prototype.lines.assign(prototype.code.size(), 1);
  for (int pc = -2; pc < static_cast<int>(prototype.code.size()) + 2; ++pc) {
    if (const std::optional<CallName> name = callee_name(prototype, pc))
      expect(name->name.size() < 300 && !name->what.empty(), "names are of the prototype");
    const ValuePath path = callee_path(prototype, pc);
    expect(path.keys.size() <= ValuePath::most_keys && path.operands.size() < 10, "paths are short");
    (void)prototype.line(pc);
  }
  for (const std::uint32_t instruction : prototype.code) {
    (void)called_register(prototype.bytecode, instruction);
    (void)is_call(prototype.bytecode, instruction);
    (void)is_tail_call(prototype.bytecode, instruction);
  }
}

}  // namespace luaspy::fuzz
