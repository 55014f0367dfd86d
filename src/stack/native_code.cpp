#include "stack/native_code.h"

#include <algorithm>

#include "luastate/luajit/vm_functions.h"
#include "luastate/puc/execute_code.h"
#include "luastate/puc/puc_lua.h"
#include "luastate/puc/vm_functions.h"
#include "stack/core_reach.h"
#include "stack/native_names.h"

namespace luaspy {

// The same VM image where the file is mapped at another address, in another process.
NativeCode::VmImage NativeCode::moved(VmImage image, Address to) {
  const Address by = to - image.start;  // modulo 2^64
  image.start += by, image.end += by;
  for (std::vector<Unwinder::Range>* const ranges : {&image.own, &image.executes}) {
    for (Unwinder::Range& range : *ranges) range.start += by, range.end += by;
  }
  for (CollectorCode& collector : image.collectors) {
    collector.step += by;
    for (Address& function : collector.functions) function += by;
  }
  if (image.vm) {
    image.vm->start += by, image.vm->end += by;
    for (VmCode::Sequence& sequence : image.vm->sequences) sequence.start += by, sequence.end += by;
    if (image.vm->trace_exit) image.vm->trace_exit->return_address += by;
  }
  std::unordered_map<Address, std::string_view> recognised;
  for (const auto& [start, name] : image.recognised) recognised.emplace(start + by, name);
  image.recognised = std::move(recognised);
  return image;
}

void NativeCode::update(const std::vector<LuaImage>& images, KnownVmImages& known, const VersionOf& version_of) {
  constexpr std::size_t most_known = 256;
  vm_images_.clear();
  described_.clear();
  judged_.assign(most_judged, {});
  ++descriptions_;
  std::vector<Address> seen;
  for (const LuaImage& image : images) {
    if (image.layouts.empty() || std::ranges::find(seen, image.start) != seen.end()) continue;
    seen.push_back(image.start);
    const Module* const module = modules_.find(image.start);
    if (module == nullptr) {
      vm_images_.push_back({image.start, image.end, {}, {}, {}, {}, {}, {}});
      continue;
    }
    // Merging needs a VM image's symbols, sometimes while a thread is stopped: read them now.
    (void)module->symbol(image.start);
    const std::optional<FileVersion> file = module->has_file() ? version_of(image.start) : std::nullopt;
    const auto found = file ? known.find(*file) : known.end();
    if (found != known.end()) {
      vm_images_.push_back(moved(found->second, image.start));
      continue;
    }
    vm_images_.push_back(find_vm_image(image, *module, images));
    if (known.size() >= most_known) known.clear();
    if (file) known.emplace(*file, vm_images_.back());
  }
}

NativeCode::VmImage NativeCode::find_vm_image(const LuaImage& lua, const Module& module,
                                              const std::vector<LuaImage>& all) {
  VmImage image{lua.start, lua.end, {}, {}, {}, {}, {}, {}};
  std::size_t copies = 0;
  std::vector<const Lua*> layouts;
  bool has_luajit = false;
  for (const LuaImage& other : all) {
    if (other.start != lua.start || other.layouts.empty()) continue;
    if (other.layouts.front()->kind() == LuaKind::luajit) {
      has_luajit = true;
    } else {
      copies += static_cast<std::size_t>(other.copies);
      layouts.insert(layouts.end(), other.layouts.begin(), other.layouts.end());
    }
  }
  const Functions functions = unwinder_.functions(module);
  if (has_luajit) find_vm(image, module);
  if (copies != 0) find_executes(image, module, functions, copies), find_collectors(image, module, functions, layouts);
  find_own(image, module, functions);
  recognise(image, module, functions, layouts);
  return image;
}

// Picks the functions that look most like luaV_execute. Those with its name come first.
void NativeCode::find_executes(VmImage& image, const Module& module, const Functions& functions, std::size_t count) {
  struct Found {
    bool named;
    int score;
    Unwinder::Range range;
  };
  std::vector<Found> found;
  std::vector<std::byte> code;
  for (const Unwinder::Range& function : functions) {
    if (!module.executes(function.start) || function.end - function.start > (1 << 18)) continue;
    code.resize(function.end - function.start);
    if (!module.read(function.start, code)) continue;
    const int score = interpreter_score(code);
    if (score == 0) continue;
    const std::optional<Symbol> symbol = module.symbol(function.start);
    found.push_back({symbol && is_execute(demangled(symbol->name)), score, function});
  }
  std::ranges::stable_sort(
      found, [](const Found& a, const Found& b) { return a.named != b.named ? a.named : a.score > b.score; });
  const int best = found.empty() ? 0 : found.front().score;
  for (const Found& one : found) {
    if (image.executes.size() < count && (one.named || 3 * one.score > best)) image.executes.push_back(one.range);
  }
}

// Which layout is right is known only once a state is found. A wrong layout finds nothing, or the same
// functions.
void NativeCode::find_collectors(VmImage& image, const Module& module, const Functions& functions,
                                 const std::vector<const Lua*>& layouts) {
  const auto read = [&](Unwinder::Range range) {
    constexpr std::size_t largest = 1 << 18;
    MachineFunction function;
    if (range.start == 0 || range.end <= range.start || range.end - range.start > largest ||
        !module.executes(range.start))
      return function;
    function.code.resize(range.end - range.start);
    if (module.read(range.start, function.code)) function.start = range.start;
    return function;
  };
  for (const Unwinder::Range& range : image.executes) {
    const MachineFunction execute = read(range);
    for (const Lua* const lua : layouts) {
      const Layout* const layout = puc_layout(*lua);
      if (layout == nullptr || execute.start == 0) continue;
      CollectorCode collector = find_collector_code(*layout, execute,
                                                    [&](Address address) { return read(unwinder_.function(address)); });
      if (collector.step == 0) continue;
      std::vector<Address> joining;
      for (const Unwinder::Range& function : functions) {
        if (joins_collector(*layout, collector, read(function))) joining.push_back(function.start);
      }
      collector.functions.insert(collector.functions.end(), joining.begin(), joining.end());
      std::ranges::sort(collector.functions);
      image.collectors.push_back(std::move(collector));
      break;
    }
  }
}

void NativeCode::find_vm(VmImage& image, const Module& module) {
  std::vector<std::byte> code;
  for (const Module::Code& range : module.code()) {
    code.resize(range.end - range.start);
    if (!module.read(range.start, code)) continue;
    image.vm = find_vm_code(range.start, code);
    if (!image.vm) continue;
    // If there is call frame information for it, its bounds are more exact.
    const Unwinder::Range function = unwinder_.function((image.vm->start + image.vm->end) / 2);
    if (function.start >= range.start && function.start + 256 >= image.vm->start &&
        function.start <= image.vm->start + 256)
      image.vm->start = function.start;
    return;
  }
}

// Whether a function with a symbol is Lua's. A local one need not have a name of Lua's: its source
// file decides, or, if that is not known, where it lies (maybe).
NativeFunctions::LuaCode NativeCode::owner(const VmImage& image, const Symbol& symbol) const {
  const std::string whole = demangled(symbol.name);
  const auto has_name = [&](std::string_view name) {
    return (image.vm && is_lua_name(name, LuaKind::luajit)) ||
           (!image.executes.empty() && is_lua_name(name, LuaKind::puc));
  };
  if (has_name(whole) || std::ranges::any_of(image.prefixes, [&](const std::string& prefix) {
        return whole.starts_with(prefix) && has_name(std::string_view(whole).substr(prefix.size()));
      }))
    return LuaCode::yes;
  if (!symbol.is_local) return LuaCode::no;
  // The linker's optimisation of the whole program leaves names as "<artificial>" and "lto.o".
  if (symbol.source.empty() || symbol.source.starts_with('<') || symbol.source.ends_with(".o")) return LuaCode::maybe;
  return is_lua_source(symbol.source) ? LuaCode::yes : LuaCode::no;
}

// From luaV_execute, or LuaJIT's virtual machine, outwards, as long as the next function that is
// Lua's by its symbol is not far: objects of Lua have static functions too, which need not have a
// symbol. If the module exports nothing but Lua, all between these functions is Lua's, and all of a
// shared library.
void NativeCode::find_own(VmImage& image, const Module& module, const Functions& functions) {
  // Between two of Lua's names there are at most 18 KB in PUC's releases from 5.1.4 to 5.5.1, by gcc
  // 12 at -O2 with what is exported; in LuaJIT of 2026-08, with all symbols, 39 KB; in a stripped one
  // of Debian 94 KB.
  constexpr Address far = 64 << 10;
  constexpr std::size_t api = 64;  // every Lua has more functions in its API
  for (const Unwinder::Range& execute : image.executes) {
    const std::optional<Symbol> symbol = module.symbol(execute.start);
    if (!symbol || symbol->start != execute.start) continue;
    const std::string name = demangled(symbol->name);
    if (const std::size_t at = name.find("luaV_execute"); at != name.npos && at != 0)
      image.prefixes.push_back(name.substr(0, at));
  }
  const auto is_own = [&](Address function) {
    const std::optional<Symbol> symbol = module.symbol(function);
    return symbol && symbol->start == function && owner(image, *symbol) == LuaCode::yes;
  };
  std::size_t own_names = 0;
  const bool has_others = std::ranges::any_of(functions, [&](const Unwinder::Range& function) {
    const std::optional<Symbol> symbol = module.symbol(function.start);
    if (!symbol || symbol->start != function.start || symbol->name == "main" || symbol->name == "_start") return false;
    const bool is_lua = owner(image, *symbol) == LuaCode::yes;
    own_names += is_lua;
    return !is_lua;
  });
  const bool nothing_else = !has_others && own_names >= api, is_library = module.entry() == 0;
  if (nothing_else && is_library) {
    image.own.push_back({image.start, image.end});
    return;
  }
  const Address farthest = nothing_else ? ~Address{0} : far;
  std::vector<Address> seeds;
  for (const Unwinder::Range& execute : image.executes) seeds.push_back(execute.start);
  if (image.vm) seeds.push_back(image.vm->start);
  for (const Address seed : seeds) {
    const auto from = std::ranges::lower_bound(functions, seed, {}, &Unwinder::Range::start);
    Unwinder::Range own;
    Address last = seed;
    for (auto function = from; function != functions.end() && function->start - last <= farthest; ++function) {
      if (is_own(function->start)) last = function->start, own.end = function->end;
    }
    last = seed;
    for (auto function = from; function != functions.begin() && last - std::prev(function)->start <= farthest;
         --function) {
      const Unwinder::Range before = *std::prev(function);
      if (is_own(before.start)) last = own.start = before.start, own.end = std::max(own.end, before.end);
    }
    if (own.end == 0) continue;  // no symbols
    own.start = own.start == 0 ? seed : std::min(own.start, seed);
    own.end = std::max(own.end, seed);
    image.own.push_back(own);
  }
  if (image.vm) extend_own(image, module, functions);
}

// LuaJIT's collector, tables and strings come before the first function that a program can call by its name.
void NativeCode::extend_own(VmImage& image, const Module& module, const Functions& functions) {
  const auto read = [&](const Unwinder::Range& function) {
    std::vector<std::byte> bytes(function.end - function.start);
    if (!module.executes(function.start) || !module.read(function.start, bytes)) bytes.clear();
    return bytes;
  };
  const auto may_be_own = [&](Address function) {
    const std::optional<Symbol> symbol = module.symbol(function);
    return !symbol || symbol->start != function || owner(image, *symbol) != LuaCode::no;
  };
  image.own = extended(std::move(image.own), {unwinder_.machine().code, functions, read, may_be_own});
}

// Only in a VM image without symbols of its own functions. Which layout is right is known only once a state
// is found; most copies have layouts of one version only.
void NativeCode::recognise(VmImage& image, const Module& module, const Functions& all,
                           const std::vector<const Lua*>& layouts) {
  const auto has_symbol = [&](Address function) {
    const std::optional<Symbol> symbol = module.symbol(function);
    return symbol && symbol->start == function;
  };
  if (image.own.empty()) return;
  if (image.vm && image.executes.empty()) {
    // The virtual machine's own symbols are local: a module that has them has all.
    if (const std::optional<Symbol> symbol = module.symbol((image.vm->start + image.vm->end) / 2);
        symbol && symbol->name.starts_with("lj_"))
      return;
    image.recognised = recognise_luajit_functions(call_graph(image, module, all));
    return;
  }
  if (image.executes.size() != 1 || layouts.empty()) return;
  const Address execute = image.executes.front().start;
  if (has_symbol(execute)) return;
  const Layout& layout = *puc_layout(*layouts.front());
  if (std::ranges::any_of(layouts, [&](const Lua* other) { return puc_layout(*other)->bytecode != layout.bytecode; }))
    return;
  CallGraph functions = call_graph(image, module, all);
  functions.known.emplace("luaV_execute", execute);
  if (!image.collectors.empty()) functions.known.emplace("luaC_step", image.collectors.front().step);
  image.recognised = recognise_functions(functions, layout.bytecode);
  image.recognised.emplace(execute, "luaV_execute");
  if (!image.collectors.empty()) image.recognised.emplace(image.collectors.front().step, "luaC_step");
}

// Which of Lua's own functions call which, and the names that they have.
CallGraph NativeCode::call_graph(const VmImage& image, const Module& module, const Functions& all) const {
  CallGraph functions;
  const auto is_own = [&](Address address) {
    return std::ranges::any_of(image.own,
                               [&](const Unwinder::Range& own) { return address >= own.start && address < own.end; });
  };
  const MachineCode& code = unwinder_.machine().code;
  std::vector<Address> starts;
  for (const Unwinder::Range& function : all) {
    if (is_own(function.start)) starts.push_back(function.start);
  }
  std::vector<std::byte> bytes;
  for (const Unwinder::Range& function : all) {
    constexpr std::size_t largest = 1 << 18;
    if (!is_own(function.start) || function.end - function.start > largest) continue;
    bytes.resize(function.end - function.start);
    if (!module.read(function.start, bytes)) continue;
    if (const std::optional<Symbol> symbol = module.symbol(function.start); symbol && symbol->start == function.start)
      functions.known.emplace(demangled(symbol->name), function.start);
    std::vector<Address>& calls = functions.calls[function.start];
    for (std::size_t at = 0; at < bytes.size(); ++at) {
      const auto rest = std::span<const std::byte>(bytes).subspan(at);
      std::optional<Address> target = code.direct_call_at(function.start + at, rest);
      const bool jumps = !target;
      if (jumps) target = code.direct_jump_at(function.start + at, rest);
      if (!target || (jumps && *target == function.start) || !std::ranges::binary_search(starts, *target)) continue;
      if (std::ranges::find(calls, *target) == calls.end()) calls.push_back(*target);
    }
  }
  return functions;
}

std::string_view NativeCode::recognised_name(const NativeFrame& frame) const {
  const VmImage* const image = vm_image_of(frame.lookup);
  if (image == nullptr) return {};
  if (image->vm && image->vm->contains(frame.lookup)) return "lj_vm_asm_begin";  // lj_vm.S has one symbol for all of it
  const auto found = image->recognised.find(frame.function);
  return found != image->recognised.end() ? found->second : std::string_view();
}

const VmCode* NativeCode::vm_at(Address address) const {
  const VmImage* const image = vm_image_of(address);
  return image != nullptr && image->vm && image->vm->contains(address) ? &*image->vm : nullptr;
}

std::vector<const VmCode*> NativeCode::vms() const {
  std::vector<const VmCode*> all;
  for (const VmImage& image : vm_images_) {
    if (image.vm) all.push_back(&*image.vm);
  }
  return all;
}

const TraceExit* NativeCode::trace_exit(const NativeFrame& frame) const {
  const VmCode* const vm = vm_at(frame.lookup);
  return vm != nullptr && vm->trace_exit && vm->trace_exit->return_address == frame.pc ? &*vm->trace_exit : nullptr;
}

const NativeCode::VmImage* NativeCode::vm_image_of(Address address) const {
  const auto found = std::ranges::find_if(
      vm_images_, [&](const VmImage& image) { return address >= image.start && address < image.end; });
  return found != vm_images_.end() ? &*found : nullptr;
}

const NativeCode::Judged& NativeCode::judged(const NativeFrame& frame) const {
  Judged& known = judged_[frame.lookup * 0x9e37'79b9'7f4a'7c15 >> 32 & (most_judged - 1)];
  if (known.lookup != frame.lookup || known.function != frame.function || known.in_trace != frame.in_trace)
    known = judge(frame);
  return known;
}

NativeCode::Judged NativeCode::judge(const NativeFrame& frame) const {
  const VmImage* const image = vm_image_of(frame.lookup);
  Judged result{.lookup = frame.lookup, .function = frame.function, .in_trace = frame.in_trace};
  result.executes = frame.in_trace;
  if (image == nullptr) return result;
  const Described& found = described(frame);
  const auto contains = [&](const Unwinder::Range& range) {
    return frame.lookup >= range.start && frame.lookup < range.end;
  };
  const bool is_luajit = image->vm && image->executes.empty();
  result.in_core = true;
  // The cold part of luaV_execute has call frame information of its own. Only a symbol says which
  // function it belongs to.
  result.executes |= (image->vm && image->vm->contains(frame.lookup)) ||
                     std::ranges::any_of(image->executes, contains) || (!is_luajit && found.executes);
  result.collects = frame.function != 0 && !is_luajit &&
                    (found.collects || std::ranges::any_of(image->collectors, [&](const CollectorCode& collector) {
                       return collector.has(frame.function);
                     }));
  result.carries = result.executes || found.carries;
  if (found.owner != LuaCode::maybe) result.code = found.owner;
  else if (std::ranges::any_of(image->own, contains)) result.code = LuaCode::yes;
  else result.code = found.has_symbol ? LuaCode::no : LuaCode::maybe;
  return result;
}

std::vector<std::byte> NativeCode::code(const NativeFrame& frame) const {
  const VmImage* const image = vm_image_of(frame.lookup);
  std::vector<std::byte> bytes;
  if (image == nullptr || image->executes.empty()) return bytes;
  const auto around = std::ranges::find_if(image->executes, [&](const Unwinder::Range& range) {
    return frame.lookup >= range.start && frame.lookup < range.end;
  });
  const Unwinder::Range execute = around != image->executes.end() ? *around : image->executes.front();
  const Module* const module = modules_.find(execute.start);
  if (module == nullptr) return bytes;
  bytes.resize(execute.end - execute.start);
  if (!module->read(execute.start, bytes)) bytes.clear();
  return bytes;
}

const Frame& NativeCode::describe(const NativeFrame& frame) const { return described(frame).frame; }

const NativeCode::Described& NativeCode::described(const NativeFrame& frame) const {
  static const Described in_trace{{Frame::Kind::native, "[machine code]", {}, 0, 0}};
  if (frame.in_trace) return in_trace;
  const Address key = frame.function != 0 ? frame.function : frame.lookup;
  if (const auto known = described_.find(key); known != described_.end()) return known->second;
  constexpr std::size_t limit = 1 << 16;
  if (described_.size() >= limit) described_.clear();
  Described& result = described_[key];
  result.frame = native_name(modules_, frame);
  const std::string& name = result.frame.name;
  result.has_symbol = !result.frame.file.empty() && !is_place(result.frame);
  const std::string_view recognised = result.has_symbol ? std::string_view() : recognised_name(frame);
  if (!recognised.empty()) result.frame.name = recognised, result.has_symbol = true;
  result.executes = is_execute(name), result.collects = is_collector(name), result.carries = is_carrier(name);
  if (!recognised.empty()) {
    result.owner = LuaCode::yes;
    result.frame.name.insert(0, "~");
  } else if (const VmImage* const image = result.has_symbol ? vm_image_of(frame.lookup) : nullptr) {
    const Module* const module = modules_.find(frame.lookup);
    const std::optional<Symbol> symbol = module != nullptr ? module->symbol(frame.lookup) : std::nullopt;
    if (symbol) result.owner = owner(*image, *symbol);
  }
  return result;
}

}  // namespace luaspy
