// The graph's reactions to pointer, wheel and keys.

class Chart extends Graph {
  constructor(...parts) {
    super(...parts);
    this.listen();
  }

  listen() {
    const {canvas} = this;
    let down = null;
    canvas.addEventListener("pointerdown", (event) => {
      if (event.button !== 0) return;
      // In the order of time, dragging chooses a range, and the axis moves; elsewhere, dragging moves.
      const picks = this.layout.time && event.clientY - canvas.getBoundingClientRect().top > axisHeight && event.pointerType !== "touch";
      down = {x: event.clientX, from: this.from, to: this.to, moved: false, picks};
      canvas.setPointerCapture(event.pointerId);
    });
    canvas.addEventListener("pointermove", (event) => {
      if (down && Math.abs(event.clientX - down.x) > 4) down.moved = true;
      if (down?.moved && down.picks) this.pick(down.x, event.clientX);
      else if (down?.moved) {
        const by = (down.x - event.clientX) * (down.to - down.from) / this.width;
        this.jump(down.from + by, down.to + by);
      } else this.point(this.hit(event), event);
    });
    canvas.addEventListener("pointerup", (event) => {
      const click = down && !down.moved, {picked} = this;
      if (down?.moved && !down.picks) this.page.moved();
      down = this.picked = null;
      if (picked) this.page.set({range: picked});
      if (!click) return;
      const box = this.hit(event);
      if (box >= 0) event.shiftKey ? this.page.relate(this.layout.frame[box]) : this.page.zoom(box);
    });
    canvas.addEventListener("pointercancel", () => { down = this.picked = null; this.ask(); });
    canvas.addEventListener("contextmenu", (event) => {
      const box = this.hit(event);
      if (box < 0 || this.layout.frame[box] < 0) return;
      event.preventDefault();
      this.page.menu.open(this.layout.frame[box], box, event.clientX, event.clientY);
    });
    canvas.addEventListener("pointerleave", () => this.point(-1));
    canvas.addEventListener("wheel", (event) => {
      if (event.ctrlKey || event.metaKey) this.magnify(Math.exp(event.deltaY / 300), event.clientX - canvas.getBoundingClientRect().left);
      else if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
        const by = (event.deltaX || event.deltaY) * (this.to - this.from) / this.width;
        this.jump(this.from + by, this.to + by);
      } else return;
      event.preventDefault();
      this.page.moved();
    }, {passive: false});
    canvas.addEventListener("focus", () => { if (this.focus < 0 && canvas.matches(":focus-visible")) this.move(this.start()); });
    canvas.addEventListener("blur", () => { this.focus = -1; this.page.tell(this.hover); this.ask(); });
    canvas.addEventListener("keydown", (event) => this.key(event));
  }

  // Chooses the times between two places, from the window's left edge.
  pick(x, other) {
    const {left} = this.canvas.getBoundingClientRect(), at = (place) => Math.min(this.to, Math.max(this.from, this.from + (place - left) / this.scale));
    this.picked = [at(Math.min(x, other)), at(Math.max(x, other))].map(Math.round);
    if (this.picked[0] === this.picked[1]) this.picked = null;
    this.point(-1);
    this.ask();
  }

  jump(from, to) {
    this.moving = null;
    this.turn(from, to, 0);
    this.shown = {from: this.from, to: this.to};
    this.page.windowed();
    this.ask();
  }

  magnify(by, x = this.width / 2) {
    const all = this.layout.extent - this.layout.begin;
    const size = Math.min(all, Math.max((this.to - this.from) * by, this.layout.time ? 10 : all / 1e9));
    const at = this.from + x / this.width * (this.to - this.from);
    this.jump(at - x / this.width * size, at + (1 - x / this.width) * size);
  }

  point(box, event) {
    if (box !== this.hover) this.hover = box, this.ask();
    this.canvas.style.cursor = box >= 0 ? "pointer" : "default";
    const text = box < 0 && event ? this.stripHit(event) || this.gapHit(event) : "";
    if (text) this.page.tellText(text, event);
    else this.page.tell(box >= 0 ? box : this.focus, box >= 0 ? event : null);
  }

  // Moves the focus to a box and scrolls to it.
  move(box) {
    if (box === undefined || box < 0) return;
    this.focus = box;
    const y = this.layout.row[box] * rowHeight, {scroller} = this;
    if (y < scroller.scrollTop) scroller.scrollTop = y;
    else if (y + rowHeight + this.head > scroller.scrollTop + this.height) scroller.scrollTop = y + rowHeight + this.head - this.height;
    if (this.layout.x[box] >= this.to || this.layout.x[box] + this.layout.width[box] <= this.from) this.page.reset(), this.focus = box;
    this.page.tell(box);
    this.ask();
  }

  // The widest visible box of the row that overlaps with x to end.
  widest(row, x, end) {
    const boxes = this.layout.rows[row] ?? [];
    let found = -1, most = 0;
    for (let place = boxes.length ? this.layout.firstBehind(row, Math.max(x, this.from)) : 0; place < boxes.length; ++place) {
      const box = boxes[place], left = Math.max(this.layout.x[box], x, this.from);
      if (left >= Math.min(end, this.to)) break;
      const width = Math.min(this.layout.x[box] + this.layout.width[box], end, this.to) - left;
      if (width > most) most = width, found = box;
    }
    return found;
  }

  start() {
    for (let row = this.layout.focusRow ?? 0; row < this.layout.rows.length; ++row) {
      const box = this.widest(row, 0, Infinity);
      if (box >= 0 && this.layout.outer[box] < 0) return box;
    }
    return this.widest(this.layout.rows.length - 1, 0, Infinity);
  }

  // From `box` to the widest box that it called, as long as that is wider than what it does itself.
  hottest(box) {
    const {layout} = this, by = layout.flipped ? -1 : 1;
    for (;;) {
      const row = layout.row[box] + by, boxes = layout.rows[row] ?? [], end = layout.x[box] + layout.width[box];
      let own = layout.width[box], widest = -1;
      for (let place = boxes.length ? layout.firstBehind(row, layout.x[box]) : 0; place < boxes.length && layout.x[boxes[place]] < end; ++place) {
        if (layout.outer[boxes[place]] !== box) continue;
        own -= layout.width[boxes[place]];
        if (widest < 0 || layout.width[boxes[place]] > layout.width[widest]) widest = boxes[place];
      }
      if (widest < 0 || own > layout.width[widest]) return box;
      box = widest;
    }
  }

  beside(by) {
    const boxes = this.layout.rows[this.layout.row[this.focus]], least = (this.to - this.from) / this.width / 2;
    let place = boxes.indexOf(this.focus) + by;
    while (boxes[place] !== undefined && this.layout.width[boxes[place]] < least) place += by;
    return boxes[place] ?? -1;
  }

  upright(by) {
    const {layout, focus} = this, x = layout.x[focus], end = x + layout.width[focus];
    for (let row = layout.row[focus] + by; row >= 0 && row < layout.rows.length; row += by) {
      const box = this.widest(row, x, end);
      if (box >= 0) return box;
      if (!layout.time) return -1;   // in order of time, other threads are below
    }
    return -1;
  }

  key(event) {
    if (event.ctrlKey || event.altKey || event.metaKey) return;
    const {focus} = this, arrows = {ArrowUp: () => this.upright(-1), ArrowDown: () => this.upright(1), ArrowLeft: () => this.beside(-1), ArrowRight: () => this.beside(1)};
    if (arrows[event.key]) this.move(focus < 0 ? this.start() : arrows[event.key]());
    else if (event.key === "Enter" && focus >= 0) this.page.zoom(focus), this.move(this.page.zoomed);   // it may have another layout now
    else if (event.key === "Home") this.move(this.start());
    else return;
    event.preventDefault();
  }
}
