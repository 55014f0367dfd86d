// The description of the box under the pointer or with the focus.

// One line, for the foot of the page and for screen readers.
function boxLine(page, box) {
  const {data, layout} = page, frame = layout.frame[box], name = page.textOf(box);
  if (layout.time) return `${name}: ${count(layout.samples[box])} samples, ${duration(layout.width[box])}, from ${duration(layout.x[box])}`;
  const tree = layout.tree(box), node = layout.item[box];
  if (data.comparison) {
    const total = compared(data, tree.total, node);
    return `${name}: ${amount(data, total.after, page.all)}, before ${amount(data, total.before, page.all)}, change ${changeText(data, total, page.all)}`;
  }
  const {samples, weight, counted} = data.columns, text = (column) => columnText(data, column, tree.total[column][node]);
  const own = frame >= 0 && !layout.inverted?.(box) && !layout.bottomUp ? `own ${percent(tree.own[counted][node], page.all)}, ` : "";
  return `${name}: ${own}total ${percent(tree.total[counted][node], page.all)}, ${text(samples)}, ${text(weight)}`;
}

function tipOf(page, box) {
  const {data, layout} = page, frame = layout.frame[box];
  const parts = [element("strong", {textContent: page.textOf(box)})];
  if (frame >= 0) parts.push(element("div", {className: "where", textContent: placeOf(data.frames, frame)}));
  const note = (text) => parts.push(element("div", {className: "where", textContent: text}));
  if (data.frames.was?.[frame]) note(`before: ${data.frames.was[frame]}`);
  const times = page.timesOf(box);
  if (times > 1) note(`${data.words.repeats} are folded: up to ${count(times)} on one stack`);
  const tell = layout.time ? timeNumbers : data.comparison ? changeNumbers : treeNumbers;
  parts.push(tell(page, box));
  if (layout.bottomUp && layout.tree(box).cut.has(layout.item[box])) note("its callers are not shown: it is less than 1 of 20,000");
  if (!data.comparison) {
    const text = partsText(page, box);
    if (text) parts.push(element("div", {className: "states", textContent: text}));
  }
  return parts;
}

function numbers(head, rows) {
  const line = (cells, tag) => element("tr", {}, element("th", {textContent: cells[0]}), ...cells.slice(1).map((text) => element(tag, {textContent: text})));
  return element("table", {}, line(head, "th"), ...rows.map((row) => line(row, "td")));
}

function treeNumbers(page, box) {
  const {data} = page, tree = page.layout.tree(box), node = page.layout.item[box], one = page.threads !== null;
  const {counted} = data.columns, other = otherColumn(data);
  const head = ["", columnName(data, counted), "of all", ...(one ? ["of the thread"] : []), columnName(data, other)];
  const ofThread = (amount) => (one ? [percent(amount, page.tree.total[counted][0])] : []);
  const row = (title, sums) => [title, cellText(data, counted, sums[counted][node]), percent(sums[counted][node], page.all), ...ofThread(sums[counted][node]),
    cellText(data, other, sums[other][node])];
  if (page.layout.bottomUp && page.layout.frame[box] >= 0 && !page.layout.inverted(box)) return numbers(head, [row("own", tree.total)]);
  if (page.layout.inverted?.(box)) return numbers(head, [row("called from here", tree.total)]);
  return numbers(head, [...(page.layout.frame[box] >= 0 ? [row("own", tree.own)] : []), row("total", tree.total)]);
}

function timeNumbers(page, box) {
  const {layout, data} = page, all = countedOf(data, data.sets[0].threads[layout.thread[box]], page.state.range);
  const row = (title, samples, time) => [title, count(samples), percent(samples, page.all), percent(samples, all), time];
  return numbers(["", "samples", "of all", "of the thread", "time"], [
    row("own", layout.own[box], ""), row("total", layout.samples[box], duration(layout.width[box])),
    ["from", "", "", "", duration(layout.x[box])],
  ]);
}

function changeNumbers(page, box) {
  const {data, layout, all} = page, tree = layout.tree(box), node = layout.item[box], {columns, comparison} = data;
  const row = (title, sums) => {
    const both = compared(data, sums, node);
    return [title, amount(data, both.after, all), amount(data, both.before, all), changeText(data, both, all), relativeText(both)];
  };
  const samples = [data.words.samples, count(tree.total[columns.samples][node]), count(tree.total[columns.before][node]), "", ""];
  return numbers(["", "after", "before", comparison.by === "shares" ? "points" : "change", ""],
    [...(layout.frame[box] >= 0 && !layout.inverted?.(box) && !layout.bottomUp ? [row("own", tree.own)] : []), row(data.words.total, tree.total), samples]);
}

// What the VM did in it, or of which values of the label it is.
function partsText(page, box) {
  const {data, layout} = page, {count, column, slot, texts} = divisionOf(page.state.colour, data);
  if (layout.time) {
    const first = layout.slots * box + slot;
    return sharesText(texts, [...layout.inSlot.subarray(first, first + count)], layout.samples[box]);
  }
  const tree = layout.tree(box), node = layout.item[box], all = tree.total[data.columns.counted][node];
  return sharesText(texts, texts.map((_, part) => tree.total[column + part][node]), all);
}

function sharesText(names, amounts, all) {
  return names.map((name, i) => [amounts[i], name]).filter(([amount]) => amount > 0).sort((a, b) => b[0] - a[0])
    .map(([amount, name]) => `${name} ${percent(amount, all)}`).join(" · ");
}

// The tip of a box that was reached by keys is in a corner, so that the boxes around it stay visible.
function placeTipAside(tip, canvas, box) {
  const {width, height} = tip.getBoundingClientRect(), below = box < canvas.top + canvas.height / 2;
  tip.style.left = canvas.right - width - 20 + "px";
  tip.style.top = (below ? canvas.bottom - height - 8 : canvas.top + 30) + "px";
}

function placeTip(tip, x, y) {
  const {width, height} = tip.getBoundingClientRect();
  tip.style.left = Math.max(4, Math.min(x + 14, innerWidth - width - 8)) + "px";
  tip.style.top = (y + 24 + height > innerHeight ? Math.max(4, y - height - 12) : y + 24) + "px";
}
