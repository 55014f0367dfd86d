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
