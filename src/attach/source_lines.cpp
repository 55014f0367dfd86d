#include "attach/source_lines.h"

#include <utility>

#include "base/text.h"

namespace luaspy {
namespace {

constexpr std::size_t most_kept = 64 << 20, most_of_line = 120;

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view blanks = " \t\r\n\f\v";
  const std::size_t first = text.find_first_not_of(blanks);
  if (first == text.npos) return {};
  return text.substr(first, text.find_last_not_of(blanks) - first + 1);
}

}  // namespace

SourceLines::File SourceLines::read(const std::string& name) const {
  File file;
  if (std::optional<SourceFiles::File> found = read_.read(name)) {
    file.lines = line_starts(found->text);
    file.text = std::move(found->text);
    file.changed = found->changed;
  }
  return file;
}

std::optional<SourceLine> SourceLines::line(const std::string& name, int line) {
  auto found = files_.find(name);
  if (found == files_.end()) {
    if (kept_ > most_kept) files_.clear(), kept_ = 0;
    found = files_.emplace(name, read(name)).first;
    kept_ += found->second.text.size() + found->second.lines.size() * sizeof(std::size_t) + name.size();
  }
  const File& file = found->second;
  if (line < 1 || static_cast<std::size_t>(line) > file.lines.size()) return std::nullopt;
  const auto index = static_cast<std::size_t>(line) - 1;
  const std::size_t start = file.lines[index],
                    end = index + 1 < file.lines.size() ? file.lines[index + 1] : file.text.size();
  if (start == file.text.size()) return std::nullopt;  // what follows the last line break is not a line
  return SourceLine{printable(trimmed(std::string_view(file.text).substr(start, end - start)), most_of_line),
                    file.changed};
}

}  // namespace luaspy
