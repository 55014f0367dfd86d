// The state that the user has chosen, and its display.

const byId = (id) => document.getElementById(id);

class Page {
  constructor(data) {
    this.data = data;
    this.state = {
      view: "left", thread: "all", label: "", colour: data.comparison ? "change" : "kind", flip: false, width: "after", query: "", fn: -1,
      mode: data.mode, fold: true, lines: data.lines, edits: [], range: null, source: false, heat: false, cls: -1,
    };
    this.shapes = new Map(), this.trees = new Map();
    this.matches = null;
    this.history = [];
    this.zoomed = -1;
    this.now = data.sets[data.sets.length - 1];
    fillHeader(data);
    fillChoices(data);
    this.table = this.makeTable();
    this.menu = new Menu(this);
    this.source = new SourcePanel(data, this);
    this.heat = data.inOrder ? new Heatmap(this) : null;
    this.chart = new Chart(data, byId("canvas"), byId("scroller"), byId("spacer"), this);
    const zoom = readHash(this);
    this.render();
    this.search();
    restoreZoom(this, zoom);
  }

  makeTable() { return new FunctionTable(this.data, this); }
  // Beside those that every page has, in the menu of a box.
  ownActions() { return []; }
  lineOf(box) { return boxLine(this, box); }
  tipOf(box) { return tipOf(this, box); }
  // Which frames are highlighted; null if nothing is looked for.
  highlighted() { return this.state.query === "" ? null : matching(this.data.frames.text, this.state.query); }
  matchedText(matched) { return `${percent(matched[this.data.columns.counted], this.tree.total[this.data.columns.counted][0])} matched`; }

  get threads() { return this.state.thread === "all" ? null : [Number(this.state.thread)]; }
  // Functions count calls as they were made.
  get shape() { return {lines: this.state.lines, fold: this.state.fold && this.state.view !== "table"}; }
  // The tree of all threads, on which shares of the total are based.
  get whole() { return this.treeOf("all", this.shape).tree; }
  get lineTree() { return this.treeOf(this.state.thread, {lines: true, fold: false}).tree; }
  get treeKey() { return this.keyOf(this.state.thread, this.shape); }

  keyOf(...parts) { return JSON.stringify([...parts, this.state.mode, this.state.edits, this.state.range, this.state.label]); }

  // The last few are kept.
  kept(known, key, make) {
    if (!known.has(key) && known.size >= 12) known.clear();
    if (!known.has(key)) known.set(key, make());
    return known.get(key);
  }
  shapedFor(shape) {
    const {edits, mode} = this.state, {data} = this;
    return this.kept(this.shapes, JSON.stringify([shape, mode, edits]),
      () => shapeStacks(data, {...shape, edits, shows: shownFrames(data.frames, mode), nothing: data.nothing[mode]}));
  }
  treeOf(thread, shape) {
    return this.kept(this.trees, this.keyOf(thread, shape, this.data.classes?.name),
      () => ({tree: sumThreads(this.data, this.shapedFor(shape), thread === "all" ? null : [Number(thread)], this.state.range), frames: null, inverted: null}));
  }
  framesOf(thread) {
    const of = this.treeOf(thread, this.shape);
    return of.frames ??= sumFrames(of.tree);
  }

  widthOf(tree, sums = tree.total) {
    const {comparison, columns} = this.data;
    if (!comparison || this.state.width === "after") return sums[columns.width];
    return sums[columns.before + columns.width].map((value) => value * comparison.scale);
  }

  find(query) {
    Object.assign(this.state, {query, cls: -1});
    this.search();
  }
  search() {
    this.matches = this.highlighted();
    byId("search").value = this.state.query;
    byId("matched").className = "";
    byId("matched").textContent = "";
    if (this.matches) {
      const {data} = this, {samples, weight} = data.columns, functions = this.matches.reduce((sum, is) => sum + is, 0);
      const matched = sumMatches(this.tree, this.matches), text = (column) => columnText(data, column, matched[column]);
      byId("matched").textContent = functions === 0 ? "no match" : this.matchedText(matched);
      byId("matched").title = `${text(samples)}, ${text(weight)}, ${count(functions)} ${data.words.named}${functions === 1 ? "" : "s"}`;
      byId("matched").className = functions === 0 ? "" : "some";
    }
    this.chart.ask();
    writeHash(this);
  }

