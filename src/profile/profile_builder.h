#pragma once
// Counts samples, as they come from a stream, in a profile of one shape.

#include <optional>

#include "events/event_tables.h"
#include "profile/profile.h"
#include "profile/stack_view.h"
#include "profile/wanted_labels.h"

namespace luaspy {

class ProfileBuilder {
 public:
  // `tables`: what the numbers of samples stand for; they must outlive it. `keeps_order`: see Profile.
  ProfileBuilder(const EventTables& tables, const ViewOptions& shape, bool keeps_order)
      : tables_(tables),
        profile_(keeps_order, shape.cpus),
        view_(shape, tables.stacks, profile_.stacks()),
        wanted_(shape.labels, tables.labels),
        shows_sleepers_(shape.sleepers) {}
  ProfileBuilder(const ProfileBuilder&) = delete;

  // One tick of one thread, with a sample that has no loss. Returns its stack in the profile; nullopt:
  // --only, --ignore or --label leave it out, and it is counted as lost.
  std::optional<StackId> add(ThreadId thread, const Tick& tick, const Sample& sample) {
    const std::uint32_t index = index_of(thread);
    const std::optional<StackId> shaped = wanted_.admit(sample.labels)
                                              ? view_.shaped(sample.stack, sample.vm_state, tables_.threads[thread])
                                              : std::nullopt;
    if (shaped && sample.labels != no_labels) profile_.add(index, tick, with_own_labels(sample), *shaped);
    else if (shaped) profile_.add(index, tick, sample, *shaped);
    else profile_.add_lost(Loss::left_out, sample.stopped_ns);
    return shaped;
  }
  // A stack of the tables as the profile shows it; nullopt: it does not.
  std::optional<StackId> shaped(StackId stack, const ThreadInfo& thread) {
    return view_.shaped(stack, VmState::none, thread);
  }
  // One tick of one thread without a sample, for which it may have been stopped.
  void lose(ThreadId thread, Loss loss, std::int64_t stopped_ns) {
    (void)index_of(thread);
    profile_.add_lost(loss, stopped_ns);
  }

  // When no more samples come.
  void finish() {
    if (!shows_sleepers_) profile_.leave_out_sleepers();
  }

  Profile& profile() { return profile_; }
  const Profile& profile() const { return profile_; }

 private:
  Sample with_own_labels(Sample sample) {
    if (!labels_.has(sample.labels)) labels_.resize(tables_.labels.size(), no_labels);
    LabelsId& own = labels_[sample.labels];
    if (own == no_labels) own = profile_.labels().intern(tables_.labels[sample.labels]);
    sample.labels = own;
    return sample;
  }
  std::uint32_t index_of(ThreadId thread) {
    if (!threads_.has(thread)) threads_.resize(tables_.threads.size());
    std::optional<std::uint32_t>& index = threads_[thread];
    if (!index) index = profile_.index_of(tables_.threads[thread]);
    return *index;
  }

  const EventTables& tables_;
  Profile profile_;
  StackView view_;
  WantedLabels wanted_;
  bool shows_sleepers_;
  ById<ThreadId, std::optional<std::uint32_t>> threads_;  // their indexes in the profile
  ById<LabelsId, LabelsId> labels_;                       // the profile's; no_labels: not asked for yet
};

}  // namespace luaspy
