// A layout on a canvas with the size of the visible part. It knows boxes and pixels; the painter and the page know what they mean.

const rowHeight = 20, axisHeight = 22;

class Graph {
  constructor(data, canvas, scroller, spacer, page) {
    Object.assign(this, {data, canvas, scroller, spacer, page});
    this.pen = canvas.getContext("2d", {alpha: false});
    this.from = 0, this.to = 1;           // the window, in the layout's units
    this.shown = {from: 0, to: 1};        // the part that is drawn: it moves towards the window
    this.focus = -1, this.hover = -1;
    this.columns = new Map();
    new ResizeObserver(() => this.resize()).observe(scroller);
    matchMedia("print").addEventListener("change", () => this.draw());
    scroller.addEventListener("scroll", () => this.ask());
  }

  show(layout, painter, flip) {
    Object.assign(this, {layout, painter, flip, focus: -1, hover: -1});
    this.from = this.shown.from = layout.begin, this.to = this.shown.to = layout.extent || 1;
    this.resize();
    this.scroller.scrollTop = layout.focusRow !== undefined ? (layout.focusRow + 1) * rowHeight - this.height / 2 : flip ? this.spacer.offsetHeight : 0;
  }

  resize() {
    if (!this.layout) return;
    this.width = this.scroller.clientWidth, this.height = this.scroller.clientHeight;
    const ratio = devicePixelRatio || 1;
    this.canvas.width = Math.round(this.width * ratio), this.canvas.height = Math.round(this.height * ratio);
    this.canvas.style.height = this.height + "px";
    this.spacer.style.height = Math.max(0, this.layout.rows.length * rowHeight + this.head - this.height) + "px";
    this.page.windowed();
    this.draw();
  }

  // Another layout of the same: the window and the rows stay.
  replace(layout, painter) {
    Object.assign(this, {layout, painter, hover: -1});
  }

  // Where the first row begins: below the axis, or such that flames start at the bottom.
  get head() {
    const axis = this.layout.time ? axisHeight : 0;
    return this.flip ? Math.max(axis, this.height - this.layout.rows.length * rowHeight) : axis;
  }

  ask() {
    if (this.asked) return;
    this.asked = true;
    requestAnimationFrame(() => { this.asked = false; this.draw(); });
  }

  // Moves the window there with an animation, or at once if the user prefers no animations.
  look(from, to) {
    this.turn(from, to, this.layout.time ? 1 : this.layout.extent / 1e9);
    this.page.windowed();
    const start = performance.now(), old = {...this.shown};
    const step = (now) => {
      const part = Math.min(1, (now - start) / 160), eased = part * (2 - part);
      this.shown = {from: old.from + (this.from - old.from) * eased, to: old.to + (this.to - old.to) * eased};
      this.draw();
      if (part < 1 && this.moving === step) requestAnimationFrame(step);
    };
    const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
    this.moving = step;
    step(still ? Infinity : start);
    if (!still) requestAnimationFrame(step);
  }

  // Sets the window, within the layout and at least `least` wide.
  turn(from, to, least) {
    const {begin} = this.layout, all = (this.layout.extent || 1) - begin, size = Math.min(all, Math.max(to - from, least));
    this.from = Math.min(Math.max(begin, from), begin + all - size), this.to = this.from + size;
  }

  lookAt(box) { this.look(...this.layout.span(box)); }
  isWhole() { return this.from <= this.layout.begin && this.to >= this.layout.extent; }

  get scale() { return this.width / (this.shown.to - this.shown.from); }

