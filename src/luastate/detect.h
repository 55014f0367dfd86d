#pragma once
// Which Luas are mapped into a process: recognised from the bytes of the mapped images, never from file names.

#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "address_space.h"
#include "luastate/dialect.h"

namespace luaspy {

// An ELF image that holds a Lua core, or looks as if it did.
struct LuaImage {
  std::string path;
  Address start = 0, end = 0;   // of the image in the target
  std::string version;          // "5.4.4", or "5.4" if only the series is told; or "LuaJIT 2.1.0-beta3"
  std::string ident;            // the string that told it
  std::string name() const { return version.starts_with("LuaJIT") ? version : "Lua " + version; }
  bool certain = false;         // lua_ident itself, not only the series
  std::vector<Dialect> rows;    // the row that the version names first, then the others of its series; LuaJIT: one for each size of its references
};

// The rows for a version as an image tells it, best first.
std::vector<Dialect> rows_for(const std::string& version);

// All that there are, the newest series first: for a process whose files are not to be had.
std::vector<Dialect> all_rows();

// What tells a Lua core, as it was found in a file.
struct LuaIdent {
  std::string version, text;
  int strength;  // how sure: 3 lua_ident, or LuaJIT's version beside its messages; 2 LuaJIT's version alone, 1 the bare series
};
// What was found in files before, for detectors of many processes: by device, inode and path.
using KnownImages = std::map<std::tuple<std::uint64_t, std::uint64_t, std::string>, std::optional<LuaIdent>>;

// Searches the read-only data of images for lua_ident ("$LuaVersion: Lua 5.4.4  Copyright …", lapi.c; "$Lua: Lua 5.1.5 …"
// in 5.1), and for _VERSION's value ("Lua 5.4", lua.h) where the linker has dropped lua_ident. LuaJIT is told by
// "LuaJIT 2." (luajit.h). Images that were searched before (same start and path) are not searched again.
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
