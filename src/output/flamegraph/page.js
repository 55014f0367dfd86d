// The state that the user has chosen, and its display.

const byId = (id) => document.getElementById(id);

class Page {
  constructor(data) {
    this.data = data;
    this.state = {view: "left", thread: "all", colour: data.comparison ? "change" : "kind", flip: false, width: "after", query: "", fn: -1};
    this.trees = new Map();
    this.matches = null;
    this.history = [];
    this.zoomed = -1;
    this.now = data.sets[data.sets.length - 1];
    this.header();
    this.choices();
    this.table = new FunctionTable(data, this);
    this.chart = new Chart(data, byId("canvas"), byId("scroller"), byId("spacer"), this);
    const zoom = readHash(this);
    this.render();
    this.search();
    restoreZoom(this, zoom);
  }

  // The tree of all threads, on which shares of the total are based.
  get whole() { return this.treeOf("all"); }
  get threads() { return this.state.thread === "all" ? null : [Number(this.state.thread)]; }

  treeOf(thread) {
    if (!this.trees.has(thread)) {
      const tree = sumThreads(this.data, thread === "all" ? null : [Number(thread)]);
      this.trees.set(thread, {tree, frames: null});
    }
    return this.trees.get(thread).tree;
  }
  framesOf(thread) {
    this.treeOf(thread);
    return this.trees.get(thread).frames ??= sumFrames(this.trees.get(thread).tree);
  }

  header() {
    const {data} = this;
    const [first] = data.sets, targets = first.target === this.now.target ? first.target : `${first.target} → ${this.now.target}`;
    byId("target").textContent = targets || "luaspy";
    byId("target").title = byId("target").textContent;
    document.title = `${byId("target").textContent} - luaspy`;
    const fact = (name, value, className = "") => element("div", {className}, element("dt", {textContent: name}), element("dd", {textContent: value}));
    if (data.comparison) {
      const {by, scale} = data.comparison, of = columnName(data, data.columns.counted);
      const how = by === "shares" ? `by share of ${of}: what was before counts ${scale.toPrecision(3)} times` : `by ${by}, as it was measured`;
      byId("facts").append(element("div", {}, fact("Compared", how)));
    }
    for (const set of data.sets) {
      const label = data.comparison ? [fact(set.label, "", "label")] : [];
      for (const doubt of set.doubts) byId("doubts").append(element("li", {textContent: `doubtful: ${data.comparison ? `${set.label}: ` : ""}${doubt}`}));
      byId("facts").append(element("div", {}, ...label, ...set.facts.map(([name, value]) => fact(name, value))));
    }
  }

  choices() {
    const {data} = this, {counted} = data.columns, option = (value, text) => element("option", {value, textContent: text});
    const threads = this.now.threads.map((thread, i) => ({i, thread, amount: countedOf(data, thread)})).sort((a, b) => b.amount - a.amount);
    this.threadOrder = threads.map(({i}) => i);
    const all = threads.reduce((sum, t) => sum + t.amount, 0);
    byId("thread").append(option("all", `all ${threads.length} (${columnText(data, counted, all)})`));
    for (const {i, thread, amount} of threads) byId("thread").append(option(String(i), `${threadText(thread)}: ${percent(amount, all)}`));
    byId("thread-field").hidden = threads.length < 2 || data.comparison !== null;
    const colours = [["kind", "by kind"], ["state", "by what the VM did"], ["function", "by function"], ["module", "by file"]];
    const offered = data.comparison ? [["change", "by change"], ...colours.filter(([value]) => value !== "state")] : colours;
    for (const [value, text] of offered) byId("colour").append(option(value, text));
    byId("width-field").hidden = data.comparison === null;
    document.querySelector("[data-view=time]").hidden = !data.inOrder;
    byId("weighed").hidden = counted === data.columns.samples;
    byId("weighed").textContent = `Here samples count by the ${data.unit} that they stand for.`;
  }

  widthOf(tree, sums = tree.total) {
    const {comparison, columns} = this.data;
    if (!comparison || this.state.width === "after") return sums[columns.width];
    return sums[columns.before + columns.width].map((value) => value * comparison.scale);
  }

  search() {
    const {query} = this.state;
    this.matches = query === "" ? null : matching(this.data.frames, query);
    byId("search").value = query;
    byId("matched").className = "";
    byId("matched").textContent = "";
    if (this.matches) {
      const {data} = this, {samples, weight, counted} = data.columns, functions = this.matches.reduce((sum, is) => sum + is, 0);
      const matched = sumMatches(this.tree, this.matches), text = (column) => columnText(data, column, matched[column]);
      byId("matched").textContent = functions === 0 ? "no match" : `${percent(matched[counted], this.tree.total[counted][0])} matched`;
      byId("matched").title = `${text(samples)}, ${text(weight)}, ${count(functions)} function${functions === 1 ? "" : "s"}`;
      byId("matched").className = functions === 0 ? "" : "some";
    }
    this.chart.ask();
    writeHash(this);
  }

