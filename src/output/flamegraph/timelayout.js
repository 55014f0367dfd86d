// The layout in the order of time: Lua's heaps, what LuaJIT's compiler decided, and below these the threads, one below the other.

// A box continues as long as the same calls are seen without a break. With `column` (µs; 0: none), samples are summed in columns of that width, in each of
// which boxes have the share of time that they were seen, always in the same order: the one with the highest total in `tree` first.
function layTime(data, shaped, tree, threads, {flip, range, column}) {
  const layout = new Layout(), slots = data.states.length + (data.classes?.texts.length ?? 0);
  const depth = depthOf(shaped, new Float64Array(shaped.outer.length).fill(1)).depth;
  Object.assign(layout, {
    time: true, flipped: flip, column, samples: new Int32Array(1024), own: new Int32Array(1024), thread: new Int32Array(1024),
    slots, inSlot: new Int32Array(1024 * slots),   // samples by state, and behind these by class of their label (classifyBy): so many for each box
    ownIn: new Int32Array(1024 * 4),          // its own samples by class of state (colours.js), four for each box
    lanes: [],                                // the rows of each thread: {thread, from, to}
  });
  let top = 0, end = 0;
  layout.heaps = data.sets[0].heaps.map((heap) => {
    const row = top;
    for (; top < row + heapRows; ++top) layout.rows[top] = [];
    return {heap, row};
  });
  const {marks} = data.sets[0];
  if (marks.at.length > 0) {
    layout.marks = {row: top, of: marks};
    for (let row = 0; row < markRows; ++row) layout.rows[top++] = [];
  }
  for (const index of threads) {
    const thread = data.sets[0].threads[index];
    let rows = 1;
    eachRun(data, thread, range, (node, state, samples, weight, from, to) => {
      if (shaped.place[node] >= 0) rows = Math.max(rows, depth[shaped.place[node]]);
      end = Math.max(end, to);
    });
    layout.labels.push({row: top, text: threadText(thread)});
    layout.rows[top] = [];
    const rowOf = flip ? (d) => top + 1 + rows - d : (d) => top + d;
    layout.lanes.push({thread: index, from: top + 1, to: top + 1 + rows});
    if (column > 0) new ColumnLane(layout, data, index, shaped, tree, rowOf).lay(thread, range);
    else layThread(layout, data, index, {shaped, depth, rowOf, range});
    top += rows + 2;
  }
  layout.begin = range ? range[0] : 0, layout.extent = range ? range[1] : end;
  layout.tree = () => tree;
  return layout.close();
}

const slotsOf = (data, state, labels) => (data.classes ? [state, data.states.length + data.classes.of[labels]] : [state]);

// A box is created where its call begins; its amounts are the sums at its end minus the sums at its beginning.
function layThread(layout, data, index, {shaped, depth, rowOf, range}) {
  const {slots} = layout, open = [-1], seen = new Int32Array(slots);   // open[d]: the box at depth d; seen: samples by slot
  let now = 0, last = 0, samples = 0;
  const close = (down) => {
    while (open.length > down + 1) {
      const box = open.pop();
      layout.width[box] = now - layout.x[box];
      layout.samples[box] += samples;
      for (let c = 0; c < slots; ++c) layout.inSlot[slots * box + c] += seen[c];
    }
  };
  eachRun(data, data.sets[0].threads[index], range, (stack, state, count, weight, from, to, labels) => {
    const node = Math.max(shaped.place[stack], 0), path = [];
    let common = node, other = from > now ? 0 : last;
    while (common !== other) {
      if (depth[common] >= depth[other]) path.push(common), common = shaped.outer[common];
      else other = shaped.outer[other];
    }
    close(depth[common]);
    now = from;
    for (let n = path.length - 1; n >= 0; --n) {
      const box = layout.add(rowOf(open.length), now, 0, shaped.frame[path[n]], open[open.length - 1], path[n]);
      open.push(box);
      layout.thread[box] = index, layout.samples[box] = -samples;
      for (let c = 0; c < slots; ++c) layout.inSlot[slots * box + c] = -seen[c];
    }
    samples += count;
    for (const slot of slotsOf(data, state, labels)) seen[slot] += count;
    if (node !== 0) layout.own[open[open.length - 1]] += count, layout.ownIn[4 * open[open.length - 1] + stateClass[state]] += count;
    now = to;
    last = node;
  });
  close(0);
}

// A thread's samples, summed in columns.
class ColumnLane {
  constructor(layout, data, index, shaped, tree, rowOf) {
    Object.assign(this, {layout, data, index, shaped, tree, rowOf, slots: layout.slots, nodes: new Map(), ends: []});
  }

  lay(thread, range) {
    const {column} = this.layout;
    let at = 0;   // the column that is being summed
    eachRun(this.data, thread, range, (stack, state, samples, weight, from, to, labels) => {
      const node = this.shaped.place[stack];
      if (node < 0) return;
      for (let next = Math.floor(from / column); next === Math.floor(from / column) || next * column < to; ++next) {
        if (next !== at) this.close(at * column, (at + 1) * column, range), at = next;
        const part = partOf(from, to, samples, [Math.max(from, next * column), Math.min(to, (next + 1) * column)]);
        if (part.to > part.from || part.samples > 0) this.count(node, state, labels, part);
      }
    });
    this.close(at * column, (at + 1) * column, range);
  }

  count(node, state, labels, {samples, from, to}) {
    const sum = this.sumOf(node);
    sum.own += samples, sum.time += to - from, sum.ownIn[stateClass[state]] += samples;
    for (const slot of slotsOf(this.data, state, labels)) sum.inSlot[slot] += samples;
  }
  sumOf(node) {
    if (!this.nodes.has(node)) this.nodes.set(node, {node, own: 0, samples: 0, time: 0, inSlot: new Int32Array(this.slots), ownIn: [0, 0, 0, 0], inside: []});
    return this.nodes.get(node);
  }

