#include "recording/watched_compilers.h"

#include <algorithm>

#include "sampling/process_tree.h"

namespace luaspy {

void WatchedCompilers::find() {
  for (const auto& session : tree_.sessions()) {
    StackReader& reader = session->sampler().reader();
    if (!reader.lock_soon()) continue;
    if (searched_.insert(session->program()).second) reader.find_states();  // of those that sleep, too
    for (const auto& [G, lua] : reader.lua().global_states()) {
      if (lua->kind() != LuaKind::luajit) {
        has_others_ = true;
        continue;
      }
      has_luajit_ = true;
      watch_.add(session->pid(), *lua, G);
    }
    reader.unlock();
  }
}

bool WatchedCompilers::find_now_and_then() {
  constexpr std::chrono::milliseconds pause(50);
  if (system::Clock::now() < next_) return false;
  next_ = system::Clock::now() + pause;
  find();
  return true;
}

void WatchedCompilers::see_new(const See& see) {
  (void)watch_.try_visit([&](const WatchThread::Watchers& watchers) { this->see(watchers, see); });
}

void WatchedCompilers::see_last(const See& see) {
  watch_.visit([&](const WatchThread::Watchers& watchers) { this->see(watchers, see); });
}

std::vector<JitSeen> WatchedCompilers::all() {
  std::vector<JitSeen> all;
  watch_.visit([&](const WatchThread::Watchers& watchers) {
    for (const auto& watcher : watchers) all.push_back(seen_of(*watcher));
  });
  return all;
}

// C functions are named while they can be.
void WatchedCompilers::see(const WatchThread::Watchers& watchers, const See& see) {
  std::vector<std::pair<const JitWatcher*, const JitEvent*>> events;
  for (const auto& watcher : watchers) {
    const JitKnowledge& knowledge = watcher->knowledge();
    name_functions(knowledge);
    want_functions(*watcher);
    std::size_t& passed_on = passed_on_[&knowledge];
    for (; passed_on < knowledge.events.size(); ++passed_on)
      events.emplace_back(watcher.get(), &knowledge.events[passed_on]);
  }
  std::ranges::stable_sort(events, {}, [](const auto& event) { return event.second->at_ns; });
  for (const auto& [watcher, event] : events) see(seen_of(*watcher), *event);
}

JitSeen WatchedCompilers::seen_of(const JitWatcher& watcher) const {
  const pid_t pid = watcher.knowledge().pid;
  return {&watcher.knowledge(), &watcher.reader(), [this, pid](Address function) {
            const auto known = names_.find({pid, function});
            return known != names_.end() ? known->second : "";
          }};
}

// What samples have shown: in a large heap, a survey may not come to it.
void WatchedCompilers::want_functions(JitWatcher& watcher) const {
  for (const auto& session : tree_.sessions()) {
    if (session->pid() == watcher.knowledge().pid)
      watcher.want(session->sampler().reader().lua().names().known_prototypes());
  }
}

void WatchedCompilers::name_functions(const JitKnowledge& knowledge) {
  for (const auto& [start, attempts] : knowledge.attempts) {
    for (const JitAbort& abort : attempts.aborts) {
      if (abort.detail.kind == JitDetail::Kind::function) name_function(knowledge, abort.detail.function);
    }
  }
}

void WatchedCompilers::name_function(const JitKnowledge& knowledge, Address closure) {
  if (names_.contains({knowledge.pid, closure})) return;
  for (const auto& session : tree_.sessions()) {
    if (session->pid() == knowledge.pid)
      names_[{knowledge.pid, closure}] = c_function_name(session->sampler().reader().lua().names(), knowledge, closure);
  }
}

}  // namespace luaspy
