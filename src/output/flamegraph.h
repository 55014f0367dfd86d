#pragma once
// A page that shows a profile in any browser, from one file and without a network. The page is in
// flamegraph/; it carries the profile as JSON in which nothing can end the element that it is in,
// and makes text of it, never markup:
//
//   version       1
//   unit          "bytes" or "objects": what samples weigh; left out: time, in µs
//   states        names of what the VM did
//   sets          the profile; in a comparison two, what was before and what is after. Each:
//                 label, target, facts (pairs of texts) and threads:
//     tid, name, process ("" if there is but one), start (µs since the recording began), and
//     runs        five numbers each, in the order of time: node, 2 * state (+ 1 if asleep),
//                 samples, what they weigh, µs without a sample before them. In a comparison, and
//                 where they do not weigh time, in no order, and the last number is 0.
//   comparison    only with two sets: by ("shares" of all; "time", "bytes" or "objects": amounts as
//                 they were measured), and scale, which amounts of before are multiplied by
//   frames        columns: kind (0 Lua, 1 C called by Lua, 2 other native, 3 no function), text and
//                 file (strings by number), line (0: none). No two have the same text.
//   nodes         columns: outer, frame. Stacks are a tree: a node is another one, which has a
//                 smaller number, and a frame more. 0 is the empty stack.
//   strings

#include "output/format.h"

namespace luaspy {

void write_flamegraph(const Profile& profile, const WriteOptions& options, std::ostream& out);

enum class Compared : std::uint8_t {
  shares,  // what was before is scaled, so that both profiles have as many samples, bytes or objects
  weights  // as they were measured
};
// What has changed, of two profiles of one unit. Frames are the same if they read the same.
void write_flamegraph_diff(const Profile& before, const Profile& after, Compared compared, const WriteOptions& options,
                           std::ostream& out);

}  // namespace luaspy
