#include "output/output_file.h"

#include <fmt/format.h>

#include <ctime>
#include <filesystem>
#include <iostream>
#include <utility>

#include "base/time_text.h"
#include "system/calls.h"
#include "system/standard_output.h"

namespace luaspy {

std::string default_stem(const std::string& path, int pid) {
  std::string program = std::filesystem::path(path).filename().string();
  constexpr std::string_view deleted = " (deleted)";
  if (program.ends_with(deleted)) program.resize(program.size() - deleted.size());
  return fmt::format("luaspy-{}{}{}", program, program.empty() ? "" : "-", pid);
}

std::string name_with_time(const std::string& name, int pid) {
  std::string text;
  for (std::size_t i = 0; i < name.size(); ++i) {
    const std::string_view two = std::string_view(name).substr(i, 2);
    if (two == "%p") text += std::to_string(pid);
    else if (two == "%t") text += local_text(std::time(nullptr), "%Y%m%d-%H%M%S");
    else text += name[i];
    i += two == "%p" || two == "%t" ? 1 : 0;
  }
  return text;
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
  if (next_ != nullptr) return *next_;
  if (is_file() && !here_) {
    next_ = file_->make_successor(failure_);
    if (next_ != nullptr) return *next_;
    here_ = file_->may_be_written_here(failure_);
    if (here_) failure_ = {};
    else file_->setstate(std::ios::badbit);
  }
  if (*file_ && !std::exchange(begun_, true)) file_->truncate();
  return *file_;
}

std::ostream& OutputFile::stream_behind() {
  if (behind_ != nullptr) return *behind_;
  if (is_file() && !file_->is_new()) {
    std::ostream* next = &stream();
    keep_former();
    if (next_ != nullptr && !(failure_ = file_->replace_by(*next_))) {
      file_ = std::move(next_), begun_ = true;
      next = file_.get();
    }
    return *(behind_ = std::make_unique<system::WriteBehind>(*next));
  }
  begun_ = true;
  return *(behind_ = std::make_unique<system::WriteBehind>(to_stdout() ? std::cout : *file_));
}

void OutputFile::keep_former() {
  if (!format_->keeps_former || !is_file() || file_->is_new() || file_->was_empty() || begun_) return;
  if (!std::exchange(kept_, true)) (void)file_->keep_as_old();
}

Result<void> OutputFile::rewrite(const Profile& profile, const WriteOptions& options) {
  if (format_->write != nullptr) format_->write(profile, options, stream());
  return finish();
}

Result<void> OutputFile::write(const Profile& profile, const WriteOptions& options) {
  Result<void> written = rewrite(profile, options);
  if (written || !is_file() || format_->write == nullptr) return written;
  return kept_elsewhere(profile, options);
}

Result<void> OutputFile::finish() {
  if (behind_ != nullptr) behind_->finish();
  if (next_ != nullptr) {
    const std::unique_ptr<system::WrittenFile> next = std::move(next_);
    next->close();
    failure_ = next->failure();
    if (!failure_) keep_former();
    if (!failure_) failure_ = file_->replace_by(*next);
    if (failure_) return discard(), incomplete();
    begun_ = true;
    return {};
  }
  std::ostream& out = behind_ != nullptr ? *behind_ : to_stdout() ? std::cout : *file_;
  out.flush();
  if (out) return {};
  if (is_file() && behind_ == nullptr) out.clear();  // there may be room the next time
  return incomplete();
}

Result<void> OutputFile::kept_elsewhere(const Profile& profile, const WriteOptions& options) const {
  const std::string name = std::filesystem::path(path_).filename().string();
  for (const std::string& folder : system::other_folders()) {
    const std::unique_ptr<system::WrittenFile> file = system::WrittenFile::make_in(folder, name);
    if (file == nullptr) continue;
    format_->write(profile, options, *file);
    file->close();
    if (*file)
      return Error{Cause::output, fmt::format("{} The profile is in {} instead.", incomplete().text, file->path())};
    file->remove();
  }
  return incomplete();
}

Error OutputFile::incomplete() const {
  if (to_stdout()) {
    const Result<void> flushed = system::flush_standard_output("the output");
    return flushed ? Error{Cause::output, "Cannot write all of the output."} : flushed.error();
  }
  Error error = system::cannot_write(path_, failure_ ? failure_ : file_->failure());
  if (behind_ != nullptr && is_file()) error.text += " What was written of it until then can be read.";
  return error;
}

}  // namespace luaspy