  draw() {
    if (!this.layout || !this.width || !this.height) return;
    const {pen, layout, scroller} = this, ratio = devicePixelRatio || 1, style = getComputedStyle(document.documentElement);
    const colour = (name) => style.getPropertyValue(name).trim();
    this.theme = {paper: colour("--paper"), panel: colour("--panel"), ink: colour("--ink"), faint: colour("--faint"), line: colour("--line"), accent: colour("--accent")};
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    pen.fillStyle = this.theme.paper;
    pen.fillRect(0, 0, this.width, this.height);
    pen.font = `12px ${colour("--mono")}`;
    pen.textBaseline = "middle";
    this.letter = pen.measureText("0".repeat(64)).width / 64;
    this.columns.clear();
    const top = scroller.scrollTop - this.head, first = Math.max(0, Math.floor(top / rowHeight));
    const last = Math.min(layout.rows.length - 1, Math.ceil((top + this.height) / rowHeight));
    for (let row = first; row <= last; ++row) this.drawRow(row, row * rowHeight - top);
    for (const label of layout.labels) if (label.row >= first && label.row <= last) this.drawLabel(label.text, label.row * rowHeight - top);
    for (const {heap, row} of layout.heaps) if (row + heapRows > first && row <= last) drawHeap(this, heap, row * rowHeight - top);
    if (layout.marks && layout.marks.row + markRows > first && layout.marks.row <= last) drawMarks(this, layout.marks.of, layout.marks.row * rowHeight - top);
    for (const box of new Set([this.hover, this.focus])) if (box >= 0) this.outline(box, top, box === this.focus);
    if (this.picked) this.drawPicked();
    if (layout.time) this.drawAxis();
  }

  // What lies outside of the range that is being chosen is greyed.
  drawPicked() {
    const {pen, shown, scale} = this, [from, to] = this.picked.map((at) => (at - shown.from) * scale);
    pen.globalAlpha = 0.7, pen.fillStyle = this.theme.paper;
    pen.fillRect(0, 0, from, this.height), pen.fillRect(to, 0, this.width - to, this.height);
    pen.globalAlpha = 1, pen.fillStyle = this.theme.accent;
    pen.fillRect(from - 1, 0, 2, this.height), pen.fillRect(to - 1, 0, 2, this.height);
  }

  drawRow(row, y) {
    const {layout, scale, shown, pen} = this, boxes = layout.rows[row], searching = this.page.matches;
    for (let place = layout.firstBehind(row, shown.from); place < boxes.length;) {
      const box = boxes[place], left = (layout.x[box] - shown.from) * scale, right = left + layout.width[box] * scale;
      if (left >= this.width) break;
      const from = Math.max(left, 0), to = Math.min(right, this.width), matched = searching && layout.frame[box] >= 0 && searching[layout.frame[box]];
      pen.globalAlpha = searching && !matched ? 0.28 : 1;
      if (right - left < 1.5) {   // very narrow boxes: one for all that share a pixel
        pen.globalAlpha *= 0.75;
        this.fill(box, from, Math.max(to, from + 1), y);
        const next = layout.firstBehind(row, shown.from + (Math.floor(from) + 1) / scale);
        place = Math.max(place + 1, next);
        continue;
      }
      this.fill(box, from, to - (to - from > 3 ? 1 : 0.5), y);
      if (matched) pen.strokeStyle = this.theme.ink, pen.lineWidth = 1.5, pen.strokeRect(from + 0.75, y + 0.75, to - from - 2.5, rowHeight - 2.5);
      this.write(box, from, to, y);
      ++place;
    }
    pen.globalAlpha = 1;
  }

  fill(box, left, right, y) {
    const {pen, painter, layout} = this;
    if (layout.frame[box] < 0) pen.fillStyle = this.theme.line, pen.fillRect(left, y, right - left, rowHeight - 1);
    else if (painter.segments) {
      for (const [from, to, colour] of painter.segments(box, left, right)) pen.fillStyle = colour, pen.fillRect(from, y, to - from, rowHeight - 1);
    } else pen.fillStyle = painter.fill(box), pen.fillRect(left, y, right - left, rowHeight - 1);
  }

  write(box, left, right, y) {
    const room = Math.floor((right - left - 8) / this.letter);
    if (room < 3) return;
    const fits = fitting(this.page.textOf(box), room), {pen} = this;
    pen.fillStyle = this.layout.frame[box] < 0 ? this.theme.ink : this.page.matches && pen.globalAlpha < 1 ? this.theme.ink : inkOnColour;
    if (pen.globalAlpha < 1) pen.globalAlpha = 0.75;
    pen.fillText(fits, left + 4, y + rowHeight / 2, right - left - 6);
  }

  drawLabel(text, y) {
    const {pen} = this;
    pen.fillStyle = this.theme.panel;
    pen.fillRect(0, y, this.width, rowHeight - 1);
    pen.fillStyle = this.theme.ink;
    pen.fillText(text, 6, y + rowHeight / 2);
  }

