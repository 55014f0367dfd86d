#include "sampling/tick_evaluator.h"

#include <utility>

namespace luaspy {

using system::to_ns;

namespace {

// What became of a look at a thread that executed. Of others, nothing was stopped.
void record_look(TrackedThread& thread, const TickResult& found, Loss loss) {
  if (found.look.state.kind == ThreadState::Kind::sleeping) return;
  if (found.kind == TickResult::Kind::look || (found.kind == TickResult::Kind::loss && loss != Loss::none))
    thread.looks.record(loss);
}

}  // namespace

Sample TickEvaluator::sample_of(TickResult& found) {
  TrackedThread& thread = *found.thread;
  Sample sample;
  switch (found.kind) {
    case TickResult::Kind::look: {
      auto predicted = std::make_shared<StackReader::Prediction>(thread.predicted.get()->without_stack());
      sample = thread.process.finish(found.look, *predicted);
      thread.predicted.set(std::move(predicted));
      break;
    }
    case TickResult::Kind::asleep_again:
      sample = asleep_again();
      break;
    case TickResult::Kind::waiting:
      sample.state = Sample::State::waiting;
      sample.stack = waiting_stack();
      break;
    case TickResult::Kind::loss:
      sample.loss = found.loss;
      if (found.loss == Loss::ended) thread.process.forget_threads();
      break;
  }
  return sample;
}

void TickEvaluator::evaluate(TickResult& found) {
  Sample sample = sample_of(found);
  record_look(*found.thread, found, sample.loss);
  sample.stopped_ns = found.stopped_ns;
  if (sample.state != Sample::State::sleeping) sample.cpu = static_cast<std::int16_t>(found.cpu);
  sample.quality.remote = found.remote && found.kind == TickResult::Kind::look;
  if (found.kind == TickResult::Kind::loss && found.loss == Loss::none) return;
  thread_ended_ |= sample.loss == Loss::ended;
  if (sample.loss == Loss::none && sample.state == Sample::State::running) counts_.sampled_cpu_ns += interval_.count();
  const ThreadId thread = found.thread->process.id_of(*found.thread->thread);
  const Tick tick = {to_ns(found.at - start_), found.passed_ns};
  last_.complete(thread, tick.at_ns, sample);
  sink_.add(thread, tick, sample);
}

StackId TickEvaluator::waiting_stack() {
  StackTable& stacks = tables_.stacks;
  return stacks.intern({empty_stack, stacks.intern(marker("[waiting for a CPU]"))});
}

void TickEvaluator::count(TrackedThread& thread) {
  UnseenTicks& unseen = thread.unseen;
  const auto id = [&] { return thread.process.id_of(*thread.thread); };
  if (const std::int64_t idle = unseen.idle.exchange(0)) sink_.add_idle(id(), idle);
  if (const std::int64_t waited = unseen.waited.exchange(0)) sink_.add_waiting(id(), waited);
  sink_.add_loss(Loss::late, unseen.late.exchange(0));
  sink_.add_loss(Loss::elsewhere, unseen.elsewhere.exchange(0));
  sink_.add_loss(Loss::not_stopped, unseen.not_stopped.exchange(0));
  if (const std::int64_t in_vain = unseen.in_vain.exchange(0)) sink_.add_loss(thread.looks.reason(), in_vain);
}

void TickEvaluator::renew_full_tables(std::int64_t now_ns) {
  if (!last_.tables_are_full()) return;
  last_.renew_tables(now_ns);
  sink_.tables_renewed();
}

void TickEvaluator::keep_predictions(const std::vector<std::shared_ptr<TrackedThread>>& threads) {
  for (const auto& thread : threads) predictions_[thread->process.key_of(*thread->thread)] = thread->predicted.get();
}

void TickEvaluator::give_predictions(const std::vector<std::shared_ptr<TrackedThread>>& threads) {
  for (const auto& thread : threads) {
    const auto known = predictions_.find(thread->process.key_of(*thread->thread));
    if (known != predictions_.end()) thread->predicted.set(std::move(known->second));
  }
  predictions_.clear();
}

}  // namespace luaspy
