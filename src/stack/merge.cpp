#include "stack/merge.h"

#include <algorithm>
#include <span>
#include <utility>

namespace luaspy {
namespace {

// Native frames between a protected call's record and its API function (ldo.c, lapi.c).
constexpr std::size_t most_entering = 3;

class Merger {
 public:
  Merger(const std::vector<NativeFrame>& natives, const std::vector<Segment>& segments,
         const NativeFunctions& functions, const MergeOptions& options, Merged room)
      : natives_(natives),
        segments_(segments),
        functions_(functions),
        options_(options),
        merged_{std::move(room.frames), std::move(room.next_calls)} {
    merged_.frames.clear();
    merged_.next_calls.assign(segments_.size(), 0);
  }

  Merged run() {
    for (segment_ = 0; segment_ < segments_.size(); ++segment_) {
      const bool last = segment_ + 1 == segments_.size();
      std::size_t end = native_;
      while (end < natives_.size() && (last || natives_[end].sp < segments_[segment_].boundary)) ++end;
      run_segment(end);
    }
    for (; native_ < natives_.size(); ++native_) hold(native_);
    release(Within::host);
    return std::move(merged_);
  }

 private:
  const LuaWalk& walk() const { return *segments_[segment_].walk; }
  std::size_t call_count() const { return walk().calls.size(); }

  std::size_t first_call() const { return walk().innermost_left_out ? 1 : 0; }

  // The C call that this native frame runs, from next_call_ on; call_count() if there is none.
  std::size_t c_call_of(const NativeFrame& native) const {
    const auto& calls = walk().calls;
    std::size_t i = next_call_;
    if (native.function == 0) return calls.size();
    while (i < calls.size() && (calls[i].is_lua() || calls[i].entry != native.function)) ++i;
    return i;
  }

  bool is_anchor(const NativeFrame& native) const {
    return functions_.executes_lua(native) || c_call_of(native) < call_count();
  }

  void run_segment(std::size_t end) {
    const auto is_same = [&](const Segment& other) { return other.walk == segments_[segment_].walk; };
    const auto here = segments_.begin() + static_cast<std::ptrdiff_t>(segment_);
    const auto first = std::find_if(segments_.begin(), here, is_same);
    std::size_t& next_call = merged_.next_calls[static_cast<std::size_t>(first - segments_.begin())];
    goes_on_ = std::any_of(here + 1, segments_.end(), is_same);
    next_call_ = next_call;
    if (first == here) {
      next_call_ = first_call();
      for (std::size_t i = next_call_; i < call_count(); ++i)
        merged_.fresh_calls += walk().calls[i].fresh && (walk().calls[i].is_lua() || walk().has_owners);
    }
    run_calls(end);
    next_call = next_call_;
  }

  void run_calls(std::size_t end) {
    std::size_t last_anchor = end;
    bool innermost = next_call_ == first_call();
    for (std::size_t n = native_; n < end; ++n) {
      if (is_anchor(natives_[n])) last_anchor = n;
    }
    if (last_anchor == end) {
      run_unjoined(end);
      return;
    }
    for (; native_ < end; ++native_) {
      const NativeFrame& native = natives_[native_];
      if (functions_.executes_lua(native)) {
        release(walk().has_owners ? Within::luajit : Within::execute);
        const bool is_shown = options_.native_only || (options_.traces && native.in_trace);
        push_native(native_, is_shown ? Frame::Part::program : Frame::Part::vm);
        if (innermost && runs_no_call(end)) any_anchor_ = true;
        else append_lua_calls(native_ == last_anchor);
        innermost = false;
      } else if (const std::size_t call = c_call_of(native); call < call_count()) {
        release(Within::c_function);
        if (!leave_out_not_running(call)) {
          while (next_call_ < call) append_call(MergedFrame::no_native);
        }
        if (options_.native_only) push_native(native_, Frame::Part::program);
        append_call(native_);
        if (native_ == last_anchor) append_rest();
        innermost = false;
      } else {
        if (native.sp >= segments_[segment_].boundary && native_ > last_anchor) break;
        hold(native_);
      }
    }
    // The callers of luaD_rawrunprotected in the core, up to the API function that the host called.
    std::size_t host = native_;
    for (std::size_t n = native_; n < std::min(end, native_ + most_entering); ++n) {
      if (functions_.carries(natives_[n])) host = n + 1;
    }
    for (; native_ < host; ++native_) hold(native_);
    release(Within::api);
    for (; native_ < end; ++native_) hold(native_);
  }

