#include "output/output_file.h"

#include <fmt/format.h>

#include <filesystem>
#include <iostream>
#include <utility>

#include "system/calls.h"

namespace luaspy {

std::string default_stem(const std::string& path, int pid) {
  std::string program = std::filesystem::path(path).filename().string();
  if (const std::size_t deleted = program.find(' '); deleted != std::string::npos) program.resize(deleted);
  return fmt::format("luaspy-{}{}{}", program, program.empty() ? "" : "-", pid);
}

std::string unused_name(const std::string& stem, std::string_view extension) {
  for (int number = 1;; ++number) {
    std::string path = number == 1 ? fmt::format("{}{}", stem, extension)
                                   : fmt::format("{}-{}{}", stem, number, extension);
    if (!std::filesystem::exists(path)) return path;
  }
}

Result<OutputFile> OutputFile::open(const Wanted& wanted) {
  const Result<const Format*> format = choose_format(wanted.format, wanted.path, &formats().front());
  if (!format) return format.error();
  return open(wanted.path.empty() ? unused_name(wanted.stem, (*format)->extension) : wanted.path, **format);
}

Result<OutputFile> OutputFile::open(const std::string& path, const Format& format) {
  OutputFile output;
  output.format_ = &format;
  output.path_ = path;
  if (output.to_stdout()) return output;
  std::error_code unused;
  output.is_new_ = !std::filesystem::exists(output.path_, unused);
  output.file_.open(output.path_, std::ios::binary | std::ios::app);
  if (!output.file_)
    return Error{Cause::output,
                 fmt::format("Cannot write {}: {}.", output.path_, system::why_not_writable(output.path_).text())};
  output.begun_ = !output.is_file();
  return output;
}

void OutputFile::discard() {
  std::error_code unused;
  file_.close();
  if (is_new_ && !begun_ && is_file()) std::filesystem::remove(path_, unused);
}

bool OutputFile::is_file() const { return !to_stdout() && std::filesystem::is_regular_file(path_); }

std::ostream& OutputFile::stream() {
  if (to_stdout()) return std::cout;
  if (!std::exchange(begun_, true)) {
    file_.close();
    file_.open(path_, std::ios::binary | std::ios::trunc);
  }
  return file_;
}

Result<void> OutputFile::rewrite(const Profile& profile, const WriteOptions& options) {
  if (!is_file()) return write(profile, options);
  const std::string part = path_ + ".part";
  std::error_code failed;
  std::ofstream file(part, std::ios::binary | std::ios::trunc);
  format_->write(profile, options, file);
  file.close();
  if (file) std::filesystem::rename(part, path_, failed);
  if (!file || failed) {
    std::filesystem::remove(part, failed);
    return incomplete();
  }
  return {};
}

Result<void> OutputFile::write(const Profile& profile, const WriteOptions& options) {
  if (format_->write != nullptr) format_->write(profile, options, stream());
  return finish();
}

Result<void> OutputFile::finish() {
  stream().flush();
  if (!stream()) return incomplete();
  return {};
}

Error OutputFile::incomplete() const {
  return {Cause::output, fmt::format("Cannot write all of {}: no space, or closed by its reader.", path_)};
}

}  // namespace luaspy
