#pragma once
// Two profiles of the same unit, compared: what formats need to know to show a difference.

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "profile/profile.h"

namespace luaspy {

enum class Compared : std::uint8_t {
  shares,  // `before` is scaled, so that both profiles have equally many samples, bytes or objects
  rates,   // for each second: `before` is scaled to the duration of `after`
  weights  // as they were measured
};
struct Comparison {
  Compared by = Compared::shares;
  // What is shown as a change: it exceeds so many standard deviations of independent samples, and is at least so much
  // of the whole and of the function or box.
  double noise = 0, least_difference = 0, least_ratio = 0;
  std::map<std::string, std::string> moved{};  // by a function's text: the one it had before, if that was another
  std::vector<std::string> doubts{};           // sentences about functions that may be matched wrongly
};

// What amounts of `before` are multiplied by.
double scale_of(Compared by, const Profile& before, const Profile& after);
// What is compared of a number of samples: their number, or their weight. By shares, samples of time are counted, as
// usual_by() says.
std::int64_t compared_amount(const Profile::Amount& amount, Compared by, Unit unit);

// Both sides of a function or box; `before` is scaled.
struct BothAmounts {
  double before = 0, after = 0;
  std::int64_t samples_before = 0, samples_after = 0;
};
// -3 to 3: less by half or more, by a tenth or more, less; no change; more, and so on. `whole`: the larger one of both.
int change_of(const BothAmounts& amounts, const Comparison& comparison, double whole);

}  // namespace luaspy
