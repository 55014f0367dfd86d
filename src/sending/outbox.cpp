#include "sending/outbox.h"

#include <fmt/format.h>

#include <utility>

#include "system/signals.h"

namespace luaspy {

std::size_t SendQueue::size_of(const HttpRequest& request) {
  constexpr std::size_t around = 1024;  // URL, headers
  return request.body.size() + around;
}

void SendQueue::add(HttpRequest request) {
  const std::size_t size = size_of(request);
  if (size > most_bytes_) {
    ++dropped_;
    return;
  }
  while (bytes_ + size > most_bytes_) drop_first();
  bytes_ += size;
  requests_.push_back(std::move(request));
}

void SendQueue::drop_first() {
  remove(first_);
  ++dropped_;
}

std::optional<std::int64_t> SendQueue::first() const {
  return requests_.empty() ? std::nullopt : std::optional(first_);
}

const HttpRequest* SendQueue::find(std::int64_t number) const {
  return number == first_ && !requests_.empty() ? &requests_.front() : nullptr;
}

void SendQueue::remove(std::int64_t number) {
  if (find(number) == nullptr) return;
  bytes_ -= size_of(requests_.front());
  requests_.pop_front();
  ++first_;
}

Outbox::Outbox(std::unique_ptr<HttpClient> client, std::size_t most_bytes, std::uint64_t seed, Say say)
    : client_(std::move(client)), say_(std::move(say)), queue_(most_bytes), retry_pause_(seed) {
  thread_ = system::thread_without_signals([this] { run(); });
}

Outbox::~Outbox() {
  {
    const std::lock_guard lock(lock_);
    ends_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void Outbox::add(HttpRequest request) {
  {
    const std::lock_guard lock(lock_);
    queue_.add(std::move(request));
  }
  changed_.notify_all();
}

OutboxCounts Outbox::counts() const {
  const std::lock_guard lock(lock_);
  OutboxCounts counts = counts_;
  counts.dropped += queue_.dropped();
  counts.waiting = queue_.size();
  counts.trouble = trouble_;
  counts.waiting_bytes = static_cast<std::int64_t>(queue_.bytes());
  return counts;
}

void Outbox::finish(std::chrono::milliseconds patience) {
  std::unique_lock lock(lock_);
  changed_.notify_all();
  (void)changed_.wait_for(lock, patience, [this] { return queue_.size() == 0; });
}

void Outbox::run() {
  std::unique_lock lock(lock_);
  while (!ends_) {
    const std::optional<std::int64_t> number = queue_.first();
    if (!number) {
      changed_.wait(lock, [this] { return ends_ || queue_.first().has_value(); });
      continue;
    }
    const HttpRequest request = *queue_.find(*number);
    lock.unlock();
    const Outcome outcome = send_once(*client_, request);
    lock.lock();
    handle(outcome);
    if (outcome.kind != Outcome::Kind::again) {
      if (outcome.kind == Outcome::Kind::delivered) ++counts_.sent, counts_.sent_bytes += std::ssize(request.body);
      else ++counts_.refused;
      queue_.remove(*number);
      changed_.notify_all();
      continue;
    }
    (void)changed_.wait_for(lock, retry_pause_.next(outcome.retry_after), [this] { return ends_; });
  }
}

// Each trouble is said once, however long it lasts.
void Outbox::handle(const Outcome& outcome) {
  if (outcome.kind == Outcome::Kind::delivered) {
    retry_pause_.reset();
    const std::string before = std::exchange(trouble_, outcome.why);
    if (!outcome.why.empty() && before != outcome.why) say_(outcome.why);
    if (outcome.why.empty() && !before.empty()) say_("The engine takes profiles again.");
    return;
  }
  if (std::exchange(trouble_, outcome.why) == outcome.why) return;
  say_(outcome.why + (outcome.kind == Outcome::Kind::again ? " It is tried again." : " This message is lost."));
}

}  // namespace luaspy
