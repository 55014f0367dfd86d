#include "profile/suspended_profile.h"

#include <fmt/format.h>

#include <algorithm>

namespace luaspy {

SuspendedProfile::SuspendedProfile(const EventTables& tables, const ViewOptions& shape, bool keeps_order)
    : tables_(tables),
      profile_(keeps_order),
      view_(shape, tables.stacks, profile_.stacks()),
      wanted_(shape.labels, tables.labels) {}

void SuspendedProfile::add(const SuspendedLook& look) {
  if (round_at_ns_ != look.at_ns) end_round();
  round_at_ns_ = look.at_ns;
  profile_.suspended.looked_ns = std::max(profile_.suspended.looked_ns, look.at_ns);
  profile_.suspended.unread += look.unread;
  for (const SuspendedGroup& group : look.groups) {
    if (const std::optional<StackId> stack = shaped(look, group)) count(look, group, index_of(look, group), *stack);
  }
}

std::optional<StackId> SuspendedProfile::shaped(const SuspendedLook& look, const SuspendedGroup& group) {
  if (!wanted_.admit(group.labels)) return std::nullopt;
  return view_.shaped(group.stack, VmState::none, {0, {}, look.pid, look.process, look.program});
}

std::uint32_t SuspendedProfile::index_of(const SuspendedLook& look, const SuspendedGroup& group) {
  const std::tuple key(look.pid, look.program, group.number);
  if (const auto known = threads_.find(key); known != threads_.end()) return known->second;
  if (threads_.size() == most_threads) return 0;
  const std::string* const began = tables_.labels.find(group.labels, suspended_label);
  const std::string name = group.number == 0 ? "other coroutines" : began != nullptr ? *began : "coroutine";
  return threads_[key] = profile_.index_of(
             {static_cast<int>(group.number), name, look.pid, look.process, look.program});
}

void SuspendedProfile::count(const SuspendedLook& look, const SuspendedGroup& group, std::uint32_t thread,
                             StackId stack) {
  Sample sample;
  sample.state = Sample::State::sleeping;
  if (group.labels != no_labels) {
    if (!labels_.has(group.labels)) labels_.resize(tables_.labels.size(), no_labels);
    LabelsId& own = labels_[group.labels];
    if (own == no_labels) own = profile_.labels().intern(tables_.labels[group.labels]);
    sample.labels = own;
  }
  profile_.add(thread, {look.at_ns, look.weight_ns * group.count, group.count}, sample, stack);
  const SuspendedCounts::Place place = {stack, sample.labels};
  round_[place] += group.count;
  std::int64_t& longest = profile_.suspended.places[place].longest_ns;
  longest = std::max(longest, group.longest_ns);
}

void SuspendedProfile::end_round() {
  if (!round_at_ns_) return;
  std::int64_t all = 0;
  for (const auto& [place, count] : round_) {
    all += count;
    std::int64_t& most = profile_.suspended.places[place].most;
    most = std::max(most, count);
  }
  profile_.suspended.most = std::max(profile_.suspended.most, all);
  ++profile_.suspended.looks;
  round_.clear();
  round_at_ns_.reset();
}

double average_suspended(const Profile& profile) {
  const std::int64_t looked_ns = std::max<std::int64_t>(profile.suspended.looked_ns, 1);
  return static_cast<double>(profile.weight()) / static_cast<double>(looked_ns);
}

std::string suspended_summary(const Profile& profile) {
  const SuspendedCounts& counts = profile.suspended;
  std::string text = fmt::format("{:.1f} on average, {} at most; looked {} in {:.1f} s", average_suspended(profile),
                                 counts.most, counts.looks == 1 ? "once" : fmt::format("{} times", counts.looks),
                                 static_cast<double>(counts.looked_ns) / 1e9);
  if (counts.unread != 0) text += fmt::format("; {} more were there, but could not be read", counts.unread);
  return text;
}

}  // namespace luaspy
