#pragma once
// What samples are labelled with: names and their values, each set of them kept once.

#include <algorithm>
#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"

namespace luaspy {

struct SampleLabel {
  std::string name, value;
  auto operator<=>(const SampleLabel&) const = default;
};
using Labels = std::vector<SampleLabel>;  // each name once

inline constexpr std::size_t longest_label = 256;  // bytes of a name or a value
inline constexpr std::string_view other_values = "(other)";
inline constexpr std::string_view unknown_value = "(unknown)";  // it could not be read

// The labels that luaspy knows how to read. Values of trace_label are "TRACE-SPAN", 32 and 16 digits, as in the header
// "traceparent" of W3C Trace Context; each value of slow_label is one request (record --slower).
inline constexpr std::string_view request_label = "request", slow_label = "slow", trace_label = "trace",
                                  phase_label = "phase", fiber_label = "fiber", coroutine_label = "coroutine",
                                  plugin_label = "plugin";

class LabelTable {
 public:
  // Sets, without and with a label that each request has another value of: further ones have other_values, of the
  // latter that label only.
  static constexpr std::size_t most = 1 << 14, most_of_requests = 1 << 13;

  LabelsId intern(const Labels& labels) {
    if (labels.empty()) return no_labels;
    if (const auto known = index_.find(labels); known != index_.end()) return known->second;
    const bool of_request = std::ranges::any_of(labels, is_of_request);
    if (of_request ? of_requests_ < most_of_requests : sets_.size() - of_requests_ < most) {
      if (of_request) ++of_requests_;
      return add(labels);
    }
    Labels others = labels;
    for (SampleLabel& label : others) {
      if (!of_request || is_of_request(label)) label.value = other_values;
    }
    if (of_request) return intern(others);
    if (const auto known = index_.find(others); known != index_.end()) return known->second;
    return sets_.size() - of_requests_ < most + most_names ? add(others) : no_labels;
  }
  const Labels& operator[](LabelsId id) const { return sets_[id]; }
  // nullptr: it has no label of this name.
  const std::string* find(LabelsId id, std::string_view name) const {
    for (const SampleLabel& label : sets_[id]) {
      if (label.name == name) return &label.value;
    }
    return nullptr;
  }
  std::size_t size() const { return sets_.size(); }
  auto begin() const { return sets_.begin(); }
  auto end() const { return sets_.end(); }

 private:
  static constexpr std::size_t most_names = 256;  // sets of them: a file may say anything
  static bool is_of_request(const SampleLabel& label) {
    return (label.name == trace_label || label.name == slow_label) && label.value != other_values;
  }
  LabelsId add(const Labels& labels) { return index_[labels] = sets_.add(labels); }

  ById<LabelsId, Labels> sets_{1};  // by LabelsId; no_labels: the empty set
  std::map<Labels, LabelsId> index_;
  std::size_t of_requests_ = 0;  // sets
};

}  // namespace luaspy
