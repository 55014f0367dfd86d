#pragma once
// What the writer and the reader of raw recordings share; docs/raw-format.md explains it.

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string_view>

namespace luaspy::raw {

inline constexpr std::string_view magic = "LUASPY\x1a";  // the version follows, one byte
// Readers skip unknown records, and unknown fields at the end of a record: only changes that they
// would misread need a new version. Weights in version 1 are nanoseconds; version 2 has their unit.
inline constexpr std::uint8_t version = 2, first_version = 1;
inline constexpr std::string_view unit_key = "unit";  // in an about record, before the first tick

inline constexpr std::size_t largest_block = 1 << 26;  // bytes of payload; writers never reach that size
inline constexpr std::size_t longest_string = 1 << 16;
// A page carries no more, and its reader reads no more: text that was compressed may become anything.
inline constexpr std::size_t most_carried = 1 << 26;
inline constexpr std::size_t most_labels = 16;       // of a sample
inline constexpr std::size_t most_source = 1 << 21;  // bytes of source text in a recording

enum Record : std::uint8_t {
  about = 1,
  string,
  frame,
  stack,
  thread,
  tick,
  sample,
  loss,
  idle,
  waiting,
  source,
  state,
  heap,
  allocation,
  labels,
  mark,
  suspended
};

// Sample records: bits of their flags; the VM state is above them.
inline constexpr std::uint64_t asleep = 1, has_stop = 2, has_quality = 4, has_loss = 8;
inline constexpr int vm_state_shift = 4;
// In a field of a sample that is `asleep`, which may be missing: it did not sleep, but had no CPU. It comes after the
// quality, which has all its numbers then: a further one would need another version. After it come the CPU and the
// labels. unknown_cpu: it has a CPU only because labels follow.
inline constexpr std::uint64_t waits_for_cpu = 1;
inline constexpr std::uint64_t unknown_cpu = std::numeric_limits<std::int16_t>::max();

// Heap records: their flags; the lower three bits are the CollectorPhase.
inline constexpr std::uint64_t phase_bits = 7, has_collected = 8, has_shrunk = 16;

// Source records: their flags.
inline constexpr std::uint64_t is_changed = 1;

// Frame records.
inline constexpr std::uint64_t line_is_near = 8;             // next to the kind, which takes the lower three bits
inline constexpr int part_shift = 4;                         // Frame::Part, two bits
inline constexpr std::uint64_t own_name = 1, in_kernel = 2;  // in the flags, the last field, which may be missing.
// in_kernel: the kind is that of native frames, which releases that do not know the flag show.

// A flame graph page carries its recording compressed (RFC 1952), in base64 (RFC 4648), between
// page_mark and the next '<'.
inline constexpr char page_begin = '<';  // a page's first byte, which is never that of a raw recording
inline constexpr std::string_view page_mark = "<script type=\"application/x-luaspy\" id=\"recording\">";

}  // namespace luaspy::raw
