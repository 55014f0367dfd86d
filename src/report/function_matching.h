#pragma once
// Which functions of two recordings are the same. Between two versions of a program, functions move
// to other lines, files and folders. Everything that compares two recordings, text, page, picture
// or folded stacks, compares by what is decided here.

#include <map>
#include <string>
#include <vector>

#include "profile/profile.h"

namespace luaspy {

struct FunctionMatching {
  // Functions with another line, name, file or folder: by their describe() text in `after`, the one in `before`.
  std::map<std::string, std::string> moved;
  // A sentence for each group of functions that could be told apart only by how near their lines are.
  std::vector<std::string> ambiguous;
};

// Gives the functions of `before` the names, files and lines that they have in `after`, so that the
// same functions have the same describe() text in both. A frame's current line moves as far as its function.
// A function of `before` that is not in `after`, though another one of `after` has its text now, gets a
// name that says so. Call after Profile::resolve_names().
//
// Functions are the same if name and file are; of several, those nearest to the line that the functions around
// them, which have a name of their own, have moved to. Others are the same if only one on each side has
// the same file and line, or the same name in a file of the same name in another folder, or the same name at all.
FunctionMatching match_functions(Profile& before, const Profile& after);

}  // namespace luaspy
