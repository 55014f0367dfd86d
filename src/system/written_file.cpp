#include "system/written_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <random>
#include <utility>

#include "system/calls.h"
#include "system/standard_output.h"

namespace luaspy::system {
namespace {

constexpr int append = O_WRONLY | O_APPEND | O_CLOEXEC | O_NOCTTY;

// Links below /proc lead to open files, which need not have a path.
bool is_in_proc(const std::string& path) {
  struct statfs status {};
  const std::string folder = std::filesystem::path(path).parent_path().string();
  return ::statfs(folder.empty() ? "." : folder.c_str(), &status) == 0 && status.f_type == PROC_SUPER_MAGIC;
}

struct Place {
  std::string path;
  bool is_file = true;
  bool is_new = false;
  bool is_open_file = false;  // of a process, below /proc
};

// Follows the symbolic links at the end of the path, as far as they are to be followed. False: `why` says why not.
bool find_place(Place& place, std::string& why) {
  struct stat status {};
  if (::stat(place.path.c_str(), &status) == 0 && !S_ISREG(status.st_mode)) {
    place.is_file = false;
    return true;
  }
  constexpr int most_links = 40;  // as many as the kernel follows (path_resolution(7))
  for (int links = 0; links < most_links; ++links) {
    if (::lstat(place.path.c_str(), &status) != 0) {
      place.is_new = errno == ENOENT;
      why = Failure{errno}.text();
      return place.is_new;
    }
    if (!S_ISLNK(status.st_mode)) return true;
    if (is_in_proc(place.path)) {
      place.is_file = false, place.is_open_file = true;
      return true;
    }
    const std::string target = read_link(place.path).value_or("");
    if (status.st_uid != ::geteuid() && status.st_uid != 0) {
      why = fmt::format("{} is a symbolic link of another user (uid {}), to {}. Name the file itself, or another one",
                        place.path, status.st_uid, target);
      return false;
    }
    place.path = (std::filesystem::path(place.path).parent_path() / target).string();
  }
  why = Failure{ELOOP}.text();
  return false;
}

}  // namespace

WrittenFile::Buffer::Buffer(FileDescriptor file) : file_(std::move(file)) {
  constexpr std::size_t at_once = 1 << 16;
  bytes_.resize(at_once);
  setp(bytes_.data(), bytes_.data() + bytes_.size());
}

WrittenFile::Buffer::int_type WrittenFile::Buffer::overflow(int_type next) {
  if (sync() != 0) return traits_type::eof();
  if (traits_type::eq_int_type(next, traits_type::eof())) return traits_type::not_eof(next);
  return sputc(traits_type::to_char_type(next));
}

int WrittenFile::Buffer::sync() {
  const Failure failed = write_all(file_.number(), {pbase(), static_cast<std::size_t>(pptr() - pbase())});
  setp(bytes_.data(), bytes_.data() + bytes_.size());  // what could not be written is lost, and the stream says so
  fail(failed);
  return failed ? -1 : 0;
}

void WrittenFile::Buffer::fail(const Failure& failure) {
  if (!failure_) failure_ = failure;
}

bool WrittenFile::Buffer::close() {
  if (!file_) return true;
  const bool whole = sync() == 0;
  if (::close(file_.release()) == 0) return whole;
  fail({errno});
  return false;
}

WrittenFile::WrittenFile(FileDescriptor file, std::string path, bool is_file, bool is_new)
    : std::ostream(nullptr), buffer_(std::move(file)), path_(std::move(path)), is_file_(is_file), is_new_(is_new) {
  rdbuf(&buffer_);
}

std::unique_ptr<WrittenFile> WrittenFile::open(const std::string& path, std::string& why) {
  Place place{path};
  if (!find_place(place, why)) return nullptr;
  // What comes to be there meanwhile is not taken for what was seen there.
  const int flags = place.is_new ? append | O_CREAT | O_EXCL : place.is_file ? append | O_NOFOLLOW : append;
  FileDescriptor file(::open(place.path.c_str(), flags, 0666));
  struct stat status {};
  if (!file || ::fstat(file.number(), &status) != 0) {
    why = Failure{errno}.text();
    return nullptr;
  }
  if (S_ISREG(status.st_mode) != place.is_file && !place.is_open_file) {
    why = "it has just become another file";
    return nullptr;
  }
  return std::unique_ptr<WrittenFile>(new WrittenFile(std::move(file), place.path, place.is_file, place.is_new));
}

void WrittenFile::truncate() {
  if (::ftruncate(buffer_.file().number(), 0) == 0) return;
  buffer_.fail({errno});
  setstate(std::ios::badbit);
}

void WrittenFile::close() {
  if (!buffer_.close()) setstate(std::ios::badbit);
}

std::unique_ptr<WrittenFile> WrittenFile::make_successor(Failure& failure) const {
  std::random_device random;
  const auto folder = std::filesystem::path(path_).parent_path();
  std::string path = (folder / fmt::format(".luaspy-{:08x}{:08x}.part", random(), random())).string();
  struct stat status {};
  FileDescriptor file(::open(path.c_str(), append | O_CREAT | O_EXCL, 0600));
  if (!file) {
    failure = {errno};
    return nullptr;
  }
  if (::fstat(buffer_.file().number(), &status) == 0) (void)::fchmod(file.number(), status.st_mode & 0777);
  return std::unique_ptr<WrittenFile>(new WrittenFile(std::move(file), std::move(path), true, true));
}

Failure WrittenFile::replace_by(WrittenFile& successor) {
  if (::rename(successor.path_.c_str(), path_.c_str()) == 0) return {};
  const Failure failure{errno};
  ::unlink(successor.path_.c_str());
  return failure;
}

bool WrittenFile::has_its_path() const {
  struct stat own {
  }, there{};
  return ::fstat(buffer_.file().number(), &own) == 0 && ::lstat(path_.c_str(), &there) == 0 &&
         own.st_dev == there.st_dev && own.st_ino == there.st_ino;
}

void WrittenFile::remove() {
  if (is_file_ && (!buffer_.file() || has_its_path())) ::unlink(path_.c_str());
}

Result<void> write_file(const std::string& path, const std::function<void(std::ostream&)>& write) {
  std::string why;
  const std::unique_ptr<WrittenFile> file = WrittenFile::open(path, why);
  if (file == nullptr) return Error{Cause::output, fmt::format("Cannot write {}: {}.", path, why)};
  if (file->is_file()) file->truncate();
  write(*file);
  file->close();
  if (!*file) return cannot_write(path, file->failure());
  return {};
}

}  // namespace luaspy::system
