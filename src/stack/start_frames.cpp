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

// lua.c and luajit.c run the script in pmain, a C function that main() calls. The frames between
// are the VM's.
void mark_interpreter(Stack& stack, std::size_t at) {
  const auto next = [&] {
    while (at < stack.size() && stack[at].part == Frame::Part::vm) ++at;
    return at < stack.size() ? &stack[at] : nullptr;
  };
  Frame* const pmain = next();
  if (pmain == nullptr || pmain->kind != Frame::Kind::c || (pmain->name != "pmain" && !is_place(*pmain))) return;
  ++at;
  const Frame* const script = next();
  if (script == nullptr || (script->kind == Frame::Kind::lua && script->line_defined == 0))
    pmain->part = Frame::Part::start;
}

}  // namespace

void mark_start(Stack& stack) {
  const auto is_start = [](const Frame& frame) { return is_native(frame) && starts_something(frame.name); };
  std::size_t at = 0;
  // _start may have no symbol.
  if (stack.size() > 1 && is_native(stack[0]) && is_place(stack[0]) && stack[1].name.starts_with("__libc_start_main"))
    stack[at++].part = Frame::Part::start;
  bool is_process = at != 0;
  for (; at < stack.size() && is_start(stack[at]); ++at) {
    is_process |= stack[at].name.starts_with("_start") || stack[at].name.starts_with("__libc_start_main");
    stack[at].part = Frame::Part::start;
  }
  if (!is_process) return;
  // What these call in their library, before main() in the program, may have no symbol either.
  for (; at < stack.size() && is_native(stack[at]) && is_place(stack[at]) && stack[at].file != stack[0].file; ++at)
    stack[at].part = Frame::Part::start;
  if (at == stack.size() || !is_native(stack[at])) return;
  if (is_place(stack[at])) stack[at].name = "main";
  if (stack[at].name == "main") mark_interpreter(stack, at + 1);
}

}  // namespace luaspy
