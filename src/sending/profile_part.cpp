#include "sending/profile_part.h"

#include <algorithm>
#include <iterator>
#include <vector>

namespace luaspy {
namespace {

// The same stack in another profile.
StackId copy_stack(const Profile& from, StackId id, std::size_t most_frames, Profile& to) {
  const std::vector<FrameId> frames = from.stack(id);
  const std::size_t left_out = frames.size() > most_frames ? frames.size() - most_frames + 1 : 0;
  StackId stack = empty_stack;
  for (std::size_t i = 0; i < frames.size(); ++i) {
    stack = to.stacks().intern({stack, to.stacks().intern(from.frames()[frames[i]])});
    if (i > 0 || left_out == 0) continue;
    stack = to.stacks().intern({stack, to.stacks().intern(marker("[...]"))});
    i += left_out;
  }
  return stack;
}

}  // namespace

Profile part_of(const Profile& whole, std::size_t first, std::size_t count, std::size_t most_frames) {
  Profile part(false, true);
  part.about = whole.about;
  const auto& counts = whole.counts();
  auto next = std::next(counts.begin(), static_cast<std::ptrdiff_t>(std::min(first, counts.size())));
  for (; next != counts.end() && count > 0; ++next, --count) {
    const auto& [of, amount] = *next;
    const Profile::Situation& situation = whole.situations()[of.situation];
    Sample sample;
    static_cast<Attributes&>(sample) = situation;
    sample.labels = part.labels().intern(whole.labels()[situation.labels]);
    sample.stack = copy_stack(whole, situation.stack, most_frames, part);
    part.add(part.index_of(whole.threads()[of.thread]), {0, amount.weight, amount.samples}, sample);
  }
  return part;
}

std::size_t depth_of(const Profile& profile) {
  std::size_t deepest = 0;
  for (const auto& [of, amount] : profile.counts())
    deepest = std::max(deepest, profile.stack(profile.situations()[of.situation].stack).size());
  return deepest;
}

}  // namespace luaspy
