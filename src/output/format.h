#pragma once
// The formats that a finished profile can be written in.

#include <ostream>
#include <span>
#include <string_view>

#include "profile/profile.h"

namespace luaspy {

struct WriteOptions {
  bool lines = false;    // Lua frames show the line being executed
  bool threads = false;  // folded: a root frame for each thread
};

struct Format {
  std::string_view name;
  std::string_view extension;  // of files that get a name by default
  std::string_view next_step;  // what to do with the file
  bool needs_order;            // it shows samples in the order of time, which the profile has to keep
  void (*write)(const Profile&, const WriteOptions&, std::ostream&);  // nullptr: raw, which is written while recording
                                                                      // (raw.h)
};

std::span<const Format> formats();
// By name; nullptr if there is none.
const Format* find_format(std::string_view name);
// By name or, where that is none, by the ending of a file's name; nullptr if neither says it.
const Format* choose_format(std::string_view name, std::string_view file_name);

}  // namespace luaspy
