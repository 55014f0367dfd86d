#include "system/written_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
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

std::string unforeseeable() {
  std::random_device random;
  return fmt::format("{:08x}{:08x}", random(), random());
}

// A name in the folder of `path` that nobody can foresee.
std::string beside(const std::string& path) {
  return (std::filesystem::path(path).parent_path() / fmt::format(".luaspy-{}.part", unforeseeable())).string();
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

WrittenFile::WrittenFile(FileDescriptor file, std::string path, bool is_file, Origin origin)
    : std::ostream(nullptr),
      buffer_(std::move(file)),
      path_(std::move(path)),
      is_file_(is_file),
      is_new_(origin != Origin::existed),
      is_successor_(origin == Origin::successor) {
  rdbuf(&buffer_);
  struct stat status {};
  if (!is_new_ && is_file_) was_empty_ = ::fstat(buffer_.file().number(), &status) == 0 && status.st_size == 0;
}

WrittenFile::~WrittenFile() {
  close();
  if (is_successor_) ::unlink(path_.c_str());
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
  return std::unique_ptr<WrittenFile>(
      new WrittenFile(std::move(file), place.path, place.is_file, place.is_new ? Origin::made : Origin::existed));
}

void WrittenFile::truncate() {
  if (::ftruncate(buffer_.file().number(), 0) == 0) return;
  buffer_.fail({errno});
  setstate(std::ios::badbit);
}

void WrittenFile::close() {
  if (!buffer_.close()) setstate(std::ios::badbit);
}

std::unique_ptr<WrittenFile> WrittenFile::make_in(const std::string& folder, const std::string& name) {
  const std::filesystem::path wanted(name);
  std::string path = (std::filesystem::path(folder) /
                      fmt::format("{}-{}{}", wanted.stem().string(), unforeseeable(), wanted.extension().string()))
                         .string();
  FileDescriptor file(::open(path.c_str(), append | O_CREAT | O_EXCL | O_NOFOLLOW, 0600));
  if (!file) return nullptr;
  return std::unique_ptr<WrittenFile>(new WrittenFile(std::move(file), std::move(path), true, Origin::made));
}

std::unique_ptr<WrittenFile> WrittenFile::make_successor(Failure& failure) const {
  std::string path = beside(path_);
  struct stat status {
  }, own{};
  FileDescriptor file(::open(path.c_str(), append | O_CREAT | O_EXCL | O_NOFOLLOW, 0600));
  failure = {file ? 0 : errno};
  if (!file) return nullptr;
  if (::fstat(buffer_.file().number(), &status) == 0 && ::fstat(file.number(), &own) == 0) {
    // Whoever may not give it away keeps it, and the permissions are those of others then.
    if (own.st_uid != status.st_uid || own.st_gid != status.st_gid)
      (void)!::fchown(file.number(), status.st_uid, status.st_gid);
    (void)::fchmod(file.number(), status.st_mode & 0777);
  }
  return std::unique_ptr<WrittenFile>(new WrittenFile(std::move(file), std::move(path), true, Origin::successor));
}

bool WrittenFile::may_be_written_here(const Failure& failure) const {
  return (failure.code == EACCES || failure.code == EPERM) && has_its_path();
}

Failure WrittenFile::replace_by(WrittenFile& successor) {
  if (::rename(successor.path_.c_str(), path_.c_str()) != 0) return {errno};
  successor.path_ = path_;
  successor.is_successor_ = false;
  return {};
}

bool WrittenFile::keep_as_old() const {
  const std::string old = path_ + ".old", link = beside(path_);
  if (::link(path_.c_str(), link.c_str()) != 0) return ::rename(path_.c_str(), old.c_str()) == 0;  // no links there
  const bool kept = ::rename(link.c_str(), old.c_str()) == 0;
  ::unlink(link.c_str());  // rename(2) leaves it if both were one file
  return kept;
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

void make_files_private() { ::umask(S_IRWXG | S_IRWXO); }

std::vector<std::string> other_folders() {
  std::vector<std::string> folders;
  const char* const temporary = std::getenv("TMPDIR");
  folders.emplace_back(temporary != nullptr && *temporary == '/' ? temporary : "/tmp");
  if (const char* const home = std::getenv("HOME"); home != nullptr && *home == '/') folders.emplace_back(home);
  folders.emplace_back("/var/tmp");
  folders.emplace_back("/dev/shm");
  return folders;
}

Result<void> write_file(const std::string& path, const std::function<void(std::ostream&)>& write) {
  std::string why;
  const std::unique_ptr<WrittenFile> file = WrittenFile::open(path, why);
  if (file == nullptr) return Error{Cause::output, fmt::format("Cannot write {}: {}.", path, why)};
  Failure failure;
  const std::unique_ptr<WrittenFile> successor = file->is_file() ? file->make_successor(failure) : nullptr;
  if (failure && !file->may_be_written_here(failure)) {
    if (file->is_new()) file->remove();
    return cannot_write(path, failure);
  }
  WrittenFile& out = successor != nullptr ? *successor : *file;
  if (successor == nullptr && file->is_file()) out.truncate();
  write(out);
  out.close();
  failure = out.failure();
  if (!failure && successor != nullptr) failure = file->replace_by(*successor);
  if (failure && file->is_new()) file->remove();
  if (failure) return cannot_write(path, failure);
  return {};
}

}  // namespace luaspy::system
