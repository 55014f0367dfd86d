#include "stack/tarantool_fiber.h"

#include <algorithm>
#include <cctype>
#include <set>
#include <utility>

#include "base/text.h"
#include "events/label_table.h"
#include "stack/host_request.h"

namespace luaspy {
namespace {

constexpr std::size_t fiber_size = 1024;                               // bytes that are searched
constexpr Address smallest_stack = 8 << 10, largest_stack = 64 << 20;  // bytes
constexpr const char* exported = "fiber_set_name";

bool has_stack(Address begin, std::uint64_t size, Address sp) {
  return size >= smallest_stack && size <= largest_stack && plausible_pointer(begin) && sp >= begin &&
         sp - begin < size;
}

bool is_name(std::string_view text) {
  return !text.empty() &&
         std::ranges::all_of(text, [](char c) { return std::isprint(static_cast<unsigned char>(c)) != 0; });
}

}  // namespace

const TarantoolFibers::Fiber* TarantoolFibers::running(const Fibers& fibers, Address sp) {
  const auto found = fibers.upper_bound(sp);
  return found != fibers.end() && sp >= found->second.stack ? &found->second : nullptr;
}

// A fiber keeps its stack as long as it exists; another one may use the same later.
std::string_view TarantoolFibers::name_of(const Memory& memory, const Fiber& fiber, Address sp, Room& room) const {
  const auto stack = memory.get<std::array<Address, 2>>(fiber.at + places_->stack);
  const Address name = memory.get<Address>(fiber.at + places_->name).value_or(0);
  if (!stack || !has_stack((*stack)[0], (*stack)[1], sp) || !plausible_pointer(name, 1)) return {};
  const std::string_view text = read_text(memory, name, room);
  return is_name(text) ? text : std::string_view();
}

void TarantoolFibers::touch(const Memory& memory, Address sp) const {
  Room room;
  if (const Fiber* const fiber = running(fibers_, sp)) (void)name_of(memory, *fiber, sp, room);
}

std::string TarantoolFibers::value(const Stop& stop, const Memory& live) {
  constexpr int most_failures = 1000;
  if (!is_tarantool_) is_tarantool_ = exports_(exported);
  if (!*is_tarantool_) return {};
  Room room;
  if (const Fiber* const fiber = running(fibers_, stop.sp)) {
    const std::string_view name = name_of(stop.memory, *fiber, stop.sp, room);
    if (!name.empty()) return std::string(name);
  }
  if (!stop.has_lua) return {};
  if (failures_ < most_failures && !find(stop, live)) ++failures_;
  return std::string(unknown_value);
}

// One with a short name tells where names are.
std::optional<TarantoolFibers::Guess> TarantoolFibers::guess(const Memory& live, Address fiber, Address sp) {
  std::array<Address, fiber_size / sizeof(Address)> words{};
  if (!live.read(fiber, std::as_writable_bytes(std::span(words)))) return std::nullopt;
  const auto address_of = [&](std::size_t i) { return fiber + i * sizeof(Address); };
  std::optional<std::size_t> stack;
  for (std::size_t i = 0; i + 1 < words.size(); ++i) {
    if (has_stack(words[i], words[i + 1], sp) && (!stack || words[i + 1] < words[*stack + 1])) stack = i;
    if (!stack || i < *stack + 2 || words[i] != address_of(i + 1)) continue;
    const auto* const name = reinterpret_cast<const char*>(&words[i + 1]);
    const std::string_view all(name, (words.size() - i - 1) * sizeof(Address));
    if (!is_name(all.substr(0, all.find('\0')))) continue;
    const Address begin = words[*stack];
    return Guess{{*stack * sizeof(Address), i * sizeof(Address)}, {fiber, begin}, begin + words[*stack + 1]};
  }
  return std::nullopt;
}

// Two fibers with two stacks have them at the same places.
void TarantoolFibers::learn_places(const Guess& found) {
  constexpr std::size_t most = 16;
  const auto confirms = [&](const Guess& other) {
    const bool overlaps = found.fiber.stack < other.stack_end && other.fiber.stack < found.stack_end;
    return other.places == found.places && other.fiber.at != found.fiber.at && !overlaps;
  };
  if (std::ranges::any_of(guesses_, confirms)) places_ = found.places;
  const auto is_same = [&](const Guess& other) {
    return other.places == found.places && other.fiber.at == found.fiber.at;
  };
  if (guesses_.size() < most && std::ranges::none_of(guesses_, is_same)) guesses_.push_back(found);
}

// The frames with which a fiber begins have the pointer; other fibers' may be there, too. Whatever else says that it
// has memory with this stack, such as the allocator that it is from, has more of it.
std::optional<TarantoolFibers::Fiber> TarantoolFibers::find(const Stop& stop, const Memory& live) {
  constexpr std::size_t most_candidates = 256;
  const auto& [sp, stack, memory, has_lua] = stop;
  std::set<Address> seen;
  std::optional<Guess> best;
  for (std::size_t at = stack.size() / sizeof(Address); at-- > 0 && seen.size() < most_candidates;) {
    const auto word = load<Address>(stack, at * sizeof(Address));
    // What was read may go on behind the stack's end, and have the fiber itself.
    const bool is_inside = word >= sp && word - sp < stack.size();
    if (!plausible_pointer(word) || (is_inside && !places_) || !seen.insert(word).second) continue;
    std::optional<Guess> found;
    if (!places_) {
      found = guess(live, word, sp);
    } else if (const auto its = live.get<std::array<Address, 2>>(word + places_->stack);
               its && has_stack((*its)[0], (*its)[1], sp)) {
      const Fiber fiber{word, (*its)[0]};
      Room room;
      if (!name_of(live, fiber, sp, room).empty()) found = Guess{*places_, fiber, (*its)[0] + (*its)[1]};
    }
    if (found && (!best || found->stack_end - found->fiber.stack < best->stack_end - best->fiber.stack)) best = found;
  }
  if (!best) return std::nullopt;
  if (!places_) learn_places(*best);
  if (!places_) return std::nullopt;
  new_fibers_[best->stack_end] = best->fiber;
  return best->fiber;
}

void TarantoolFibers::learn() {
  constexpr std::size_t most_fibers = 1 << 14;
  if (fibers_.size() + new_fibers_.size() > most_fibers) fibers_.clear();
  for (const auto& [end, fiber] : new_fibers_) fibers_[end] = fiber;
  new_fibers_.clear();
}

}  // namespace luaspy
