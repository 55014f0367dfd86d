#include "attach/source_lines.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "attach/rooted_file.h"
#include "base/text.h"
#include "base/words.h"
#include "system/calls.h"

namespace luaspy {
namespace {

constexpr std::size_t most_bytes = 4 << 20, most_kept = 64 << 20, most_shown = 120;

std::int64_t now_ns(clockid_t clock) {
  timespec time{};
  ::clock_gettime(clock, &time);
  return time.tv_sec * std::int64_t{1'000'000'000} + time.tv_nsec;
}

// proc(5): (22) starttime, in ticks since boot. Field 3 is the first after the name.
std::int64_t start_of(pid_t pid) {
  const std::string stat = system::read_file(fmt::format("/proc/{}/stat", pid)).value_or("");
  const std::size_t end = stat.rfind(')');
  if (end == stat.npos) return 0;
  std::string_view fields = std::string_view(stat).substr(end + 1);
  skip_words(fields, 22 - 3);
  const std::int64_t tick_ns = 1'000'000'000 / ::sysconf(_SC_CLK_TCK);
  return now_ns(CLOCK_REALTIME) - now_ns(CLOCK_BOOTTIME) + number<std::int64_t>(next_word(fields)) * tick_ns;
}

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view blanks = " \t\r\n\f\v";
  const std::size_t first = text.find_first_not_of(blanks);
  if (first == text.npos) return {};
  return text.substr(first, text.find_last_not_of(blanks) - first + 1);
}

}  // namespace

SourceLines::SourceLines(pid_t pid) : SourceLines(pid, start_of(pid)) {}

SourceLines SourceLines::of_core(std::int64_t known_until_ns) { return {::getpid(), known_until_ns}; }

SourceLines::File SourceLines::read(const std::string& name) const {
  File file;
  // What chunk_name (luastate/names.h) returns for chunks that are not files.
  if (name.empty() || name == "?" || name == "stdin" || name.starts_with("[string \"")) return file;
  const FileDescriptor opened = open_file_of(pid_, name);
  struct stat status {};
  if (!opened || ::fstat(opened.number(), &status) != 0 || static_cast<std::uint64_t>(status.st_size) > most_bytes)
    return file;
  file.text.resize(most_bytes + 1);
  const std::size_t size = system::reread(opened, std::span(file.text.data(), file.text.size())).size();
  file.text.resize(size <= most_bytes ? size : 0);
  constexpr char precompiled = '\x1b';  // lua.h, LUA_SIGNATURE; lj_bcdump.h
  if (file.text.starts_with(precompiled)) file.text.clear();
  file.text.shrink_to_fit();
  if (file.text.starts_with("\xef\xbb\xbf")) file.text.erase(0, 3);  // a byte order mark: lauxlib.c skips it, too
  if (!file.text.empty()) file.lines = line_starts(file.text);
  constexpr std::int64_t resolution_ns = 20'000'000;  // of both times: a clock tick of 10 ms, and the resolution of the
                                                      // file system
  file.changed = started_ns_ != 0 && status.st_mtim.tv_sec * std::int64_t{1'000'000'000} + status.st_mtim.tv_nsec >
                                         started_ns_ + resolution_ns;
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
  return SourceLine{printable(trimmed(std::string_view(file.text).substr(start, end - start)), most_shown),
                    file.changed};
}

}  // namespace luaspy
