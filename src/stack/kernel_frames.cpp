#include "stack/kernel_frames.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/text.h"
#include "base/words.h"

namespace luaspy {
namespace {

constexpr std::size_t longest_shown = 512;

// What compilers add to the name of a function that they have split, copied or specialised.
std::string_view without_suffix(std::string_view name) {
  constexpr std::array<std::string_view, 7> suffixes = {".isra",  ".constprop", ".part",  ".cold",
                                                        ".llvm.", ".lto_priv",  ".__uniq"};
  std::size_t end = name.size();
  for (const std::string_view suffix : suffixes) end = std::min(end, name.find(suffix));
  return end == 0 ? name : name.substr(0, end);
}

// arch/x86/include/asm/syscall_wrapper.h and arch/arm64's: __x64_sys_read calls __se_sys_read, that
// __do_sys_read, and that ksys_read, which others call, too (include/linux/syscalls.h); most of them are inlined, or
// replaced by a jump. Empty: it is no system call.
std::string_view system_call_of(std::string_view name) {
  constexpr std::array<std::string_view, 8> prefixes = {"__x64_sys_",   "__ia32_sys_",      "__ia32_compat_sys_",
                                                        "__arm64_sys_", "__se_sys_",        "__do_sys_",
                                                        "ksys_",        "__x64_compat_sys_"};
  for (const std::string_view prefix : prefixes) {
    if (name.starts_with(prefix)) return name.substr(prefix.size());
  }
  return {};
}

// From the border to what does the work: arch/x86/entry, arch/arm64/kernel/entry*, kernel/entry.
bool is_entry(std::string_view name) {
  constexpr std::array<std::string_view, 11> names = {
      "do_syscall_64",      "x64_sys_call",         "do_int80_emulation",
      "do_fast_syscall_32", "__do_fast_syscall_32", "ia32_sys_call",
      "do_el0_svc",         "invoke_syscall",       "el0_svc",
      "do_user_addr_fault", "error_entry"};
  constexpr std::array<std::string_view, 6> prefixes = {"entry_SYSCALL", "entry_SYSENTER", "entry_INT80",
                                                        "asm_",          "el0t_64_",       "el0_svc_common"};
  return std::ranges::find(names, name) != names.end() ||
         std::ranges::any_of(prefixes, [&](std::string_view prefix) { return name.starts_with(prefix); });
}

// DEFINE_IDTENTRY and DEFINE_IDTENTRY_SYSVEC (arch/x86/include/asm/idtentry.h).
std::string_view plain_name(std::string_view name) {
  for (const std::string_view prefix : {"exc_", "sysvec_"}) {
    if (name.starts_with(prefix) && name.size() > prefix.size()) return name.substr(prefix.size());
  }
  return name;
}

Frame frame_of(const KernelFunction& function, std::string_view outer_call) {
  const std::string_view name = without_suffix(function.name), call = system_call_of(name);
  Frame frame;
  frame.kind = Frame::Kind::kernel;
  frame.name = function.name.empty() ? "?" : printable(call.empty() ? plain_name(name) : call, longest_shown);
  frame.file = function.module.empty() ? "[kernel]" : fmt::format("[{}]", printable(function.module, longest_shown));
  if (is_entry(name) || (!call.empty() && call == outer_call)) frame.part = Frame::Part::vm;
  return frame;
}

}  // namespace

Stack kernel_stack(const std::vector<KernelFunction>& functions) {
  Stack stack;
  std::string_view outer_call;
  for (const KernelFunction& function : functions) {
    stack.push_back(frame_of(function, outer_call));
    outer_call = system_call_of(without_suffix(function.name));
  }
  const bool shows = std::ranges::any_of(stack, [](const Frame& frame) { return frame.part == Frame::Part::program; });
  if (!stack.empty() && !shows) stack.back().part = Frame::Part::program;
  return stack;
}

// A return address is behind the call, which may be a function's last instruction.
Stack kernel_stack(const KernelChain& chain, const KernelSymbols& symbols) {
  if (chain.empty()) return {};
  if (symbols.empty()) {
    Frame unnamed;
    unnamed.kind = Frame::Kind::kernel;
    unnamed.name = "[kernel]";
    return {unnamed};
  }
  std::vector<KernelFunction> functions;
  const auto addresses = chain.addresses();
  for (std::size_t i = addresses.size(); i-- > 0;) functions.push_back(symbols.at(addresses[i] - (i == 0 ? 0 : 1)));
  return kernel_stack(functions);
}

Stack kernel_stack(std::string_view proc_stack) {
  std::vector<KernelFunction> functions;
  while (!proc_stack.empty() && functions.size() < KernelChain::most) {
    std::string_view line = next_line(proc_stack);
    if (next_word(line) != "[<0>]") continue;
    const std::string_view place = next_word(line);
    std::string_view module = next_word(line);
    if (module.size() > 2 && module.starts_with('[') && module.ends_with(']'))
      module = module.substr(1, module.size() - 2);
    else module = {};
    const std::size_t end = place.rfind("+0x");
    if (end == place.npos || end == 0) continue;
    functions.push_back({place.substr(0, end), module});
  }
  std::ranges::reverse(functions);
  return kernel_stack(functions);
}

}  // namespace luaspy