  // Renders everything from the state. The zoom is kept if the boxes do not change.
  render() {
    const {state, data} = this, shape = JSON.stringify([state.view, state.thread, state.flip, state.width, state.view === "table" ? state.fn : 0]);
    this.tree = this.treeOf(state.thread);
    this.all = this.widthOf(this.whole)[0];
    const sums = state.view === "table" || state.colour === "module" ? this.framesOf(state.thread) : null;
    byId("functions").hidden = byId("relations").hidden = state.view !== "table";
    if (state.view === "table") this.relations(sums);
    else if (shape !== this.shape) {
      const order = this.threads ?? this.threadOrder;
      this.layout = state.view === "time" ? layTime(data, order, state.flip) : layLeftHeavy(this.tree, this.widthOf(this.tree), state.flip);
    }
    if (state.colour === "module") colourFiles(data, this.framesOf("all"));
    const painter = makePainter(state.colour, data, this.layout, this.chart);
    if (shape === this.shape) this.chart.painter = painter, this.chart.draw();
    else {
      this.history = [], this.zoomed = -1;
      this.chart.show(this.layout, painter, state.flip && state.view === "left");
    }
    this.shape = shape;
    this.controls();
    this.legend(sums);
    this.crumbs();
    this.tell(-1);
  }

  relations(sums) {
    const {state, data} = this;
    if (this.tabled !== sums) this.table.show(this.tree, sums, this.all), this.tabled = sums, this.related = null;
    if (state.fn < 0 || !sums.outermost[state.fn]) state.fn = this.table.shown[0] ?? -1;
    this.table.mark(state.fn);
    const key = JSON.stringify([state.fn, state.thread, state.width]);
    if (state.fn < 0 || this.related === key) return;
    const nodes = sums.outermost[state.fn], callers = callersOf(this.tree, nodes, state.fn), callees = calleesOf(this.tree, nodes, state.fn);
    fillRelations(data, this, state.fn, {sums, callers, callees}, this.all);
    this.layout = laySandwich(callers, callees, [this.widthOf(callers), this.widthOf(callees)]);
    this.related = key;
    this.shape = null;
  }

  controls() {
    const {state} = this;
    for (const button of document.querySelectorAll("[data-view]")) button.setAttribute("aria-pressed", button.dataset.view === state.view);
    byId("thread").value = state.thread, byId("colour").value = state.colour, byId("width").value = state.width, byId("search").value = state.query;
    byId("flip").setAttribute("aria-pressed", state.flip);
    byId("flip").hidden = state.view === "table";
    writeHash(this);
  }

  legend(sums) {
    const items = legendOf(this.state.colour, this.data, this.tree, sums), all = this.tree.total[this.data.columns.counted][0];
    if (this.state.colour !== "change") items.sort((a, b) => b.amount - a.amount);
    byId("legend").replaceChildren(...items.map(({colour, text, amount}) => element("li", {}, swatch(colour), element("span", {textContent: text}),
      ...(amount === null ? [] : [element("span", {className: "share", textContent: percent(amount, all)})]))));
  }

  textOf(box) {
    const frame = this.layout.frame[box];
    if (frame >= 0) return this.data.frames.text[frame];
    return this.threads ? threadText(this.now.threads[this.threads[0]]) : this.now.threads.length === 1 ? "all" : "all threads";
  }

  set(change) {
    Object.assign(this.state, change);
    this.render();
    if ("thread" in change) this.search();
  }
  relate(frame) { if (frame >= 0) this.set({view: "table", fn: frame}); }

  zoom(box) {
    this.history.push({from: this.chart.from, to: this.chart.to, zoomed: this.zoomed});
    this.zoomed = box;
    this.chart.lookAt(box);
    this.moved(true);
  }
  back() {
    const last = this.history.pop();
    if (last) this.zoomed = last.zoomed, this.chart.look(last.from, last.to), this.moved(true);
    else if (!this.chart.isWhole()) this.reset();
    else if (this.state.query) this.state.query = "", this.search();
  }
  reset() {
    this.history = [], this.zoomed = -1;
    this.chart.look(0, this.layout.extent);
    this.moved(true);
  }
  // Call after the window has changed; unless that was by zooming to a box, no box is zoomed then.
  moved(byZoom = false) {
    if (!byZoom) this.zoomed = -1;
    this.crumbs();
    this.tell(-1);
    writeHash(this);
  }

  crumbs() {
    const {layout, zoomed, chart} = this, nav = byId("crumbs");
    nav.replaceChildren();
    const path = zoomed < 0 ? [] : layout.path(zoomed).filter((box) => layout.frame[box] >= 0), shown = path.slice(-3);
    const put = (text, go) => {
      const button = element("button", {type: "button", textContent: text, title: text});
      button.addEventListener("click", go);
      nav.append(...(nav.childElementCount ? [element("span", {textContent: "›"})] : []), button);
    };
    put("all", () => this.reset());
    if (shown.length < path.length) nav.append(element("span", {textContent: "› …"}));
    for (const box of shown) put(this.textOf(box), () => this.zoom(box));
    if (zoomed < 0 && !chart.isWhole()) nav.append(element("span", {textContent: "› a part of it"}));
  }

  tell(box, event = null) {
    const told = box >= 0 ? box : this.zoomed, tip = byId("tip"), chart = this.chart;
    byId("detail").textContent = told >= 0 ? boxLine(this, told) : "Click a box to zoom in. Press ? for help.";
    byId("relate").hidden = this.state.view === "table" || (chart.focus < 0 && this.zoomed < 0);
    tip.hidden = box < 0;
    if (box < 0) return;
    if (this.tipped !== box || this.tippedLayout !== this.layout) tip.replaceChildren(...tipOf(this, box));
    this.tipped = box, this.tippedLayout = this.layout;
    if (event) placeTip(tip, event.clientX, event.clientY);
    else placeTipAside(tip, byId("canvas").getBoundingClientRect(), chart.place(box));
  }
}
