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

// One line of such a file.
struct SourceLine {
  std::string text;      // without blanks around it, cut after 120 bytes, printable; may be empty
  bool changed = false;  // the file was written after the process started, so what runs may differ

  // The text, and that it may differ.
  std::string shown() const { return changed ? text + "   (the file has changed since the process started)" : text; }
};

}  // namespace luaspy