  // No native frame of this state was recognised. Frames further out than its outermost protected
  // call belong to the host.
  void run_unjoined(std::size_t end) {
    for (; native_ < end && natives_[native_].sp < segments_[segment_].boundary; ++native_) hold(native_);
    release(Within::api);
    if (call_count() != 0 && !goes_on_) {
      // A coroutine between lua_resume and luaV_execute (ldo.c, unroll, or while a call is being
      // set up), or after longjmp has ended it.
      if (native_ != 0 && (walk().has_owners || !executes_from(native_))) {
        merged_.joined = false;
        push_call(MergedFrame::Kind::not_joined, MergedFrame::no_native);
      }
      append_rest();
    }
    for (; native_ < end; ++native_) hold(native_);
  }

  // A C function's frame, whose call is `call`, has been reached, and no luaV_execute was inside of
  // it. So the Lua calls that it made are still being set up, or an error has ended them (ldo.c:
  // luaD_throw leaves luaV_execute, luaD_pcall then sets L->ci). This cannot be said if no
  // luaV_execute is known.
  bool leave_out_not_running(std::size_t call) {
    const bool has_lua = std::ranges::any_of(std::span(walk().calls).subspan(next_call_, call - next_call_),
                                             &LuaCall::is_lua);
    if (walk().has_owners || !has_lua || !executes_from(native_)) return false;
    merged_.not_running += static_cast<int>(call - next_call_);
    for (; next_call_ < call; ++next_call_) {
      const LuaCall& left_out = walk().calls[next_call_];
      merged_.fresh_calls -= left_out.is_lua() && left_out.fresh;
    }
    return true;
  }

  bool executes_from(std::size_t native) const {
    return std::any_of(natives_.begin() + static_cast<std::ptrdiff_t>(native), natives_.end(),
                       [&](const NativeFrame& frame) { return functions_.executes_lua(frame); });
  }

  // The innermost luaV_execute, at native_, may have no call: luaD_poscall (ldo.c) has set L->ci to the C
  // function that called, which luaV_execute is about to return to; or its call was still being set up,
  // and was dropped. Then that C function's own frame is further out. A C function that luaV_execute is
  // just calling has none, but an earlier call of the same function may have one.
  bool runs_no_call(std::size_t end) const {
    const auto calls = std::span(walk().calls).subspan(next_call_);
    if (walk().has_owners || goes_on_ || walk().left_out != 0 || calls.empty() || calls[0].is_lua()) return false;
    const auto outer = std::span(natives_).subspan(native_ + 1, end - native_ - 1);
    const auto count = [](const auto& all, auto is) { return std::ranges::count_if(all, is); };
    const auto frames = count(outer, [&](const NativeFrame& native) { return native.function == calls[0].entry; });
    if (frames == 0) return false;
    const auto same = count(calls, [&](const LuaCall& call) { return !call.is_lua() && call.entry == calls[0].entry; });
    const auto executes = 1 + count(outer, [&](const NativeFrame& native) { return functions_.executes_lua(native); });
    const auto fresh = count(calls, [](const LuaCall& call) { return call.is_lua() && call.fresh; });
    return frames >= same || executes > fresh;
  }

