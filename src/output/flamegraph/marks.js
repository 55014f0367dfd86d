// What LuaJIT's compiler decided, in the order of time: a strip of marks, between Lua's heaps and the threads.

const markRows = 2, markWidth = 4, markReach = 4;   // rows of the strip: what there is, and when; numbers of a mark (flamegraph.h); how near the pointer has to be (pixels)
const markColours = ["#e07b1a", "#c2340c", "#8d6fd1", "#1d9c74"], markRanks = [1, 3, 2, 0];   // by Mark::Kind; of those in one pixel, the highest is shown

function loadMarks(marks, strings) {
  const list = marks?.list ?? [], column = (number) => Array.from({length: list.length / markWidth}, (_, i) => list[markWidth * i + number]);
  return {
    kinds: marks?.kinds ?? [], at: Float64Array.from(column(0)), kind: Uint8Array.from(column(1)),
    title: column(2).map((n) => strings[n]), detail: column(3).map((n) => strings[n]),
  };
}

function eachMark({at}, from, to, see) {
  for (let i = lastAt(at, from - 1) + 1; i < at.length && at[i] <= to; ++i) see(i);
}

// The mark nearest to a time, if one is within `reach`, and how many others are; "" if there is none.
function markText(marks, time, reach) {
  let nearest = -1, others = -1;
  eachMark(marks, time - reach, time + reach, (i) => {
    const distance = Math.abs(marks.at[i] - time);
    if (distance > reach) return;
    ++others;
    if (nearest < 0 || distance < Math.abs(marks.at[nearest] - time)) nearest = i;
  });
  if (nearest < 0) return "";
  const {title, detail, at} = marks, more = others > 0 ? `; ${count(others)} more within ${duration(2 * reach)}` : "";
  return `${title[nearest]} at ${duration(at[nearest])}${detail[nearest] ? ": " + detail[nearest] : ""}${more}`;
}

// Draws the strip whose upper edge is at y: how many there are of each kind in the window, and where.
function drawMarks(graph, marks, y) {
  const {pen, shown, scale, theme} = graph, counts = marks.kinds.map(() => 0), kinds = new Int8Array(Math.ceil(graph.width) + 1).fill(-1), title = "LuaJIT's compiler";
  eachMark(marks, shown.from, shown.to, (i) => {
    const kind = marks.kind[i], x = Math.max(0, Math.floor((marks.at[i] - shown.from) * scale));
    ++counts[kind];
    if (kinds[x] < 0 || markRanks[kind] > markRanks[kinds[x]]) kinds[x] = kind;
  });
  graph.drawLabel(title, y);
  let left = 6 + graph.letter * (title.length + 2);
  counts.forEach((number, kind) => {
    if (number === 0) return;
    const text = `${marks.kinds[kind]} ${count(number)}`;
    pen.fillStyle = markColours[kind], pen.fillRect(left, y + 5, 9, 9);
    pen.fillStyle = theme.ink, pen.fillText(text, left + 14, y + rowHeight / 2);
    left += 14 + graph.letter * (text.length + 2);
  });
  kinds.forEach((kind, x) => { if (kind >= 0) pen.fillStyle = markColours[kind], pen.fillRect(x, y + rowHeight + 1, 2, rowHeight - 3); });
}
