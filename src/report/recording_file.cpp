#include "report/recording_file.h"

#include <array>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <utility>

#include "profile/raw_format.h"

namespace luaspy {

// Reads a file from its beginning to its end, and keeps what it has read.
class RecordingFile::Pipe : public std::streambuf {
 public:
  explicit Pipe(const std::string& path) : file_(path, std::ios::binary) {}

  bool good() const { return file_.is_open() && !file_.bad(); }
  bool has_all() const { return has_all_; }
  bool is_read() const { return is_read_; }
  // All of it, after it was read in part.
  const std::string& rest() {
    while (has_all_ && underflow() != traits_type::eof()) {
    }
    return kept_;
  }

 protected:
  int_type underflow() override {
    is_read_ = true;
    file_.read(piece_.data(), static_cast<std::streamsize>(piece_.size()));
    const auto size = static_cast<std::size_t>(file_.gcount());
    if (size == 0) return traits_type::eof();
    setg(piece_.data(), piece_.data(), piece_.data() + size);
    has_all_ = has_all_ && kept_.size() + size <= raw::most_carried;
    if (has_all_) kept_.append(piece_.data(), size);
    else kept_ = std::string();
    return traits_type::to_int_type(piece_[0]);
  }

 private:
  std::ifstream file_;
  std::array<char, 1 << 16> piece_{};
  std::string kept_;
  bool has_all_ = true, is_read_ = false;
};

RecordingFile::RecordingFile(std::string path)
    : path_(path == "-" ? "standard input" : path), place_(path == "-" ? "/dev/stdin" : std::move(path)) {}
RecordingFile::~RecordingFile() = default;

std::int64_t RecordingFile::size() const {
  std::error_code unknown;
  const auto size = std::filesystem::file_size(place_, unknown);
  return unknown ? 0 : static_cast<std::int64_t>(size);
}

bool RecordingFile::is_used_up() const { return pipe_ && !pipe_->has_all(); }

system::Failure RecordingFile::why_not() const { return system::why_unreadable(place_); }

std::istream* RecordingFile::open() {
  std::error_code unknown;
  const std::filesystem::file_type type = std::filesystem::status(place_, unknown).type();
  if (type == std::filesystem::file_type::directory || type == std::filesystem::file_type::not_found) return nullptr;
  if (type == std::filesystem::file_type::regular) {
    in_ = std::make_unique<std::ifstream>(place_, std::ios::binary);
  } else if (!pipe_) {
    pipe_ = std::make_unique<Pipe>(place_);
    if (!pipe_->good()) return nullptr;
    in_ = std::make_unique<std::istream>(pipe_.get());
  } else {
    const std::string& all = pipe_->rest();
    if (is_used_up()) return nullptr;
    in_ = std::make_unique<std::istringstream>(all);
  }
  return *in_ ? in_.get() : nullptr;
}

}  // namespace luaspy
