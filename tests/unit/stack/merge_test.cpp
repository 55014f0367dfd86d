#include "stack/merge.h"

#include <catch2/catch.hpp>

namespace luaspy::merge_test {
namespace {

// Functions are identified by their start: 0x4000 is machine code, 0x1000 is luaV_execute, 0x2000
// to 0x2fff is the rest of the core, of which 0x2100 is known to carry calls; all others belong to
// the program.
class FakeCore : public NativeFunctions {
 public:
  bool executes_lua(const NativeFrame& frame) const override {
    return frame.function == 0x1000 || frame.function == 0x4000;
  }
  bool carries(const NativeFrame& frame) const override { return frame.function == 0x1000 || frame.function == 0x2100; }
  bool in_core_module(const NativeFrame& frame) const override {
    return frame.function >= 0x1000 && frame.function < 0x3000;
  }
  LuaCode lua_code(const NativeFrame& frame) const override {
    if (frame.function >= 0x2e00 && frame.function < 0x3000) return LuaCode::yes;
    return in_core_module(frame) ? LuaCode::maybe : LuaCode::no;
  }
  std::vector<std::byte> code(const NativeFrame&) const override { return {}; }
  const Frame& describe(const NativeFrame&) const override { return frame_; }

 private:
  Frame frame_;
};

NativeFrame native(Address function, Address sp) {
  NativeFrame frame;
  frame.pc = frame.lookup = function + 4;
  frame.sp = sp;
  frame.cfa = sp + 16;
  frame.function = function;
  frame.step = Step::cfi;
  frame.in_trace = function == 0x4000;
  return frame;
}

LuaCall lua(bool fresh) {
  LuaCall call;
  call.kind = LuaCall::Kind::lua;
  call.fresh = fresh;
  return call;
}

LuaCall c(Address entry) {
  LuaCall call;
  call.entry = entry;
  return call;
}

// "n0 c0.1 ..." : native frame 0, call 1 of segment 0. `all`: with the frames that are the VM's.
std::string text(const Merged& merged, bool all = false) {
  std::string result;
  for (const MergedFrame& frame : merged.frames) {
    if (!all && frame.part == Frame::Part::vm) continue;
    if (!result.empty()) result += ' ';
    switch (frame.kind) {
      case MergedFrame::Kind::native:
        result += 'n' + std::to_string(frame.native);
        break;
      case MergedFrame::Kind::call:
        result += 'c' + std::to_string(frame.segment) + '.' + std::to_string(frame.call);
        break;
      case MergedFrame::Kind::left_out:
        result += "left_out";
        break;
      case MergedFrame::Kind::not_joined:
        result += "not_joined";
        break;
    }
  }
  return result;
}

}  // namespace

TEST_CASE("native and Lua frames become one stack", "[unit]") {
  const FakeCore core;
  LuaWalk walk;
  // Lua callback, called by a C function, called by two Lua functions, in a protected call of main.
  walk.calls = {lua(true), c(0x5000), lua(false), lua(true)};
  const std::vector<NativeFrame> natives = {native(0x2200, 0x100), native(0x1000, 0x110), native(0x2300, 0x120),
                                            native(0x2400, 0x130), native(0x5000, 0x140), native(0x2300, 0x150),
                                            native(0x1000, 0x160), native(0x2500, 0x170), native(0x2600, 0x190),
                                            native(0x2100, 0x1a0), native(0x9000, 0x1b0)};
  const std::vector<Segment> segments = {{&walk, 0x180}};

  SECTION("the work of the VM and what carries calls are the VM's, the host's frames are not") {
    const Merged merged = merge(natives, segments, core, {});
    CHECK(text(merged) == "c0.0 c0.1 c0.2 c0.3 n10");
    CHECK(merged.joined);
    CHECK(merged.execute_frames == 2);
    CHECK(merged.fresh_calls == 2);
    CHECK(merged.unpaired_c_calls == 0);
  }
  SECTION("native: every native frame once") {
    CHECK(text(merge(natives, segments, core, {.native_only = true})) == "n0 n1 n2 n3 n4 n5 n6 n7 n8 n9 n10");
  }
  SECTION("all: the VM's own frames beside what they carry") {
    CHECK(text(merge(natives, segments, core, {}), true) == "n0 n1 c0.0 n2 n3 c0.1 n5 n6 c0.2 c0.3 n7 n8 n9 n10");
  }
  SECTION("native, of a luaV_execute whose call could not be read") {
    walk.calls.pop_back(), walk.calls.pop_back();
    CHECK(text(merge(natives, segments, core, {.native_only = true})) == "n0 n1 n2 n3 n4 n5 n6 n7 n8 n9 n10");
  }
  SECTION("a call being made: its C function has no native frame yet") {
    walk.calls.insert(walk.calls.begin(), c(0x7000));
    CHECK(text(merge(natives, segments, core, {})) == "c0.0 c0.1 c0.2 c0.3 c0.4 n10");
  }
  SECTION("the innermost luaV_execute returns to the C function that called: it has no call any more") {
    walk.calls.erase(walk.calls.begin());
    const Merged merged = merge(natives, segments, core, {});
    CHECK(text(merged) == "c0.0 c0.1 c0.2 n10");
    CHECK(text(merged, true) == "n0 n1 n2 n3 c0.0 n5 n6 c0.1 c0.2 n7 n8 n9 n10");
    CHECK(merged.execute_frames == merged.fresh_calls);
    CHECK(merged.unpaired_c_calls == 0);
  }
  SECTION("the same in a coroutine that was resumed") {
    walk.calls.erase(walk.calls.begin());
    walk.calls.insert(walk.calls.end(), {c(0x5100), lua(true)});
    CHECK(text(merge(natives, segments, core, {}), true) == "n0 n1 n2 n3 c0.0 n5 n6 c0.1 c0.2 c0.3 c0.4 n7 n8 n9 n10");
  }
  SECTION("a C function calls itself by way of Lua: the inner call has no native frame yet") {
    walk.calls.insert(walk.calls.begin(), c(0x5000));
    const Merged merged = merge(natives, segments, core, {});
    CHECK(text(merged, true) == "n0 n1 c0.0 c0.1 n2 n3 c0.2 n5 n6 c0.3 c0.4 n7 n8 n9 n10");
    CHECK(merged.unpaired_c_calls == 1);
  }
  SECTION("calls that a resume has unrolled belong to the outermost luaV_execute") {
    walk.calls.push_back(c(0x5100));
    walk.calls.push_back(lua(true));
    CHECK(text(merge(natives, segments, core, {})) == "c0.0 c0.1 c0.2 c0.3 c0.4 c0.5 n10");
  }
  SECTION("a helper of the C function in another module is shown") {
    std::vector<NativeFrame> with_helper = natives;
    with_helper.insert(with_helper.begin() + 3, native(0x8000, 0x128));
    CHECK(text(merge(with_helper, segments, core, {})) == "c0.0 n3 c0.1 c0.2 c0.3 n11");
  }
  SECTION("what luaV_execute calls in another module is shown: an allocator") {
    std::vector<NativeFrame> with_malloc = natives;
    with_malloc.insert(with_malloc.begin(), native(0x8000, 0xf0));
    CHECK(text(merge(with_malloc, segments, core, {})) == "n0 c0.0 c0.1 c0.2 c0.3 n11");
  }
  SECTION("what a C function calls in the same module is shown unless it is known as Lua's own") {
    std::vector<NativeFrame> in_c(natives.begin() + 4, natives.end());
    walk.calls.erase(walk.calls.begin());
    in_c.insert(in_c.begin(), {native(0x2e10, 0xf0), native(0x2300, 0x100), native(0x2e20, 0x110)});
    CHECK(text(merge(in_c, segments, core, {})) == "n1 c0.0 c0.1 c0.2 n9");
  }
  SECTION("so it is with what LuaJIT calls: its FFI may call the host") {
    for (LuaCall& call : walk.calls) call.owner = 0x118;
    walk.has_owners = true;
    walk.calls[1] = lua(false);
    std::vector<NativeFrame> ffi = natives;
    ffi.insert(ffi.begin(), native(0x2e10, 0xf0));
    CHECK(text(merge(ffi, segments, core, {})).starts_with("n1 c0.0 c0.1 c0.2 c0.3"));
  }
  SECTION("a stack that is cut in the middle says so") {
    walk.left_out = 7;
    walk.cut_at = 2;
    CHECK(text(merge(natives, segments, core, {})) == "c0.0 c0.1 left_out c0.2 c0.3 n10");
  }
}

TEST_CASE("a coroutine's frames are inside its resumer's", "[unit]") {
  const FakeCore core;
  LuaWalk inner, outer;
  inner.calls = {lua(true)};
  outer.calls = {c(0x5000), lua(true)};  // coroutine.resume, called by Lua
  const std::vector<NativeFrame> natives = {native(0x1000, 0x100), native(0x2500, 0x110), native(0x2600, 0x130),
                                            native(0x5000, 0x140), native(0x1000, 0x150), native(0x2500, 0x160),
                                            native(0x9000, 0x180)};
  CHECK(text(merge(natives, {{&inner, 0x120}, {&outer, 0x170}}, core, {})) == "c0.0 c1.0 c1.1 n6");
}

TEST_CASE("a coroutine that is being resumed, or has just yielded, runs in no luaV_execute", "[unit]") {
  const FakeCore core;
  LuaWalk inner, outer;
  inner.calls = {c(0x7000), lua(false), lua(true)};
  outer.calls = {c(0x5000), lua(true)};
  const std::vector<NativeFrame> natives = {native(0x2500, 0x100), native(0x2600, 0x110), native(0x5000, 0x140),
                                            native(0x1000, 0x150), native(0x9000, 0x180)};
  const Merged merged = merge(natives, {{&inner, 0x120}, {&outer, 0x170}}, core, {});
  CHECK(text(merged) == "n0 n1 c0.0 c0.1 c0.2 c1.0 c1.1 n4");
  CHECK(merged.joined);
}

TEST_CASE("Lua calls that no luaV_execute runs are not shown", "[unit]") {
  const FakeCore core;
  LuaWalk walk;
  walk.calls = {c(0x7000), lua(false), lua(true), c(0x5000), lua(true)};  // error, called by two Lua functions in a
                                                                          // pcall, called by Lua
  const std::vector<NativeFrame> unwound = {native(0x2500, 0x110), native(0x5000, 0x140), native(0x1000, 0x150),
                                            native(0x9000, 0x180)};
  SECTION("an error has ended them") {
    const Merged merged = merge(unwound, {{&walk, 0x170}}, core, {});
    CHECK(text(merged) == "n0 c0.3 c0.4 n3");
    CHECK(merged.not_running == 3);
    CHECK(merged.execute_frames == merged.fresh_calls);
  }
  SECTION("C functions may run in frames that are not known as theirs") {
    walk.calls = {c(0x7000), c(0x7100), c(0x5000), lua(true)};
    CHECK(text(merge(unwound, {{&walk, 0x170}}, core, {})) == "n0 c0.0 c0.1 c0.2 c0.3 n3");
  }
  SECTION("they are where luaV_execute is not known") {
    const std::vector<NativeFrame> unknown = {native(0x2500, 0x110), native(0x5000, 0x140), native(0x2700, 0x150),
                                              native(0x9000, 0x180)};
    CHECK(text(merge(unknown, {{&walk, 0x170}}, core, {})) == "n0 c0.0 c0.1 c0.2 c0.3 c0.4 n3");
  }
  SECTION("nor is one that is being set up, whatever its CallInfo says") {
    walk.calls = {lua(true), lua(false), lua(true)};
    walk.innermost_left_out = true;
    const std::vector<NativeFrame> natives = {native(0x2200, 0x100), native(0x1000, 0x110), native(0x9000, 0x180)};
    const Merged merged = merge(natives, {{&walk, 0x170}}, core, {});
    CHECK(text(merged) == "c0.1 c0.2 n2");
    CHECK(merged.fresh_calls == 1);
  }
}

TEST_CASE("LuaJIT's calls say which C frame of the VM they run in", "[unit]") {
  const FakeCore core;
  LuaWalk walk;
  walk.has_owners = true;
  const auto in = [](LuaCall call, Address cframe) {
    call.owner = cframe;
    return call;
  };
  // A trace with an inlined function, entered from a callback of a C function; a lua_cpcall of no
  // function; the main chunk.
  walk.calls = {in(lua(false), 0x110), in(lua(true), 0x110), in(c(0x5000), 0x160), in(c(0), 0x160),
                in(lua(true), 0x160)};
  // native() creates frames of 16 bytes: that of a trace is as long as the VM's, and ends where its
  // C frame ends.
  const std::vector<NativeFrame> natives = {native(0x9200, 0x100), native(0x4000, 0x110), native(0x2300, 0x120),
                                            native(0x5000, 0x130), native(0x1000, 0x140), native(0x2400, 0x150),
                                            native(0x1000, 0x160), native(0x9000, 0x180)};
  const Merged merged = merge(natives, {{&walk, 0x168}}, core, {});
  // The VM's frame at 0x140 owns nothing.
  CHECK(text(merged) == "n0 c0.0 c0.1 c0.2 c0.3 c0.4 n7");
  CHECK(merged.execute_frames == 2);
  CHECK(merged.fresh_calls == 2);
  CHECK(text(merge(natives, {{&walk, 0x168}}, core, {.traces = true})) == "n0 n1 c0.0 c0.1 c0.2 c0.3 c0.4 n7");
}

TEST_CASE("what cannot be joined is shown all the same", "[unit]") {
  const FakeCore core;
  LuaWalk walk;
  walk.calls = {lua(true)};
  const Merged merged = merge({native(0x9100, 0x100), native(0x9000, 0x180)}, {{&walk, 0x170}}, core, {});
  CHECK(text(merged) == "n0 not_joined c0.0 n1");
  CHECK_FALSE(merged.joined);
  CHECK(text(merge({}, {{&walk, 0x170}}, core, {})) == "c0.0");
  CHECK(text(merge({native(0x9000, 0x100)}, {}, core, {})) == "n0");
}

TEST_CASE("a state that is called again by one that it has called goes on where it was", "[unit]") {
  const FakeCore core;
  LuaWalk outer, inner;
  outer.calls = {lua(true), c(0x5000), lua(true)};
  inner.calls = {c(0x6000), lua(true)};
  // outer's Lua calls a C function that calls inner's Lua, which calls a C function that calls
  // outer's Lua.
  const std::vector<NativeFrame> natives = {native(0x1000, 0x110), native(0x2100, 0x120), native(0x6000, 0x130),
                                            native(0x1000, 0x140), native(0x2100, 0x150), native(0x5000, 0x160),
                                            native(0x1000, 0x170), native(0x2100, 0x180), native(0x9000, 0x190)};
  const std::vector<Segment> segments = {{&outer, 0x130}, {&inner, 0x160}, {&outer, 0x190}};
  const Merged merged = merge(natives, segments, core, {});
  CHECK(text(merged) == "c0.0 c1.0 c1.1 c2.1 c2.2 n8");
  CHECK(merged.joined);
  CHECK(merged.execute_frames == 3);
  CHECK(merged.fresh_calls == 3);
  CHECK(merged.unpaired_c_calls == 0);
}

}  // namespace luaspy::merge_test
