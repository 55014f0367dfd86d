// Which native frames belong to which of the states that run on a thread. A state that was called by a protected call has an anchor on the stack
// (luastate/locate.h): the frames up to it are its own, as long as all others are protected, too. One that a host has called by lua_call alone has none;
// its frames of luaV_execute are asked whose they are, and C functions that only it has called are its own.
//
//      sp ▼ lower addresses                                                 higher ▲
//        luaV_execute(B)  lua_call  C function of A  luaV_execute(A)  [lj of A]  lua_pcall  main
//        └── no anchor ─┘           └── frames of A ───────────────┘

#include <algorithm>

#include "luastate/lua_reader.h"

namespace luaspy {
namespace {

constexpr std::size_t most_entering = 3;   // native frames between luaV_execute and the API function that the host called (ldo.c, lapi.c)

}  // namespace

void LuaReader::settle_parts(const std::vector<NativeFrame>& natives, const Core& core, const Memory& stack) {
  unclaimed_ = false;
  if (natives.empty() || parts_are_settled(natives, core)) return;
  std::vector<Claim> all = claims(natives, core, stack);
  if (all.empty()) {
    // Nothing tells whose the frames are. A state that is only guessed has frames of the core at least.
    const bool none = state_count_ != 0 && !states_[0].anchored && std::ranges::none_of(natives, [&](const NativeFrame& frame) { return core.in_core_module(frame); });
    if (none) parts_.clear(), active_.clear(), state_count_ = 0;
    else if (state_count_ != 0) unclaimed_ = false;
    return;
  }
  make_parts(all, natives, core);
  put_in_order();
}

// Are all states anchored, and all frames within what their anchors bound?
bool LuaReader::parts_are_settled(const std::vector<NativeFrame>& natives, const Core& core) {
  Address end = 0;
  std::size_t anchored = 0, puc = 0;
  for (std::size_t i = 0; i < walked_count_; ++i) {
    if (states_[i].anchored) ++anchored, end = std::max(end, states_[i].activation.boundary);
    puc += states_[i].activation.lua.puc != nullptr;
  }
  const bool outside = std::ranges::any_of(natives, [&](const NativeFrame& frame) { return frame.sp >= end && core.executes_lua(frame); });
  if (puc == 0) unclaimed_ = outside;
  return puc == 0 || (anchored == walked_count_ && anchored < 2 && !outside);
}

// The innermost anchored state whose anchor is further out than the frame; no_frame if there is none.
std::size_t LuaReader::region_of(const NativeFrame& native) const {
  std::size_t nearest = no_frame;
  for (std::size_t i = 0; i < walked_count_; ++i) {
    const bool holds = states_[i].anchored && native.sp < states_[i].activation.boundary;
    if (holds && (nearest == no_frame || states_[i].activation.boundary < states_[nearest].activation.boundary)) nearest = i;
  }
  return nearest;
}

// The state that has called this C function, if no other one has and no anchor tells.
std::size_t LuaReader::owner_by_entry(const NativeFrame& native) const {
  std::size_t owner = no_frame;
  const std::size_t region = region_of(native);
  if (native.function == 0 || (region != no_frame && states_[region].walk.left_out != 0)) return owner;
  for (std::size_t i = 0; i < walked_count_; ++i) {
    const auto is_this = [&](const LuaCall& call) { return !call.is_lua && call.entry == native.function; };
    if (states_[i].activation.lua.puc == nullptr || std::ranges::none_of(states_[i].walk.calls, is_this)) continue;
    if (owner != no_frame) return no_frame;
    owner = i;
  }
  const bool tells = owner != no_frame && (!states_[owner].anchored || native.sp >= states_[owner].activation.boundary);
  return tells ? owner : no_frame;
}

std::vector<LuaReader::Claim> LuaReader::claims(const std::vector<NativeFrame>& natives, const Core& core, const Memory& stack) {
  std::vector<Claim> claims;
  std::vector<Address> states;
  for (std::size_t i = 0; i < walked_count_; ++i) states.push_back(states_[i].activation.lua.puc != nullptr ? states_[i].activation.L : 0);
  for (std::size_t n = 0; n < natives.size(); ++n) {
    const NativeFrame& native = natives[n];
    if (!core.executes_lua(native)) {
      const std::size_t owner = owner_by_entry(native);
      if (owner != no_frame) claims.push_back({native.sp, owner, n});
      continue;
    }
    const std::size_t region = region_of(native);
    if (region != no_frame && states_[region].activation.lua.luajit != nullptr) {
      claims.push_back({native.sp, region, n});
      continue;
    }
    const StatePlaces::Owner owner = state_places_.owner(native, states, region, stack);
    // An anchored state has frames elsewhere than below its anchor only if it is called again, by another one.
    const bool believed = owner.state != StatePlaces::none && (owner.certain || owner.state == region || !states_[owner.state].anchored);
    if (believed) claims.push_back({native.sp, owner.state, n});
    else if (region != no_frame) claims.push_back({native.sp, region, n});
    else unclaimed_ = true;
  }
  for (std::size_t i = 0; i < walked_count_; ++i) {
    const Address boundary = states_[i].activation.boundary;
    const auto is_own = [&](const Claim& claim) { return claim.state == i && claim.sp < boundary; };
    if (states_[i].anchored && std::ranges::none_of(claims, is_own)) claims.push_back({boundary - 1, i, no_frame});
  }
  std::ranges::stable_sort(claims, {}, &Claim::sp);
  return claims;
}

// Neighbouring frames of one state are one part. It reaches to the state's anchor, or to what has called it.
void LuaReader::make_parts(std::vector<Claim>& claims, const std::vector<NativeFrame>& natives, const Core& core) {
  parts_.clear();
  for (std::size_t i = 0; i < claims.size(); ++i) {
    const Claim& claim = claims[i];
    const Address next = i + 1 < claims.size() ? claims[i + 1].sp : ~Address{0};
    if (i + 1 < claims.size() && claims[i + 1].state == claim.state) continue;
    const Address anchor = states_[claim.state].anchored ? states_[claim.state].activation.boundary : 0;
    Address boundary = anchor;
    if (claim.native != no_frame && (anchor <= claim.sp || anchor > next)) {
      std::size_t n = claim.native + 1;
      const std::size_t last = std::min(n + most_entering, natives.size());
      while (n < last && natives[n].sp < next && core.carries(natives[n])) ++n;
      boundary = n < natives.size() ? std::min(natives[n].sp, next) : next;
    }
    parts_.push_back({claim.state, boundary});
  }
}

// The states that have parts come first, innermost first.
void LuaReader::put_in_order() {
  std::vector<std::size_t> order;
  for (const Part& part : parts_) {
    if (std::ranges::find(order, part.state) == order.end()) order.push_back(part.state);
  }
  state_count_ = order.size();
  for (std::size_t i = 0; i < walked_count_; ++i) {
    if (std::ranges::find(order, i) == order.end()) order.push_back(i);
  }
  std::vector<State> sorted;
  sorted.reserve(states_.size());
  for (const std::size_t i : order) sorted.push_back(std::move(states_[i]));
  for (std::size_t i = walked_count_; i < states_.size(); ++i) sorted.push_back(std::move(states_[i]));
  states_.swap(sorted);
  for (Part& part : parts_) part.state = static_cast<std::size_t>(std::ranges::find(order, part.state) - order.begin());
  active_.clear();
  for (std::size_t i = 0; i < state_count_; ++i) active_.push_back(states_[i].activation);
}

}  // namespace luaspy
