#include "judge.h"

#include <fmt/format.h>

#include <algorithm>

namespace luaspy::steps {
namespace {

std::string base_name(const std::string& path) { return path.substr(path.rfind('/') + 1); }

// string.gsub → gsub; a C function without a name is given as its address in its module.
std::string short_name(const std::string& name) {
  if (name == "for iterator") return "iterator";
  return name.find("+0x") != std::string::npos ? "unnamed" : name.substr(name.find_last_of(".:") + 1);
}

// The C functions that catch errors (lbaselib.c, lcorolib.c), by the names that the script gives
// them.
bool catches(const Shown& frame) {
  constexpr std::string_view names[] = {"pcall", "xpcall", "resume", "wrapped", "close", "load"};
  return frame.kind == Frame::Kind::c && std::ranges::find(names, short_name(frame.name)) != std::end(names);
}

}  // namespace

Look look_of(StackReader& reader, const StackReader::Finished* finished, const std::string& library) {
  Look look;
  if (finished == nullptr) {
    look.lost = look.native_incomplete = true;
    return look;
  }
  const Sample& sample = finished->sample;
  look.vm_state = sample.vm_state;
  look.native_incomplete = sample.quality.native_complete == 0;
  look.lost = sample.quality.with_lua == 0 || sample.quality.lua_unusable != 0 || sample.quality.lua_broken != 0 ||
              sample.quality.not_joined != 0;
  bool tail = false, native = false;
  const auto& labelled = finished->joined.calls;
  const Stack stack = reader.stacks().frames_of(sample.stack);
  for (std::size_t i = 0; i < stack.size(); ++i) {
    const Frame& frame = stack[i];
    if (frame.part == Frame::Part::vm) continue;
    if (frame.kind == Frame::Kind::marker) {
      tail |= frame.name == "(...tail calls...)";
      look.lost |= frame.name != "(...tail calls...)";
      continue;
    }
    if (frame.kind == Frame::Kind::native) {
      // Within __longjmp, the registers belong to two frames.
      const bool is_unknown = frame.name == "[unknown code]";
      look.native_incomplete |= is_unknown;
      native |= !look.stack.empty() && !is_unknown &&
                (library.empty() || frame.file.find(library) == std::string::npos);
      continue;
    }
    look.native_between |= native;
    const StackCall* const label = i < labelled.size() && labelled[i].state != nullptr ? &labelled[i] : nullptr;
    const bool on_trace = label != nullptr && label->walk->calls[label->call].on_trace;
    look.stack.push_back({frame.kind, std::exchange(tail, false), frame.line_is_near, on_trace, frame.name,
                          frame.kind == Frame::Kind::lua ? base_name(frame.file) : "", frame.line_defined, frame.line,
                          label != nullptr ? label->state->L : 0,
                          label != nullptr ? label->walk->calls[label->call].entry : 0});
  }
  return look;
}

std::string text_of(const ShownStack& stack) {
  std::string text;
  const std::size_t first = stack.size() > 5 ? stack.size() - 5 : 0;
  for (std::size_t i = first; i < stack.size(); ++i) {
    const Shown& frame = stack[i];
    if (i != first) text += stack[i - 1].L != frame.L ? " | " : " > ";
    if (frame.tail) text += "(tail) ";
    text += frame.kind == Frame::Kind::lua ? fmt::format("{}@{}:{}", frame.name, frame.line_defined, frame.line)
                                           : frame.name;
  }
  return text;
}

Judge::Verdict Judge::judge(const Look& look) {
  ++counts_.tried;
  counts_.native_incomplete += look.native_incomplete;
  Verdict verdict;
  if (look.lost) {
    ++counts_.lost;
    return verdict;
  }
  if (has_previous_ && look.stack == previous_.stack) {
    previous_.vm_state = look.vm_state;
    counts_.impossible += was_impossible_;
    return verdict;
  }
  verdict.impossible = impossible(look);
  was_impossible_ = !verdict.impossible.empty();
  counts_.impossible += was_impossible_;
  if (has_previous_) verdict.wrong = step_from(previous_, look);
  counts_.wrong += verdict.wrong.empty() ? 0 : 1;
  previous_ = look;
  has_previous_ = true;
  return verdict;
}

std::string Judge::impossible(const Look& look) const {
  if (look.stack.empty()) return "no Lua at all";
  if (look.native_between) return "a native frame between Lua's";
  for (std::size_t i = 0; i < look.stack.size(); ++i) {
    const Shown& frame = look.stack[i];
    if (frame.name.empty() || frame.name == "?") return "without a name";
    if (frame.kind == Frame::Kind::lua) {
      const bool is_piece = frame.file == "loaded" || frame.file == "pieces";
      const Function* const function = scripts_.find(frame.file, frame.line_defined);
      if (function == nullptr && !is_piece)
        return fmt::format("no function of the script: {}:{}", frame.file, frame.line_defined);
      if (function != nullptr && (frame.line < function->first_line || frame.line > function->last_line)) {
        return fmt::format("{} has no line {}", function->name, frame.line);
      }
    }
    if (i == 0) continue;
    if (const std::string reason = impossible_pair(look.stack[i - 1], frame); !reason.empty()) return reason;
  }
  return {};
}

std::string Judge::impossible_pair(const Shown& caller, const Shown& callee) const {
  const Function* const called = callee.kind == Frame::Kind::lua ? scripts_.find(callee.file, callee.line_defined)
                                                                 : nullptr;
  const Function* const calling = caller.kind == Frame::Kind::lua ? scripts_.find(caller.file, caller.line_defined)
                                                                  : nullptr;
  const std::string name = called != nullptr                 ? called->name
                           : callee.kind == Frame::Kind::lua ? callee.file
                                                             : short_name(callee.name);
  const std::string by = calling != nullptr                ? calling->name
                         : caller.kind == Frame::Kind::lua ? caller.file
                                                           : short_name(caller.name);
  const auto pair = [&] {
    return fmt::format("{} (line {}) does not call {}", by, caller.line, callee.tail ? "(tail) " + name : name);
  };
  if (called != nullptr && (called->from.contains("*") || called->from.contains(by))) return {};
  if (callee.tail || (is_luajit_ && called != nullptr && called->tailed))
    return called != nullptr && called->tailed ? std::string() : pair();
  // pcall and require are also given C functions.
  if (caller.kind == Frame::Kind::c)
    return callee.kind == Frame::Kind::c && (by == "pcall" || by == "require") ? std::string() : pair();
  if (calling == nullptr) return {};  // a piece that was loaded
  if (scripts_.mentions(caller.file, caller.line, name)) return {};
  if (called != nullptr && scripts_.mentions(caller.file, caller.line, "any_phase")) return {};
  return pair();
}

std::string Judge::step_from(const Look& before, const Look& now) {
  const ShownStack &from = before.stack, &to = now.stack;
  std::size_t common = 0;
  while (common < std::min(from.size(), to.size()) && from[common].same_function(to[common]) &&
         from[common].tail == to[common].tail)
    ++common;
  const std::size_t removed = from.size() - common, added = to.size() - common;
  for (std::size_t i = 0; i + 1 < common; ++i) {
    if (from[i].line != to[i].line) return fmt::format("the line of {} moved", from[i].name);
  }
  if (removed + added <= 1) return {};
  if (removed == 1 && added == 1 && (to.back().tail || is_tailed(to.back()))) return {};
  if (allowed(before, now, common)) return {};
  return fmt::format("{} frames less, {} more", removed, added);
}

// LuaJIT does not record tail calls.
bool Judge::is_tailed(const Shown& frame) const {
  const Function* const function = frame.kind == Frame::Kind::lua ? scripts_.find(frame.file, frame.line_defined)
                                                                  : nullptr;
  return is_luajit_ && function != nullptr && function->tailed;
}

// When more than one frame may change at once. Errors: luaD_pcall and similar functions reset L->ci
// to its value before the call (ldo.c). Coroutines: lua_resume, and luaD_throw for a yield. Call
// hooks: luaD_precall calls them before luaV_execute starts the function. LuaJIT's traces: inlined
// functions are only known by snapshots (lj_snap.c), between which a trace may call and return
// several times.
bool Judge::allowed(const Look& before, const Look& now, std::size_t common) {
  const ShownStack &from = before.stack, &to = now.stack;
  const auto all_of_one = [&](const ShownStack& stack) {
    return common > 0 && stack[common].L != stack[common - 1].L &&
           std::all_of(stack.begin() + static_cast<std::ptrdiff_t>(common), stack.end(),
                       [&](const Shown& frame) { return frame.L == stack[common].L; });
  };
  const auto in_trace = [](const Look& look) {
    return look.vm_state == VmState::machine_code || look.vm_state == VmState::exiting ||
           std::ranges::any_of(look.stack, &Shown::near);
  };
  if (in_trace(before) || in_trace(now)) return ++counts_.allowed["trace"], true;
  const Function* const innermost = to.empty() ? nullptr : scripts_.find(to.back().file, to.back().line_defined);
  if (from.size() == common && to.size() == common + 2 && innermost != nullptr && innermost->name == "hook")
    return ++counts_.allowed["hook"], true;
  if (to.size() == common && common > 0) {
    const ShownStack left(from.begin() + static_cast<std::ptrdiff_t>(common), from.end());
    if (all_of_one(from) && short_name(from.back().name) == "yield") {
      suspended_[from.back().L] = left;
      ++counts_.allowed["yield"];
      return true;
    }
    if (catches(to.back())) return ++counts_.allowed["error"], true;
  }
  if (from.size() == common && common > 0 && all_of_one(to)) {
    ShownStack resumed(to.begin() + static_cast<std::ptrdiff_t>(common), to.end());
    const auto known = suspended_.find(to.back().L);
    if (known == suspended_.end())
      return ++counts_.allowed["resume"], true;  // it yielded before the steps that were judged
    ShownStack waits = known->second;
    if (resumed.size() + 1 == waits.size()) waits.pop_back();
    if (resumed == waits) return ++counts_.allowed["resume"], true;
  }
  return false;
}

}  // namespace luaspy::steps
