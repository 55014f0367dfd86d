#include "stack/start_frames.h"

#include <catch2/catch.hpp>

#include "base/mode.h"

namespace luaspy::start_frames_test {
namespace {

Frame native(const std::string& name, const std::string& file) { return {Frame::Kind::native, name, file, 0, 0}; }
Frame c(const std::string& name) { return {Frame::Kind::c, name, "lua5.4", 0, 0}; }
Frame lua(const std::string& name, int line_defined) { return {Frame::Kind::lua, name, "a.lua", line_defined, 0}; }
Frame vm(const std::string& name) {
  Frame frame = native(name, "lua5.4");
  frame.part = Frame::Part::vm;
  return frame;
}

// As StackNamer marks them.
void mark_start(Stack& stack) {
  std::vector<const Frame*> frames;
  for (const Frame& frame : stack) frames.push_back(&frame);
  const StartFrames start = start_frames(frames);
  if (start.main_has_no_name) stack[start.count].name = "main";
  for (std::size_t i = 0; i < start.count; ++i) stack[i].part = Frame::Part::start;
  if (start.interpreter) stack[*start.interpreter].part = Frame::Part::start;
}

std::string shown(Stack stack, Mode mode = Mode::merged) {
  mark_start(stack);
  keep_shown(mode, stack);
  std::string text;
  for (const Frame& frame : stack) text += (text.empty() ? "" : "; ") + describe(frame, false);
  return text;
}

}  // namespace

TEST_CASE("the start of a process is one frame", "[unit]") {
  const Stack interpreter = {native("_start", "lua5.4"),
                             native("__libc_start_main@@GLIBC_2.34", "libc.so.6"),
                             native("__libc_start_call_main", "libc.so.6"),
                             native("main", "lua5.4"),
                             vm("lua_pcallk"),
                             c("pmain"),
                             vm("docall"),
                             lua("main chunk", 0),
                             lua("f", 3)};
  CHECK(shown(interpreter) == "main (lua5.4); main chunk (a.lua); f (a.lua:3)");
  CHECK(shown(interpreter, Mode::lua) == "main chunk (a.lua); f (a.lua:3)");
  CHECK(shown(interpreter, Mode::all).starts_with("_start (lua5.4); __libc_start_main@@GLIBC_2.34 (libc.so.6); "));

  SECTION("without symbols") {
    Stack stripped = interpreter;
    stripped[0].name = "lua5.4+0x7720", stripped[2].name = "libc.so.6+0x271ca", stripped[3].name = "lua5.4+0x7650";
    stripped[5].name = "lua5.4+0x8060";
    CHECK(shown(stripped) == "main (lua5.4); main chunk (a.lua); f (a.lua:3)");
  }
  SECTION("musl's, whose functions have no symbols, or which is the dynamic linker") {
    Stack musl = interpreter;
    musl[1] = native("ld-musl-x86_64.so.1+0x1c0f0", "ld-musl-x86_64.so.1"), musl.erase(musl.begin() + 2);
    CHECK(shown(musl) == "main (lua5.4); main chunk (a.lua); f (a.lua:3)");
    musl[0].name = "lua5.4+0x7720", musl[2].name = "lua5.4+0x7650", musl[4].name = "lua5.4+0x8060";
    CHECK(shown(musl) == "main (lua5.4); main chunk (a.lua); f (a.lua:3)");
  }
  SECTION("without _start, where the stack is cut") {
    Stack cut(interpreter.begin() + 1, interpreter.end());
    cut[1].name = "libc.so.6+0x271ca";
    CHECK(shown(cut) == "main (lua5.4); main chunk (a.lua); f (a.lua:3)");
  }
  SECTION("a static program's main() is in the file of what calls it") {
    Stack whole = interpreter;
    for (Frame& frame : whole) frame.file = "lua5.4";
    whole.erase(whole.begin() + 2), whole[2].name = "lua5.4+0x7650";
    CHECK(shown(whole).starts_with("main (lua5.4); main chunk"));
  }
  SECTION("what is in another library than __libc_start_main is no start") {
    Stack library = interpreter;
    library[2] = native("libloader.so+0x10", "libloader.so");
    CHECK(shown(library) == "libloader.so+0x10; main (lua5.4); pmain [C]; main chunk (a.lua); f (a.lua:3)");
  }
  SECTION("a C function of the program that calls a Lua function is no start") {
    Stack host = interpreter;
    host[5].name = "run_scripts";
    CHECK(shown(host) == "main (lua5.4); run_scripts [C]; main chunk (a.lua); f (a.lua:3)");
    host[5].name = "pmain", host[7] = lua("g", 9);
    CHECK(shown(host) == "main (lua5.4); pmain [C]; g (a.lua:9); f (a.lua:3)");
  }
}

TEST_CASE("so is the start of a thread, without its own frame", "[unit]") {
  CHECK(shown({native("__clone3", "libc.so.6"), native("start_thread", "libc.so.6"), native("worker", "host"),
               lua("f", 3)}) == "worker (host); f (a.lua:3)");
  // Not the start of a process: what comes next is not main.
  CHECK(shown({native("__clone3", "libc.so.6"), native("start_thread", "libc.so.6"), native("host+0x70", "host")}) ==
        "host+0x70");
  const Stack work = {native("worker", "host"), lua("f", 3)};
  const auto started_by = [&](Stack stack) {
    stack.insert(stack.end(), work.begin(), work.end());
    return shown(stack);
  };
  const Frame nameless = native("libc.so.6+0x1098e1", "libc.so.6");
  CHECK(started_by({nameless, native("start_thread", "libc.so.6")}) == "worker (host); f (a.lua:3)");
  CHECK(started_by({native("host+0x98e1", "host"), native("start_thread", "host")}) == "worker (host); f (a.lua:3)");
  SECTION("in a C library without symbols") {
    CHECK(started_by({nameless, nameless}) == "worker (host); f (a.lua:3)");
    CHECK(started_by({native("clone", "libc-2.31.so"), native("libpthread-2.31.so+0x7ea7", "libpthread-2.31.so")}) ==
          "worker (host); f (a.lua:3)");
    CHECK(shown({nameless, nameless, native("host+0x70", "host")}) == "host+0x70");
    // Nothing shows where the start ends.
    CHECK(shown({nameless, nameless}) == "libc.so.6+0x1098e1; libc.so.6+0x1098e1");
  }
  SECTION("frames of other libraries are none") {
    const Frame other = native("libcoro.so+0x10", "libcoro.so");
    CHECK(started_by({other, other}) == "libcoro.so+0x10; libcoro.so+0x10; worker (host); f (a.lua:3)");
    CHECK(started_by({other, native("start_thread", "libc.so.6")}) ==
          "libcoro.so+0x10; start_thread (libc.so.6); worker (host); f (a.lua:3)");
  }
}

TEST_CASE("frames of the program are left alone", "[unit]") {
  CHECK(shown({lua("f", 3)}) == "f (a.lua:3)");
  CHECK(shown({native("host+0x10", "host"), native("start", "host")}) == "host+0x10; start (host)");
  CHECK(shown({native("main", "host"), c("pmain"), lua("main chunk", 0)}) ==
        "main (host); pmain [C]; main chunk (a.lua)");
  CHECK(shown({}).empty());
}

TEST_CASE("a stack that has nothing to show says what it is", "[unit]") {
  CHECK(shown({native("_start", "lua5.4"), native("__libc_start_main", "libc.so.6")}) == "[start of the process]");
  CHECK(shown({native("main", "host"), native("poll", "libc.so.6")}, Mode::lua) == "[outside of Lua]");
}

}  // namespace luaspy::start_frames_test
