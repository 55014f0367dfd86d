#include "luastate/frame_owners.h"

#include <algorithm>
#include <array>

namespace luaspy {
namespace {

// Native frames between luaV_execute and the API function that the host called (ldo.c, lapi.c).
constexpr std::size_t most_entering = 3;

class FrameOwners {
 public:
  FrameOwners(Walked& walked, StatePlaces& places, const std::vector<NativeFrame>& natives,
              const NativeFunctions& functions)
      : walked_(walked), places_(places), natives_(natives), functions_(functions) {}

  void assign(const Memory& stack);

 private:
  // A native frame or an anchor that shows to which state the frames there belong.
  struct Claim {
    Address sp;
    // native: index of the frame; `no_frame` for a state that is anchored there and has no frame.
    std::size_t state, native;
  };
  static constexpr std::size_t no_frame = ~std::size_t{0};

  bool parts_are_assigned();
  std::vector<Claim> claims(const Memory& stack);
  bool is_state(Address address, const Memory& memory) const;
  std::size_t region_of(const NativeFrame& native) const;
  std::size_t owner_by_entry(const NativeFrame& native) const;
  void make_parts(const std::vector<Claim>& claims);
  void put_in_order();

  Walked& walked_;
  StatePlaces& places_;
  const std::vector<NativeFrame>& natives_;
  const NativeFunctions& functions_;
  bool has_another_ = false;  // a frame belongs to a state that was not found
};

void FrameOwners::assign(const Memory& stack) {
  walked_.unclaimed = false;
  if (natives_.empty() || parts_are_assigned()) return;
  std::vector<Claim> all = claims(stack);
  if (all.empty()) {
    // No frame shows a state. A state that is only guessed needs at least frames of the core, and no
    // frame of another state: one that returns from its last call no longer looks as if it ran.
    const bool none = walked_.running != 0 && !walked_.states[0].anchored &&
                      (has_another_ || std::ranges::none_of(natives_, [&](const NativeFrame& frame) {
                         return functions_.in_core_module(frame);
                       }));
    if (none) walked_.parts.clear(), walked_.running = 0;
    else if (walked_.running != 0) walked_.unclaimed = false;
    return;
  }
  make_parts(all);
  put_in_order();
}

// Are all states anchored, and all frames within what their anchors bound?
bool FrameOwners::parts_are_assigned() {
  Address end = 0;
  std::size_t anchored = 0, unclear = 0;
  for (std::size_t i = 0; i < walked_.walked; ++i) {
    if (walked_.states[i].anchored) ++anchored, end = std::max(end, walked_.states[i].activation.boundary);
    unclear += !walked_.states[i].activation.lua->state().always_anchored;
  }
  const bool outside = std::ranges::any_of(
      natives_, [&](const NativeFrame& frame) { return frame.sp >= end && functions_.executes_lua(frame); });
  if (unclear == 0) walked_.unclaimed = outside;
  return unclear == 0 || (anchored == walked_.walked && anchored < 2 && !outside);
}

// The innermost anchored state whose anchor is further out than the frame; no_frame if there is
// none.
std::size_t FrameOwners::region_of(const NativeFrame& native) const {
  std::size_t nearest = no_frame;
  for (std::size_t i = 0; i < walked_.walked; ++i) {
    const bool holds = walked_.states[i].anchored && native.sp < walked_.states[i].activation.boundary;
    if (holds &&
        (nearest == no_frame || walked_.states[i].activation.boundary < walked_.states[nearest].activation.boundary))
      nearest = i;
  }
  return nearest;
}

// The state that has called this C function, if no other state has and no anchor shows the owner.
std::size_t FrameOwners::owner_by_entry(const NativeFrame& native) const {
  std::size_t owner = no_frame;
  const std::size_t region = region_of(native);
  if (native.function == 0 || (region != no_frame && walked_.states[region].walk.left_out != 0)) return owner;
  for (std::size_t i = 0; i < walked_.walked; ++i) {
    const auto is_this = [&](const LuaCall& call) { return !call.is_lua() && call.entry == native.function; };
    if (walked_.states[i].activation.lua->state().always_anchored ||
        std::ranges::none_of(walked_.states[i].walk.calls, is_this))
      continue;
    if (owner != no_frame) return no_frame;
    owner = i;
  }
  const bool tells = owner != no_frame &&
                     (!walked_.states[owner].anchored || native.sp >= walked_.states[owner].activation.boundary);
  return tells ? owner : no_frame;
}

// Whether there is a lua_State of the kind of those that were walked.
bool FrameOwners::is_state(Address address, const Memory& memory) const {
  std::array<std::byte, state_head_size> head;
  if (!plausible_pointer(address) || walked_.walked == 0 || !memory.read(address, head)) return false;
  const Lua& lua = *walked_.states[0].activation.lua;
  const Address G = lua.state().global_of(head);
  if (load<std::uint8_t>(head, lua.state().tt) != lua.state().tag || !plausible_pointer(G)) return false;
  const Address main = lua.main_thread(memory, G);
  return main != 0 && Locator::is_state(memory, {main, G, &lua, 0});
}

std::vector<FrameOwners::Claim> FrameOwners::claims(const Memory& stack) {
  std::vector<Claim> claims;
  std::vector<Address> states;
  for (std::size_t i = 0; i < walked_.walked; ++i)
    states.push_back(walked_.states[i].activation.lua->state().always_anchored ? 0 : walked_.states[i].activation.L);
  for (std::size_t n = 0; n < natives_.size(); ++n) {
    const NativeFrame& native = natives_[n];
    if (!functions_.executes_lua(native)) {
      const std::size_t owner = owner_by_entry(native);
      if (owner != no_frame) claims.push_back({native.sp, owner, n});
      continue;
    }
    const std::size_t region = region_of(native);
    if (region != no_frame && walked_.states[region].activation.lua->state().always_anchored) {
      claims.push_back({native.sp, region, n});
      continue;
    }
    const StatePlaces::Owner owner = places_.owner(native, states, region, stack);
    // An anchored state has frames that are not below its anchor only if another state calls it
    // again.
    const bool believed = owner.state != StatePlaces::none &&
                          (owner.certain || owner.state == region || !walked_.states[owner.state].anchored);
    if (believed) claims.push_back({native.sp, owner.state, n});
    else if (region != no_frame) claims.push_back({native.sp, region, n});
    else walked_.unclaimed = true, has_another_ |= is_state(owner.another, stack);
  }
  for (std::size_t i = 0; i < walked_.walked; ++i) {
    const Address boundary = walked_.states[i].activation.boundary;
    const auto is_own = [&](const Claim& claim) { return claim.state == i && claim.sp < boundary; };
    if (walked_.states[i].anchored && std::ranges::none_of(claims, is_own))
      claims.push_back({boundary - 1, i, no_frame});
  }
  std::ranges::stable_sort(claims, {}, &Claim::sp);
  return claims;
}

// Neighbouring frames of one state become one part. It reaches to the state's anchor, or to its
// caller.
void FrameOwners::make_parts(const std::vector<Claim>& claims) {
  walked_.parts.clear();
  for (std::size_t i = 0; i < claims.size(); ++i) {
    const Claim& claim = claims[i];
    const Address next = i + 1 < claims.size() ? claims[i + 1].sp : ~Address{0};
    if (i + 1 < claims.size() && claims[i + 1].state == claim.state) continue;
    const Address anchor = walked_.states[claim.state].anchored ? walked_.states[claim.state].activation.boundary : 0;
    Address boundary = anchor;
    if (claim.native != no_frame && (anchor <= claim.sp || anchor > next)) {
      std::size_t n = claim.native + 1;
      const std::size_t last = std::min(n + most_entering, natives_.size());
      while (n < last && natives_[n].sp < next && functions_.carries(natives_[n])) ++n;
      boundary = n < natives_.size() ? std::min(natives_[n].sp, next) : next;
    }
    walked_.parts.push_back({claim.state, boundary});
  }
}

// The states that have parts come first, innermost first.
void FrameOwners::put_in_order() {
  std::vector<std::size_t> order;
  for (const Walked::Part& part : walked_.parts) {
    if (std::ranges::find(order, part.state) == order.end()) order.push_back(part.state);
  }
  walked_.running = order.size();
  for (std::size_t i = 0; i < walked_.walked; ++i) {
    if (std::ranges::find(order, i) == order.end()) order.push_back(i);
  }
  std::vector<RunningState> sorted;
  sorted.reserve(walked_.states.size());
  for (const std::size_t i : order) sorted.push_back(std::move(walked_.states[i]));
  for (std::size_t i = walked_.walked; i < walked_.states.size(); ++i) sorted.push_back(std::move(walked_.states[i]));
  walked_.states.swap(sorted);
  for (Walked::Part& part : walked_.parts)
    part.state = static_cast<std::size_t>(std::ranges::find(order, part.state) - order.begin());
}

}  // namespace

void assign_owners(Walked& walked, StatePlaces& places, const std::vector<NativeFrame>& natives,
                   const NativeFunctions& functions, const Memory& stack) {
  FrameOwners(walked, places, natives, functions).assign(stack);
}

}  // namespace luaspy
