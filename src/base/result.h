#pragma once
// Result<T>: a value or an Error. Its members are named like those of std::expected, which g++ 12
// does not have.

#include <cassert>
#include <string>
#include <utility>
#include <variant>

namespace luaspy {

// Why a command ends early. The values are luaspy's exit codes (docs/exit-codes.md), so
// they never change.
enum class Cause {
  internal = 1,
  usage = 2,
  no_such_process = 3,
  permission = 4,
  no_lua = 5,
  not_initialised = 6,
  unsupported = 7,
  output = 8,
  already_traced = 9,
  target_ended = 10,
  no_samples = 11,
  command_not_started = 126,  // as shells use it
  command_not_found = 127,
  reader_gone = 141,  // of standard output; as if SIGPIPE had ended luaspy, without a word
};

struct Error {
  Cause cause = Cause::internal;
  std::string text;  // one sentence; a second one may name the command that helps
};

template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::move(value)) {}
  Result(Error error) : state_(std::move(error)) {}

  bool has_value() const { return state_.index() == 0; }
  explicit operator bool() const { return has_value(); }

  T& value() { return assert(has_value()), std::get<0>(state_); }
  const T& value() const { return assert(has_value()), std::get<0>(state_); }
  T& operator*() { return value(); }
  const T& operator*() const { return value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }
  T value_or(T other) const { return has_value() ? std::get<0>(state_) : std::move(other); }

  const Error& error() const { return assert(!has_value()), std::get<1>(state_); }

 private:
  std::variant<T, Error> state_;
};

template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Error error) : error_(std::move(error)), failed_(true) {}

  bool has_value() const { return !failed_; }
  explicit operator bool() const { return has_value(); }
  const Error& error() const { return assert(failed_), error_; }

 private:
  Error error_;
  bool failed_ = false;
};

}  // namespace luaspy
