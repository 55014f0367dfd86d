#pragma once
// The formats that a finished profile can be written in.

#include <cstdint>
#include <optional>
#include <ostream>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/sample.h"
#include "profile/view_options.h"

namespace luaspy {

class Profile;
struct Comparison;
struct WriteOptions;

enum class Shows : std::uint8_t {
  sums,   // total costs of stacks and functions
  order,  // also the samples one after another: the profile must keep their order
  time,   // only what ran when, and for how long: neither bytes nor objects
};

struct Format {
  std::string_view name;
  std::string_view extension;  // of files that get a name by default
  std::string_view also;       // another ending that means this format; "": none
  std::string_view next_step;  // what to do with the file, which it calls FILE
  Shows shows;
  void (*write)(const Profile&, const WriteOptions&, std::ostream&);  // nullptr: raw, which is written while recording
                                                                      // (raw.h)
  // The difference of two profiles, in which the same functions have the same texts; nullptr: the format cannot show
  // it.
  void (*write_diff)(const Profile& before, const Profile& after, const Comparison&, const WriteOptions&,
                     std::ostream&) = nullptr;
  bool carries_recording = false;  // then profiles have whole stacks, and WriteOptions a recording
  bool tells_cpus = false;         // of each sample
  bool shows_coroutines = false;   // where those that have a number waited, and when
  bool keeps_former = false;       // what such a file replaces cannot be made again, and stays as FILE.old

  bool needs_order() const { return shows != Shows::sums; }
};

// The shape of a profile that is written in a format.
ViewOptions shape_for(const Format& format, ViewOptions shape);

// Why a profile of that unit cannot be written in a format; nullopt if it can.
std::optional<Error> refusal(const Format& format, Unit unit);

std::span<const Format> formats();
// By name; nullptr if there is none.
const Format* find_format(std::string_view name);

// Folded stacks; in `report`, which tells this ending apart first, its own text for people.
inline constexpr std::string_view text_ending = ".txt";
// The format of a file: `name` decides; if that is "", how the file's name ends. A name without an
// ending ("-", "profile", "/dev/null") means `otherwise`. An ending that no format has is an error,
// which names those that there are: a mistyped name would else overwrite some other file.
Result<const Format*> choose_format(std::string_view name, std::string_view file_name, const Format* otherwise);

// What to do with the file of that name, for a shell to read.
std::string next_step(const Format& format, std::string_view file_name);

}  // namespace luaspy
