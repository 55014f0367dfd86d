#include "record/recording.h"

#include <utility>

namespace luaspy {

Recording::Recording(const Shape& shape, bool keeps_order)
    : profile_(keeps_order), shaper_(shape, stacks_, profile_.stacks()) {}

void Recording::write_raw(std::ostream& out) {
  raw_ = std::make_unique<RawWriter>(stacks_, threads_, profile_.about.unit, out);
}

void Recording::add(Session& of, const luaspy::Thread& thread, const Tick& tick, Sample& sample) {
  const std::uint32_t index = index_of(of, thread);
  Sample lost;
  lost.loss = sample.loss;
  lost.stopped_ns = sample.stopped_ns;
  if (sample.loss == Loss::none) {
    LastSample& last = known_[index].last;
    const Sample& facts = last.take(sample, stacks_);
    const std::optional<StackTable::StackId> shaped = shaper_.shaped(last.stack(), facts.vm_state, threads_[index]);
    if (shaped) {
      count(index, tick, facts, last.stack(), *shaped);
      return counted(threads_[index], *shaped);
    }
    lost.loss = Loss::left_out;
  }
  count(index, tick, lost, 0, 0);
}

void Recording::count(std::uint32_t thread, const Tick& tick, const Sample& facts, StackTable::StackId stack,
                      StackTable::StackId shaped) {
  profile_.add(known_[thread].index, tick, facts, shaped);
  if (raw_) raw_->sample(thread, tick, facts, stack);
}

void Recording::add_idle(Session&, const luaspy::Thread&, const Tick&, std::int64_t count) {
  profile_.add_idle(count);
  if (raw_) raw_->idle(count);
}

void Recording::add_waiting(Session&, const luaspy::Thread&, const Tick&, std::int64_t count) {
  profile_.add_waiting(count);
  if (raw_) raw_->waiting(count);
}

void Recording::add_loss(Loss loss, std::int64_t count) {
  if (count == 0) return;
  profile_.add_loss(loss, count);
  if (raw_) raw_->loss(loss, count);
}

void Recording::add_source(const std::string& file, Profile::Source source) {
  if (raw_) raw_->source(file, source);
  profile_.sources[file] = std::move(source);
}

void Recording::drop_source(const std::string& file) {
  if (raw_) raw_->source(file, {});
  profile_.sources.erase(file);
}

void Recording::tell(const About& about) {
  profile_.about = about;
  if (!raw_) return;
  raw_->about(about);
  raw_->flush();
}

std::uint32_t Recording::index_of(Session& of, const luaspy::Thread& thread) {
  const auto [place, added] = thread_index_.emplace(thread.tid(), static_cast<std::uint32_t>(threads_.size()));
  if (added) {
    const Process& process = of.target().process();
    threads_.push_back({thread.tid(), thread.name(), process.pid(), process.command()});
    known_.emplace_back().index = profile_.index_of(threads_.back());
  }
  return place->second;
}

}  // namespace luaspy
