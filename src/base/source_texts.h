#pragma once
// The texts of a target's Lua files. Names read them (luastate/names.h); who knows the target says
// how (attach/source_files.h).

#include <optional>
#include <string>

namespace luaspy {

class SourceTexts {
 public:
  virtual ~SourceTexts() = default;
  // The text of a file, named as in Frame::file. nullopt if it cannot be read, is too large, or may
  // have changed since the target loaded it. May block as long as the target's file system does.
  virtual std::optional<std::string> text(const std::string& file) = 0;
};

}  // namespace luaspy
