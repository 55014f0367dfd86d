// Tables that can be sorted and filtered; that of the functions, and the callers and callees of one.

// Rows that can be sorted and filtered. A kind of table has columns: {title, value(row), text(value), about, hint(row), style(row)}, the last of them the
// name; rows(): those that it has; texts(row): what the filter looks at; weight(row): which is first among equals; name(row): its button.
class SortedTable {
  constructor() {
    Object.assign(this, {limit: 250, sort: 0, descending: true, filter: ""});
    this.body = document.querySelector("#table tbody");
    this.more = byId("more");
    this.more.addEventListener("click", () => { this.limit = Infinity; this.fill(); });
    byId("filter").addEventListener("input", (event) => { this.filter = event.target.value.toLowerCase(); this.fill(); });
  }

  head(columns) {
    this.columns = columns;
    const row = document.querySelector("#table thead tr");
    row.replaceChildren(...this.columns.map((column, i) => {
      const button = element("button", {type: "button", textContent: column.title});
      button.addEventListener("click", () => {
        if (this.sort === i) this.descending = !this.descending;
        else this.sort = i, this.descending = column.text !== undefined;
        this.fill();
      });
      return element("th", {scope: "col", title: column.about ?? ""}, button);
    }));
  }

  fill() {
    const column = this.columns[this.sort], shown = this.rows().filter((row) => this.filter === "" || this.texts(row).some((text) => text.toLowerCase().includes(this.filter)));
    const values = new Map(shown.map((row) => [row, column.value(row)])), way = this.descending ? -1 : 1;
    shown.sort((a, b) => (values.get(a) < values.get(b) ? -way : values.get(a) > values.get(b) ? way : this.weight(b) - this.weight(a)));
    this.body.replaceChildren(...shown.slice(0, this.limit).map((row) => this.line(row)));
    this.more.hidden = shown.length <= this.limit;
    this.more.textContent = `Show all ${count(shown.length)}`;
    [...document.querySelectorAll("#table th")].forEach((th, i) => {
      if (i === this.sort) th.setAttribute("aria-sort", this.descending ? "descending" : "ascending");
      else th.removeAttribute("aria-sort");
    });
    this.shown = shown;
    this.mark(this.chosen);
  }

  line(row) {
    const cells = this.columns.slice(0, -1).map((column) => {
      const value = column.value(row);
      return element("td", {textContent: column.text(value), title: column.hint ? column.hint(row) : "", className: column.style ? column.style(row) : ""});
    });
    const line = element("tr", {}, ...cells, element("td", {}, this.name(row)));
    line.dataset.row = row;
    return line;
  }

  mark(row) {
    this.chosen = row;
    for (const line of this.body.rows) {
      if (Number(line.dataset.row) === row) line.setAttribute("aria-current", "true");
      else line.removeAttribute("aria-current");
    }
  }
}

class FunctionTable extends SortedTable {
  constructor(data, page) {
    super();
    Object.assign(this, {data, page});
    this.head(data.comparison ? this.comparedColumns() : this.plainColumns());
  }

  plainColumns() {
    const {data} = this, {counted} = data.columns, other = otherColumn(data);
    const share = (title, sums) => ({title, value: (f) => sums()[counted][f], text: (v) => percent(v, this.all)});
    const size = (title, sums) => ({title, value: (f) => sums()[counted][f], text: (v) => cellText(data, counted, v),
      about: columnName(data, counted), hint: (f) => columnText(data, other, sums()[other][f])});
    const own = () => this.sums.own, total = () => this.sums.total;
    return [share("Own %", own), share("Total %", total), size("Own", own), size("Total", total), {title: "Function", value: (f) => data.frames.text[f]}];
  }

  comparedColumns() {
    const {data} = this, byShares = data.comparison.by === "shares";
    const columnsOf = (title, sums) => [
      {title: byShares ? `${title} %` : title, value: (f) => compared(data, sums(), f).after, text: (v) => amount(data, v, this.all)},
      {title: "Change", value: (f) => { const c = compared(data, sums(), f); return c.after - c.before; },
        text: (v) => changeText(data, {after: v, before: 0}, this.all), hint: (f) => relativeText(compared(data, sums(), f)),
        style: (f) => ["down", "", "up"][1 + Math.sign(changeOf(data, sums(), f))]},
    ];
    return [...columnsOf("Own", () => this.sums.own), ...columnsOf("Total", () => this.sums.total), {title: "Function", value: (f) => data.frames.text[f]}];
  }

  show(tree, sums, all) {
    Object.assign(this, {tree, sums, all});
    this.fill();
  }

  rows() {
    const {frames, columns, comparison} = this.data, {total} = this.sums, shown = [];
    for (let frame = 0; frame < frames.count; ++frame) if (total[0][frame] > 0 || (comparison && total[columns.before][frame] > 0)) shown.push(frame);
    return shown;
  }
  texts(frame) { return [this.data.frames.text[frame], this.data.frames.file[frame]]; }
  weight(frame) { return this.sums.total[this.data.columns.counted][frame]; }
  name(frame) { return nameButton(this.data, frame, this.page); }
}

function nameButton(data, frame, page) {
  const text = data.frames.text[frame];
  const button = element("button", {type: "button", className: "name", title: text}, swatch(kindColours[data.frames.kind[frame]]), element("span", {textContent: text}));
  button.addEventListener("click", () => page.relate(frame));
  button.addEventListener("contextmenu", (event) => { event.preventDefault(); page.menu.open(frame, -1, event.clientX, event.clientY); });
  return button;
}

function fillNoRelations() {
  byId("chosen").textContent = "no samples";
  for (const id of ["callers", "callees"]) byId(id).replaceChildren();
}

// The direct callers and callees of the frame. The root of each tree has one child: the frame.
function fillRelations(data, page, frame, {sums, callers, callees}, all) {
  const of = page.widthOf(callees)[1] ?? 0, size = (amount) => cellText(data, data.columns.width, amount);
  const item = (amount, what) => element("li", {}, element("span", {className: "share", textContent: `${size(amount)} · ${percent(amount, of)}`}), what);
  const items = (tree) => {
    const width = page.widthOf(tree), {start, list} = tree.children;
    const nodes = tree.outer.length < 2 ? [] : [...list.subarray(start[1], start[2])].filter((node) => width[node] > 0).sort((a, b) => width[b] - width[a]);
    return nodes.map((node) => item(width[node], nameButton(data, tree.frame[node], page)));
  };
  const own = (tree, text) => {
    const amount = page.widthOf(tree, tree.own)[1] ?? 0;
    return amount > 0 ? [item(amount, element("span", {className: "own", textContent: text}))] : [];
  };
  byId("chosen").textContent = `${data.frames.text[frame]}: own ${percent(page.widthOf(null, sums.own)[frame], all)}, total ${percent(of, all)}`;
  byId("callers").replaceChildren(...items(callers), ...own(callers, "nothing: outermost"));
  byId("callees").replaceChildren(...own(callees, "itself"), ...items(callees));
}
