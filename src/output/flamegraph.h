#pragma once
// A page that shows a profile in any browser, from one file and without a network. The page is in
// flamegraph/. It contains the profile as JSON, which cannot end the element that it is in; the
// page only makes text of it, never markup:
//
//   version       2
//   lines         true: boxes are lines at first, not functions; left out otherwise
//   mode          what is shown at first, one of the names in base/mode.h; the frames of all are there
//   nothing       by mode: the frame of a stack that has no other to show
//   unit          "bytes" or "objects": the unit of weights; left out: time, in µs
//   states        names of the states of the VM, by VmState (base/sample.h)
//   sets          the profile; in a comparison there are two, before and after. Each has
//                 label, target, facts (pairs of texts) and threads:
//     tid, name, process ("" if there is only one), start (µs since the recording began), and
//     runs        five numbers each, in the order of time: node, state, samples, their weight, µs without a sample
//     before them. The state is Sample::State, 3 * that of the VM and
//                 27 (3 times so many as the VM has) * the number of the labels. In a comparison, and in units
//                 other than time, they have no order, and the last number is 0.
//     heaps       of Lua, in a profile of time: each has a name, and points: six numbers each, in the
//                 order of time: start (µs since the recording began), end, and then bytes: the last,
//                 how much the least is below it and the most above it; 8 * collections up to here (at
//                 least) + CollectorPhase. Left out: none
//     phases      with heaps: the names by CollectorPhase
//     marks       what LuaJIT's compiler decided, in the order of time: kinds, the names by Mark::Kind, and list: four
//                 numbers each: µs since the recording began, kind, what it was, and details of it (strings by number).
//                 Left out: none
//     missing     in the order of time: at how many ticks threads slept, waited for a CPU, and were lost or left
//                 out, without a sample. Left out: none
//     charged     with pauses (Profile::charged): how many times the weights of runs count. Left out: once
//   comparison    only with two sets: by ("shares" of all; "time", "bytes" or "objects": amounts as
//                 they were measured), scale, by which amounts of before are multiplied, and noise:
//                 how many standard deviations of independent samples a change has to exceed. It also
//                 has to be at least least_difference of the whole, and least_ratio of the box;
//                 doubts: sentences about functions that may be matched wrongly. Left out: none
//   frames        columns: kind (0 Lua, 1 C called by Lua, 2 other native, 3 no function, 4 the kernel); text of the
//                 function, at: its text with the line being executed, and file (strings by
//                 number); line where it is defined (0: none), current: the line being executed (0:
//                 unknown; negative: the nearest one known); part: which part of the program it
//                 is (Frame::Part). Frames with the same text are of the same function. In a
//                 comparison also was: the text of the function before, a string by number (0: the same).
//   labels        sets of them: by turns the name and the value, strings by number. The first is
//                 empty. Left out: no sample has labels
//   nodes         columns: outer, frame. Stacks are a tree: a node is the node `outer`, which has a
//                 smaller number, plus a frame. 0 is the empty stack.
//   sources       of Lua files, if the recording has them: file (a string by number), text, and
//                 changed: whether it was written after the process had started
//   strings
//
// A page of everything that was recorded also carries the raw recording itself (raw_format.h), which
// luaspy report reads.

#include "output/comparison.h"
#include "output/write_options.h"

namespace luaspy {

void write_flamegraph(const Profile& profile, const WriteOptions& options, std::ostream& out);

// The differences between two profiles of the same unit. Frames are the same if their texts are.
void write_flamegraph_diff(const Profile& before, const Profile& after, const Comparison& comparison,
                           const WriteOptions& options, std::ostream& out);

}  // namespace luaspy
