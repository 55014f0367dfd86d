#include "stack/native_code.h"

#include <cxxabi.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "stack/ghc_name.h"
#include "base/text.h"

namespace luaspy {
namespace {

// Symbol versions (name@VERSION, name@@VERSION) say nothing in a profile, nor do C++ parameters: overloads of one function
// are told apart by their start.
std::string demangled(std::string name) {
  name.resize(std::min(name.find('@'), name.size()));
  int status = 0;
  char* const text = name.starts_with("_Z") ? abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status) : nullptr;
  if (text == nullptr) return ghc_name(name).value_or(name);
  std::string result = text;
  std::free(text);
  // The parameters are the last parentheses that are not inside of template arguments; operator() has some in its name.
  int depth = 0;
  for (std::size_t at = 1; at < result.size(); ++at) {
    if (result[at] == '<') ++depth;
    if (result[at] == '>' && result[at - 1] != '-') --depth;
    if (result[at] != '(' || depth > 0 || result.compare(at, 2, "()") == 0) continue;
    result.resize(at);
    break;
  }
  return result;
}

// Compilers name the pieces of a function: luaV_execute.cold, luaV_execute.lto_priv.0, luaV_execute.part.3.
std::string_view without_suffix(std::string_view name) { return name.substr(0, name.find('.')); }

// Where two Luas are linked into one program, the symbols of one have a prefix: mud_lua_pcallk.
std::string_view without_prefix(std::string_view name) {
  const std::size_t at = name.rfind("_lua");
  return at != name.npos ? name.substr(at + 1) : name;
}

// ldo.c, lvm.c, lapi.c: functions that carry a call and do no work of their own that a profile would name.
bool is_carrier(std::string_view name) {
  static constexpr std::string_view carriers[] = {
      "luaV_execute", "luaV_finishOp", "luaD_call", "luaD_callnoyield", "luaD_rawrunprotected", "luaD_pcall", "luaD_precall", "luaD_pretailcall",
      "luaD_poscall", "luaD_closeprotected", "luaD_hook", "luaD_hookcall", "luaD_callhook", "luaD_throw", "luaD_tryfuncTM", "luaG_traceexec",
      "luaT_callTMres", "luaT_callTM", "luaT_trybinTM", "lua_call", "lua_callk", "lua_pcall", "lua_pcallk", "lua_cpcall", "lua_resume", "lua_yieldk",
      "f_call", "f_Ccall", "f_parser", "ccall", "precallC", "resume", "unroll", "resume_execute", "closepaux", "callTMres", "call_binTM", "call_orderTM",
      "dothecall", "GCTM", "prepcallclosemth", "callclosemethod", "luaF_close", "finishCcall", "finishpcallk", "traceexec", "callhook"};
  name = without_prefix(without_suffix(name));
  return std::ranges::find(carriers, name) != std::end(carriers);
}

bool is_execute(std::string_view name) { return without_prefix(without_suffix(name)) == "luaV_execute"; }

// lgc.c
bool is_collector(std::string_view name) {
  name = without_prefix(without_suffix(name));
  return name == "luaC_step" || name == "luaC_forcestep" || name == "luaC_fullgc" || name == "singlestep";
}

}  // namespace

int interpreter_score(std::span<const std::byte> code) {
  constexpr std::size_t smallest = 1500, largest = 1 << 17;
  if (code.size() < smallest || code.size() > largest) return 0;
  const auto byte = [&](std::size_t i) { return std::to_integer<unsigned>(code[i]); };
  int jumps = 0, masks = 0, shifts = 0;
  for (std::size_t i = 0; i + 3 <= code.size(); ++i) {
    if (byte(i) == 0xff && (byte(i + 1) & 0xf8) == 0xe0) ++jumps;                                        // jmp *reg
    if (byte(i) == 0xff && (byte(i + 1) & 0x3f) == 0x24) ++jumps;                                        // jmp *table(,reg,8)
    if (byte(i) == 0x83 && (byte(i + 1) & 0xf8) == 0xe0 && (byte(i + 2) == 0x3f || byte(i + 2) == 0x7f)) ++masks;  // and reg, imm8
    // shr reg, imm8, for where 5.1 to 5.3 have A, C, B (6, 14, 23) and 5.4 on have A, k, B, C (7, 15, 16, 24)
    if (byte(i) == 0xc1 && (byte(i + 1) & 0xf8) == 0xe8) {
      const unsigned count = byte(i + 2);
      shifts += count == 6 || count == 14 || count == 23 || count == 7 || count == 15 || count == 16 || count == 24;
    }
  }
  constexpr int enough_shifts = 20;
  if (jumps == 0 || masks == 0 || shifts < enough_shifts) return 0;
  return shifts + 4 * std::min(masks, 100) + static_cast<int>(code.size() / 256);
}

