#pragma once
// A campaign: rounds of one fault after the other, each at a random instant. Counts what was harmed
// or lost.

#include <cstdint>
#include <map>
#include <optional>
#include <random>
#include <string>

#include "support/child.h"

namespace luaspy::faults {

using namespace tests;

struct Count {
  int rounds = 0, harmed = 0, lost = 0;
};

class Campaign {
 public:
  struct Options {
    double seconds = 0;  // per fault; 0: `rounds` of each
    int rounds = 0;
    std::uint64_t seed = 0;
  };
  explicit Campaign(const Options& options) : options_(options) {}

  // Starts a fault: its random numbers depend only on the seed and on its name. `share`: of the
  // usual seconds or rounds.
  void begin(const std::string& fault, double share);
  // Whether there is another round. Call it before each round.
  bool next();
  const Count& count() const { return count_; }
  const std::string& remarks() const { return remarks_; }

  // Reports what a round found. It is printed at once, with the arguments that repeat it.
  void harmed(const std::string& why);
  void lost(const std::string& why);
  // Adds a figure to the end of the fault's line.
  void remark(const std::string& text) { remarks_ += (remarks_.empty() ? "" : ", ") + text; }

  int round() const { return count_.rounds; }
  double random(double least, double most) { return std::uniform_real_distribution(least, most)(random_); }
  bool chance(double probability) { return random(0, 1) < probability; }

 private:
  void report(const char* what, const std::string& why) const;

  Options options_;
  std::mt19937_64 random_;
  Count count_;
  std::string fault_, remarks_;
  double end_s_ = 0;
  int rounds_ = 0;
};

// A line of the table in faults.cpp.
struct Fault {
  const char* name;
  void (*run)(Campaign&);
  double share = 1;         // of the time or the rounds
  bool needs_root = false;  // without root, the fault cannot occur
};

}  // namespace luaspy::faults
