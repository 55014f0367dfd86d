#pragma once
// The text of lines of a target's Lua files, as they are on disk now.

#include <sys/types.h>

#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace luaspy {

struct SourceLine {
  std::string text;      // without blanks around it, cut after 120 bytes, printable; may be empty
  bool changed = false;  // the file was written after the process started, so what runs may differ
};

// A read may block as long as the target's file system does.
class SourceLines {
 public:
  explicit SourceLines(pid_t pid);
  // Files as luaspy itself finds them; those written after `known_until_ns` (real-time clock) count
  // as changed.
  static SourceLines of_core(std::int64_t known_until_ns);

  // Line `line`, from 1, of a file named as in Frame::file. nullopt: there is no such file or line,
  // or the file cannot be read, is not a regular file, or is larger than 4 MiB.
  std::optional<SourceLine> line(const std::string& file, int line);

 private:
  SourceLines(pid_t pid, std::int64_t started_ns) : pid_(pid), started_ns_(started_ns) {}
  struct File {
    std::string text;
    std::vector<std::size_t> lines;  // where each begins
    bool changed = false;
  };
  File read(const std::string& file) const;

  pid_t pid_;
  std::int64_t started_ns_;  // of the real-time clock; 0 if unknown
  std::unordered_map<std::string, File> files_;
  std::size_t kept_ = 0;  // bytes of text
};

}  // namespace luaspy
