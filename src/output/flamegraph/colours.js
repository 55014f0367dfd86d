// The meaning of colours. The hues can be distinguished with any kind of colour blindness (Okabe and Ito's set, lightened where text would be hard to read),
// and differ in lightness; dark text has a contrast of 4.5 or more on each of them.

const kindColours = {
  lua: "#f2b632", c: "#6cbdf0", native: "#a9b4c0", marker: "#e9e3d0", kernel: "#d28bb4", gc: "#e36a2e", jit: "#1d9c74",
  table: "#f2b632", string: "#6cbdf0", function: "#2fb58a", userdata: "#d28bb4", coroutine: "#e8895a", joined: "#dcdfe3",
};
const kindTexts = {
  lua: "Lua", c: "C called by Lua", native: "other native code", marker: "no function: waits, tail calls", kernel: "the kernel", gc: "garbage collector", jit: "JIT: machine code, compiler",
  table: "tables", string: "strings", function: "functions, with code and upvalues", userdata: "userdata", coroutine: "coroutines", joined: "small boxes, joined",
};
// Only in time is somebody waited for; other units have whatever their program names.
const kindText = (data, kind) => (kind === "marker" && data.unit !== "time" ? "no function" : kindTexts[kind]);
// By VmState (base/sample.h), asleep, and waiting for a CPU. The names come with the data.
const stateColours = ["#a9b4c0", "#f2b632", "#1d9c74", "#6cbdf0", "#e36a2e", "#f0e25a", "#d28bb4", "#b9a3ea", "#8fd6c4", "#dcdfe3", "#cdb48a"];
// What a state means for the colour of a function: 1 the collector, 2 machine code or functions that it called, 3 the JIT compiler.
const stateClass = [0, 0, 2, 0, 1, 3, 3, 3, 3, 0, 0];
const manyColours = ["#f2b632", "#6cbdf0", "#2fb58a", "#f0e25a", "#d28bb4", "#e8895a", "#b9a3ea", "#8fd6c4", "#c2cf6b", "#f3b6a6", "#9bb7d9", "#cdb48a"];
// Colours of a change: from much less to much more; the middle one is for changes that may be noise.
const changeColours = ["#3f8fd2", "#7db8e8", "#bcdcf5", "#d9dce0", "#fbd9a8", "#f2ac4e", "#e07b1a"];
const changeTexts = ["less by half or more", "less by 10 % or more", "a little less", "no change, or within noise",
  "a little more", "more by 10 % or more", "more by half or more"];
const inkOnColour = "#101418";

// Adjacent boxes with the same meaning still differ a little.
function shade(colour, number) {
  const amount = [0, 0.14, 0.28, 0.07][number & 3];
  return "#" + [1, 3, 5].map((at) => {
    const part = parseInt(colour.slice(at, at + 2), 16);
    return Math.round(part + (255 - part) * amount).toString(16).padStart(2, "0");
  }).join("");
}

function hash(text) {
  let sum = 2166136261;
  for (let i = 0; i < text.length; ++i) sum = Math.imul(sum ^ text.charCodeAt(i), 16777619);
  return (sum ^ (sum >>> 15)) >>> 0;
}

// What a box itself does decides, not what it calls: main() is not the collector because the collector took most of its time. `own`: what was counted of
// itself, by class of its state.
function kindOf(kind, own, total) {
  if (own[1] * 2 > total) return "gc";
  if (own[3] * 2 > total || (kind === "lua" && (own[2] + own[3]) * 2 > total)) return "jit";
  return kind;
}

function byClass(states, amountOf) {
  const amounts = [0, 0, 0, 0];
  for (let state = 0; state < states; ++state) amounts[stateClass[state]] += amountOf(state);
  return amounts;
}

// The kind of one sample, by the class of its state. A function that a trace called keeps its own kind.
function kindOfSample(kind, of) {
  return of === 1 ? "gc" : of === 3 || (of === 2 && kind === "lua") ? "jit" : kind;
}

// The change of a node, -3 to 3. Samples are counts of chance events: a change within `noise` standard deviations is shown as no change, and so is one
// that is too small for `report --diff` to call it one. The text judges functions, by slices of time; boxes are judged by their samples alone.
function changeOf(data, sums, node) {
  const {columns, comparison} = data, {after, before} = compared(data, sums, node);
  const variance = after * after / Math.max(1, sums[columns.samples][node]) + before * before / Math.max(1, sums[columns.before][node]);
  const difference = after - before;
  if (difference * difference < comparison.noise ** 2 * variance || difference === 0) return 0;
  if (Math.abs(difference) < Math.max(comparison.least_difference * comparison.whole, comparison.least_ratio * Math.max(before, after))) return 0;
  const ratio = Math.abs(difference) / before;
  const strength = ratio >= 0.5 ? 3 : ratio >= 0.1 ? 2 : 1;
  return Math.sign(difference) * strength;
}

// What boxes are divided into: the states of the VM, or the values of a label. `column`: of the first one's sums; `slot`: the first one's in a layout of time;
// of(state, labels): which one a run is.
function divisionOf(mode, data) {
  const {columns, classes, states} = data;
  if (!isLabelled(mode)) return {count: states.length, column: columns.state, slot: 0, texts: states, colours: stateColours, of: (state) => state};
  return {count: classes.texts.length, column: columns.label, slot: states.length, texts: classes.texts, colours: classes.colours, of: (state, labels) => classes.of[labels]};
}

const labelledBy = "label:", isLabelled = (mode) => mode.startsWith(labelledBy);
// "": not by a label.
const labelOfColour = (mode) => (isLabelled(mode) ? mode.slice(labelledBy.length) : "");

