#include "luastate/bytecode.h"

#include <algorithm>
#include <utility>

#include "luastate/opcode.h"

namespace luaspy {
namespace {

constexpr std::string_view local_variable = "local";
constexpr std::string_view upvalue_variable = "upvalue";
constexpr std::string_view constant_value = "constant";
// Shown by ldebug.c for a name that does not exist.
constexpr std::string_view unknown_name = "?";
constexpr std::string_view environment_name = "_ENV";

// Limit for instructions examined for one name. Enough for a function of several million
// instructions, but bytecode made to cost time is cut off.
constexpr int scan_limit = 1 << 23;

// Searches one function for the name of a value, as ldebug.c does before instruction `pc`. Its
// recursion is a loop here: a move is followed only towards a lower register, or (LuaJIT) from an
// earlier instruction on, so it ends.
class NameSearch {
 public:
  explicit NameSearch(const Prototype& function) : function_(function), encoding_(encoding_of(function.bytecode)) {}

  bool contains(int pc) const { return pc >= 0 && static_cast<std::size_t>(pc) < function_.code.size(); }

  // An opcode beyond the table counts as one without effect.
  const Opcode& opcode(int pc) const {
    static constexpr Opcode unknown{};
    const auto number = static_cast<std::size_t>(encoding_.opcode.of(code(pc)));
    return number < encoding_.opcodes.size() ? encoding_.opcodes[number] : unknown;
  }

  int argument_a(int pc) const { return encoding_.a.of(code(pc)); }
  int argument_c(int pc) const { return encoding_.c.of(code(pc)); }

  // ldebug.c, getobjname: what register `reg` holds just before instruction `pc`.
  std::optional<CallName> value(int pc, int reg) {
    Variable variable = find(pc, reg);
    if (!variable.what.empty()) return CallName{variable.what, std::move(variable.name)};
    if (variable.setter < 0) return std::nullopt;
    const int setter = variable.setter;
    switch (opcode(setter).origin) {
      case Origin::global:
        return CallName{"global", constant(encoding_.bx.of(code(setter))).value_or(unknown())};
      case Origin::upvalue_field:
      case Origin::field:
        if (is_method(setter)) return CallName{"method", key(setter)};
        return CallName{is_environment(setter) ? "global" : "field", key(setter)};
      case Origin::integer_field:
        return CallName{"field", "integer index"};
      case Origin::method:
        return CallName{"method", key(setter)};
      default:
        return std::nullopt;
    }
  }

  // What register `reg` held just before instruction `pc`. The path refers only to what still
  // exists when the call at `call` runs: the callee does not change registers below the call's A.
  ValuePath path(int pc, int reg, int call) {
    ValuePath path;
    bool is_object = false;
    for (;;) {
      const bool is_kept = reg >= 0 && reg < argument_a(call) && !is_changed(reg, pc, call);
      if (is_kept) return with_root(std::move(path), ValuePath::Root::slot, reg);
      const int setter = local(reg, pc) != nullptr ? -1 : last_setter(pc, reg);
      const Origin origin = setter >= 0 ? opcode(setter).origin : Origin::unnamed;
      // The object of a method is the callee's first argument, unless it is assigned to.
      if (is_object && (setter < 0 || origin == Origin::unnamed))
        return with_root(std::move(path), ValuePath::Root::slot, argument_a(call) + encoding_.object_above);
      if (setter < 0) return {};
      const std::uint32_t instruction = code(setter);
      reg = encoding_.b.of(instruction);
      is_object = pc == call && origin == Origin::field && is_method(setter);
      switch (origin) {
        case Origin::other_register:
          reg = encoding_.from.of(instruction);
          break;
        case Origin::upvalue:
          return with_root(std::move(path), ValuePath::Root::upvalue, encoding_.from.of(instruction));
        case Origin::global:
          return with_root(std::move(path), ValuePath::Root::global, encoding_.bx.of(instruction));
        case Origin::closure:
          return with_root(std::move(path), ValuePath::Root::closure, encoding_.bx.of(instruction));
        case Origin::field:
        case Origin::element:
          if (path.keys.size() == ValuePath::most_keys) return {};
          path.keys.push_back({encoding_.c.of(instruction), origin == Origin::element});
          break;
        default:
          return {};
      }
      pc = setter;
    }
  }

