#pragma once
// Looks at suspended coroutines, counted. The result is a profile of its own, beside that of what ran: a sample is one
// coroutine in one look, and its weight the time that the look stands for. A thread of it is a coroutine that has a
// number; thread 0 of a process is all of its others.

#include <map>
#include <optional>
#include <string>
#include <tuple>

#include "events/event_tables.h"
#include "events/suspended.h"
#include "profile/profile.h"
#include "profile/stack_view.h"
#include "profile/wanted_labels.h"

namespace luaspy {

class SuspendedProfile {
 public:
  // `tables`: what the numbers of looks stand for; they must outlive it. `keeps_order`: for formats that show samples
  // one after another, as many at once are; when they were is not told (Metadata::timed).
  SuspendedProfile(const EventTables& tables, const ViewOptions& shape, bool keeps_order);
  SuspendedProfile(const SuspendedProfile&) = delete;

  void add(const SuspendedLook& look);
  bool has_looks() const { return round_at_ns_.has_value() || profile_.suspended.looks != 0; }
  // Whether --only, --ignore and --label leave it.
  bool shows(const SuspendedLook& look, const SuspendedGroup& group) { return shaped(look, group).has_value(); }
  // When no more looks come, and before it is shown.
  void finish() {
    end_round();
    profile_.about.timed = false;
  }

  Profile& profile() { return profile_; }
  const Profile& profile() const { return profile_; }

 private:
  void end_round();
  std::optional<StackId> shaped(const SuspendedLook& look, const SuspendedGroup& group);
  std::uint32_t index_of(const SuspendedLook& look, const SuspendedGroup& group);
  void count(const SuspendedLook& look, const SuspendedGroup& group, std::uint32_t thread, StackId stack);

  const EventTables& tables_;
  Profile profile_;
  StackView view_;
  WantedLabels wanted_;
  ById<LabelsId, LabelsId> labels_;  // the profile's; no_labels: not asked for yet
  std::map<SuspendedCounts::Place, std::int64_t> round_;
  std::optional<std::int64_t> round_at_ns_;
  static constexpr std::size_t most_threads = 1 << 12;  // a file may say anything: further ones are the first
  std::map<std::tuple<int, std::uint64_t, std::uint32_t>, std::uint32_t> threads_;  // by process, program and number
};

// Of such a profile: how many there were on average; and a sentence that says it.
double average_suspended(const Profile& profile);
std::string suspended_summary(const Profile& profile);

}  // namespace luaspy