void NativeCode::update(const std::vector<LuaImage>& images) {
  cores_.clear();
  described_.clear();
  carrying_.clear();
  std::vector<Address> seen;
  for (const LuaImage& image : images) {
    if (image.rows.empty() || std::ranges::find(seen, image.start) != seen.end()) continue;
    seen.push_back(image.start);
    CoreImage core{image.start, image.end, {}, {}, {}};
    std::size_t count = 0;
    std::vector<Dialect> rows;
    bool has_luajit = false;
    for (const LuaImage& other : images) {
      if (other.start != image.start || other.rows.empty()) continue;
      if (other.rows.front().luajit != nullptr) has_luajit = true;
      else count += static_cast<std::size_t>(other.cores), rows.insert(rows.end(), other.rows.begin(), other.rows.end());
    }
    if (const Module* const module = modules_.find(image.start)) {
      (void)module->symbol(image.start);   // merging asks for a core's symbols, also while a thread stands still: read them now
      if (has_luajit) find_vm(core, *module);
      if (count != 0) find_executes(core, *module, count), find_collectors(core, *module, rows);
    }
    cores_.push_back(std::move(core));
  }
}

// The functions that look most like it; those that are called so come first.
void NativeCode::find_executes(CoreImage& core, const Module& module, std::size_t count) {
  struct Found {
    bool named;
    int score;
    Unwinder::Range range;
  };
  std::vector<Found> found;
  std::vector<std::byte> code;
  for (const Unwinder::Range& function : unwinder_.functions(module)) {
    if (!module.executes(function.start) || function.end - function.start > (1 << 18)) continue;
    code.resize(function.end - function.start);
    if (!module.read(function.start, code)) continue;
    const int score = interpreter_score(code);
    if (score == 0) continue;
    const std::optional<Symbol> symbol = module.symbol(function.start);
    found.push_back({symbol && is_execute(demangled(symbol->name)), score, function});
  }
  std::ranges::stable_sort(found, [](const Found& a, const Found& b) { return a.named != b.named ? a.named : a.score > b.score; });
  const int best = found.empty() ? 0 : found.front().score;
  for (const Found& one : found) {
    if (core.executes.size() < count && (one.named || 3 * one.score > best)) core.executes.push_back(one.range);
  }
}

// Which row is right is known when a state is: with a wrong one nothing is found, or the same.
void NativeCode::find_collectors(CoreImage& core, const Module& module, const std::vector<Dialect>& rows) {
  const auto read = [&](Unwinder::Range range) {
    constexpr std::size_t largest = 1 << 18;
    MachineFunction function;
    if (range.start == 0 || range.end <= range.start || range.end - range.start > largest || !module.executes(range.start)) return function;
    function.code.resize(range.end - range.start);
    if (module.read(range.start, function.code)) function.start = range.start;
    return function;
  };
  for (const Unwinder::Range& range : core.executes) {
    const MachineFunction execute = read(range);
    for (const Dialect& row : rows) {
      if (row.puc == nullptr || execute.start == 0) continue;
      CollectorCode collector = find_collector_code(*row.puc, execute, [&](Address address) { return read(unwinder_.function(address)); });
      if (collector.step == 0) continue;
      std::vector<Address> joining;
      for (const Unwinder::Range& function : unwinder_.functions(module)) {
        if (joins_collector(*row.puc, collector, read(function))) joining.push_back(function.start);
      }
      collector.functions.insert(collector.functions.end(), joining.begin(), joining.end());
      std::ranges::sort(collector.functions);
      core.collectors.push_back(std::move(collector));
      break;
    }
  }
}

void NativeCode::find_vm(CoreImage& core, const Module& module) {
  std::vector<std::byte> code;
  for (const Module::Code& range : module.code()) {
    code.resize(range.end - range.start);
    if (!module.read(range.start, code)) continue;
    core.vm = find_vm_code(range.start, code);
    if (!core.vm) continue;
    // Where there is call frame information for it, that knows its bounds.
    const Unwinder::Range function = unwinder_.function((core.vm->start + core.vm->end) / 2);
    if (function.start >= range.start && function.start + 256 >= core.vm->start && function.start <= core.vm->start + 256) core.vm->start = function.start;
    return;
  }
}

const VmCode* NativeCode::vm_at(Address address) const {
  const CoreImage* const core = core_of(address);
  return core != nullptr && core->vm && core->vm->contains(address) ? &*core->vm : nullptr;
}

std::vector<const VmCode*> NativeCode::vms() const {
  std::vector<const VmCode*> all;
  for (const CoreImage& core : cores_) {
    if (core.vm) all.push_back(&*core.vm);
  }
  return all;
}

