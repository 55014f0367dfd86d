#include "timeline.h"

namespace luaspy {

void Timeline::add(std::uint32_t stack, std::int64_t weight_ns) {
  if (last_.samples != 0 && stack != last_.stack) {
    put(last_.stack);
    put(static_cast<std::uint64_t>(last_.samples));
    put(static_cast<std::uint64_t>(last_.weight_ns));
    last_ = {};
  }
  last_.stack = stack;
  ++last_.samples;
  last_.weight_ns += weight_ns;
}

void Timeline::put(std::uint64_t number) {
  for (; number >= 0x80; number >>= 7) bytes_.push_back(static_cast<std::uint8_t>(number | 0x80));
  bytes_.push_back(static_cast<std::uint8_t>(number));
}

void Timeline::for_each(const std::function<void(const Run&)>& see) const {
  auto byte = bytes_.begin();
  const auto next = [&] {
    std::uint64_t number = 0;
    for (unsigned shift = 0;; shift += 7) {
      number |= static_cast<std::uint64_t>(*byte & 0x7f) << shift;
      if ((*byte++ & 0x80) == 0) return number;
    }
  };
  while (byte != bytes_.end()) {
    Run run;
    run.stack = static_cast<std::uint32_t>(next());
    run.samples = static_cast<std::int64_t>(next());
    run.weight_ns = static_cast<std::int64_t>(next());
    see(run);
  }
  if (last_.samples != 0) see(last_);
}

}  // namespace luaspy
