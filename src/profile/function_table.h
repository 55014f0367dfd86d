#pragma once
// The functions of a profile, or their lines, and what each of them cost: what every text of
// `report`, and most formats, are made of.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "profile/profile.h"

namespace luaspy {

// Frames that describe() calls the same are one function, or with `lines` one line of a function.
struct FunctionTable {
  std::vector<Frame> functions;         // in the order in which they were seen first; line: 0 without `lines`
  std::vector<std::string> texts;       // as describe() has them
  std::vector<std::uint32_t> of_frame;  // by Profile::FrameId
};
FunctionTable functions_of(const Profile& profile, bool lines);

enum class By : std::uint8_t { samples, weight };
// What is counted unless something else is asked for. Samples of time all stand for about the same,
// so they are counted; those of bytes and objects do not, so what they weigh is.
constexpr By usual_by(Unit unit) { return unit == Unit::nanoseconds ? By::samples : By::weight; }

// Samples, or what they weigh in the profile's unit. `total` counts a sample once, however often
// the function is on its stack.
struct Cost {
  std::int64_t own = 0, total = 0;
};
// By function; of one thread (its index) or all.
std::vector<Cost> costs(const Profile& profile, const FunctionTable& functions, By by,
                        std::optional<std::uint32_t> thread = {});

std::int64_t cost(const Profile::Amount& amount, By by);
std::int64_t total_cost(const Profile& profile, By by);
double percent(std::int64_t part, std::int64_t of);

// Indexes of `costs`, the most expensive first: by what they cost themselves, then in all.
std::vector<std::uint32_t> most_expensive(const std::vector<Cost>& costs);

// Where in its file a frame is: the line being executed if that was recorded, else where the
// function is defined; 0 if neither is known.
int line_of(const Frame& frame);

}  // namespace luaspy
