#pragma once
// Which Luas are mapped into a process: recognised from the bytes of the mapped images, never from
// file names.

#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "base/address_space.h"
#include "luastate/core_signs.h"
#include "luastate/dialect.h"

namespace luaspy {

// An ELF image that holds a Lua core, or looks as if it did. One that holds several is in the list
// once for each version.
struct LuaImage {
  std::string path;            // printable
  Address start = 0, end = 0;  // of the image in the target
  std::string version;  // "5.4.4", "5.4" if only the series is known, "5.?" if not even that; or "LuaJIT 2.1.0-beta3"
  std::string ident;    // the string that told it
  std::string name() const { return version.starts_with("LuaJIT") ? version : "Lua " + version; }
  bool certain = false;       // lua_ident itself, or what only a core has; not a mention of the series
  std::vector<Dialect> rows;  // the row that the version names first, then the others of its series; LuaJIT: one for
                              // each size of its references
  int cores = 1;              // how many of this version are linked into it
};

// The rows for a version as an image tells it, best first.
std::vector<Dialect> rows_for(const std::string& version);

// All that there are, the newest series first: for a process whose files are not to be had.
std::vector<Dialect> all_rows();

// What was found in files before, for detectors of many processes: by device, inode and path.
using KnownImages = std::map<std::tuple<std::uint64_t, std::uint64_t, std::string>, std::vector<LuaIdent>>;

// Searches the read-only data of images for lua_ident ("$LuaVersion: Lua 5.4.4 Copyright …",
// lapi.c; "$Lua: Lua 5.1.5 …" in 5.1), and for the table of opcodes, by which a core is recognised
// whatever it calls itself; else for _VERSION's value ("Lua 5.4", lua.h). LuaJIT is told by "LuaJIT
// 2." (luajit.h). Images that were searched before (same start and path) are not searched again.
class Detector {
 public:
  // Returns true if the list of images changed. `known` is read and added to.
  bool update(const AddressSpace& space, const Memory& memory, KnownImages* known = nullptr);
  const std::vector<LuaImage>& images() const { return images_; }
  // All rows worth trying on this process, best first.
  std::vector<Dialect> rows() const;
  // Files that were searched, for the message when nothing was found.
  std::vector<std::string> searched() const;

 private:
  struct Seen {
    Address start;
    std::string path;
    bool operator==(const Seen&) const = default;
  };
  std::vector<Seen> seen_;
  std::vector<LuaImage> images_;
};

}  // namespace luaspy
