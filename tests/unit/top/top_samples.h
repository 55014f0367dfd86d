#pragma once
// Samples for top, and what its keys and its screen make of them.

#include <catch2/catch.hpp>

#include "support/framed_top.h"
#include "support/sample_profile.h"
#include "top/top_lines.h"
#include "top/top_view.h"

namespace luaspy {

constexpr std::int64_t ms = 1'000'000, second = 1000 * ms;

inline FramedSample sample_of(Stack stack, VmState vm_state = VmState::interpreting) {
  FramedSample sample;
  sample.stack = std::move(stack);
  sample.vm_state = vm_state;
  sample.stopped_ns = ms / 10;
  return sample;
}

const ThreadInfo first = thread_info(10, 10, "lua5.4"), second_thread = thread_info(10, 11, "worker");
const Frame main_chunk = lua("main chunk", "a.lua", 0, 50), f = lua("f", "a.lua", 10, 12),
            g = lua("g", "a.lua", 20, 21), gsub = {Frame::Kind::c, "string.gsub", "lua5.4", 0, 0};

inline void tick(FramedTable& table, const FramedSample& sample, std::int64_t weight = 10 * ms) {
  table.add(first, weight, sample);
  table.end_tick(weight);
}

inline TopKey key(TopKey::Kind kind) { return {kind, {}}; }
inline TopKey key(const char* text) { return {TopKey::Kind::character, text}; }

inline std::vector<std::string> drawn(TopView& view, const TopCounts& counts, const TopTarget& target, TopSize size) {
  std::vector<std::string> lines;
  for (const TopLine& line : draw_top(view, counts, target, size)) {
    std::string text;
    for (const TopSpan& span : line.spans) text += span.text;
    CHECK(columns(text) <= size.width);
    lines.push_back(text);
  }
  CHECK(lines.size() == static_cast<std::size_t>(size.height));
  return lines;
}

using Strings = std::vector<std::string>;

}  // namespace luaspy