  // Renders everything from the state. The zoom is kept if the boxes do not change.
  render() {
    const {state, data} = this, drawn = this.keyOf(state.view, state.thread, state.flip, state.width, this.shape, state.view === "table" ? state.fn : 0);
    showLines(data.frames, state.lines);
    wantLabel(data, state.label);
    const divided = classifyBy(data, labelOfColour(state.colour));   // then boxes know other sums, but are the same
    this.tree = this.treeOf(state.thread, this.shape).tree;
    this.all = this.widthOf(this.whole)[0];
    this.threadOrder = fillThreads(data, this.now, state.range);
    byId("functions").hidden = state.view !== "table", byId("relations").hidden = state.view !== "table" || data.heap !== null;
    byId("source").hidden = !state.source;
    const sums = state.view === "table" || state.colour === "module" ? this.framesOf(state.thread) : null;
    if (state.view === "table") this.relations(sums);
    else if (drawn !== this.drawn || divided) this.layout = this.lay(drawn === this.drawn);
    if (state.colour === "module") colourFiles(data, this.framesOf("all"));
    const painter = this.painter();
    if (drawn === this.drawn) Object.assign(this.chart, {layout: this.layout, painter}), this.chart.draw();
    else {
      this.history = [], this.zoomed = -1;
      this.chart.show(this.layout, painter, state.flip && state.view === "left");
    }
    this.drawn = drawn;
    fillControls(this);
    fillLegend(this, sums);
    fillApplied(this);
    fillCrumbs(this);
    this.tell(-1);
    if (state.source) this.source.fill();
    this.heat?.fill();
  }

  painter() { return makePainter(this.state.colour, this.data, this.layout, this.chart); }

  // `again`: for the window that is seen.
  lay(again) {
    const {state, data} = this;
    if (state.view === "time") {
      this.timing ??= timesOf(data);
      const [from, to] = again ? [this.chart.from, this.chart.to] : state.range ?? [0, this.timing.end];
      return this.layInTime(this.columnFor(from, to));
    }
    if (state.view === "left") return layLeftHeavy(this.tree, this.widthOf(this.tree), state.flip);
    const of = this.treeOf(state.thread, this.shape);
    of.inverted ??= bottomUp(of.tree, data.columns.width);
    return layBottomUp(of.inverted, this.widthOf(of.inverted), state.flip);
  }

  layInTime(column) {
    const {flip, range} = this.state;
    return layTime(this.data, this.shapedFor(this.shape), this.tree, this.threads ?? this.threadOrder, {flip, range, column});
  }

  // The width of columns (µs) in which samples are summed if that much time is seen; 0: single samples are wide enough to be seen.
  columnFor(from, to) {
    const scale = byId("scroller").clientWidth / (to - from || 1), threads = this.threads ?? this.threadOrder;
    const run = Math.min(...threads.map((thread) => this.timing.run[thread]));
    return !(run * scale < 6) ? 0 : roundUp(50 / scale);
  }

  // The window has changed: in the order of time, samples may have to be summed in other columns.
  windowed() {
    const {chart, layout} = this;
    if (!layout?.time || chart.layout !== layout) return;
    const column = this.columnFor(chart.from, chart.to);
    if (column === layout.column) return;
    this.layout = this.layInTime(column);
    this.zoomed = this.layout.sameAs(layout, this.zoomed);
    for (const step of this.history) step.zoomed = -1;
    chart.replace(this.layout, this.painter());
    chart.focus = this.layout.sameAs(layout, chart.focus);
  }

  relations(sums) {
    const {state, data} = this;
    if (this.tabled !== sums) this.table.show(this.tree, sums, this.all), this.tabled = sums, this.related = null;
    if (state.fn < 0 || !sums.outermost[state.fn]?.length) state.fn = this.table.shown[0] ?? -1;
    this.table.mark(state.fn);
    const key = JSON.stringify([state.fn, state.thread, state.width]);
    if (this.related === key) return;
    this.related = key;
    this.drawn = null;
    if (state.fn < 0) {   // nothing is left of what was recorded
      fillNoRelations();
      this.layout = new Layout();
      return;
    }
    const nodes = sums.outermost[state.fn], callers = callersOf(this.tree, nodes, state.fn), callees = calleesOf(this.tree, nodes, state.fn);
    fillRelations(data, this, state.fn, {sums, callers, callees}, this.all);
    this.layout = laySandwich(callers, callees, [this.widthOf(callers), this.widthOf(callees)]);
  }