  outline(box, top, strong) {
    const {layout, shown, scale, pen} = this;
    const left = Math.max((layout.x[box] - shown.from) * scale, 0), right = Math.min((layout.x[box] + layout.width[box] - shown.from) * scale, this.width);
    if (right <= left && !strong) return;
    const y = layout.row[box] * rowHeight - top, width = Math.max(right - left - 1, 2);
    pen.lineWidth = 2;
    pen.strokeStyle = this.theme.ink;
    pen.strokeRect(left + 1, y + 1, Math.max(width - 2, 1), rowHeight - 3);
    if (strong) pen.lineWidth = 1, pen.strokeStyle = this.theme.paper, pen.strokeRect(left + 2.5, y + 2.5, Math.max(width - 5, 1), rowHeight - 6);
  }

  drawAxis() {
    const {pen, shown, scale, theme} = this;
    pen.fillStyle = theme.panel;
    pen.fillRect(0, 0, this.width, axisHeight - 1);
    const step = roundUp(90 / scale);
    pen.fillStyle = theme.faint;
    for (let at = Math.ceil(shown.from / step) * step; at < shown.to; at += step) {
      const x = (at - shown.from) * scale;
      pen.fillRect(Math.round(x), 0, 1, axisHeight - 1);
      pen.fillText(axisText(at, step), x + 4, axisHeight / 2);
    }
  }

  // What a thread was in at each pixel's column, of the parts (divisionOf()).
  partColumns(index, parts) {
    if (this.columns.has(index)) return this.columns.get(index);
    const columns = new Uint8Array(Math.ceil(this.width) + 2), {shown, scale} = this;
    eachRun(this.data, this.data.sets[0].threads[index], null, (node, state, samples, weight, from, to, labels) => {
      const left = Math.max(0, Math.floor((from - shown.from) * scale)), right = Math.ceil((to - shown.from) * scale);
      if (right > 0 && left < columns.length) columns.fill(parts.of(state, labels), left, right);
    });
    this.columns.set(index, columns);
    return columns;
  }

  // The row and the place in it, in the layout's units; null on the axis.
  spot(event) {
    const bounds = this.canvas.getBoundingClientRect(), x = event.clientX - bounds.left, y = event.clientY - bounds.top;
    if (y < (this.layout.time ? axisHeight : 0)) return null;
    return {row: Math.floor((y - this.head + this.scroller.scrollTop) / rowHeight), at: this.shown.from + (x + 0.5) / this.scale};
  }
  hit(event) {
    const spot = this.spot(event);
    return spot ? this.layout.at(spot.row, spot.at) : -1;
  }
  // What is known of the heap or of the compiler at the pointer; "" if there is no strip, or nothing in it.
  stripHit(event) {
    const spot = this.spot(event), {heaps, marks} = this.layout, isOn = ({row}, rows) => row <= spot.row && spot.row < row + rows;
    if (!spot) return "";
    if (marks && isOn(marks, markRows)) return markText(marks.of, spot.at, markReach / this.scale);
    const strip = heaps.find((each) => isOn(each, heapRows));
    return strip ? heapText(strip.heap, spot.at) : "";
  }

  // Why there is no box at the pointer, in the order of time; "" if there is nothing to say.
  gapHit(event) {
    const spot = this.spot(event), lane = spot && this.layout.lanes?.find(({from, to}) => from <= spot.row && spot.row < to);
    return lane ? this.page.gapText(lane.thread, spot.at) : "";
  }

  // Where the box is, from the window's upper edge.
  place(box) { return this.canvas.getBoundingClientRect().top + this.head + this.layout.row[box] * rowHeight - this.scroller.scrollTop; }
}

function axisText(us, step) {
  if (us === 0) return "0";
  const [unit, size] = step >= 1e6 ? ["s", 1e6] : step >= 1e3 ? (us >= 1e6 ? ["s", 1e6] : ["ms", 1e3]) : us >= 1e3 ? ["ms", 1e3] : ["µs", 1];
  return `${+(us / size).toFixed(6)} ${unit}`;
}
