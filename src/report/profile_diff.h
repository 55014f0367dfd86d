#pragma once
// What became slower or faster from one recording to another, beyond chance.
//
// Successive samples are correlated, so treating them as independent would find differences
// everywhere. Instead each recording is cut into slices of time, and the variance among slices
// shows how far its sums can be trusted (batch means). Correlation between neighbouring slices
// increases that variance, and it is never taken to be less than that of independent samples. A
// difference is reported only if chance would produce one, in any function, less than once in 1,000
// comparisons, and if it is large enough to matter.

#include <cstdint>
#include <string>
#include <vector>

#include "report/function_matching.h"
#include "report/text_style.h"

namespace luaspy {

// Samples of another unit than time count by what they weigh everywhere; what takes seconds here
// takes bytes or objects then.
enum class DiffBy : std::uint8_t {
  shares,  // of all samples: if one function gets slower, all others' shares shrink
  weight,  // seconds per second of the recording: for equal loads
  run,     // total seconds: for runs of the same work from start to end
};

// How large a difference has to be to count.
inline constexpr double least_difference = 0.003;  // of the total; smaller ones do not matter
inline constexpr double least_ratio = 0.03;        // of the function; smaller ones come from where memory happens to be

struct DiffOptions {
  DiffBy by = DiffBy::shares;
  bool total = false;  // functions including all that they call
};

struct ProfileDiff {
  enum class Verdict : std::uint8_t {
    none,         // no significant difference
    perhaps,      // chance makes one as large in any function in up to 5 of 100 comparisons: more samples would tell
    slower,       // costs more: by shares only in proportion to others
    faster,       // costs less: the same
    like_others,  // shares: changed like most others, because the total changed
    appeared,     // costs something after, was not seen before
    vanished,
  };
  struct Row {
    std::string before_text, after_text;  // describe(); one of them is empty if it was not seen there
    double before = 0, after = 0;  // shares (1 is all), s/s or s, depending on options.by; for s, bytes or objects
    double interval = 0;           // of after - before, on both sides; holds for all rows together
    Verdict verdict = Verdict::none;
    std::int64_t needed = 0;  // perhaps: samples in each recording, at which this difference would be certain
    double difference() const { return after - before; }
    // Whether it has another line, file or name, but apparently is the same function.
    bool moved() const { return !before_text.empty() && !after_text.empty() && before_text != after_text; }
  };
  DiffOptions options;
  Unit unit = Unit::nanoseconds;  // of both
  std::vector<Row> rows;          // by |difference|, the largest first
  double others = 1;              // shares: the factor by which most functions' shares changed; 1 if unknown
  double rates = 1;               // weight: the same of their rates, which verdicts do not consider
  bool can_tell = true;           // false: the recordings are too short to find differences
  // Differences of this many standard deviations of independent samples are beyond chance in every
  // function: what a picture may show as a change.
  double noise = 0;
  struct Whole {
    std::int64_t samples = 0;
    double seconds = 0;       // of the recording
    std::int64_t weight = 0;  // of all its samples, in the unit
    double covered = 1;       // the part of the CPU time that was used meanwhile for which it has samples
    double cpu_seconds = 0;   // that CPU time; 0: not known
  };
  Whole before, after;
  std::vector<std::string> ambiguous;  // FunctionMatching::ambiguous
};

// Both profiles must keep the order of time and have the same unit. Functions are the same if their texts
// are: `matching` is what match_functions() did to `before`.
ProfileDiff profile_diff(const Profile& before, const Profile& after, const DiffOptions& options,
                         const FunctionMatching& matching = {});

std::string diff_text(const ProfileDiff& diff, const TextStyle& style);

}  // namespace luaspy
