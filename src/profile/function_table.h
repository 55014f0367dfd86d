#pragma once
// The functions of a profile, or their lines, and their costs: the basis of every text of `report`
// and of most formats.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/mode.h"
#include "profile/profile.h"

namespace luaspy {

// Frames with the same describe() text are one function, or with `lines` one line of a function.
struct FunctionTable {
  std::vector<Frame> functions;           // in the order in which they were first seen; line: 0 without `lines`
  std::vector<std::string> texts;         // from describe()
  ById<FrameId, std::uint32_t> of_frame;  // not_shown: it is left out
  static constexpr std::uint32_t not_shown = ~std::uint32_t{0};
  std::uint32_t nothing = not_shown;  // the function that stands for a stack of which nothing is shown
};
// `mode`: of a profile that has all frames, as it is made for a flame graph page, only what this mode
// shows.
FunctionTable functions_of(const Profile& profile, bool lines, Mode mode = Mode::all);

enum class By : std::uint8_t { samples, weight };
// What is counted by default. Samples of time all have about the same weight, so they are counted.
// Samples of bytes and objects do not, so their weights are added up.
constexpr By usual_by(Unit unit) {
  return unit == Unit::nanoseconds || unit == Unit::samples ? By::samples : By::weight;
}

// Samples, or their weight in the profile's unit. `total` counts a sample once, however often the
// function is on its stack.
struct Cost {
  std::int64_t own = 0, total = 0;
  double own_squares = 0, total_squares = 0;  // Profile::Amount::squares of the same samples
};
// By function; of one thread (its index) or all.
std::vector<Cost> costs(const Profile& profile, const FunctionTable& functions, By by,
                        std::optional<std::uint32_t> thread = {});

// The same of a part of its samples, by stack.
std::vector<Cost> costs(const Profile& profile, const FunctionTable& functions, By by,
                        const std::map<StackId, Profile::Amount>& stacks);

std::int64_t cost(const Profile::Amount& amount, By by);
std::int64_t total_cost(const Profile& profile, By by);
double percent(std::int64_t part, std::int64_t of);

// Native functions say little of a program while they do nothing themselves: an event loop, main(). Tables that are
// ordered by own cost list them last among the rows without any.
constexpr bool is_carrier(const Frame& frame, bool has_own_cost) {
  return !has_own_cost && (frame.kind == Frame::Kind::native || frame.kind == Frame::Kind::kernel);
}

// Indexes of `costs`, most expensive first: by their own cost, then carriers last, then by their total cost.
std::vector<std::uint32_t> most_expensive(const std::vector<Cost>& costs, const FunctionTable& functions);

// The line of a frame in its file: the line being executed if that was recorded, else the line
// where the function is defined; 0 if neither is known.
int line_of(const Frame& frame);

}  // namespace luaspy
