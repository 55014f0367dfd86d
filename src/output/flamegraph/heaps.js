// Lua heaps in the order of time: a strip each, above the threads.

const heapRows = 3, heapWidth = 6;   // rows of a strip: its name and the curve; numbers of a point (flamegraph.h)

// By point: start and end (µs), bytes, and the collections up to there.
function loadHeaps(heaps, phases) {
  return (heaps ?? []).map(({name, points}) => {
    const column = (number) => Float64Array.from({length: points.length / heapWidth}, (_, i) => points[heapWidth * i + number]);
    const last = column(2), below = column(3), above = column(4), state = column(5);
    return {
      name: visible(name), start: column(0), end: column(1), last, least: last.map((bytes, i) => bytes - below[i]), most: last.map((bytes, i) => bytes + above[i]),
      cycles: state.map((n) => Math.floor(n / 8)), phase: Array.from(state, (n) => phases[n % 8]),
    };
  });
}

// The last of the ascending times that is not behind `time`; -1 if there is none.
function lastAt(times, time) {
  let low = 0, high = times.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (times[middle] <= time) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}

// Calls see(from, to, least, most) for what is known of the times from `from` to `to`: a heap keeps its size until the next point.
function eachHeapPart(heap, from, to, see) {
  for (let i = Math.max(0, lastAt(heap.start, from)); i < heap.start.length && heap.start[i] <= to; ++i) {
    const next = i + 1 < heap.start.length ? heap.start[i + 1] : to;
    if (heap.end[i] >= from) see(Math.max(heap.start[i], from), Math.min(heap.end[i], to), heap.least[i], heap.most[i]);
    if (next >= from) see(Math.max(heap.end[i], from), Math.min(next, to), heap.last[i], heap.last[i]);
  }
}

function heapRange(heap, from, to) {
  let least = Infinity, most = -Infinity;
  eachHeapPart(heap, from, to, (_, end, low, high) => { least = Math.min(least, low), most = Math.max(most, high); });
  return most < 0 ? null : {least, most};
}

function heapRangeText(heap, range) { return range ? `${heap.name}: lowest ${bytes(range.least)}, highest ${bytes(range.most)}` : heap.name; }

// What is known of the heap at a time; "" before its first point.
function heapText(heap, time) {
  const i = lastAt(heap.start, time);
  if (i < 0) return "";
  const joined = time < heap.end[i], size = joined ? `${bytes(heap.least[i])} to ${bytes(heap.most[i])}` : bytes(heap.last[i]);
  return `${heap.name}: ${size} at ${duration(time)}; collector: ${heap.phase[i]}, at least ${count(heap.cycles[i])} cycle${heap.cycles[i] === 1 ? "" : "s"} by then`;
}

// Draws the strip whose upper edge is at y: in each column of pixels the least size, and paler the sizes up to the most.
function drawHeap(graph, heap, y) {
  const {pen, shown, scale, theme, width} = graph, columns = Math.ceil(width), least = new Float64Array(columns).fill(Infinity), most = new Float64Array(columns).fill(-1);
  const range = heapRange(heap, shown.from, shown.to), bottom = y + heapRows * rowHeight - 2, height = (heapRows - 1) * rowHeight - 4;
  eachHeapPart(heap, shown.from, shown.to, (from, to, low, high) => {
    const end = Math.min(columns - 1, Math.floor((to - shown.from) * scale));
    for (let x = Math.max(0, Math.floor((from - shown.from) * scale)); x <= end; ++x) least[x] = Math.min(least[x], low), most[x] = Math.max(most[x], high);
  });
  graph.drawLabel(heapRangeText(heap, range), y);
  if (!range) return;
  const tall = (bytes) => (range.most > 0 ? Math.max(1, height * bytes / range.most) : 1);
  pen.fillStyle = theme.accent;
  for (let x = 0; x < columns; ++x) {
    if (most[x] < 0) continue;
    pen.globalAlpha = 0.35, pen.fillRect(x, bottom - tall(most[x]), 1, tall(most[x]) - tall(least[x]));
    pen.globalAlpha = 0.75, pen.fillRect(x, bottom - tall(least[x]), 1, tall(least[x]));
  }
  pen.globalAlpha = 1;
}
