#include "luastate/luajit/trace_errors.h"

#include <fmt/format.h>

#include <array>
#include <span>
#include <string_view>

#include "luastate/luajit/luajit_opcodes.h"

namespace luaspy {
namespace {

// What stands for the detail in a text.
enum class Detail : std::uint8_t { none, opcode, function, ir };

// `text`: as lj_traceerr.h has it, since that is what -jv prints and what people search for; the detail follows.
// `advice`: from what LuaJIT's documentation and lj_record.c say of it.
struct TraceError {
  std::string_view text, advice;
  Detail detail = Detail::none;
};

namespace trace_errors {

constexpr TraceError error = {"error thrown or hook called during recording",
                              "Keep errors that are expected, and debug.sethook, out of hot code."};
constexpr TraceError too_short = {"trace too short",
                                  "Almost all of it is calls of functions that are not compiled: replace these."};
constexpr TraceError too_long = {"trace too long",
                                 "Split it into smaller loops or functions, or raise maxrecord "
                                 "(jit.opt.start)."};
constexpr TraceError too_deep = {"trace too deep", "Nest fewer calls, and pass fewer values at once."};
constexpr TraceError snapshots = {"too many snapshots",
                                  "Make fewer decisions on one path, or raise maxsnap "
                                  "(jit.opt.start)."};
constexpr TraceError blacklisted = {"blacklisted", "It runs into code that is blacklisted: mend that first."};
constexpr TraceError retry = {"retry recording", ""};
constexpr TraceError bytecode = {"NYI: bytecode", "", Detail::opcode};
constexpr TraceError leaves = {"leaving loop in root trace",
                               "The loop ended while it was recorded. A loop of few rounds is best compiled as a part "
                               "of what is around it, or unrolled."};
constexpr TraceError inner = {"inner loop in root trace",
                              "LuaJIT compiles the inner loop first and the rest from its exits: nothing to do, unless "
                              "the inner loop is not compiled."};
constexpr TraceError unroll = {"loop unroll limit reached",
                               "An inner loop of few rounds is unrolled only so often: give it more rounds or write "
                               "them out, or raise loopunroll and instunroll (jit.opt.start)."};
constexpr TraceError bad_type = {"bad argument type",
                                 "A function of the library gets an argument of a wrong type, as "
                                 "it does when it raises an error."};
constexpr TraceError off = {"JIT compilation disabled for function",
                            "It calls a function that jit.off() was called for: call it elsewhere, or switch it on."};
constexpr TraceError calls = {"call unroll limit reached",
                              "Too deep a recursion for one trace: write it as a loop, or raise callunroll "
                              "(jit.opt.start)."};
constexpr TraceError restarts = {"down-recursion, restarting", "LuaJIT records it again by itself."};
constexpr TraceError c_function = {"NYI: C function",
                                   "Call a function of Lua or of FFI in its place, or call it "
                                   "outside of hot code.",
                                   Detail::function};
constexpr TraceError fast_function = {
    "NYI: FastFunc", "Do it with functions that are compiled, or outside of hot code.", Detail::function};
constexpr TraceError variant = {"NYI: unsupported variant of FastFunc",
                                "With other arguments this function may be compiled. Otherwise call it outside of hot "
                                "code.",
                                Detail::function};
constexpr TraceError lower = {"NYI: return to lower frame",
                              "The function returns to its caller's caller or to C: begin the hot loop inside of it."};
constexpr TraceError bad_key = {"store with nil or NaN key", "A table is given a key that raises an error."};
constexpr TraceError metamethod = {"missing metamethod",
                                   "It does something that raises an error, such as indexing nil."};
constexpr TraceError index_loop = {"looping index lookup", "A chain of __index leads back to itself."};
constexpr TraceError mixed = {"NYI: mixed sparse/dense table",
                              "Fill the table step by step in place of one constructor with gaps."};
constexpr TraceError no_symbol = {"symbol not in cache",
                                  "Name the C symbol once before the hot code: local f = ffi.C.f."};
constexpr TraceError conversion = {"NYI: unsupported C type conversion",
                                   "Convert this C type outside of hot code, or use a simpler one."};
constexpr TraceError c_call = {"NYI: unsupported C function type",
                               "C functions with structures or a variable number of arguments are not compiled: give "
                               "it a simpler C interface."};
constexpr TraceError guard = {"guard would always fail", "The code takes another way each time it is recorded."};
constexpr TraceError phis = {"too many PHIs", "Too many variables change in one loop: split it."};
constexpr TraceError types = {"persistent type instability",
                              "A variable has another type in each round: give it one, also at the start."};
constexpr TraceError no_memory = {"failed to allocate mcode memory",
                                  "The memory for machine code is used up, and all traces are thrown away: raise "
                                  "maxmcode, and sizemcode (jit.opt.start)."};
constexpr TraceError too_much_code = {"machine code too long", "Split it, or raise sizemcode (jit.opt.start)."};
constexpr TraceError area_full = {"hit mcode limit (retrying)", ""};
constexpr TraceError spills = {"too many spill slots",
                               "Too many local variables are in use at once: split the function, or limit them to "
                               "blocks."};
constexpr TraceError registers = {"inconsistent register allocation", "This is an error of LuaJIT."};
constexpr TraceError ir = {"NYI: cannot assemble IR instruction", "", Detail::ir};
constexpr TraceError shuffling = {"NYI: PHI shuffling too complex",
                                  "Too many variables change places in one loop: simplify what they are assigned."};
constexpr TraceError coalescing = {"NYI: register coalescing too complex",
                                   "Too many variables are in use at a side exit: simplify the loop."};

// LuaJIT 2.0.
constexpr std::array errors_20 = {error,         too_long,   too_deep, snapshots, blacklisted, bytecode,   leaves,
                                  inner,         unroll,     bad_type, off,       calls,       restarts,   c_function,
                                  fast_function, variant,    lower,    bad_key,   metamethod,  index_loop, mixed,
                                  no_symbol,     conversion, c_call,   guard,     phis,        types,      no_memory,
                                  too_much_code, area_full,  spills,   registers, ir,          shuffling,  coalescing};
// 2.1, from beta3 of 2017 to 2026-08; OpenResty's and Tarantool's, too.
constexpr std::array errors_21 = {error,         too_short,  too_long, too_deep,  snapshots,  blacklisted, retry,
                                  bytecode,      leaves,     inner,    unroll,    bad_type,   off,         calls,
                                  restarts,      variant,    lower,    bad_key,   metamethod, index_loop,  mixed,
                                  no_symbol,     conversion, c_call,   guard,     phis,       types,       no_memory,
                                  too_much_code, area_full,  spills,   registers, ir,         shuffling,   coalescing};

}  // namespace trace_errors

const TraceError* find_error(const LuajitLayout& layout, unsigned number) {
  const std::span<const TraceError> errors = layout.is_20 ? std::span<const TraceError>(trace_errors::errors_20)
                                                          : std::span<const TraceError>(trace_errors::errors_21);
  return number < errors.size() ? &errors[number] : nullptr;
}

// By opcode: what the program does there.
std::string_view opcode_advice(std::string_view opcode) {
  struct Row {
    std::string_view opcode, advice;
  };
  static constexpr Row rows[] = {
      {"FNEW", "It makes a closure each time: make it once, outside of the hot code."},
      {"UCLO", "It leaves a block with a local that a closure uses: make such closures outside of the hot code."},
      {"VARG", "It uses ... with a number of values that is not known when it is compiled: name the parameters."},
      {"CAT", "It joins strings: collect them in a table, and join them once with table.concat."},
      {"ITERN", "It goes through a table with pairs or next: use an array and a numeric loop."},
      {"ISNEXT", "It goes through a table with pairs or next: use an array and a numeric loop."},
      {"TSETM", "It puts all results of a call into a table: name the results."},
      {"CALLM", "It passes on all results of a call: name the results."},
      {"CALLMT", "It passes on all results of a call: name the results."},
      {"RETM", "It returns all results of a call: name the results."},
  };
  for (const Row& row : rows) {
    if (row.opcode == opcode) return row.advice;
  }
  return "";
}

}  // namespace

std::string opcode_name(const LuajitLayout& layout, unsigned number) {
  constexpr std::array<std::string_view, 8> headers = {"FUNCF",  "IFUNCF", "JFUNCF", "FUNCV",
                                                       "IFUNCV", "JFUNCV", "FUNCC",  "FUNCCW"};
  if (number >= layout.first_header)
    return number - layout.first_header < headers.size() ? std::string(headers[number - layout.first_header]) : "";
  const std::span<const Opcode> opcodes = layout.is_20 ? std::span<const Opcode>(opcode_tables::luajit20)
                                                       : std::span<const Opcode>(opcode_tables::luajit);
  return number < opcodes.size() ? std::string(opcodes[number].name) : "";
}

std::string trace_error(const LuajitLayout& layout, unsigned number, const JitDetail& detail,
                        const std::string& function) {
  const TraceError* const known = find_error(layout, number);
  if (known == nullptr) return fmt::format("reason {}", number);
  const bool has_number = detail.kind == JitDetail::Kind::number;
  switch (known->detail) {
    case Detail::none:
      break;
    case Detail::opcode: {
      if (!has_number) return fmt::format("{} (which one was not seen)", known->text);
      const std::string name = detail.number >= 0 ? opcode_name(layout, static_cast<unsigned>(detail.number)) : "";
      return fmt::format("{} {}", known->text, name.empty() ? std::to_string(detail.number) : name);
    }
    case Detail::function:
      if (!function.empty()) return fmt::format("{} {}", known->text, function);
      return fmt::format("{} (which one was not seen)", known->text);
    case Detail::ir:
      if (has_number) return fmt::format("{} {}", known->text, detail.number);
      return fmt::format("{} (which one was not seen)", known->text);
  }
  return std::string(known->text);
}

std::string trace_error_advice(const LuajitLayout& layout, unsigned number, const JitDetail& detail) {
  const TraceError* const known = find_error(layout, number);
  if (known == nullptr) return "";
  if (known->detail != Detail::opcode) return std::string(known->advice);
  if (detail.kind != JitDetail::Kind::number || detail.number < 0)
    return "It does something that LuaJIT does not compile: most often it makes a closure, or uses ... .";
  const std::string_view advice = opcode_advice(opcode_name(layout, static_cast<unsigned>(detail.number)));
  return advice.empty() ? "LuaJIT does not compile this instruction: keep it out of hot code." : std::string(advice);
}

}  // namespace luaspy
