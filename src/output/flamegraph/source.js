// The source of a Lua file with the cost of each line, of what is shown.

const mostLines = 4000;   // of a file around the function that is shown

class SourcePanel {
  constructor(data, page) {
    Object.assign(this, {data, page, frame: -1, file: "", shown: ""});
    this.files = byId("source-file");
    this.files.addEventListener("change", () => { this.frame = -1, this.file = this.files.value; this.fill(); });
    byId("source-close").addEventListener("click", () => page.set({source: false}));
  }

  // Shows the file of the function, at the function.
  show(frame) {
    if (frame < 0 || this.data.frames.kind[frame] !== "lua") return;
    this.frame = this.data.frames.fn[frame], this.file = this.data.frames.file[frame];
    if (this.page.state.source) this.fill();
  }

  // The same for the innermost Lua function that led to the box.
  showNearest(layout, box) {
    this.show(layout.path(box).map((outer) => layout.frame[outer]).findLast((frame) => frame >= 0 && this.data.frames.kind[frame] === "lua") ?? -1);
  }

  fill() {
    const {data, page} = this, {frames, columns} = data, tree = page.lineTree, key = [this.file, this.frame, page.treeKey].join("\n");
    if (this.file === "") this.file = this.hottest(tree);
    if (key === this.shown) return;
    this.shown = key;
    const names = [...new Set([...data.sources.keys(), this.file])].sort();
    this.files.replaceChildren(...names.map((name) => element("option", {value: name, textContent: name})));
    this.files.value = this.file;
    const source = data.sources.get(this.file), note = byId("source-note"), body = byId("source-lines");
    note.textContent = !source ? "The text of this file is not in the page." : source.changed ? "Written after the program had started: lines may differ from those that ran." : "";
    if (!source) return body.replaceChildren();
    const lines = source.text.split("\n"), {file} = this;
    if (lines[lines.length - 1] === "") lines.pop();
    const sums = sumKeys(tree, lines.length + 1, (frame) => (frames.kind[frame] === "lua" && frames.file[frame] === file && frames.current[frame] <= lines.length ? frames.current[frame] : -1));
    const near = new Set(frames.current.filter((_, frame) => frames.near[frame] && frames.file[frame] === file));
    const all = page.all, own = sums.own[columns.counted], total = sums.total[columns.counted], highest = total.reduce((most, n) => Math.max(most, n), 0);
    const at = this.frame >= 0 ? Math.max(1, frames.defined[this.frame]) : Math.max(1, own.indexOf(own.reduce((most, n) => Math.max(most, n), 0)));
    const first = Math.max(1, Math.min(at - mostLines / 2, lines.length - mostLines)), last = Math.min(lines.length, first + mostLines);
    const rows = [];
    for (let line = first; line <= last; ++line) {
      const cost = (n) => element("td", {textContent: n > 0 ? percent(n, all) : "", title: n > 0 ? columnText(data, columns.counted, n) : ""});
      const row = element("tr", {}, cost(own[line]), cost(total[line]), element("th", {scope: "row", textContent: `${near.has(line) ? "~" : ""}${line}`}),
        element("td", {className: "code", textContent: visible(lines[line - 1].replace(/\r$/, "").replace(/\t/g, "    "))}));
      if (total[line] > 0) row.className = own[line] > 0 ? "own" : "total", row.style.setProperty("--share", `${100 * total[line] / highest}%`);
      if (line === at && this.frame >= 0) row.setAttribute("aria-current", "true");
      rows.push(row);
    }
    body.replaceChildren(...rows);
    rows[Math.max(0, at - first - 3)]?.scrollIntoView({block: "start"});
  }

  // The file in the page that cost most itself.
  hottest(tree) {
    const {frames, sources, columns} = this.data, names = [...sources.keys()];
    const {own} = sumKeys(tree, names.length, (frame) => names.indexOf(frames.file[frame])), costs = own[columns.counted];
    return names[costs.indexOf(costs.reduce((most, n) => Math.max(most, n), 0))] ?? "";
  }
}
