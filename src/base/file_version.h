#pragma once
// Which file it is, and which bytes it has: if either changes, this does.

#include <sys/stat.h>

#include <compare>
#include <cstdint>

namespace luaspy {

struct FileVersion {
  std::uint64_t device = 0, inode = 0, size = 0;
  std::int64_t changed_ns = 0;  // st_ctim (inode(7)): numbers of inodes are used again
  auto operator<=>(const FileVersion&) const = default;
};

inline FileVersion version_of(const struct stat& status) {
  constexpr std::int64_t second_ns = 1'000'000'000;
  return {status.st_dev, status.st_ino, static_cast<std::uint64_t>(status.st_size),
          status.st_ctim.tv_sec * second_ns + status.st_ctim.tv_nsec};
}

}  // namespace luaspy
