#include "agent/tally.h"

#include <fmt/format.h>

#include "base/text.h"

namespace luaspy {

void Tally::add(ThreadId id, const Tick&, const Sample& sample) {
  const ThreadInfo& thread = tables_.threads[id];
  const std::lock_guard held(lock_);
  const auto [place, added] = programs_.try_emplace({thread.pid, thread.program});
  Of& program = place->second.of;
  if (added) program.name = printable(base_name(thread.process.substr(0, thread.process.find(' '))));
  const bool is_lost = sample.loss != Loss::none;
  ++(is_lost ? program.lost : program.samples);
  ++(is_lost ? sums_.lost : sums_.samples);
  program.stopped_ns += sample.stopped_ns;
  sums_.stopped_ns += sample.stopped_ns;
  if (!sample.heaps.empty()) place->second.heaps.add(sample.heaps, system::Clock::now());
}

void Tally::add_loss(Loss, std::int64_t count) {
  const std::lock_guard held(lock_);
  sums_.lost += count;
}

void Tally::set_programs(const std::map<KnownPrograms::Key, KnownPrograms::Known>& programs) {
  const std::lock_guard held(lock_);
  std::erase_if(programs_, [&](const auto& each) { return !programs.contains(each.first); });
  for (const auto& [key, known] : programs) {
    Of& program = programs_[key].of;
    program.name = printable(base_name(known.executable));
    program.luas = joined(known.luas, ", ");
  }
}

Tally::Sums Tally::sums() const {
  const std::lock_guard held(lock_);
  Sums sums = sums_;
  for (auto& [key, program] : programs_) {
    Of& of = sums.processes.emplace_back(program.of);
    of.pid = key.first;
    of.heap_bytes = program.heaps.bytes(system::Clock::now());
    of.collections = program.heaps.collections();
  }
  return sums;
}

}  // namespace luaspy
