#pragma once
// Which of the samples, or of the coroutines that were suspended, --label leaves.

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "base/pattern.h"
#include "events/label_table.h"

namespace luaspy {

class WantedLabels {
 public:
  // Each is NAME=PATTERN, and all have to be there. `table` must outlive it.
  WantedLabels(const std::vector<std::string>& labels, const LabelTable& table) : table_(table) {
    for (const std::string& label : labels) {
      const std::size_t equals = label.find('=');
      wanted_.push_back({label.substr(0, equals), Pattern(std::string_view(label).substr(equals + 1))});
    }
  }

  bool admit(LabelsId labels) {
    if (wanted_.empty()) return true;
    if (!known_.has(labels)) known_.resize(table_.size(), not_asked);
    std::int8_t& known = known_[labels];
    if (known == not_asked) {
      known = std::ranges::all_of(wanted_, [&](const Wanted& wanted) {
        const std::string* const value = table_.find(labels, wanted.name);
        return value != nullptr && wanted.value.found_in(*value);
      });
    }
    return known != 0;
  }

 private:
  struct Wanted {
    std::string name;
    Pattern value;
  };
  static constexpr std::int8_t not_asked = -1;
  const LabelTable& table_;
  std::vector<Wanted> wanted_;
  ById<LabelsId, std::int8_t> known_;
};

}  // namespace luaspy
