#include "output/output_file.h"

#include <fmt/format.h>

#include <filesystem>
#include <iostream>
#include <utility>

#include "system/calls.h"
#include "system/standard_output.h"

namespace luaspy {

std::string default_stem(const std::string& path, int pid) {
  std::string program = std::filesystem::path(path).filename().string();
  constexpr std::string_view deleted = " (deleted)";
  if (program.ends_with(deleted)) program.resize(program.size() - deleted.size());
  return fmt::format("luaspy-{}{}{}", program, program.empty() ? "" : "-", pid);
}

std::string unused_name(const std::string& stem, std::string_view extension) {
  for (int number = 1;; ++number) {
    std::string path = number == 1 ? fmt::format("{}{}", stem, extension)
                                   : fmt::format("{}-{}{}", stem, number, extension);
    if (!std::filesystem::exists(std::filesystem::symlink_status(path))) return path;  // a link to nothing is something
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
  std::string why;
  output.file_ = system::WrittenFile::open(path, why);
  if (output.file_ == nullptr) return Error{Cause::output, fmt::format("Cannot write {}: {}.", path, why)};
  output.begun_ = !output.is_file();
  return output;
}

void OutputFile::discard() {
  if (file_ != nullptr && file_->is_new() && !begun_) file_->remove();
}

bool OutputFile::is_file() const { return file_ != nullptr && file_->is_file(); }

std::ostream& OutputFile::stream() {
  if (behind_ != nullptr) return *behind_;
  if (to_stdout()) return std::cout;
  if (!std::exchange(begun_, true)) file_->truncate();
  return *file_;
}

std::ostream& OutputFile::stream_behind() {
  if (behind_ == nullptr) behind_ = std::make_unique<system::WriteBehind>(stream());
  return *behind_;
}

Result<void> OutputFile::rewrite(const Profile& profile, const WriteOptions& options) {
  if (!is_file()) return write(profile, options);
  system::Failure failure;
  const std::unique_ptr<system::WrittenFile> next = file_->make_successor(failure);
  if (next == nullptr) return system::cannot_write(path_, failure);
  format_->write(profile, options, *next);
  next->close();
  if (!*next) {
    next->remove();
    return system::cannot_write(path_, next->failure());
  }
  if (failure = file_->replace_by(*next); failure) return system::cannot_write(path_, failure);
  begun_ = true;
  return {};
}

Result<void> OutputFile::write(const Profile& profile, const WriteOptions& options) {
  if (format_->write != nullptr) format_->write(profile, options, stream());
  return finish();
}

Result<void> OutputFile::finish() {
  if (behind_ != nullptr) behind_->finish();
  stream().flush();
  if (!stream()) return incomplete();
  return {};
}

Error OutputFile::incomplete() const {
  if (!to_stdout()) return system::cannot_write(path_, file_->failure());
  const Result<void> flushed = system::flush_standard_output("the output");
  return flushed ? Error{Cause::output, "Cannot write all of the output."} : flushed.error();
}

}  // namespace luaspy