  // luaV_execute owns the Lua calls down to the first fresh one. C calls before them have no native
  // frame, because they are being entered or left. LuaJIT's calls record their owner. The outermost
  // anchor of a state owns the rest: calls that a resume has unrolled (ldo.c, unroll).
  void append_lua_calls(bool outermost) {
    if (walk().has_owners) {
      const NativeFrame& native = natives_[native_];
      merged_.execute_frames += std::ranges::any_of(
          walk().calls, [&](const LuaCall& call) { return call.owner >= native.sp && call.owner < native.cfa; });
      while (next_call_ < call_count() && walk().calls[next_call_].owner < native.cfa) append_call(native_);
    } else {
      ++merged_.execute_frames;
      while (next_call_ < call_count() && !walk().calls[next_call_].is_lua()) append_call(MergedFrame::no_native);
      while (next_call_ < call_count() && walk().calls[next_call_].is_lua()) {
        const bool fresh = walk().calls[next_call_].fresh;
        append_call(native_);
        if (fresh) break;
      }
    }
    if (outermost) append_rest();
  }

  void append_rest() {
    if (goes_on_) return;
    while (next_call_ < call_count()) append_call(MergedFrame::no_native);
  }

  void append_call(std::size_t native) {
    if (walk().left_out != 0 && next_call_ == walk().cut_at)
      push_call(MergedFrame::Kind::left_out, MergedFrame::no_native);
    if (!walk().calls[next_call_].is_lua() && native == MergedFrame::no_native) ++merged_.unpaired_c_calls;
    push_call(MergedFrame::Kind::call, native);
    ++next_call_;
    any_anchor_ = true;
  }

  void hold(std::size_t native) {
    if (held_begin_ == held_end_) held_begin_ = native;
    held_end_ = native + 1;
  }

  // Decides which native frames since the last anchor are the VM's. `within`: what they are inside
  // of. Inside the outermost protected call of a state, frames between two anchors and in Lua's code
  // only carry the call. Inside of the innermost anchor they do its work: what luaV_execute calls is
  // the VM's, except the allocator, which the host may have made; a C function may be the host's,
  // as may be what LuaJIT calls by its FFI, and both may call on the host. So these need to be known
  // as Lua's own code. Outside of the protected call, only frames known as carriers are the VM's.
  enum class Within { execute, luajit, c_function, api, host };
  void release(Within within) {
    for (; held_begin_ != held_end_; ++held_begin_) push_native(held_begin_, part_of(natives_[held_begin_], within));
  }
  Frame::Part part_of(const NativeFrame& native, Within within) const {
    if (segments_.empty() || options_.native_only) return Frame::Part::program;
    if (functions_.carries(native)) return Frame::Part::vm;
    const NativeFunctions::LuaCode code = within == Within::host ? NativeFunctions::LuaCode::no
                                                                 : functions_.lua_code(native);
    const bool only_carries = any_anchor_ || within == Within::execute;
    const bool is_vm = code == NativeFunctions::LuaCode::yes ||
                       (code == NativeFunctions::LuaCode::maybe && only_carries);
    return is_vm ? Frame::Part::vm : Frame::Part::program;
  }

  void push_native(std::size_t native, Frame::Part part) {
    merged_.frames.push_back({MergedFrame::Kind::native, segment_, 0, native, part});
  }
  void push_call(MergedFrame::Kind kind, std::size_t native) {
    if (!options_.native_only) merged_.frames.push_back({kind, segment_, next_call_, native});
  }

  const std::vector<NativeFrame>& natives_;
  const std::vector<Segment>& segments_;
  const NativeFunctions& functions_;
  MergeOptions options_;
  Merged merged_;
  std::size_t segment_ = 0, native_ = 0, next_call_ = 0;
  bool goes_on_ = false;  // a later segment has the same walk
  bool any_anchor_ = false;
  // The native frames since the last one that was pushed or paired.
  std::size_t held_begin_ = 0, held_end_ = 0;
};

}  // namespace

Merged merge(const std::vector<NativeFrame>& natives, const std::vector<Segment>& segments,
             const NativeFunctions& functions, const MergeOptions& options, Merged room) {
  return Merger(natives, segments, functions, options, std::move(room)).run();
}

}  // namespace luaspy
