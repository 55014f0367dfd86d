#include "profile/timeline.h"

#include <algorithm>

#include "base/varint.h"

namespace luaspy {

void Timeline::add(std::uint32_t situation, std::int64_t at_ns, std::int64_t weight_ns) {
  const std::int64_t end = last_.start_ns + last_.weight_ns, start = std::max(at_ns - weight_ns, end);
  if (last_.samples != 0 && (situation != last_.situation || start != end)) {
    put(last_);
    last_ = {};
  }
  if (last_.samples == 0) last_.situation = situation, last_.start_ns = start;
  ++last_.samples;
  last_.weight_ns += weight_ns;
}

void Timeline::put(const Run& run) {
  const std::int64_t gap = run.start_ns - written_end_ns_;
  put_varint(bytes_, run.situation);
  put_varint(bytes_, static_cast<std::uint64_t>(run.samples) << 1 | (gap != 0));
  put_varint(bytes_, static_cast<std::uint64_t>(run.weight_ns));
  if (gap != 0) put_varint(bytes_, static_cast<std::uint64_t>(gap));
  written_end_ns_ = run.start_ns + run.weight_ns;
}

void Timeline::for_each(const std::function<void(const Run&)>& see) const {
  auto byte = bytes_.begin();
  const auto next = [&] { return take_varint(byte, bytes_.end()).value_or(0); };
  std::int64_t end = 0;
  while (byte != bytes_.end()) {
    Run run;
    run.situation = static_cast<std::uint32_t>(next());
    const std::uint64_t samples = next();
    run.samples = static_cast<std::int64_t>(samples >> 1);
    run.weight_ns = static_cast<std::int64_t>(next());
    run.start_ns = end + ((samples & 1) != 0 ? static_cast<std::int64_t>(next()) : 0);
    end = run.start_ns + run.weight_ns;
    see(run);
  }
  if (last_.samples != 0) see(last_);
}

}  // namespace luaspy