  // Each inner function has one instruction that makes its closures, in the order of their definitions
  // (lparser.c, codeclosure; lj_parse.c, parse_body). A local is active from the next instruction on.
  std::vector<std::string> locals_of_closures() {
    std::vector<std::string> names;
    for (int pc = 0; contains(pc) && names.size() < Prototype::most_children; ++pc) {
      const std::string_view name = opcode(pc).name;
      if (name != "CLOSURE" && name != "FNEW") continue;
      scans_left_ -= 1 + static_cast<int>(function_.locals.size());
      if (scans_left_ < 0) break;
      const int next = pc + 1 + (opcode(pc).flow == Flow::captures ? captures_after(pc) : 0);
      const std::string* const variable = local(argument_a(pc), next);
      const bool begins = variable != nullptr && std::ranges::any_of(function_.locals, [&](const LocalVariable& each) {
                            return each.start_pc == next && &each.name == variable;
                          });
      names.push_back(begins ? *variable : std::string());
    }
    return names;
  }

  bool is_changed(int reg, int from, int to) {
    for (int pc = from; pc < to; ++pc) {
      if (--scans_left_ < 0 || changes(pc, reg)) return true;
    }
    return false;
  }

  ValuePath event_path(int pc) const {
    const std::uint32_t instruction = code(pc);
    const int a = argument_a(pc), b = encoding_.b.of(instruction), c = argument_c(pc),
              bx = encoding_.bx.of(instruction);
    ValuePath path{.event = opcode(pc).event};
    switch (opcode(pc).operands) {
      case Operands::none:
        return {};
      case Operands::a:
        path.operands = {a};
        break;
      case Operands::b:
        path.operands = {b};
        break;
      case Operands::bx:
        path.operands = {bx};
        break;
      case Operands::a_and_bx:
        path.operands = {a, bx};
        break;
      case Operands::b_and_c:
        path.operands = {b, c};
        break;
      case Operands::below_a:
        path.operands = {a - 1};
        break;
      case Operands::environment:
        path.operands = {ValuePath::environment};
        break;
      case Operands::above_c: {
        const int first = c + 2 * encoding_.object_above - 1;
        path.operands = {first, first + 1};
        break;
      }
    }
    path.root = ValuePath::Root::event;
    return path;
  }

 private:
  static ValuePath with_root(ValuePath path, ValuePath::Root root, int index) {
    path.root = root;
    path.index = index;
    std::ranges::reverse(path.keys);
    return path;
  }

  // What a register holds: a named variable or constant, or the result of instruction `setter` (-1:
  // not known).
  struct Variable {
    std::string_view what{};
    std::string name{};
    int setter = -1;
  };

  std::uint32_t code(int pc) const { return function_.code[static_cast<std::size_t>(pc)]; }
  static std::string unknown() { return std::string(unknown_name); }

  std::optional<std::string> constant(int index) const {
    const auto i = static_cast<std::size_t>(index);
    return i < function_.constants.size() ? function_.constants[i] : std::nullopt;
  }

  std::string upvalue(int index) const {
    const auto i = static_cast<std::size_t>(index);
    return i < function_.upvalues.size() ? function_.upvalues[i] : unknown();
  }

  // lfunc.c, luaF_getlocalname: registers hold the active locals in order of declaration.
  const std::string* local(int reg, int pc) const {
    for (const LocalVariable& variable : function_.locals) {
      if (variable.start_pc > pc) break;
      if (pc < variable.end_pc && reg-- == 0) return &variable.name;
    }
    return nullptr;
  }

  // ldebug.c, basicgetobjname: without looking into tables.
  Variable find(int pc, int reg) {
    for (;;) {
      if (const std::string* name = local(reg, pc)) return {local_variable, *name, -1};
      const int setter = last_setter(pc, reg);
      if (setter < 0) return {};
      const std::uint32_t instruction = code(setter);
      switch (opcode(setter).origin) {
        case Origin::other_register: {
          const int from = encoding_.from.of(instruction);
          if (from >= encoding_.a.of(instruction) && !encoding_.backwards) return {};
          reg = from;
          if (!encoding_.names_at_call) pc = setter;
          break;
        }
        case Origin::upvalue:
          return {upvalue_variable, upvalue(encoding_.from.of(instruction)), -1};
        case Origin::constant:
          return constant_variable(encoding_.bx.of(instruction));
        case Origin::extra_constant:
          return contains(setter + 1) ? constant_variable(encoding_.ax.of(code(setter + 1))) : Variable{};
        default:
          return {.setter = setter};
      }
    }
  }

