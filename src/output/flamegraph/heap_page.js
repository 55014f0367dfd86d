// The page of a heap: who holds what from the roots inwards, the classes, and for each box its class and how the program reaches it.

class HeapPage extends Page {
  constructor(data) {
    useHeapWords();
    // Colours by class.
    data.hashes = Uint32Array.from(data.frames.cls, (cls, frame) => hash(data.heap.classes.text[cls] ?? data.frames.name[frame]));
    super(data);
    this.fillLeads();
  }

  makeTable() { return new ClassTable(this.data, this); }
  highlighted() {
    const {frames} = this.data, {query, cls} = this.state;
    if (query !== "") return matching(frames.sought, query);
    return cls < 0 ? null : Uint8Array.from(frames.cls, (of) => of === cls);
  }
  matchedText(matched) {
    const {data, state} = this, size = matched[data.columns.weight], text = `${bytes(size)}, ${percent(size, this.tree.total[data.columns.weight][0])}`;
    return state.cls < 0 ? `${text} matched` : `${data.heap.classes.text[state.cls]}: ${text}`;
  }

  // The table is of classes, and beside it is the graph.
  relations() {
    this.table.show(this.threads);
    this.table.mark(this.state.cls);
    this.layout = this.lay();
  }
  lay() { return this.state.view === "table" ? layLeftHeavy(this.tree, this.widthOf(this.tree), false) : super.lay(); }

  // Highlights the class in the graph; the same one again: no class.
  chooseClass(cls) {
    this.state.query = "";
    this.state.cls = this.state.cls === cls ? -1 : cls;
    this.table.mark(this.state.cls);
    this.search();
  }
  find(query) {
    super.find(query);
    this.table.mark(-1);
  }
  relate(frame) {
    const cls = frame < 0 ? -1 : this.data.frames.cls[frame];
    this.set({view: "table"});
    if (cls >= 0 && cls !== this.state.cls) this.chooseClass(cls);
    this.table.body.querySelector("[aria-current]")?.scrollIntoView({block: "center"});
  }

  // The node of the page's data that the box stands for, the outermost one if boxes that repeat are one; -1 if it is of several places.
  nodeOf(box) {
    const {layout} = this;
    if (layout.bottomUp || layout.frame[box] < 0) return -1;
    const shaped = this.shapedFor(this.shape);
    shaped.first ??= firstNodes(shaped.place, shaped.outer.length);
    return shaped.first[layout.item[box]];
  }
  // How the program reaches what is in the box: {text, of: what it is the path of}; null if that is not in the page.
  pathOf(box) {
    const {heap} = this.data, node = this.nodeOf(box);
    if (heap.paths.has(node)) return {text: heap.paths.get(node), of: this.layout.tree(box).own[0][this.layout.item[box]] > 1 ? "path of the largest" : "path"};
    const outer = node < 0 ? -1 : this.layout.path(box).findLast((other) => heap.paths.has(this.nodeOf(other))) ?? -1;
    return outer < 0 ? null : {text: heap.paths.get(this.nodeOf(outer)), of: "held by"};
  }
  ownActions(frame, box) {
    const path = box >= 0 ? this.pathOf(box) : null;
    return path ? [["Copy its path", "", () => copy(path.text)]] : [];
  }
  classOf(box) { return this.data.heap.classes.text[this.data.frames.cls[this.layout.frame[box]]] ?? ""; }

  lineOf(box) {
    const {data, layout} = this, path = this.pathOf(box), cls = this.classOf(box), parts = data.comparison ? [boxLine(this, box)] : [];
    if (!data.comparison) {
      const tree = layout.tree(box), node = layout.item[box], {samples, weight} = data.columns, size = tree.total[weight][node];
      const own = layout.frame[box] >= 0 && !layout.bottomUp ? `, own ${bytes(tree.own[weight][node])}, ${columnText(data, samples, tree.own[samples][node])}` : "";
      parts.push(`${this.textOf(box)}: ${heldWord(layout, box)} ${bytes(size)} (${percent(size, this.all)})${own}`);
    }
    if (cls) parts.push(`class: ${cls}`);
    if (path) parts.push(`${path.of}: ${path.text}`);
    return parts.join(" · ");
  }

  tipOf(box) {
    const {data, layout} = this, cls = this.classOf(box), path = this.pathOf(box), times = this.timesOf(box);
    const note = (text) => element("div", {className: "where", textContent: text});
    return [
      element("strong", {textContent: this.textOf(box)}), ...(cls ? [note(cls)] : []), ...(times > 1 ? [note(`${data.words.repeats} are folded: up to ${count(times)}`)] : []),
      data.comparison ? changeNumbers(this, box) : heapNumbers(this, box),
      ...(layout.bottomUp && layout.tree(box).cut.has(layout.item[box]) ? [note("its holders are not shown: it is less than 1 of 20,000")] : []),
      ...(path ? [note(`${path.of}: ${path.text}`)] : []),
    ];
  }

  // What holds much, or what has grown; a click zooms to it.
  fillLeads() {
    const {leads} = this.data.heap;
    byId("leads").hidden = leads.length === 0;
    byId("leads").replaceChildren(...leads.map(({node, text}) => {
      const button = element("button", {type: "button", textContent: text, title: text});
      button.addEventListener("click", () => this.zoomToNode(node));
      return element("li", {}, button);
    }));
  }
  // A node of the page's data; everything that could hide it is taken back.
  zoomToNode(node) {
    this.set({view: this.state.view === "table" ? "table" : "left", thread: "all", edits: [], width: "after"});
    const place = this.shapedFor(this.shape).place[node], box = place === 0 ? -1 : this.layout.item.subarray(0, this.layout.count).indexOf(place);
    if (box < 0) return this.reset();
    this.zoom(box);
  }
}

// first[node of the tree that is shown]: the first, and so the outermost, node that it stands for.
function firstNodes(place, count) {
  const first = new Int32Array(count).fill(-1);
  for (let node = 0; node < place.length; ++node) if (place[node] >= 0 && first[place[node]] < 0) first[place[node]] = node;
  return first;
}

// The size of a box: what it retains; bottom up, what it has itself, or what of that is held through this box.
const heldWord = (layout, box) => (!layout.bottomUp || layout.frame[box] < 0 ? "retains" : layout.inverted(box) ? "holds of it" : "own");

function heapNumbers(page, box) {
  const {data, layout} = page, tree = layout.tree(box), node = layout.item[box], {samples, weight} = data.columns;
  const row = (title, sums) => [title, bytes(sums[weight][node]), percent(sums[weight][node], page.all), count(sums[samples][node])];
  const head = ["", "bytes", "of all", "objects"], rows = [row(heldWord(layout, box), tree.total)];
  return numbers(head, layout.bottomUp || layout.frame[box] < 0 ? rows : [...rows, row("own", tree.own)]);
}

// The page says "class" where that of a profile says "function", and so on: page.html has both.
function useHeapWords() {
  for (const made of document.querySelectorAll("[data-heap]")) made.textContent = made.dataset.heap;
  for (const made of document.querySelectorAll("[data-heap-title]")) made.title = made.dataset.heapTitle;
  for (const made of document.querySelectorAll("[data-heap-label]")) made.ariaLabel = made.dataset.heapLabel;
  for (const made of document.querySelectorAll("[data-of]")) made.hidden = made.dataset.of !== "heap";
  document.body.classList.add("heap");
}
