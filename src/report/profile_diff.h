#pragma once
// What became slower or faster from one recording to another, told from luck.
//
// Samples that follow each other are alike, so that counting them as if they were independent would
// see differences everywhere. Instead each recording is cut into slices of time, and how much these
// differ among each other says how far its sums can be trusted (batch means); slices that follow
// each other and are alike widen that, and it is never less than independent samples would have. A
// difference is told if it is larger than what luck would make, in one comparison of a thousand, in
// any of the functions; and if it is large enough to matter.

#include <cstdint>
#include <string>
#include <vector>

#include "report/text_style.h"

namespace luaspy {

// Samples of another unit than time count by what they weigh everywhere; what takes seconds here
// takes bytes or objects then.
enum class DiffBy : std::uint8_t {
  shares,  // of all samples: what gets slower makes all others' shares smaller
  weight,  // seconds for each second of the recording: for equal loads
  run,     // seconds in all: for runs of the same work from start to end
};

struct DiffOptions {
  DiffBy by = DiffBy::shares;
  bool total = false;  // functions with all that they call, not only themselves
};

struct ProfileDiff {
  enum class Verdict : std::uint8_t {
    none,         // no difference that can be told
    slower,       // costs more
    faster,       // costs less
    like_others,  // shares: it changed as most others did, because the whole did
    appeared,     // costs something after, was not seen before
    vanished,
  };
  struct Row {
    std::string before_text, after_text;  // describe(); one of them is empty if it was not seen there
    bool moved = false;                   // another line, file or name, and the same function for all that can be told
    double before = 0, after = 0;         // shares (1 is all), s/s or s, as options.by has it; for s, bytes or objects
    double interval = 0;                  // of after - before, on both sides; holds for all rows together
    Verdict verdict = Verdict::none;
    double difference() const { return after - before; }
  };
  DiffOptions options;
  Unit unit = Unit::nanoseconds;  // of both
  std::vector<Row> rows;          // by |difference|, the largest first
  double others = 1;              // shares: by how much most functions' shares changed; 1 if that cannot be told
  bool can_tell = true;           // false: too short to tell anything
  struct Whole {
    std::int64_t samples = 0;
    double seconds = 0;       // of the recording
    std::int64_t weight = 0;  // of all its samples, in the unit
  };
  Whole before, after;
};

// Both profiles keep the order of time, and have the same unit.
ProfileDiff profile_diff(const Profile& before, const Profile& after, const DiffOptions& options);

std::string diff_text(const ProfileDiff& diff, const TextStyle& style);

// A line for each stack that either has: "main;f (a.lua:1) 31 33", as difffolded.pl writes it. By
// shares, counts of samples, those of `before` as if it had as many as `after`; else ms, by weight
// those of `before` as if it had lasted as long. Of bytes and objects there is their number.
std::string diff_folded(const Profile& before, const Profile& after, DiffBy by, bool lines);

}  // namespace luaspy
