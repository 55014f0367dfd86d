#pragma once
// What the trapped calls tell of those that are no samples. Of a burst, only the last call has a stack,
// but all have sizes, and from 5.2 on types. So a sample stands for the calls of its kind in all bursts,
// not for whatever else its own burst happened to have: how much of each kind there is, a hundred
// times as many calls tell (post-stratification; W. G. Cochran, Sampling Techniques, 5A.9). Kinds that are too rare
// to have some samples each are one together: otherwise most of them would have none, and be missing.

#include <cstdint>
#include <map>
#include <span>

#include "allocations/burst.h"

namespace luaspy {

class CallKinds {
 public:
  // A burst's calls; those that make the heap larger stand together for so many of the program.
  void add(std::span<const CallTrap::Call> calls, double stand_for);
  // One of these calls is a sample: for how many calls of the program it stands. All samples of a kind stand for about
  // the same, and together for all that add() will have counted when the next one comes.
  double sample(const AllocationCall& call);

  // What no sample stands for: kinds that are rare.
  struct Unsampled {
    double percent_of_bytes = 0;
    std::uint64_t largest = 0;  // bytes that a call adds; 0: there are none
  };
  Unsampled unsampled() const;
  // How many calls of a loop lie between two pauses of the program, on average; 0: nothing shows that there are any. A
  // burst begins at any time, and so most often with the first call after a pause. Bursts that are shorter than that
  // loop hardly ever come to its end.
  double calls_between_pauses() const;

 private:
  struct Kind {
    bool is_new = false;
    std::uint64_t type = 0;  // of a new object, as Lua numbers them; 0: not told, or not new
    int size = 0;            // size_class() of what it adds
    auto operator<=>(const Kind&) const = default;
  };
  struct Amounts {
    double calls = 0, bytes = 0;  // of the program
    double given = 0;             // calls that samples stand for
    std::int64_t samples = 0;
    std::int64_t trapped = 0, first = 0;  // calls; of them, those with which a burst began
    std::uint64_t largest = 0;
  };
  static Kind kind_of(const AllocationCall& call);
  static int size_class(std::uint64_t bytes);
  // Not enough samples can be expected of it.
  bool is_rare(const Amounts& amounts) const;
  Amounts all_rare() const;

  std::map<Kind, Amounts> kinds_;
  Amounts all_;  // of all kinds
};

}  // namespace luaspy
