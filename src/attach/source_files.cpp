#include "attach/source_files.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <span>

#include "attach/rooted_file.h"
#include "base/words.h"
#include "system/calls.h"

namespace luaspy {
namespace {

std::int64_t ns_of(const timespec& time) { return time.tv_sec * std::int64_t{1'000'000'000} + time.tv_nsec; }

std::int64_t now_ns(clockid_t clock) {
  timespec time{};
  ::clock_gettime(clock, &time);
  return ns_of(time);
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

}  // namespace

SourceFiles::SourceFiles(pid_t pid) : SourceFiles(pid, start_of(pid), false) {}

SourceFiles::SourceFiles(pid_t pid, std::int64_t started_ns, bool may_be_copies)
    : pid_(pid), started_ns_(started_ns), may_be_copies_(may_be_copies) {}

SourceFiles SourceFiles::of_core(std::int64_t known_until_ns) { return {::getpid(), known_until_ns, true}; }

SourceFiles SourceFiles::after_end() const {
  SourceFiles files(::getpid(), started_ns_, false);
  files.owner_ = owner_;
  // Without root's rights luaspy has those that it gave to what it started.
  if (!owner_ && ::geteuid() != 0) files.owner_ = credentials_of(::getpid());
  files.has_ended_ = true;
  return files;
}

void SourceFiles::see_owner() {
  if (has_ended_) return;
  if (std::optional<Credentials> now = credentials_of(pid_)) owner_ = std::move(now);
}

bool SourceFiles::is_its_own(const std::string& name, const File& file) const {
  return may_read(owner_.value_or(Credentials()), pid_, name, file.identity);
}

std::optional<SourceFiles::File> SourceFiles::read(const std::string& name) const {
  constexpr std::size_t most_bytes = 4 << 20;
  // What chunk_name (luastate/names.h) returns for chunks that are not files.
  if (name.empty() || name == "?" || name == "stdin" || name.starts_with("[string \"")) return std::nullopt;
  const FileDescriptor opened = open_file_of(pid_, name);
  struct stat status {};
  if (!opened || ::fstat(opened.number(), &status) != 0 || static_cast<std::uint64_t>(status.st_size) > most_bytes)
    return std::nullopt;
  File file;
  file.text.resize(static_cast<std::size_t>(status.st_size) + 1);
  const std::size_t size = system::reread(opened, std::span(file.text.data(), file.text.size())).size();
  file.text.resize(size);
  constexpr char precompiled = '\x1b';  // lua.h, LUA_SIGNATURE; lj_bcdump.h
  if (size > static_cast<std::size_t>(status.st_size) || file.text.starts_with(precompiled)) return std::nullopt;
  if (file.text.starts_with("\xef\xbb\xbf")) file.text.erase(0, 3);  // a byte order mark: lauxlib.c skips it, too
  if (file.text.empty()) return std::nullopt;
  constexpr std::int64_t resolution_ns = 20'000'000;  // of both times: a clock tick of 10 ms, and the resolution of the
                                                      // file system
  const std::int64_t written_ns = ns_of(status.st_mtim);
  const std::int64_t changed_ns = may_be_copies_ ? written_ns : std::max(written_ns, ns_of(status.st_ctim));
  file.changed = started_ns_ != 0 && changed_ns - resolution_ns > started_ns_;
  file.identity = identity_of(opened).value_or(system::FileIdentity());
  return file;
}

std::optional<std::string> SourceFiles::text(const std::string& name) {
  if (bytes_left_ == 0) return std::nullopt;
  std::optional<File> file = read(name);
  if (!file || file->changed) return std::nullopt;
  bytes_left_ -= std::min(bytes_left_, file->text.size());
  return std::move(file->text);
}

}  // namespace luaspy
