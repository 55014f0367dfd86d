#include "luastate/luajit/walk_luajit.h"

namespace luaspy {

bool WithMovedStack::read(Address address, std::span<std::byte> into) const {
  if (!memory_.read(address, into)) return false;
  if (moved_.stack == 0) return true;
  const auto put = [&](Address at, std::size_t size, Address value) {
    for (std::size_t i = 0; i < size; ++i) {
      if (at + i >= address && at + i - address < into.size())
        into[at + i - address] = static_cast<std::byte>(value >> 8 * i);
    }
  };
  put(L_ + layout_.L_stack, layout_.ref_size, moved_.stack);
  put(L_ + layout_.L_base, 8, moved_.base);
  return true;
}

// lj_state.c, stack_init: the lowest slot refers to the thread itself.
bool stack_stands(const Memory& memory, const LuajitLayout& layout, Address L) {
  const Address base = memory.get<Address>(L + layout.L_base).value_or(0),
                stack = read_ref(memory, layout, L + layout.L_stack).value_or(0);
  if (object_of(layout, memory.get<std::uint64_t>(stack).value_or(0), luajit::gct_thread) != L) return false;
  const Address limit = stack + 8 * Address{memory.get<std::uint32_t>(L + layout.L_stacksize).value_or(0)};
  return plausible_pointer(stack) && base % 8 == 0 && base >= stack + (layout.gc64 ? 16 : 8) && base - 8 < limit;
}

MovedStack find_moved_stack(const Memory& memory, const LuajitLayout& layout, Address L,
                            std::span<const Address> words) {
  const Address base = memory.get<Address>(L + layout.L_base).value_or(0),
                stack = read_ref(memory, layout, L + layout.L_stack).value_or(0);
  // lj_state.c, stack_init: the lowest slot refers to the thread itself.
  const auto is_thread = [&](std::uint64_t slot) { return object_of(layout, slot, luajit::gct_thread) == L; };
  const auto fits = [&](const MovedStack& moved) {
    const WithMovedStack as_moved(memory, layout, L, moved);
    if (!is_base(as_moved, layout, L, moved.base, 0)) return false;
    LuaWalk walk;
    walk_luajit({as_moved, layout, L}, {}, {moved.base, 0, {}}, {}, walk);
    return walk.end == LuaWalk::End::complete && walk.dropped == 0 && walk.innermost_dropped == 0;
  };
  if (is_thread(memory.get<std::uint64_t>(stack).value_or(0))) {
    if (stack_stands(memory, layout, L)) return {};
    // L->stack is already set: the compiler keeps the distance of the move, or the old place.
    for (const Address word : words) {
      for (const MovedStack& moved : {MovedStack{stack, base + word}, MovedStack{stack, base - word + stack}}) {
        if (fits(moved)) return moved;
      }
    }
    return {};
  }
  // The old block is copied and freed, and the allocator writes into it.
  std::vector<std::uint64_t> slots(words.size());
  std::vector<Memory::Request> requests;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (plausible_pointer(words[i]) && words[i] != stack)
      requests.push_back({words[i], std::as_writable_bytes(std::span(slots).subspan(i, 1)), false});
  }
  memory.read_batch(requests);
  for (const Memory::Request& request : requests) {
    const MovedStack moved{request.address, base - stack + request.address};
    if (request.done && is_thread(load<std::uint64_t>(request.into, 0)) && fits(moved)) return moved;
  }
  return {};
}

}  // namespace luaspy
