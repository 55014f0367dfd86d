#include "input/sample_labels.h"

#include <algorithm>
#include <charconv>

#include "base/text.h"
#include "profile/raw_format.h"

namespace luaspy {
namespace {

template <typename Number>
Number number_of(const std::string& text, Number otherwise) {
  Number number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() && number >= 0 ? number : otherwise;
}

}  // namespace

void SampleLabels::add(std::string_view key, const std::string& value, std::int64_t target) {
  if (key == "thread") thread.name = value;
  else if (key == "tid" || key == "thread_id") thread.tid = number_of(value, 0);
  else if (key == "process") thread.process = value;
  else if (key == "cpu") attributes.cpu = number_of(value, std::int16_t{-1});
  else if (key == "pid") {
    thread.pid = number_of(value, 0);
    if (thread.pid == target) thread.pid = 0;
  } else if (key == "vm_state") {
    for (std::size_t i = 0; i < vm_state_count; ++i) {
      if (name(static_cast<VmState>(i)) == value) attributes.vm_state = static_cast<VmState>(i);
    }
  } else if (key == "state") {
    for (const auto state : {Sample::State::running, Sample::State::sleeping, Sample::State::waiting}) {
      if (name(state) == value) attributes.state = state;
    }
  } else if (labels.size() < raw::most_labels) {
    SampleLabel label = {printable(key, longest_label), printable(value, longest_label)};
    if (std::ranges::find(labels, label.name, &SampleLabel::name) == labels.end()) labels.push_back(std::move(label));
  }
}

}  // namespace luaspy
