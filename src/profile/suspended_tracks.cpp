#include "profile/suspended_tracks.h"

#include <algorithm>

#include "events/label_table.h"

namespace luaspy {

// A look stands for the time since the one before, as a sample does. One wait is what looks have seen without a break.
void SuspendedTracks::add(const SuspendedLook& look) {
  std::vector<SuspendedTrack>& tracks = into_.profile().tracks;
  for (const SuspendedGroup& group : look.groups) {
    if (const std::string* const request = tables_.labels.find(group.labels, slow_label)) {
      if (*request != other_values) add_to_request(look, group, *request);
      continue;
    }
    if (group.number == 0) continue;
    const auto [place, is_new] = tracks_.try_emplace({look.pid, look.program, group.number}, tracks.size());
    if (is_new) {
      if (tracks.size() == Profile::most_tracks) {
        tracks_.erase(place);
        continue;
      }
      const std::string* const began = tables_.labels.find(group.labels, suspended_label);
      tracks.push_back({look.pid, look.program, look.process, group.number, began != nullptr ? *began : "", {}});
    }
    const ThreadInfo of_process = {0, {}, look.pid, look.process, look.program};
    const std::optional<StackId> stack = into_.shaped(group.stack, of_process);
    if (!stack) continue;
    std::vector<SuspendedTrack::Wait>& waits = tracks[place->second].waits;
    const std::int64_t end = waits.empty() ? 0 : waits.back().end_ns,
                       start = std::max(end, look.at_ns - look.weight_ns);
    if (look.at_ns <= start) continue;
    const bool goes_on = !waits.empty() && waits.back().stack == *stack && start == end &&
                         group.longest_ns >= look.weight_ns;
    if (goes_on) waits.back().end_ns = look.at_ns;
    else waits.push_back({*stack, start, look.at_ns});
  }
}

// If several of its coroutines wait, the first one stands for all.
void SuspendedTracks::add_to_request(const SuspendedLook& look, const SuspendedGroup& group,
                                     const std::string& request) {
  std::vector<RequestWaits>& all = into_.profile().request_waits;
  const auto [place, is_new] = requests_.try_emplace({look.pid, request}, all.size());
  if (is_new) {
    if (all.size() == Profile::most_tracks) {
      requests_.erase(place);
      return;
    }
    all.push_back({look.pid, request, {}});
  }
  const std::optional<StackId> stack = into_.shaped(group.stack, {0, {}, look.pid, look.process, look.program});
  std::vector<SuspendedTrack::Wait>& waits = all[place->second].waits;
  if (!stack || (!waits.empty() && waits.back().end_ns >= look.at_ns)) return;
  if (!waits.empty() && waits.back().stack == *stack) waits.back().end_ns = look.at_ns;
  else waits.push_back({*stack, look.at_ns, look.at_ns});
}

}  // namespace luaspy
