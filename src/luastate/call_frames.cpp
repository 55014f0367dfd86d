#include "luastate/call_frames.h"

#include <fmt/format.h>

#include <array>

namespace luaspy {

std::string left_out_text(const LuaWalk& walk, bool counted) {
  // In a recording the number is left out: it would differ in every sample, and the stacks would
  // not add up.
  return counted && walk.left_out > 0 ? fmt::format("[{} frames left out]", walk.left_out) : "[frames left out]";
}

Frame label_call(Names& names, const NativeFunctions& functions, const Names::Context& context, const LuaCall& call,
                 const LuaCall* caller, Address pc) {
  Frame labelled = names.frame(context, call, caller, pc);
  labelled.line_is_near = call.near;
  if (!call.is_lua()) {
    Frame native = functions.describe_entry(call.entry);
    const Address called = names.ffi_function(context, call, caller);
    if (called != 0 && functions.may_be_code(called)) {
      native = functions.describe_entry(called);
      labelled.name.clear();
    }
    labelled.file = native.file;
    if (labelled.name.empty() || labelled.name == "?") labelled.name = native.name;
    // Its code is in no module, so what was read is not a function.
    if (labelled.name.empty()) return marker("[unreadable]");
  }
  return labelled;
}

std::span<const Frame> markers_outside(const LuaCall& call) {
  static const std::array both = {marker("(...tail calls...)"), marker("[unreadable]")};
  return std::span(both).subspan(call.tail ? 0 : 1, (call.tail ? 1 : 0) + (call.gap ? 1 : 0));
}

}  // namespace luaspy