  Variable constant_variable(int index) const {
    std::optional<std::string> text = constant(index);
    return text ? Variable{constant_value, *std::move(text), -1} : Variable{};
  }

  // The name of the key with which instruction `pc` indexes a table.
  std::string key(int pc) {
    const int c = argument_c(pc);
    constexpr int rk_constant = 1 << 8;  // lopcodes.h of 5.1 to 5.3, BITRK
    switch (opcode(pc).key) {
      case Key::constant:
        return constant(c).value_or(unknown());
      case Key::in_register:
        return key_in_register(pc, c);
      case Key::k_flag:
        return encoding_.k.of(code(pc)) != 0 ? constant(c).value_or(unknown()) : key_in_register(pc, c);
      case Key::rk:
        return (c & rk_constant) != 0 ? constant(c & ~rk_constant).value_or(unknown()) : key_in_register(pc, c);
      case Key::constant_of_rk:
        return (c & rk_constant) != 0 ? constant(c & ~rk_constant).value_or(unknown()) : unknown();
      case Key::none:
        break;
    }
    return unknown();
  }

  std::string key_in_register(int pc, int reg) {
    Variable variable = find(pc, reg);
    return variable.what == constant_value ? std::move(variable.name) : unknown();
  }

  // True if the table indexed by instruction `pc` is the environment.
  bool is_environment(int pc) {
    const int table = encoding_.b.of(code(pc));
    if (opcode(pc).origin == Origin::upvalue_field) return upvalue(table) == environment_name;
    switch (encoding_.environment) {
      case Environment::none:
        return false;
      case Environment::local_variable: {
        const std::string* name = local(table, pc);
        return name != nullptr && *name == environment_name;
      }
      case Environment::any_variable: {
        const Variable variable = find(pc, table);
        return (variable.what == local_variable || variable.what == upvalue_variable) &&
               variable.name == environment_name;
      }
    }
    return false;
  }

  bool changes(int pc, int reg) const {
    const int a = argument_a(pc);
    switch (opcode(pc).sets) {
      case Sets::nothing:
        return false;
      case Sets::a:
        return reg == a;
      case Sets::a_and_next:
        return reg == a || reg == a + 1;
      case Sets::a_to_b:
        return a <= reg && reg <= std::max(a, encoding_.from.of(code(pc)));
      case Sets::a_to_a_plus_b:
        return a <= reg && reg <= a + encoding_.from.of(code(pc));
      case Sets::from_a:
        return reg >= a;
      case Sets::from_a_plus_2:
        return reg >= a + 2;
    }
    return false;
  }

  // lj_debug.c, lj_debug_slotname: the instruction before the one that gets a method moves the
  // object to the place where the call needs it.
  bool is_method(int pc) const {
    if (encoding_.object_above == 0 || !contains(pc - 1) || opcode(pc - 1).origin != Origin::other_register)
      return false;
    return argument_a(pc - 1) == argument_a(pc) + encoding_.object_above &&
           encoding_.from.of(code(pc - 1)) == encoding_.b.of(code(pc));
  }

  // ldebug.c, findsetreg (5.1: symbexec): the last instruction before `last` that certainly set
  // `reg`; -1 if there is none. lj_debug.c, lj_debug_slotname: the last one in the order of the
  // bytecode.
  int last_setter(int last, int reg) {
    if (encoding_.backwards) {
      for (int pc = last - 1; pc > 0 && --scans_left_ >= 0; --pc) {
        if (changes(pc, reg)) return pc;
      }
      return -1;
    }
    int setter = -1;
    int conditional_end = 0;  // instructions before it may have been skipped
    for (int pc = 0; pc < last; ++pc) {
      if (--scans_left_ < 0) return -1;
      if (changes(pc, reg)) setter = pc < conditional_end ? -1 : pc;
      switch (opcode(pc).flow) {
        case Flow::next:
          break;
        case Flow::jump: {
          const int target = pc + 1 + encoding_.jump.signed_of(code(pc));
          if (target <= pc || target > last) break;
          if (encoding_.takes_jumps) pc = target - 1;
          else conditional_end = std::max(conditional_end, target);
          break;
        }
        case Flow::captures:
          pc += captures_after(pc);
          break;
        case Flow::raw_word:
          pc += argument_c(pc) == 0 ? 1 : 0;
          break;
      }
    }
    return setter;
  }

