#include "record/source_collector.h"

#include <limits>
#include <utility>

namespace luaspy {

void SourceCollector::collect(Recording& recording) {
  const std::vector<Frame>& frames = recording.profile().stacks().frames();
  for (; seen_ < frames.size(); ++seen_) {
    const Frame& frame = frames[seen_];
    if (frame.kind == Frame::Kind::lua && known_.insert(frame.file).second) read(files_, frame.file, recording);
  }
}

void SourceCollector::finish(Recording& recording) {
  collect(recording);
  if (!launched_ || missing_.empty()) return;
  const SourceFiles own = SourceFiles::of_core(std::numeric_limits<std::int64_t>::max());
  for (const std::string& file : std::exchange(missing_, {})) read(own, file, recording);
}

void SourceCollector::read(const SourceFiles& files, const std::string& file, Recording& recording) {
  std::optional<SourceFiles::File> found = files.read(file);
  if (!found) {
    missing_.insert(file);
    return;
  }
  if (!found->is_its_own || found->text.size() > bytes_left_) return;
  bytes_left_ -= found->text.size();
  recording.add_source(file, {std::move(found->text), found->changed});
}

}  // namespace luaspy