bool NativeCode::is_machine_code(const NativeFrame& frame) const {
  return std::ranges::any_of(machine_code_, [&](const Unwinder::Range& range) { return frame.lookup >= range.start && frame.lookup < range.end; });
}

const TraceExit* NativeCode::trace_exit(const NativeFrame& frame) const {
  const VmCode* const vm = vm_at(frame.lookup);
  return vm != nullptr && vm->trace_exit && vm->trace_exit->return_address == frame.pc ? &*vm->trace_exit : nullptr;
}

const NativeCode::CoreImage* NativeCode::core_of(Address address) const {
  const auto core = std::ranges::find_if(cores_, [&](const CoreImage& image) { return address >= image.start && address < image.end; });
  return core != cores_.end() ? &*core : nullptr;
}

bool NativeCode::executes_lua(const NativeFrame& frame) const {
  if (is_machine_code(frame)) return true;
  const CoreImage* const core = core_of(frame.lookup);
  if (core == nullptr) return false;
  if (core->vm && core->vm->contains(frame.lookup)) return true;
  if (std::ranges::any_of(core->executes, [&](const Unwinder::Range& range) { return frame.lookup >= range.start && frame.lookup < range.end; })) return true;
  // Its cold part has call frame information of its own; only a symbol says what it belongs to.
  return (!core->vm || !core->executes.empty()) && described(frame).executes;
}

bool NativeCode::collects(const NativeFrame& frame) const {
  const CoreImage* const core = frame.function != 0 ? core_of(frame.lookup) : nullptr;
  if (core == nullptr || (core->vm && core->executes.empty())) return false;
  return std::ranges::any_of(core->collectors, [&](const CollectorCode& collector) { return collector.has(frame.function); }) || described(frame).collects;
}

bool NativeCode::carries(const NativeFrame& frame) const {
  const CoreImage* const core = core_of(frame.lookup);
  return core != nullptr && (executes_lua(frame) || described(frame).carries);
}

bool NativeCode::in_core_module(const NativeFrame& frame) const { return core_of(frame.lookup) != nullptr; }

std::vector<std::byte> NativeCode::code(const NativeFrame& frame) const {
  const CoreImage* const core = core_of(frame.lookup);
  std::vector<std::byte> bytes;
  if (core == nullptr || core->executes.empty()) return bytes;
  const auto around = std::ranges::find_if(core->executes, [&](const Unwinder::Range& range) { return frame.lookup >= range.start && frame.lookup < range.end; });
  const Unwinder::Range execute = around != core->executes.end() ? *around : core->executes.front();
  const Module* const module = modules_.find(execute.start);
  if (module == nullptr) return bytes;
  bytes.resize(execute.end - execute.start);
  if (!module->read(execute.start, bytes)) bytes.clear();
  return bytes;
}

const Frame& NativeCode::describe(const NativeFrame& frame) const { return described(frame).frame; }

const NativeCode::Described& NativeCode::described(const NativeFrame& frame) const {
  static const Described machine_code{{Frame::Kind::native, "[machine code]", {}, 0, 0}};
  if (is_machine_code(frame)) return machine_code;
  const Address key = frame.function != 0 ? frame.function : frame.lookup;
  if (const auto known = described_.find(key); known != described_.end()) return known->second;
  constexpr std::size_t limit = 1 << 16;
  if (described_.size() >= limit) described_.clear();
  Described& result = described_[key];
  result.frame = name_of(frame);
  const std::string& name = result.frame.name;
  result.executes = is_execute(name), result.collects = is_collector(name), result.carries = is_carrier(name);
  return result;
}

Frame NativeCode::name_of(const NativeFrame& frame) const {
  Frame result;
  result.kind = Frame::Kind::native;
  const Module* const module = modules_.find(frame.lookup);
  if (module == nullptr) {
    result.name = modules_.executes(frame.lookup) ? "[code without a file]" : "[unknown code]";
    return result;
  }
  result.file = printable(module->file_name());
  const std::optional<Symbol> symbol = module->symbol(frame.lookup);
  // .dynsym alone has few symbols: one that starts before the function is another function's.
  if (symbol && (frame.function == 0 || symbol->start >= frame.function || frame.lookup < frame.function)) result.name = printable(demangled(symbol->name));
  else if (frame.function != 0) result.name = fmt::format("{}+{:#x}", result.file, frame.function - module->bias());
  else result.name = result.file;
  return result;
}

Frame NativeCode::describe_entry(Address entry) const {
  NativeFrame frame;
  frame.lookup = frame.function = entry;
  return describe(frame);
}

}  // namespace luaspy
