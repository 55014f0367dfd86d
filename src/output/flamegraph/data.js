// The data in the page, and the sums from which all views are made. flamegraph.h describes its form.

// By Frame::Kind, and those of a heap (HeapPageTree::Kind).
const kinds = ["lua", "c", "native", "marker", "kernel", "table", "string", "function", "userdata", "coroutine", "joined"];
const runWidth = 5;   // numbers of a run: node, state, samples, weight, µs without a sample before it; the state: that of the thread (0 runs, 1 asleep, 2 waiting for a CPU) + 3 * (that of the VM + so many as the VM has * labels)

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
  const states = [...json.states, "asleep", "waiting for a CPU"];
  const sets = json.sets.map((set) => ({
    label: set.label, target: visible(set.target), facts: set.facts.map(([name, value]) => [visible(name), visible(value)]),
    doubts: (set.doubts ?? []).map(visible), heaps: loadHeaps(set.heaps, set.phases), marks: loadMarks(set.marks, strings), missing: set.missing ?? [0, 0, 0],
    threads: set.threads.map((t) => ({charged: set.charged ?? 1, tid: t.tid, name: visible(t.name), process: visible(t.process), start: t.start, runs: Float64Array.from(t.runs)})),
  }));
  const unit = json.unit ?? "time", comparison = json.comparison ? {...json.comparison} : null;   // as in flamegraph.h, and whole, in the units of widths
  const columns = {samples: 0, weight: 1, state: 2, before: 2 + states.length, label: 2 + states.length + (comparison ? 2 : 0)};
  columns.count = columns.label;
  columns.counted = unit === "time" ? columns.samples : columns.weight;
  columns.width = comparison && comparison.by !== "shares" ? columns.weight : columns.counted;
  if (comparison) {
    const [before, after] = sets.map((set) => wholeOf(set, columns.width === columns.weight ? 3 : 2));
    comparison.whole = Math.max(before * comparison.scale, after);
  }
  return {
    frames: json.heap ? loadHeapFrames(json, strings) : loadFrames(json.frames, strings), heap: json.heap ? loadHeap(json, strings) : null,
    words: json.heap ? heapWords : profileWords, states, sets, comparison, columns, unit,
    inOrder: comparison === null && unit === "time" && !json.untimed,   // the order of time can be shown
    lines: json.lines === true, mode: json.mode, nothing: json.nothing,
    sources: new Map((json.sources ?? []).map(({file, text, changed}) => [strings[file], {text, changed}])),
    outer: Int32Array.from(json.nodes.outer), frame: Int32Array.from(json.nodes.frame),
    labels: (json.labels ?? [[]]).map((set) => set.flatMap((name, i) => (i % 2 ? [] : [labelText(strings[name], strings[set[i + 1]])]))),
    wanted: null,   // by labels: whether runs with these count; null: all do
    classes: null,  // classifyBy()
  };
}

// No text has a line break (visible()).
const labelText = (name, value) => `${name}\n${value}`, shownLabel = (label) => label.replace("\n", "=");

// Only runs with this label count from now on; "": all.
function wantLabel(data, label) { data.wanted = label === "" ? null : data.labels.map((set) => set.includes(label)); }

// Sums tell the values of this label apart from now on, "": no label's. The largest have a class each, then come all others, and what is without it.
// Returns whether that is another one than before.
function classifyBy(data, name) {
  if (name === (data.classes?.name ?? "")) return false;
  data.classes = name === "" ? null : classesOf(data, name);
  data.columns.count = data.columns.label + (data.classes?.texts.length ?? 0);
  return true;
}

function classesOf(data, name) {
  const all = countLabels(data).names.find((each) => each.name === name).values, largest = all.slice(0, manyColours.length).map(([label]) => label);
  const classOf = (label) => (label === undefined ? largest.length + 1 : largest.includes(label) ? largest.indexOf(label) : largest.length);
  return {
    name, of: data.labels.map((set) => classOf(set.find((label) => label.startsWith(`${name}\n`)))),
    texts: [...largest.map((label) => label.slice(name.length + 1)), "all others", `without ${name}`],
    colours: [...manyColours.slice(0, largest.length), kindColours.native, kindColours.marker],
  };
}

// The sum of one of the numbers of all runs.
function wholeOf(set, number) {
  let sum = 0;
  for (const {runs} of set.threads) for (let i = number; i < runs.length; i += runWidth) sum += runs[i];
  return sum;
}

// A frame is a line of a function; fn[frame] is the number of the first frame of its function. text and line are what is shown: showLines() sets them.
function loadFrames(json, strings) {
  const of = (indices) => indices.map((i) => strings[i]), first = new Map();
  const frames = {
    count: json.text.length, kind: json.kind.map((k) => kinds[k]), file: of(json.file), name: of(json.text), nameAt: of(json.at), defined: json.line, part: json.part,
    was: json.was ? of(json.was) : null, current: json.current.map(Math.abs), near: json.current.map((line) => line < 0),
  };
  frames.fn = Int32Array.from(json.text, (text, frame) => first.get(text) ?? (first.set(text, frame), frame));
  return frames;
}

