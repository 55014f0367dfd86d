#include "recording/source_collector.h"

#include <optional>

#include "attach/process.h"
#include "recording/recording.h"

namespace luaspy {

SourceCollector::SourceCollector(pid_t launched) : launched_(launched) {
  if (launched != 0) processes_.try_emplace(launched, launched);
}

void SourceCollector::add(pid_t pid, StackId stack) {
  if (!processes_.try_emplace(pid, pid).first->second.seen.contains(stack)) fresh_.emplace_back(pid, stack);
}

void SourceCollector::collect(Recording& recording) {
  const StackTable& stacks = recording.profile().stacks();
  for (const auto& [pid, innermost] : std::exchange(fresh_, {})) {
    Of& of = processes_.at(pid);
    for (StackId stack = innermost; stack != empty_stack && of.seen.insert(stack).second;
         stack = stacks.nodes()[stack].outer) {
      const Frame& frame = stacks.frames()[stacks.nodes()[stack].frame];
      if (frame.kind != Frame::Kind::lua || !of.names.insert(frame.file).second) continue;
      of.files.see_owner();
      if (!read(of.files, frame.file, recording) && pid == launched_) missing_.insert(frame.file);
    }
  }
}

void SourceCollector::finish(Recording& recording) {
  collect(recording);
  if (missing_.empty()) return;
  const SourceFiles& own = processes_.at(launched_).files;
  const bool lives = executable_of(launched_) != "?";
  const SourceFiles files = lives ? own : own.after_end();
  for (const std::string& name : std::exchange(missing_, {})) (void)read(files, name, recording);
}

bool SourceCollector::read(const SourceFiles& files, const std::string& name, Recording& recording) {
  std::optional<SourceFiles::File> file = files.read(name);
  if (!file) return false;
  Found& found = found_.try_emplace(name, Found{file->identity}).first->second;
  if (found.identity != file->identity && !std::exchange(found.several, true) && found.added)
    recording.drop_source(name);
  if (found.several || found.added || file->text.size() > bytes_left_ || !files.is_its_own(name, *file)) return true;
  found.added = true;
  bytes_left_ -= file->text.size();
  recording.add_source(name, {std::move(file->text), file->changed});
  return true;
}

}  // namespace luaspy
