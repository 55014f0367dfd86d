// From the stacks in the page to those that are shown: which samples, which of their frames, and what is joined.

// What can be done to a function, and how the list of what is applied says it.
const editTexts = {
  only: (name, calls) => `only ${name} and what it ${calls}`,
  without: (name) => `without ${name}`,
  single: (name, calls) => `${name} with all that it ${calls} as one`,
};
const longestCycle = 3;   // calls that are folded if they repeat

// `edits`: [{how, fn}], in the order in which they were made. shows[frame]: it has boxes; `nothing`: the
// frame of stacks that have no other (undefined: none). `lines`: frames are lines, else functions. `fold`: frames that
// repeat are one. Returns a tree of frames, and
//   place[node]   where the samples of a stack of the page are: a node of the tree, -1 if they are left out
//   times[node]   how many calls of a stack it stands for, at most
function shapeStacks(data, {edits, shows, nothing, lines, fold}) {
  const {fn} = data.frames, nodes = data.outer.length, of = (how) => edits.filter((edit) => edit.how === how).map((edit) => edit.fn);
  const only = of("only"), without = new Set(of("without")), single = new Set(of("single"));
  const met = new Uint16Array(nodes), gone = new Uint8Array(nodes), ended = new Uint8Array(nodes);   // met: how many of `only`
  const place = new Int32Array(nodes), calls = new Int32Array(nodes).fill(1), made = new Shaping(data.frames.count);
  for (let node = 1; node < nodes; ++node) {
    const outer = data.outer[node], frame = data.frame[node], at = place[outer];
    met[node] = met[outer] + (only[met[outer]] === fn[frame]);
    gone[node] = gone[outer] || without.has(fn[frame]);
    const counts = met[node] === only.length && !ended[outer];
    ended[node] = ended[outer] || (counts && single.has(fn[frame]));
    if (!counts || !shows[frame]) { place[node] = at, calls[node] = calls[outer]; continue; }
    const shown = lines ? frame : fn[frame], length = fold ? made.repeated(at, shown) : 0;
    if (length === 0) { place[node] = made.child(at, shown); continue; }
    let back = at, last = outer;
    for (let i = 1; i < length; ++i) back = made.outer[back];
    while (place[last] !== back) last = data.outer[last];
    place[node] = back, calls[node] = calls[last] + 1;
    for (let i = 0; i < length; ++i, back = made.outer[back]) made.times[back] = Math.max(made.times[back], calls[node]);
  }
  if (nothing !== undefined) for (let node = 1; node < nodes; ++node) if (place[node] === 0) place[node] = made.child(0, fn[nothing]);
  for (let node = 0; node < nodes; ++node) if (gone[node] || met[node] < only.length) place[node] = -1;
  return {outer: Int32Array.from(made.outer), frame: Int32Array.from(made.frame), times: made.times, place};
}

class Shaping {
  constructor(frames) {
    Object.assign(this, {frames, outer: [0], frame: [-1], times: [1], known: new Map()});
  }
  child(node, frame) {
    const key = node * this.frames + frame, known = this.known.get(key);
    if (known !== undefined) return known;
    this.known.set(key, this.outer.length);
    this.outer.push(node), this.frame.push(frame), this.times.push(1);
    return this.outer.length - 1;
  }
  // If the last calls of the stack `node` and `frame` are the same as those right before them, their number, else 0.
  repeated(node, frame) {
    const path = [-1];
    for (let at = node; at !== 0 && path.length < 2 * longestCycle; at = this.outer[at]) path.push(at);
    const frameAt = (i) => (i === 0 ? frame : this.frame[path[i]]);
    for (let length = 1; 2 * length <= path.length; ++length) {
      let same = 0;
      while (same < length && frameAt(same) === frameAt(same + length)) ++same;
      if (same === length) return length;
    }
    return 0;
  }
}
