// When samples are: a column for each second, and in it from the bottom up a cell for each 20 ms, as in FlameScope (github.com/Netflix/flamescope). A
// recording that lasts longer than there is room for has coarser columns, always of 50 cells. What is chosen in it is the page's range.

const heatRows = 50, heatCell = 3, heatAxis = 18;                   // cells of a column, their height, the height of the axis (pixels)
const leastHeatColumn = 4, mostHeatColumn = 24, heatMargin = 46;    // the width of columns, and of the words beside them (pixels)
const heatColour = "#c2340c";

// What was counted in each cell, up to `end` (µs), in at most `most` columns: {column: its length (µs), columns, awake, asleep}. Samples of threads that
// sleep are counted apart: a tick has one of each thread, whatever happens. A sample is in the cell in which its tick is, as in a range.
function countHeat(data, shaped, threads, end, most) {
  const column = Math.max(1e6, roundUp(Math.max(end, 1) / most)), cell = column / heatRows, columns = Math.max(1, Math.ceil(end / column));
  const awake = new Float64Array(columns * heatRows), asleep = new Float64Array(columns * heatRows), sleeps = data.states.length - 2;
  for (const index of threads) {
    eachRun(data, data.sets[0].threads[index], null, (node, state, samples, weight, from, to) => {
      if (shaped.place[node] < 0) return;
      const counts = state === sleeps ? asleep : awake;
      for (let at = Math.max(0, Math.ceil(from / cell) - 1); at < counts.length && at * cell < to; ++at)
        counts[at] += partOf(from, to, samples, [at * cell, (at + 1) * cell]).samples;
    });
  }
  return {column, cell, columns, awake, asleep, most: awake.reduce((a, b) => Math.max(a, b), 0), end};
}

class Heatmap {
  constructor(page) {
    Object.assign(this, {page, canvas: byId("heat-canvas"), cursor: -1, anchor: -1});
    this.pen = this.canvas.getContext("2d", {alpha: false});
    new ResizeObserver(() => this.fill()).observe(byId("heat"));
    this.listen();
  }

  // Counts if something else is to be counted, and draws.
  fill() {
    const {page} = this, {state, data} = page;
    byId("heat").hidden = !state.heat;
    byId("heat-open").setAttribute("aria-expanded", state.heat);
    if (!state.heat) return;
    this.width = byId("heat-note").clientWidth;
    const most = Math.max(1, Math.floor((this.width - heatMargin) / leastHeatColumn)), key = JSON.stringify([state.thread, state.label, state.edits, state.mode, most]);
    page.timing ??= timesOf(data);
    if (key !== this.countedFor) this.counts = countHeat(data, page.shapedFor(page.shape), page.threads ?? page.threadOrder, page.timing.end, most), this.countedFor = key;
    this.cursor = Math.min(this.cursor, this.counts.awake.length - 1);
    const {column, columns} = this.counts;
    this.columnWidth = Math.min(mostHeatColumn, Math.max(leastHeatColumn, Math.floor((this.width - heatMargin) / columns)));
    byId("heat-note").textContent = `Each column is ${duration(column)}, from the bottom up; each cell ${duration(column / heatRows)}: the darker, the more samples. Click a cell or drag over some to see only these.`;
    this.draw();
  }

  draw() {
    const {pen, canvas, counts, columnWidth} = this, height = heatRows * heatCell + heatAxis, ratio = devicePixelRatio || 1;
    canvas.width = Math.round(this.width * ratio), canvas.height = Math.round(height * ratio), canvas.style.height = height + "px";
    const style = getComputedStyle(document.documentElement), colour = (name) => style.getPropertyValue(name).trim();
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    pen.fillStyle = colour("--paper"), pen.fillRect(0, 0, this.width, height);
    const [first, last] = this.chosen();
    for (let at = 0; at < counts.awake.length && at * counts.cell < counts.end; ++at) {
      const {x, y} = this.place(at), inside = first < 0 || (at >= first && at <= last);
      pen.fillStyle = colour("--panel"), pen.fillRect(x, y, columnWidth - 1, heatCell);
      if (counts.awake[at] === 0) continue;
      pen.globalAlpha = (0.12 + 0.88 * Math.sqrt(counts.awake[at] / counts.most)) * (inside ? 1 : 0.35);
      pen.fillStyle = heatColour, pen.fillRect(x, y, columnWidth - 1, heatCell);
      pen.globalAlpha = 1;
    }
    this.drawAxis(colour);
    if (first >= 0) this.outline(first, last, colour("--accent"));
    if (this.cursor >= 0 && document.activeElement === canvas) this.outline(Math.min(this.cursor, this.anchor), Math.max(this.cursor, this.anchor), colour("--ink"));
  }

