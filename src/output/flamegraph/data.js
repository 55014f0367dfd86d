// The data in the page, and the sums from which all views are made. flamegraph.h describes its form.

const kinds = ["lua", "c", "native", "marker"];
// What a state means for the colour: 1 the collector, 2 machine code or functions that it called, 3 the JIT compiler.
const stateClasses = {"garbage collector": 1, "machine code": 2, "trace exit": 3, "recorder": 3, "optimiser": 3, "assembler": 3};
const runWidth = 5;   // numbers of a run: node, 2 * state + asleep, samples, weight, µs without a sample before it

// Control characters, and those that change the direction of text, could make a name look like another one.
function visible(text) {
  return text.replace(/[\u0000-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g,
    (c) => "\\u" + c.charCodeAt(0).toString(16).padStart(4, "0"));
}

// Sums are kept in columns: samples, weight (µs, bytes or objects: `unit`), the amount counted in each state, and in a comparison the samples and weight of
// the profile before. In a profile of time samples are counted, because all have about the same weight; otherwise weights are. The width of a box is the
// counted amount, or the weight in a comparison of amounts as they were measured.
function load(json) {
  const strings = json.strings.map(visible);
  const of = (indices) => indices.map((i) => strings[i]);
  const frames = {
    count: json.frames.text.length, text: of(json.frames.text), file: of(json.frames.file), line: json.frames.line,
    kind: json.frames.kind.map((k) => kinds[k]),
  };
  const states = [...json.states, "asleep"];
  const sets = json.sets.map((set) => ({
    label: set.label, target: visible(set.target), facts: set.facts.map(([name, value]) => [visible(name), visible(value)]),
    doubts: (set.doubts ?? []).map(visible),
    threads: set.threads.map((t) => ({tid: t.tid, name: visible(t.name), process: visible(t.process), start: t.start, runs: Float64Array.from(t.runs)})),
  }));
  const comparison = json.comparison ?? null, unit = json.unit ?? "time";   // {by: "shares" | unit, scale}
  const columns = {samples: 0, weight: 1, state: 2, before: 2 + states.length, count: 2 + states.length + (comparison ? 2 : 0)};
  columns.counted = unit === "time" ? columns.samples : columns.weight;
  columns.width = comparison && comparison.by !== "shares" ? columns.weight : columns.counted;
  return {
    frames, states, sets, comparison, columns, unit,
    inOrder: comparison === null && unit === "time",   // the order of time can be shown
    stateClass: states.map((name) => stateClasses[name] ?? 0),
    outer: Int32Array.from(json.nodes.outer), frame: Int32Array.from(json.nodes.frame),
  };
}

// A tree of frames. Each node comes after its outer one; the root is first and has no frame. own[column][node], total[column][node].
function makeTree(data, outer, frame, own) {
  const total = own.map((column) => {
    if (!column.some(Boolean)) return column;
    const sums = column.slice();
    for (let node = sums.length - 1; node > 0; --node) sums[outer[node]] += sums[node];
    return sums;
  });
  return {data, outer, frame, own, total, children: childrenOf(outer)};
}

// The children of a node are in `list` from start[node] to start[node + 1].
function childrenOf(outer) {
  const start = new Int32Array(outer.length + 1), list = new Int32Array(Math.max(outer.length - 1, 0));
  for (let node = 1; node < outer.length; ++node) ++start[outer[node] + 1];
  for (let node = 0; node < outer.length; ++node) start[node + 1] += start[node];
  const next = start.slice();
  for (let node = 1; node < outer.length; ++node) list[next[outer[node]]++] = node;
  return {start, list};
}

const zeroColumns = (data, length) => Array.from({length: data.columns.count}, () => new Float64Array(length));

// The tree of the threads' samples; `threads` are indices, null is all. A comparison uses all threads of both profiles.
function sumThreads(data, threads) {
  const own = zeroColumns(data, data.outer.length), {columns} = data;
  const add = (runs, samples, weight, states) => {
    for (let i = 0; i < runs.length; i += runWidth) {
      const node = runs[i], state = stateOf(data, runs[i + 1]);
      own[samples][node] += runs[i + 2];
      own[weight][node] += runs[i + 3];
      if (states) own[columns.state + state][node] += runs[i + 2 + columns.counted];
    }
  };
  const now = data.sets[data.sets.length - 1];
  now.threads.forEach((thread, i) => { if (!threads || threads.includes(i)) add(thread.runs, columns.samples, columns.weight, true); });
  if (data.comparison) for (const thread of data.sets[0].threads) add(thread.runs, columns.before, columns.before + 1, false);
  return makeTree(data, data.outer, data.frame, own);
}

// The counted amount of the thread.
function countedOf(data, thread) {
  let sum = 0;
  for (let i = 2 + data.columns.counted; i < thread.runs.length; i += runWidth) sum += thread.runs[i];
  return sum;
}

function stateOf(data, number) { return number & 1 ? data.states.length - 1 : number >> 1; }

// Visits the tree from the root; `see` returns whether to visit the node's children, after which `leave` is called.
function walk(tree, see, leave = () => {}) {
  const {start, list} = tree.children, stack = [0];
  while (stack.length) {
    const node = stack.pop();
    if (node < 0) { leave(~node); continue; }
    if (!see(node)) continue;
    stack.push(~node);
    for (let i = start[node]; i < start[node + 1]; ++i) stack.push(list[i]);
  }
}

// Sums by frame, each sample once however often the frame is on its stack. outermost[frame]: its nodes without an outer node of the same frame.
function sumFrames(tree) {
  const {frames} = tree.data, own = zeroColumns(tree.data, frames.count), total = zeroColumns(tree.data, frames.count);
  const inside = new Int32Array(frames.count), outermost = Array.from({length: frames.count}, () => []);
  const put = (sums, frame, from, node) => { for (let c = 0; c < sums.length; ++c) sums[c][frame] += from[c][node]; };
  walk(tree, (node) => {
    const frame = tree.frame[node];
    if (frame >= 0) {
      put(own, frame, tree.own, node);
      if (inside[frame]++ === 0) put(total, frame, tree.total, node), outermost[frame].push(node);
    }
    return true;
  }, (node) => { if (tree.frame[node] >= 0) --inside[tree.frame[node]]; });
  return {own, total, outermost};
}

// A tree that is built from paths.
class Merged {
  constructor(data) {
    this.data = data;
    this.outer = [0];
    this.frame = [-1];
    this.known = new Map();
    this.added = [];   // by turns a node, and the index of its own amounts in `sums`
  }
  child(node, frame) {
    const key = node * this.data.frames.count + frame, known = this.known.get(key);
    if (known !== undefined) return known;
    this.known.set(key, this.outer.length);
    this.outer.push(node);
    this.frame.push(frame);
    return this.outer.length - 1;
  }
  add(node, from) { this.added.push(node, from); }
  tree(sums) {
    const own = sums.map((column) => {
      const sum = new Float64Array(this.outer.length);
      if (column.some(Boolean)) for (let i = 0; i < this.added.length; i += 2) sum[this.added[i]] += column[this.added[i + 1]];
      return sum;
    });
    return makeTree(this.data, Int32Array.from(this.outer), Int32Array.from(this.frame), own);
  }
}

// The callees of the frame: the root's only child is the frame itself.
function calleesOf(tree, nodes, frame) {
  const merged = new Merged(tree.data), {start, list} = tree.children, open = nodes.map((node) => [node, merged.child(0, frame)]);
  while (open.length) {
    const [node, at] = open.pop();
    merged.add(at, node);
    for (let i = start[node]; i < start[node + 1]; ++i) open.push([list[i], merged.child(at, tree.frame[list[i]])]);
  }
  return merged.tree(tree.own);
}

// The callers of the frame, inverted: the root's only child is the frame, whose children are its callers.
function callersOf(tree, nodes, frame) {
  const merged = new Merged(tree.data);
  for (const node of nodes) {
    let at = merged.child(0, frame);
    for (let outer = tree.outer[node]; outer !== 0; outer = tree.outer[outer]) at = merged.child(at, tree.frame[outer]);
    merged.add(at, node);
  }
  return merged.tree(tree.total);
}

// Samples with a frame that matches, each counted once, and their weight.
function sumMatches(tree, matches) {
  const sum = [0, 0];
  walk(tree, (node) => {
    if (tree.frame[node] < 0 || !matches[tree.frame[node]]) return true;
    sum[0] += tree.total[0][node], sum[1] += tree.total[1][node];
    return false;
  });
  return sum;
}
