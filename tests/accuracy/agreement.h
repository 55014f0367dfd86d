#pragma once
// Whether both ways of reading call frame information, rows and libunwind, give the same frames for
// a stop. Where they agree, one is as right as the other.

#include <fmt/format.h>

#include <string>
#include <vector>

#include "stack/stack_reader.h"
#include "stack/vm_frames.h"

namespace luaspy {

class Agreement {
 public:
  explicit Agreement(const Modules& modules)
      : modules_(modules), reference_(modules, own_machine(), Unwinder::Source::libunwind) {}

  // The frames that `reader` has just found from `registers` by rows.
  void look(const StackReader& reader, const StackReader::Finished& finished, const Registers& registers) {
    constexpr int rate = 16;  // libunwind costs time
    if (looks_++ % rate != 0) return;
    for (const Address entry : reader.unwinder().entries()) reference_.add_entry(entry);
    ++compared;
    frames += static_cast<std::int64_t>(finished.natives().size());
    // Modules may have been mapped and unmapped; and libunwind also uses what it has cached for a
    // pc when it looks up the preceding pc.
    reference_.forget();
    const auto trace_of = [&](const NativeFrame& frame) -> VmFrames::CodeRange {
      const auto same = std::ranges::find_if(
          finished.natives(), [&](const NativeFrame& known) { return known.in_trace && known.lookup == frame.lookup; });
      return same != finished.natives().end() ? VmFrames::CodeRange{frame.lookup, frame.lookup + 1}
                                              : VmFrames::CodeRange{};
    };
    const Walked& lua = finished.joined.from.lua;
    const VmFrames rule(own_machine(), modules_, reader.native_code(), lua.vm_frames(), lua.on_trace(), trace_of);
    expected_.clear();
    reference_.unwind(registers, finished.snapshot(), &rule, expected_, 8192);
    const std::string difference = compare(finished.natives(), expected_);
    if (difference.empty()) return;
    if (differ++ == 0) first = difference;
  }

  // Prints how many were compared; false if any differ.
  bool report() const {
    if (differ == 0)
      return fmt::print("  rows and libunwind: {} stops, {} frames, all the same\n", compared, frames), true;
    fmt::print("  FAILED: rows and libunwind: {} of {} stops differ, the first at {}\n", differ, compared, first);
    return false;
  }

  // The first frame that differs, and how; "" if none does.
  static std::string compare(const std::vector<NativeFrame>& rows, const std::vector<NativeFrame>& libunwind) {
    for (std::size_t i = 0; i < std::min(rows.size(), libunwind.size()); ++i) {
      const NativeFrame &a = rows[i], &b = libunwind[i];
      const auto where = [&](const char* what, Address x, Address y) {
        return fmt::format("frame {} of {} and {}, pc {:#x}: {} {:#x}, by libunwind {:#x}", i, rows.size(),
                           libunwind.size(), a.pc, what, x, y);
      };
      if (a.pc != b.pc || a.lookup != b.lookup) return where("pc", a.pc, b.pc);
      if (a.sp != b.sp) return where("sp", a.sp, b.sp);
      if (a.cfa != b.cfa) return where("CFA", a.cfa, b.cfa);
      if (a.function != b.function) return where("function", a.function, b.function);
      if (a.step != b.step) return where("step", static_cast<Address>(a.step), static_cast<Address>(b.step));
      for (unsigned number = 0; number < Registers::most; ++number) {
        const bool same = a.registers.knows(number) == b.registers.knows(number) &&
                          a.registers[number] == b.registers[number];
        if (!same) return where(fmt::format("register {}", number).c_str(), a.registers[number], b.registers[number]);
      }
    }
    return rows.size() == libunwind.size() ? ""
                                           : fmt::format("{} frames, by libunwind {}", rows.size(), libunwind.size());
  }

  std::int64_t compared = 0, frames = 0, differ = 0;
  std::string first;

 private:
  const Modules& modules_;
  Unwinder reference_;
  std::vector<NativeFrame> expected_;
  std::int64_t looks_ = 0;
};

}  // namespace luaspy