  drawAxis(colour) {
    const {pen, counts, columnWidth} = this, bottom = heatRows * heatCell;
    pen.font = `11px ${colour("--mono")}`, pen.textBaseline = "middle", pen.fillStyle = colour("--faint");
    for (const part of [0, 0.5, 1]) pen.fillText(part === 0 ? "0" : duration(counts.column * part), 2, Math.min(bottom - 6, Math.max(6, bottom * (1 - part))));
    const every = roundUp(70 / columnWidth);
    for (let column = 0; column < counts.columns; column += Math.max(1, every)) pen.fillText(column === 0 ? "0" : duration(column * counts.column), heatMargin + column * columnWidth, bottom + heatAxis / 2);
  }

  // The cells from `first` to `last`, in each column.
  outline(first, last, colour) {
    const {pen, columnWidth} = this;
    pen.strokeStyle = colour, pen.lineWidth = 1.5;
    for (let column = Math.floor(first / heatRows); column * heatRows <= last; ++column) {
      const upper = this.place(Math.min(last, (column + 1) * heatRows - 1)), lower = this.place(Math.max(first, column * heatRows));
      pen.strokeRect(upper.x - 0.5, upper.y - 0.5, columnWidth, lower.y - upper.y + heatCell + 1);
    }
  }

  place(at) { return {x: heatMargin + Math.floor(at / heatRows) * this.columnWidth, y: (heatRows - 1 - at % heatRows) * heatCell}; }

  // The cells of what is being chosen, or of the page's range; -1 if there is none.
  chosen() {
    if (this.dragged) return [Math.min(this.anchor, this.cursor), Math.max(this.anchor, this.cursor)];
    const {range} = this.page.state, {cell, awake} = this.counts, lastOf = (time) => Math.min(awake.length, Math.ceil(time / cell - 1e-6)) - 1;
    return range && range[0] < cell * awake.length ? [Math.floor(range[0] / cell + 1e-6), Math.max(0, lastOf(range[1]))] : [-1, -1];
  }

  // The cell under the pointer; -1 if there is none, or, if it `must` be one, the nearest.
  hit(event, must) {
    const {left, top} = this.canvas.getBoundingClientRect(), {columns} = this.counts;
    const column = Math.floor((event.clientX - left - heatMargin) / this.columnWidth), row = heatRows - 1 - Math.floor((event.clientY - top) / heatCell);
    const inside = column >= 0 && column < columns && row >= 0 && row < heatRows;
    const within = (number, most) => Math.min(most - 1, Math.max(0, number));
    return inside ? column * heatRows + row : must ? within(column, columns) * heatRows + within(row, heatRows) : -1;
  }

  textOf(first, last) {
    const {cell, awake, asleep} = this.counts, sum = (counts) => counts.subarray(first, last + 1).reduce((a, b) => a + b, 0);
    const sleeping = sum(asleep);
    return `${rangeText(first * cell, (last + 1) * cell)}: ${columnText(this.page.data, this.page.data.columns.samples, sum(awake))}${sleeping > 0 ? `, ${count(sleeping)} asleep` : ""}`;
  }

  choose() {
    const [first, last] = [Math.min(this.anchor, this.cursor), Math.max(this.anchor, this.cursor)], {cell} = this.counts;
    this.dragged = false;
    this.page.set({range: [first * cell, (last + 1) * cell]});
  }

  listen() {
    const {canvas, page} = this;
    canvas.addEventListener("pointerdown", (event) => {
      const at = event.button === 0 ? this.hit(event) : -1;
      if (at < 0) return;
      this.anchor = this.cursor = at, this.dragged = true;
      canvas.setPointerCapture(event.pointerId);
      this.draw();
    });
    canvas.addEventListener("pointermove", (event) => {
      const at = this.hit(event, this.dragged);
      if (at < 0) return page.tell(-1);
      if (this.dragged) this.cursor = at, this.draw();
      page.tellText(this.dragged ? this.textOf(...this.chosen()) : this.textOf(at, at), event);
    });
    canvas.addEventListener("pointerup", () => { if (this.dragged) this.choose(); });
    canvas.addEventListener("pointercancel", () => { this.dragged = false; this.draw(); });
    canvas.addEventListener("pointerleave", () => page.tell(-1));
    canvas.addEventListener("focus", () => { if (this.cursor < 0) this.move(Math.max(0, this.chosen()[0]), false); else this.draw(); });
    canvas.addEventListener("blur", () => this.draw());
    canvas.addEventListener("keydown", (event) => this.key(event));
  }

  key(event) {
    if (event.ctrlKey || event.altKey || event.metaKey) return;
    const steps = {ArrowUp: 1, ArrowDown: -1, ArrowRight: heatRows, ArrowLeft: -heatRows};
    if (steps[event.key]) this.move(this.cursor + steps[event.key], event.shiftKey);
    else if (event.key === "Enter" && this.cursor >= 0) this.choose();
    else return;
    event.preventDefault();
  }
  move(at, further) {
    if (at < 0 || at >= this.counts.awake.length) return;
    this.cursor = at;
    if (!further) this.anchor = at;
    byId("detail").textContent = this.textOf(Math.min(this.anchor, at), Math.max(this.anchor, at));
    this.draw();
  }
}
