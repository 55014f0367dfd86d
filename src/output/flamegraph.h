#pragma once
// A page that shows a profile in any browser, from one file and without a network. The page is in
// flamegraph/. It contains the profile as JSON, which cannot end the element that it is in; the
// page only makes text of it, never markup:
//
//   version       1
//   unit          "bytes" or "objects": the unit of weights; left out: time, in µs
//   states        names of the states of the VM
//   sets          the profile; in a comparison there are two, before and after. Each has
//                 label, target, facts (pairs of texts) and threads:
//     tid, name, process ("" if there is only one), start (µs since the recording began), and
//     runs        five numbers each, in the order of time: node, 2 * state (+ 1 if asleep),
//                 samples, their weight, µs without a sample before them. In a comparison, and
//                 in units other than time, they have no order, and the last number is 0.
//   comparison    only with two sets: by ("shares" of all; "time", "bytes" or "objects": amounts as
//                 they were measured), scale, by which amounts of before are multiplied, and noise:
//                 how many standard deviations of independent samples a change has to exceed
//   frames        columns: kind (0 Lua, 1 C called by Lua, 2 other native, 3 no function), text and
//                 file (strings by number), line (0: none). No two have the same text.
//   nodes         columns: outer, frame. Stacks are a tree: a node is the node `outer`, which has a
//                 smaller number, plus a frame. 0 is the empty stack.
//   strings

#include "output/format.h"

namespace luaspy {

void write_flamegraph(const Profile& profile, const WriteOptions& options, std::ostream& out);

enum class Compared : std::uint8_t {
  shares,  // `before` is scaled, so that both profiles have equally many samples, bytes or objects
  weights  // as they were measured
};
// The differences between two profiles of the same unit. Frames are the same if their texts are.
// `noise`: as in the page's data.
void write_flamegraph_diff(const Profile& before, const Profile& after, Compared compared, double noise,
                           const WriteOptions& options, std::ostream& out);

}  // namespace luaspy