// Returns fill(box), or segments(box, left, right) of pixels if one colour is not enough.
function makePainter(mode, data, layout, graph) {
  const {frames, columns} = data, states = data.states.length, shades = new Map();
  const hashes = data.hashes ??= Uint32Array.from(frames.name, hash);
  const shaded = (colour, frame) => {
    const key = colour + (hashes[frame] & 3);
    if (!shades.has(key)) shades.set(key, shade(colour, hashes[frame]));
    return shades.get(key);
  };
  const sums = (box) => layout.tree(box).total;
  const byFrame = (colourOf) => {
    const known = frames.name.map((_, frame) => colourOf(frame));
    return {fill: (box) => known[layout.frame[box]]};
  };
  const divided = (parts) => (!layout.time ? {segments: (box, left, right) => shareSegments(parts, (part) => sums(box)[parts.column + part][layout.item[box]], left, right)}
    : layout.column > 0 ? {segments: (box, left, right) => shareSegments(parts, (part) => layout.inSlot[layout.slots * box + parts.slot + part], left, right)}
    : {segments: (box, left, right) => timeSegments(layout, graph, parts, box, left, right)});
  if (mode === "state" || isLabelled(mode)) return divided(divisionOf(mode, data));
  switch (mode) {
    case "function": return byFrame((frame) => shaded(manyColours[hashes[frame] % manyColours.length], frame));
    case "module": return byFrame((frame) => fileColour(data, fileKey(data, frame)));
    case "change": return {fill: (box) => changeColours[3 + changeOf(data, sums(box), layout.item[box])]};
    default: return {fill: (box) => {
      const frame = layout.frame[box], kind = frames.kind[frame];
      if (layout.time) return shaded(kindColours[kindOf(kind, layout.ownIn.subarray(4 * box, 4 * box + 4), layout.samples[box])], frame);
      if (layout.inverted?.(box)) return shaded(kindColours[kind], frame);   // the states belong to the callees
      const {own, total} = layout.tree(box), node = layout.item[box];
      return shaded(kindColours[kindOf(kind, byClass(states, (state) => own[columns.state + state][node]), total[columns.counted][node])], frame);
    }};
  }
}

const otherFiles = "other files";

// The files with the highest own cost have a colour each, all others share one. `sums`: of all threads.
function colourFiles(data, sums) {
  const amounts = new Map(), own = sums.own[data.columns.counted];
  data.frames.file.forEach((file, frame) => { if (file) amounts.set(file, (amounts.get(file) ?? 0) + own[frame]); });
  const files = [...amounts].sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1)).map(([file]) => file);
  data.fileColours = new Map(files.slice(0, manyColours.length).map((file, i) => [file, manyColours[i]]));
}

const fileKey = (data, frame) => (data.frames.file[frame] === "" ? "no function" : data.fileColours.has(data.frames.file[frame]) ? data.frames.file[frame] : otherFiles);
const fileColour = (data, key) => data.fileColours.get(key) ?? (key === otherFiles ? kindColours.native : kindColours.marker);

function shareSegments({count, colours}, amountOf, left, right) {
  const segments = [], amounts = [];
  for (let part = 0; part < count; ++part) amounts.push(amountOf(part));
  const all = amounts.reduce((sum, amount) => sum + amount, 0);
  let from = left;
  amounts.forEach((amount, part) => {
    if (amount <= 0) return;
    const width = (right - left) * amount / all;
    segments.push([from, from + width, colours[part]]);
    from += width;
  });
  return segments;
}

// What each pixel's column is of is looked up once per picture.
function timeSegments(layout, graph, parts, box, left, right) {
  const columns = graph.partColumns(layout.thread[box], parts), segments = [];
  let from = left;
  for (let x = Math.floor(left); x < right; ++x) {
    if (x + 1 < right && columns[x + 1] === columns[x]) continue;
    const end = Math.min(x + 1, right);
    segments.push([from, end, parts.colours[columns[x] ?? 0]]);
    from = end;
  }
  return segments;
}

// [{colour, text, amount}], for what was counted in the tree.
function legendOf(mode, data, tree, sums) {
  const counts = new Map(), {columns, frames} = data;
  const count = (key, amount) => { if (amount > 0) counts.set(key, (counts.get(key) ?? 0) + amount); };
  if (mode === "change") return changeColours.map((colour, i) => ({colour, text: data.comparison.noise === 0 && i === 3 ? "no change" : changeTexts[i], amount: null}));
  if (mode === "function") return [{colour: manyColours[0], text: `each ${data.words.function} its own; 12 colours for all, so different ones may share one`, amount: null}];
  if (mode === "state" || isLabelled(mode)) {
    const {column, texts, colours} = divisionOf(mode, data);
    return texts.map((text, part) => ({colour: colours[part], text, amount: tree.total[column + part][0]})).filter(({amount}) => amount > 0);
  }
  if (mode === "module") for (let frame = 0; frame < frames.count; ++frame) count(fileKey(data, frame), sums.own[columns.counted][frame]);
  else data.states.forEach((_, state) => {
    const own = tree.own[columns.state + state], kindsOf = kinds.map((kind) => kindOfSample(kind, stateClass[state]));
    const number = frames.kind.map((kind) => kinds.indexOf(kind));
    const amounts = kinds.map(() => 0);
    if (tree.total[columns.state + state][0] > 0) for (let node = 1; node < own.length; ++node) amounts[number[tree.frame[node]]] += own[node];
    amounts.forEach((amount, kind) => count(kindsOf[kind], amount));
  });
  const colourOf = (key) => (mode === "kind" ? kindColours[key] : fileColour(data, key));
  return [...counts].map(([key, amount]) => ({colour: colourOf(key), text: mode === "kind" ? kindText(data, key) : key, amount}));
}
