#pragma once
// Finds the Luas that are mapped into a process, by the bytes of the mapped images, never by file
// names.

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/address_space.h"
#include "base/file_version.h"
#include "luastate/image_parts.h"
#include "luastate/lua.h"
#include "luastate/lua_signs.h"
#include "luastate/reported.h"

namespace luaspy {

// Earlier results for files, shared by detectors of many processes.
using KnownImages = std::map<FileVersion, std::vector<LuaIdent>>;

// Searches the read-only data of images for lua_ident ("$LuaVersion: Lua 5.4.4 Copyright …",
// lapi.c; "$Lua: Lua 5.1.5 …" in 5.1), and for the table of opcodes, which identifies a core
// whatever it calls itself. Without these, for _VERSION's value ("Lua 5.4", lua.h). LuaJIT is
// recognised by "LuaJIT 2." (luajit.h), Luau by its own ident and its names of metamethods. Images already searched
// (same start and path) are not searched again.
class Detector {
 public:
  // Of the file behind a mapping; nullopt if it is not known.
  using VersionOf = std::function<std::optional<FileVersion>(const Mapping&)>;
  // Returns true if the list of images changed. Reads `known` and adds to it.
  bool update(const AddressSpace& space, const Memory& memory, KnownImages* known = nullptr,
              const VersionOf& version_of = {});
  const std::vector<LuaImage>& images() const { return images_; }
  // All layouts worth trying on this process, best first.
  std::vector<const Lua*> layouts() const;
  // Some image could not be read as a whole, as it was unmapped just then, perhaps: the next update() searches it
  // again, a few times at most.
  bool is_incomplete() const;
  // Files that were searched, for the message when nothing was found.
  std::vector<std::string> searched() const;

 private:
  struct Seen {
    Address start;
    std::string path;
    int in_vain = 0;  // searches that could not read all of it; 0: searched
    bool is_same(const Seen& other) const { return start == other.start && path == other.path; }
  };
  std::vector<Seen> seen_;
  std::vector<LuaImage> images_;
};

}  // namespace luaspy
