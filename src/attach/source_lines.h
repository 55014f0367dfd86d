#pragma once
// The text of lines of a target's Lua files, as they are on disk now.

#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "attach/source_files.h"

namespace luaspy {

struct SourceLine {
  std::string text;      // without blanks around it, cut after 120 bytes, printable; may be empty
  bool changed = false;  // the file was written after the process started, so what runs may differ

  // The text, and that it may differ.
  std::string shown() const { return changed ? text + "   (the file has changed since the process started)" : text; }
};

// A read may block as long as the target's file system does.
class SourceLines {
 public:
  explicit SourceLines(SourceFiles files) : read_(std::move(files)) {}

  // Line `line`, from 1, of a file named as in Frame::file. nullopt: there is no such file or line,
  // or the file cannot be read (SourceFiles::read).
  std::optional<SourceLine> line(const std::string& file, int line);

 private:
  struct File {
    std::string text;
    std::vector<std::size_t> lines;  // where each begins
    bool changed = false;
  };
  File read(const std::string& file) const;

  SourceFiles read_;
  std::unordered_map<std::string, File> files_;
  std::size_t kept_ = 0;  // bytes of text
};

}  // namespace luaspy
