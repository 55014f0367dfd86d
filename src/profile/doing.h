#pragma once
// What samples found threads doing, in the words of every text about it: what Lua was doing, or that the
// thread did not run.

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "profile/function_table.h"
#include "profile/profile.h"

namespace luaspy {

// Equal shares are listed in this order.
enum class Doing : std::uint8_t {
  interpreting,
  machine_code,
  c,
  collecting,
  compiling,
  no_lua,
  asleep,
  without_cpu,
};
inline constexpr std::size_t doing_count = 8;

// heading: for the head of a narrow column.
struct DoingNames {
  std::string_view name, heading;
};
constexpr DoingNames names(Doing doing) {
  constexpr std::array<DoingNames, doing_count> all = {{{"interpreter", "Interp"},
                                                        {"machine code", "Machine"},
                                                        {"C function", "C"},
                                                        {"garbage collector", "GC"},
                                                        {"JIT compiler", "JIT"},
                                                        {"no Lua", "NoLua"},
                                                        {"asleep", "Asleep"},
                                                        {"waiting for a CPU", "NoCPU"}}};
  return all[static_cast<std::size_t>(doing)];
}

Doing doing_of(const Profile::Situation& situation);

// What samples cost by what they found; of no unit but that of the profile.
class Doings {
 public:
  std::int64_t& operator[](Doing doing) { return costs_[static_cast<std::size_t>(doing)]; }
  std::int64_t operator[](Doing doing) const { return costs_[static_cast<std::size_t>(doing)]; }
  std::int64_t sum() const;
  // Those that there are, the most expensive first.
  std::vector<Doing> order() const;

 private:
  std::array<std::int64_t, doing_count> costs_{};
};
Doings doings_of(const Profile& profile, By by);
// By thread: indexes into Profile::threads().
std::vector<Doings> doings_by_thread(const Profile& profile, By by);
// "ran 65.1 %, slept 30.0 %, waited for a CPU 4.9 %"; "" if it ran whenever it was looked at.
std::string running_text(const Doings& doings);

}  // namespace luaspy
