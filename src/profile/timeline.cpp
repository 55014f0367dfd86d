#include "profile/timeline.h"

#include <algorithm>

#include "base/varint.h"

namespace luaspy {
namespace {

constexpr std::uint64_t gap_bit = 1, length_bit = 2;
constexpr int flag_bits = 2;

}  // namespace

void Timeline::add(std::uint32_t situation, std::int64_t start_ns, std::int64_t end_ns, std::int64_t weight,
                   std::int64_t samples) {
  const std::int64_t start = std::max(start_ns, last_.end_ns);
  if (last_.samples != 0 && (situation != last_.situation || start != last_.end_ns)) {
    put(last_);
    last_ = {};
  }
  if (last_.samples == 0) last_.situation = situation, last_.start_ns = start;
  last_.samples += samples;
  last_.end_ns = start + (end_ns - start_ns);
  last_.weight += weight;
}

void Timeline::put(const Run& run) {
  const std::int64_t gap = run.start_ns - written_end_ns_, length = run.end_ns - run.start_ns;
  put_varint(bytes_, run.situation);
  put_varint(bytes_, static_cast<std::uint64_t>(run.samples) << flag_bits | (gap != 0 ? gap_bit : 0) |
                         (length != run.weight ? length_bit : 0));
  put_varint(bytes_, static_cast<std::uint64_t>(run.weight));
  if (gap != 0) put_varint(bytes_, static_cast<std::uint64_t>(gap));
  if (length != run.weight) put_varint(bytes_, static_cast<std::uint64_t>(length));
  written_end_ns_ = run.end_ns;
}

void Timeline::for_each(const std::function<void(const Run&)>& see) const {
  auto byte = bytes_.begin();
  const auto next = [&] { return read_varint(byte, bytes_.end()).value_or(0); };
  std::int64_t end = 0;
  while (byte != bytes_.end()) {
    Run run;
    run.situation = static_cast<std::uint32_t>(next());
    const std::uint64_t samples = next();
    run.samples = static_cast<std::int64_t>(samples >> flag_bits);
    run.weight = static_cast<std::int64_t>(next());
    run.start_ns = end + ((samples & gap_bit) != 0 ? static_cast<std::int64_t>(next()) : 0);
    end = run.end_ns = run.start_ns + ((samples & length_bit) != 0 ? static_cast<std::int64_t>(next()) : run.weight);
    see(run);
  }
  if (last_.samples != 0) see(last_);
}

}  // namespace luaspy
