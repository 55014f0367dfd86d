#include "stack/start_frames.h"

#include <algorithm>
#include <string_view>

namespace luaspy {
namespace {

// glibc's and musl's functions that call main(), or the function of a thread.
bool starts_something(std::string_view name) {
  static constexpr std::string_view names[] = {
      "_start",   "_start_c", "libc_start_main_stage2", "start_thread",   "__clone",      "clone",
      "__clone3", "clone3",   "__clone_internal",       "__thread_start", "thread_start", "__libc_start_call_main"};
  // __libc_start_main, __libc_start_main_impl, __libc_start_main@@GLIBC_2.34.
  return name.starts_with("__libc_start_main") || std::ranges::find(names, name) != std::end(names);
}

bool is_native(const Frame& frame) { return frame.kind == Frame::Kind::native; }
bool is_nameless(const Frame& frame) { return is_native(frame) && is_place(frame); }

// By the names of glibc's files, before and since 2.34, and of musl's.
bool is_in_c_library(const Frame& frame) {
  static constexpr std::string_view files[] = {"libc.so", "libc-2.", "libpthread.so", "libpthread-2.", "ld-musl-"};
  return std::ranges::any_of(files, [&](std::string_view file) { return frame.file.starts_with(file); });
}

// lua.c and luajit.c run the script in pmain, a C function that main() calls. The frames between
// are the VM's. `at`: from which frame on; after it, the last one that was looked at.
std::optional<std::size_t> interpreter_frame(std::span<const Frame* const> stack, std::size_t& at) {
  const auto next = [&] {
    while (at < stack.size() && stack[at]->part == Frame::Part::vm) ++at;
    return at < stack.size() ? stack[at] : nullptr;
  };
  const Frame* const pmain = next();
  if (pmain == nullptr || pmain->kind != Frame::Kind::c || (pmain->name != "pmain" && !is_place(*pmain))) return {};
  const std::size_t found = at++;
  const Frame* const script = next();
  if (script == nullptr || (script->kind == Frame::Kind::lua && script->line_defined == 0)) return found;
  return {};
}

}  // namespace

StartFrames start_frames(std::span<const Frame* const> stack) {
  const auto is_start = [](const Frame& frame) { return is_native(frame) && starts_something(frame.name); };
  StartFrames found;
  std::size_t& at = found.count;
  bool is_process = false;
  if (stack.size() > 1 && is_nameless(*stack[0])) {
    const Frame& next = *stack[1];
    is_process = next.name.starts_with("__libc_start_main") ||
                 (is_nameless(next) && is_in_c_library(next) && !is_in_c_library(*stack[0]));
    // _start may have no symbol, and glibc's clone3 has none.
    if (is_process || (next.name == "start_thread" && next.file == stack[0]->file)) ++at;
  }
  for (; at < stack.size() && is_start(*stack[at]); ++at)
    is_process |= stack[at]->name.starts_with("_start") || stack[at]->name.starts_with("__libc_start_main");
  // What these call in their library, before main() or the thread's function in the program, may have
  // no symbol either.
  std::size_t end = at;
  const auto in_their_library = [&](const Frame& frame) {
    if (!is_nameless(frame)) return false;
    if (!is_process || end == 0 || stack[end - 1]->file == stack[0]->file) return is_in_c_library(frame);
    return frame.file == stack[end - 1]->file;
  };
  while (end < stack.size() && in_their_library(*stack[end])) ++end;
  found.decided_by = std::max<std::size_t>(end + 1, 2);
  if (!is_process && (end == stack.size() || is_in_c_library(*stack[end]))) return found;
  at = end;
  if (!is_process || at == stack.size() || !is_native(*stack[at])) return found;
  const Frame& main = *stack[at];
  found.main_has_no_name = is_place(main) && (main.file == stack[0]->file || is_in_c_library(*stack[0]));
  if (!found.main_has_no_name && main.name != "main") return found;
  std::size_t last = at + 1;
  found.interpreter = interpreter_frame(stack, last);
  found.decided_by = last + 1;
  return found;
}

}  // namespace luaspy
