#include "campaign.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace luaspy::faults {

void Campaign::begin(const std::string& fault, double share) {
  std::uint64_t mixed = options_.seed;
  for (const char c : fault) mixed = mixed * 1099511628211u + static_cast<unsigned char>(c);
  random_.seed(mixed);
  fault_ = fault;
  remarks_.clear();
  count_ = {};
  end_s_ = now_s() + options_.seconds * share;
  rounds_ = std::max(1, static_cast<int>(std::lround(options_.rounds * share)));
}

bool Campaign::next() {
  const bool more = count_.rounds == 0 || (options_.seconds > 0 ? now_s() < end_s_ : count_.rounds < rounds_);
  count_.rounds += more;
  return more;
}

void Campaign::report(const char* what, const std::string& why) const {
  fmt::print(stderr, "{} in round {} of \"{}\", seed {}: {}\n", what, count_.rounds, fault_, options_.seed, why);
}

void Campaign::harmed(const std::string& why) {
  ++count_.harmed;
  report("HARMED", why);
}

void Campaign::lost(const std::string& why) {
  ++count_.lost;
  report("LOST", why);
}

}  // namespace luaspy::faults