  // The number of captures after the 5.1 OP_CLOSURE at `pc`. symbexec reads it from the inner
  // Proto. That is not necessary here, because captures have A = 0 (lparser.c, pushclosure). If a
  // real instruction looks like one, a local variable ends or starts between them: a closure in
  // register 0 is overwritten only after the local that held it is gone.
  int captures_after(int pc) {
    int count = 0;
    while (contains(pc + 1 + count) && is_capture(pc + 1 + count)) ++count;
    return count;
  }

  bool is_capture(int pc) {
    const Origin origin = opcode(pc).origin;
    if ((origin != Origin::other_register && origin != Origin::upvalue) || argument_a(pc) != 0) return false;
    scans_left_ -= 1 + static_cast<int>(function_.locals.size());
    if (scans_left_ < 0) return false;
    return std::ranges::none_of(function_.locals, [pc](const LocalVariable& variable) {
      return variable.start_pc == pc || variable.end_pc == pc;
    });
  }

  const Prototype& function_;
  const Encoding& encoding_;
  int scans_left_ = scan_limit;
};

}  // namespace

std::vector<std::string> locals_of_closures(const Prototype& function) {
  return NameSearch(function).locals_of_closures();
}

ValuePath callee_path(const Prototype& caller, int pc) {
  NameSearch search(caller);
  const Encoding& encoding = encoding_of(caller.bytecode);
  if (!encoding.backwards || !search.contains(pc)) return {};
  const Calls calls = search.opcode(pc).calls;
  if (calls == Calls::event) return search.event_path(pc);
  if (calls != Calls::value && calls != Calls::generator) return {};
  return search.path(pc, search.argument_a(pc) - (calls == Calls::generator ? encoding.generator_below : 0), pc);
}

std::optional<CallName> callee_name(const Prototype& caller, int pc) {
  NameSearch search(caller);
  if (!search.contains(pc)) return std::nullopt;
  const Opcode& opcode = search.opcode(pc);
  const auto metamethod = [](std::string_view event) {
    return CallName{"metamethod", std::string("__").append(event)};
  };
  switch (opcode.calls) {
    case Calls::nobody:
      return std::nullopt;
    case Calls::value:
    case Calls::tail_value:
      return search.value(pc, search.argument_a(pc));
    case Calls::generator:
    case Calls::iterator:
      return CallName{iterator_name, std::string(iterator_name)};
    case Calls::event:
      return metamethod(opcode.event);
    case Calls::event_in_c: {
      const auto number = static_cast<std::size_t>(search.argument_c(pc));
      const auto events = encoding_of(caller.bytecode).events;
      return number < events.size() ? std::optional(metamethod(events[number])) : std::nullopt;
    }
  }
  return std::nullopt;
}

namespace {

// How `instruction` calls; nobody if no opcode has its number.
Calls calls_of(const Encoding& encoding, std::uint32_t instruction) {
  const auto opcode = static_cast<std::size_t>(encoding.opcode.of(instruction));
  return opcode < encoding.opcodes.size() ? encoding.opcodes[opcode].calls : Calls::nobody;
}

}  // namespace

bool is_call(Bytecode bytecode, std::uint32_t instruction) {
  const Calls calls = calls_of(encoding_of(bytecode), instruction);
  return calls == Calls::value || calls == Calls::tail_value;
}

bool is_tail_call(Bytecode bytecode, std::uint32_t instruction) {
  return calls_of(encoding_of(bytecode), instruction) == Calls::tail_value;
}

bool is_assigned(const Prototype& function, int reg) {
  return NameSearch(function).is_changed(reg, 0, static_cast<int>(function.code.size()));
}

std::optional<int> called_register(Bytecode bytecode, std::uint32_t instruction) {
  return is_call(bytecode, instruction) ? std::optional(encoding_of(bytecode).a.of(instruction)) : std::nullopt;
}

std::optional<int> passed_arguments(Bytecode bytecode, std::uint32_t instruction) {
  const Encoding& encoding = encoding_of(bytecode);
  if (calls_of(encoding, instruction) != Calls::value) return std::nullopt;
  const auto opcode = static_cast<std::size_t>(encoding.opcode.of(instruction));
  if (encoding.opcodes[opcode].name != "CALL") return std::nullopt;
  const int count = (is_luajit(bytecode) ? encoding.c : encoding.b).of(instruction);
  return count > 0 ? std::optional(count - 1) : std::nullopt;
}

}  // namespace luaspy