  // How many calls of one stack the box stands for, at most.
  timesOf(box) {
    const {layout} = this;
    return layout.frame[box] < 0 || this.state.view === "table" || layout.bottomUp ? 1 : this.shapedFor(this.shape).times[layout.item[box]];
  }
  textOf(box) {
    const frame = this.layout.frame[box];
    if (frame >= 0) return this.data.frames.text[frame] + timesText(this.timesOf(box));
    return this.threads ? threadText(this.now.threads[this.threads[0]]) : this.now.threads.length === 1 || this.data.heap ? "all" : "all threads";
  }

  set(change) {
    // A line and its function have different numbers.
    if ("lines" in change && this.state.fn >= 0) change.fn = this.data.frames.fn[this.state.fn];
    Object.assign(this.state, change);
    this.render();
    if (["thread", "label", "range", "edits", "lines", "mode"].some((name) => name in change)) this.search();
  }
  relate(frame) {
    if (frame < 0) return;
    this.source.show(frame);
    this.set({view: "table", fn: frame});
  }
  edit(how, fn) { this.set({edits: [...this.state.edits.filter((edit) => edit.fn !== fn), {how, fn}]}); }
  showSource(frame) {
    this.source.show(frame);
    this.set({source: true});
  }
  zoom(box) {
    this.history.push({from: this.chart.from, to: this.chart.to, zoomed: this.zoomed});
    this.zoomed = box;
    this.source.showNearest(this.layout, box);
    this.chart.lookAt(box);
    this.moved(true);
  }
  back() {
    const last = this.history.pop();
    if (last) this.zoomed = last.zoomed, this.chart.look(last.from, last.to), this.moved(true);
    else if (!this.chart.isWhole()) this.reset();
    else if (this.matches) this.find("");
    else if (this.state.edits.length > 0) this.set({edits: this.state.edits.slice(0, -1)});
    else if (this.state.range) this.set({range: null});
  }
  hottest() {
    const box = this.zoomed >= 0 ? this.zoomed : this.chart.start();
    if (box < 0) return;
    this.zoom(this.chart.hottest(box));
    this.chart.move(this.zoomed);
  }
  reset() {
    this.history = [], this.zoomed = -1;
    this.chart.look(0, this.layout.extent);
    this.moved(true);
  }
  // The function that keys mean: of the focus, of the box under the pointer, the one that was zoomed to, or the one chosen in the table.
  toldBox() {
    const {focus, hover, layout} = this.chart;
    return [focus, hover, this.zoomed].find((box) => box >= 0 && layout.frame[box] >= 0) ?? -1;
  }
  toldFrame() {
    const box = this.toldBox();
    return box >= 0 ? this.layout.frame[box] : this.state.view === "table" ? this.state.fn : -1;
  }
  // Call after the window has changed; unless that was by zooming to a box, no box is zoomed then.
  moved(byZoom = false) {
    if (!byZoom) this.zoomed = -1;
    fillCrumbs(this);
    this.tell(-1);
    writeHash(this);
  }

  // Of a place of the thread where there is no box.
  gapText(thread, at) {
    const {end} = this.timing;
    this.gaps ??= new Map();
    if (!this.gaps.has(thread)) this.gaps.set(thread, gapsOf(this.data, thread, end));
    return gapText(this.data, thread, at, {column: this.layout.column, gaps: this.gaps.get(thread), end});
  }

  tellText(text, event) {
    const tip = byId("tip");
    byId("detail").textContent = text;
    tip.hidden = false, this.tipped = -1;
    tip.replaceChildren(element("div", {textContent: text}));
    placeTip(tip, event.clientX, event.clientY);
  }

  tell(box, event = null) {
    const told = box >= 0 ? box : this.zoomed, tip = byId("tip"), chart = this.chart;
    byId("detail").textContent = told >= 0 ? this.lineOf(told) : "Click a box to zoom in. Press ? for help.";
    byId("actions").hidden = this.toldFrame() < 0;
    tip.hidden = box < 0;
    if (box < 0) return;
    if (this.tipped !== box || this.tippedLayout !== this.layout) tip.replaceChildren(...this.tipOf(box));
    this.tipped = box, this.tippedLayout = this.layout;
    if (event) placeTip(tip, event.clientX, event.clientY);
    else placeTipAside(tip, byId("canvas").getBoundingClientRect(), chart.place(box));
  }
}
