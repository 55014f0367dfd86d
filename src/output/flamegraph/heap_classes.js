// The classes of a heap as a table. They are counted in the whole heap, also where the graph has them in small boxes that are joined.

const noObjects = {objects: 0, own: 0, retained: 0};

class ClassTable extends SortedTable {
  constructor(data, page) {
    super();
    Object.assign(this, {data, page, states: undefined});
    this.head(data.comparison ? this.comparedColumns() : this.plainColumns());
  }

  plainColumns() {
    const column = (title, name, text, about) => ({title, about, text, value: (row) => this.now.get(row)[name], hint: name === "objects" ? undefined : (row) => percent(this.now.get(row)[name], this.page.all)});
    return [column("Retained", "retained", bytes, "what would become free with all objects of the class"), column("Own", "own", bytes, "the objects themselves"),
      column("Objects", "objects", count), this.nameColumn()];
  }

  comparedColumns() {
    const of = (sums, row, name) => (sums.get(row) ?? noObjects)[name], change = (row, name) => of(this.now, row, name) - of(this.before, row, name);
    const columnsOf = (title, name, text, about) => [
      {title, about, text, value: (row) => of(this.now, row, name)},
      {title: "Change", about: `${title.toLowerCase()}, now less before`, text: (v) => signed(text(v), v), value: (row) => change(row, name),
        hint: (row) => relativeText({after: of(this.now, row, name), before: of(this.before, row, name)}), style: (row) => ["down", "", "up"][1 + Math.sign(change(row, name))]},
    ];
    const [own, grown] = columnsOf("Own", "own", bytes, "the objects themselves"), [objects, more] = columnsOf("Objects", "objects", count);
    return [grown, own, more, objects, this.nameColumn()];
  }

  nameColumn() { return {title: "Class", value: (row) => this.data.heap.classes.text[row]}; }

  // `states`: indices, null is all.
  show(states) {
    const {data} = this, last = data.sets.length - 1;
    if (this.states === JSON.stringify(states)) return;
    this.states = JSON.stringify(states);
    this.now = sumClasses(data.heap, last, states);
    this.before = data.comparison ? sumClasses(data.heap, 0, states) : new Map();
    this.fill();
  }

  // In a comparison, those that have changed.
  rows() {
    const rows = [...new Set([...this.now.keys(), ...this.before.keys()])], of = (sums, row) => sums.get(row) ?? noObjects;
    return !this.data.comparison ? rows
      : rows.filter((row) => ["objects", "own"].some((name) => of(this.now, row)[name] !== of(this.before, row)[name]));
  }
  texts(row) { return [this.data.heap.classes.text[row]]; }
  weight(row) { return (this.now.get(row) ?? noObjects).retained; }
  name(row) {
    const {text, kind} = this.data.heap.classes;
    const button = element("button", {type: "button", className: "name", title: text[row]}, swatch(kindColours[kind[row]]), element("span", {textContent: text[row]}));
    button.addEventListener("click", () => this.page.chooseClass(row));
    return button;
  }
}