  // Adds up, and puts the boxes from the column's beginning on.
  close(begin, end, range) {
    if (this.nodes.size === 0) return;
    const {outer} = this.shaped, open = [...this.nodes.keys()];
    while (open.length) {   // the outer ones, too
      const from = outer[open.pop()];
      if (!this.nodes.has(from)) this.sumOf(from), open.push(from);
    }
    const sums = [...this.nodes.values()].sort((a, b) => b.node - a.node);   // a node has a higher number than its outer one
    for (const sum of sums) {
      sum.samples += sum.own;
      if (sum.node === 0) continue;
      const to = this.sumOf(outer[sum.node]);
      to.inside.push(sum), to.samples += sum.samples, to.time += sum.time;
      sum.inSlot.forEach((n, slot) => { to.inSlot[slot] += n; });
    }
    this.put(this.sumOf(0), Math.max(begin, range ? range[0] : 0));
    this.nodes.clear();
  }

  put(root, begin) {
    const total = this.tree.total[this.data.columns.counted], open = [{sum: root, x: begin, depth: 0, outer: -1}];
    while (open.length) {
      const {sum, x, depth, outer} = open.pop(), box = sum === root ? -1 : this.box(sum, x, depth, outer);
      sum.inside.sort((a, b) => total[b.node] - total[a.node] || a.node - b.node);
      let at = x + sum.inside.reduce((all, inside) => all + inside.time, 0);
      for (let i = sum.inside.length - 1; i >= 0; --i) {
        at -= sum.inside[i].time;
        open.push({sum: sum.inside[i], x: at, depth: depth + 1, outer: box});
      }
    }
  }

  // A new box, or the last one at this depth if it is of the same calls and ends at x: in the column before.
  box(sum, x, depth, outer) {
    const {layout, slots} = this, before = this.ends[depth];
    const goesOn = before !== undefined && layout.item[before] === sum.node && layout.outer[before] === outer && Math.abs(layout.x[before] + layout.width[before] - x) < 1;
    const box = goesOn ? before : layout.add(this.rowOf(depth), x, 0, this.shaped.frame[sum.node], outer, sum.node);
    layout.width[box] = x + sum.time - layout.x[box];
    layout.thread[box] = this.index, layout.samples[box] += sum.samples, layout.own[box] += sum.own;
    sum.inSlot.forEach((n, slot) => { layout.inSlot[slots * box + slot] += n; });
    sum.ownIn.forEach((n, of) => { layout.ownIn[4 * box + of] += n; });
    return this.ends[depth] = box;
  }
}

// A Lua state of a heap is no thread of the system: it has no number.
function threadText(thread) { return `${thread.process ? thread.process + ": " : ""}${thread.name}${thread.tid === 0 ? "" : ` (thread ${thread.tid})`}`; }

// When the last thread ends, and how long the runs of each thread are on average (µs).
function timesOf(data) {
  let last = 0;
  const run = data.sets[0].threads.map((thread) => {
    let runs = 0, sum = 0;
    eachRun(data, thread, null, (node, state, samples, weight, from, to) => { ++runs, sum += to - from, last = Math.max(last, to); }, null);
    return runs === 0 ? Infinity : sum / runs;
  });
  return {end: last, run};
}

// When a thread has no sample, from 0 to `end`: pairs of µs, ascending.
function gapsOf(data, index, end) {
  const gaps = [];
  let last = 0;
  eachRun(data, data.sets[0].threads[index], null, (node, state, samples, weight, from, to) => {
    if (from > last) gaps.push(last, from);
    last = Math.max(last, to);
  }, null);
  if (end > last) gaps.push(last, end);
  return Float64Array.from(gaps);
}

// Why a thread may have had no sample; samples say nothing of one that is not there.
function missingText({missing}) {
  const [asleep, waiting, lost] = missing;
  const causes = [[asleep, "threads slept at", "ticks"], [waiting, "waited for a CPU at", "ticks"], [lost, "", "looks were lost or left out"]]
    .filter(([n]) => n > 0).map(([n, before, behind]) => `${before} ${count(n)} ${behind}`.trim());
  return causes.length ? causes.join(", ") : "it had not begun, or had ended";
}

// What is said of a white place of a thread, at a time or in a column of times; "" if there are samples.
function gapText(data, index, at, {column, gaps, end}) {
  const [from, to] = column > 0 ? [Math.floor(at / column) * column, Math.min(Math.floor(at / column + 1) * column, end)] : [at, at];
  let begin = Infinity, finish = 0, sum = 0;
  for (let i = 0; i < gaps.length; i += 2) {
    if (gaps[i] > to || gaps[i + 1] < from) continue;
    begin = Math.min(begin, gaps[i]), finish = Math.max(finish, gaps[i + 1]);
    sum += Math.min(gaps[i + 1], to) - Math.max(gaps[i], from);
  }
  if (finish === 0 || (column > 0 && sum <= 0)) return "";
  const when = column > 0 ? `for ${percent(sum, to - from)} of the time from ${duration(from)} to ${duration(to)}` : `from ${duration(begin)} to ${duration(finish)}`;
  return `${threadText(data.sets[0].threads[index])} has no sample ${when}. In the whole recording: ${missingText(data.sets[0])}.`;
}

// The next number of the kind 1, 2, 5, 10.
function roundUp(number) {
  const power = 10 ** Math.floor(Math.log10(number));
  return [1, 2, 5, 10].map((n) => n * power).find((n) => n >= number);
}
