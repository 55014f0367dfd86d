#pragma once
// The numbers that stand for frames, stacks, threads and sets of labels. They do not convert into each other or into
// integers. Each is valid for the table that has given it.

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace luaspy {

enum class FrameId : std::uint32_t {};
enum class StackId : std::uint32_t {};
enum class ThreadId : std::uint32_t {};
enum class LabelsId : std::uint32_t {};

inline constexpr StackId empty_stack{0};
inline constexpr LabelsId no_labels{0};

// For what is written to a file.
template <typename Id>
constexpr std::uint32_t number(Id id) {
  return static_cast<std::uint32_t>(id);
}

// A sequence that is indexed by such numbers. It counts from 0, and the next value gets the next number.
template <typename Id, typename Value, typename Values = std::vector<Value>>
class ById {
 public:
  ById() = default;
  explicit ById(std::size_t count) : values_(count) {}

  decltype(auto) operator[](Id id) { return values_[static_cast<std::size_t>(id)]; }
  decltype(auto) operator[](Id id) const { return values_[static_cast<std::size_t>(id)]; }
  Id next() const { return static_cast<Id>(values_.size()); }
  Id add(Value value) {
    values_.push_back(std::move(value));
    return static_cast<Id>(values_.size() - 1);
  }
  std::size_t size() const { return values_.size(); }
  bool empty() const { return values_.empty(); }
  bool has(Id id) const { return static_cast<std::size_t>(id) < values_.size(); }
  void resize(std::size_t size, const Value& value = {}) { values_.resize(size, value); }
  void clear() { values_.clear(); }
  auto begin() const { return values_.begin(); }
  auto end() const { return values_.end(); }
  auto begin() { return values_.begin(); }
  auto end() { return values_.end(); }
  const Values& values() const { return values_; }

 private:
  Values values_;
};

}  // namespace luaspy
