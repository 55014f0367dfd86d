#include "agent/window.h"

namespace luaspy {

ProfileBuilder& Window::builder_of(const ThreadInfo& thread) {
  Building& building = building_[{thread.pid, thread.program}];
  if (building.builder == nullptr) {
    ViewOptions shape;
    shape.lines = true;
    building.builder = std::make_unique<ProfileBuilder>(tables_, shape, false);
    building.builder->profile().about.unit = unit_;
    building.command = thread.process;
  }
  return *building.builder;
}

void Window::add(ThreadId thread, const Tick& tick, const Sample& sample) {
  ++(sample.loss == Loss::none ? samples_ : lost_);
  if (sample.loss != Loss::none) return;
  (void)builder_of(tables_.threads[thread]).add(thread, tick, sample);
}

// What was built has names of its own once it is resolved.
void Window::tables_renewed() {
  for (auto& [key, building] : building_) {
    auto profile = std::make_unique<Profile>(std::move(building.builder->profile()));
    profile->resolve_names();
    finished_.push_back({key.first, key.second, building.command, std::move(profile)});
  }
  building_.clear();
}

std::vector<Window::Of> Window::take_profiles() {
  tables_renewed();
  samples_ = lost_ = 0;
  return std::exchange(finished_, {});
}

}  // namespace luaspy