function showLines(frames, lines) {
  frames.text = lines ? frames.nameAt : frames.name;
  frames.line = lines ? frames.current : frames.defined;
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

// Visits the thread's runs that are in `range` (µs from, to; null: all) and are `wanted`: see(node, state, samples, weight, from, to, labels). Of a run that
// is partly in it, those samples count whose ticks, at their ends, are.
function eachRun(data, thread, range, see, wanted = data.wanted) {
  const {runs} = thread, all = 3 * (data.states.length - 2);
  let end = thread.start;
  for (let i = 0; i < runs.length; i += runWidth) {
    const samples = runs[i + 2], weight = runs[i + 3] * thread.charged, length = runs[i + 3], begin = end + runs[i + 4];
    const state = runs[i + 1] % all, labels = Math.floor(runs[i + 1] / all);
    if (data.inOrder) end = begin + length;
    if (wanted && !wanted[labels]) continue;
    const of = state % 3 ? data.states.length - 3 + state % 3 : state / 3;
    if (!range) { see(runs[i], of, samples, weight, begin, end, labels); continue; }
    const part = partOf(begin, end, samples, range);
    if (part.to > part.from || part.samples > 0) see(runs[i], of, part.samples, samples > 0 ? weight * part.samples / samples : 0, part.from, part.to, labels);
  }
}

function partOf(begin, end, samples, [from, to]) {
  const ticks = (at) => Math.min(samples, Math.max(0, Math.floor((at - begin) * samples / (end - begin || 1) + 1e-6)));
  return {samples: ticks(to) - ticks(from), from: Math.max(begin, from), to: Math.min(end, to)};
}

// The tree of the threads' samples; `threads` are indices, null is all. A comparison uses all threads of both profiles.
function sumThreads(data, shaped, threads, range) {
  const own = zeroColumns(data, shaped.outer.length), {columns} = data, {place} = shaped;
  const add = (thread, samples, weight, states) => eachRun(data, thread, range, (from, state, n, amount, begin, end, labels) => {
    const node = place[from];
    if (node < 0) return;
    own[samples][node] += n;
    own[weight][node] += amount;
    if (!states) return;
    const counted = columns.counted === columns.samples ? n : amount;
    own[columns.state + state][node] += counted;
    if (data.classes) own[columns.label + data.classes.of[labels]][node] += counted;
  });
  const now = data.sets[data.sets.length - 1];
  now.threads.forEach((thread, i) => { if (!threads || threads.includes(i)) add(thread, columns.samples, columns.weight, true); });
  if (data.comparison) for (const thread of data.sets[0].threads) add(thread, columns.before, columns.before + 1, false);
  return makeTree(data, shaped.outer, shaped.frame, own);
}

// The counted amount of the thread.
function countedOf(data, thread, range) {
  let sum = 0;
  eachRun(data, thread, range, (_, state, samples, weight) => { sum += data.columns.counted === data.columns.samples ? samples : weight; });
  return sum;
}

// What was counted with each label, whatever is wanted: name, and its values, the largest first.
function countLabels(data) {
  const counts = data.labels.map(() => 0), names = new Map();
  for (const thread of data.sets[data.sets.length - 1].threads)
    eachRun(data, thread, null, (_, state, samples, weight, from, to, labels) => { counts[labels] += data.columns.counted === data.columns.samples ? samples : weight; }, null);
  data.labels.forEach((set, i) => set.forEach((label) => {
    const name = label.slice(0, label.indexOf("\n"));
    if (!names.has(name)) names.set(name, new Map());
    names.get(name).set(label, (names.get(name).get(label) ?? 0) + counts[i]);
  }));
  const all = counts.reduce((a, b) => a + b, 0);
  return {all, names: [...names].map(([name, values]) => ({name, values: [...values].sort((a, b) => b[1] - a[1])}))};
}

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

// Sums by key, each sample once however often the key is on its stack. keyOf(frame): 0 to count - 1, or -1 for none. outermost[key]: its nodes without an
// outer node of the same key.
function sumKeys(tree, count, keyOf) {
  const own = zeroColumns(tree.data, count), total = zeroColumns(tree.data, count);
  const inside = new Int32Array(count), outermost = Array.from({length: count}, () => []);
  const put = (sums, key, from, node) => { for (let c = 0; c < sums.length; ++c) sums[c][key] += from[c][node]; };
  const of = (node) => (tree.frame[node] < 0 ? -1 : keyOf(tree.frame[node]));
  walk(tree, (node) => {
    const key = of(node);
    if (key >= 0) {
      put(own, key, tree.own, node);
      if (inside[key]++ === 0) put(total, key, tree.total, node), outermost[key].push(node);
    }
    return true;
  }, (node) => { if (of(node) >= 0) --inside[of(node)]; });
  return {own, total, outermost};
}

const sumFrames = (tree) => sumKeys(tree, tree.data.frames.count, (frame) => frame);

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
