#include "luastate/call_frames.h"

#include <fmt/format.h>

#include <array>
#include <string>

#include "base/tail_calls.h"

namespace luaspy {

std::string left_out_text(const LuaWalk& walk, bool counted) {
  // In a recording the number is left out: it would differ in every sample, and the stacks would
  // not add up.
  return counted && walk.left_out > 0 ? fmt::format("[{} frames left out]", walk.left_out) : "[frames left out]";
}

CallLabel label_call(Names& names, const NativeFunctions& functions, const Names::Context& context, const LuaCall& call,
                     const LuaCall* caller, Address pc) {
  CallLabel label = names.label(context, call, caller, pc);
  const Address called = names.ffi_function(context, call, caller);
  if (called != 0 && functions.may_be_code(called)) label.entry = called, label.name = label.file;  // both empty
  return label;
}

Frame frame_of(const CallLabel& label, const NativeFunctions& functions) {
  Frame frame = label.frame();
  if (label.kind != Frame::Kind::c) return frame;
  const Frame& native = functions.describe_entry(label.entry);
  frame.file = native.file;
  if (frame.name.empty() || frame.name == "?") frame.name = native.name;
  // Its code is in no module, so what was read is not a function.
  return frame.name.empty() ? marker("[unreadable]") : frame;
}

std::span<const Frame> markers_outside(const LuaCall& call) {
  static const std::array both = {marker(std::string(tail_calls_name)), marker("[unreadable]")};
  return std::span(both).subspan(call.tail ? 0 : 1, (call.tail ? 1 : 0) + (call.gap ? 1 : 0));
}

}  // namespace luaspy
