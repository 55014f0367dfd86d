#include "recording.h"

namespace luaspy {

Recording::Recording(const Shape& shape, bool keeps_order) : profile_(keeps_order), shaper_(shape, stacks_, profile_.stacks()) {}

void Recording::write_raw(std::ostream& out) { raw_ = std::make_unique<RawWriter>(stacks_, threads_, out); }

void Recording::add(Session& of, const luaspy::Thread& thread, const Tick& tick, Sample& sample) {
  const std::uint32_t index = index_of(of, thread);
  KnownThread& known = known_[index];
  Sample lost;
  if (sample.loss != Loss::none) {
    lost.loss = sample.loss;
    lost.stopped_ns = sample.stopped_ns;
  } else if (!sample.again) {
    stacks_.intern(sample.stack, known.last);
    known.facts = {sample.state, Loss::none, false, {}, sample.vm_state, 0, sample.quality};
  }
  Sample& facts = sample.loss != Loss::none ? lost : known.facts;
  facts.stopped_ns = sample.stopped_ns;
  const StackTable::StackId stack = facts.loss != Loss::none || known.last.empty() ? 0 : known.last.back();
  std::optional<StackTable::StackId> shaped = 0;
  if (facts.loss == Loss::none) shaped = shaper_.shaped(stack, facts.vm_state, threads_[index]);
  if (!shaped) {
    lost.loss = Loss::left_out;
    lost.stopped_ns = facts.stopped_ns;
  }
  const Sample& told = shaped ? facts : lost;
  profile_.add(known.index, tick, told, shaped.value_or(0));
  if (raw_) raw_->sample(index, tick, told, shaped ? stack : 0);
}

void Recording::add_idle(Session&, const luaspy::Thread&, const Tick&) {
  profile_.add_idle();
  if (raw_) raw_->idle(1);
}

void Recording::add_loss(Loss loss, std::int64_t count) {
  profile_.add_loss(loss, count);
  if (raw_) raw_->loss(loss, count);
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
