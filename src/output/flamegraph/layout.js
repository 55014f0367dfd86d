// Where boxes are: x and width in samples, bytes, objects or µs, rows counted from the top. The lists of rows are in the order of x, so that visible boxes
// are found by binary search.

class Layout {
  constructor() {
    this.count = 0;
    this.x = new Float64Array(1024);
    this.width = new Float64Array(1024);
    this.row = new Int32Array(1024);
    this.frame = new Int32Array(1024);
    this.outer = new Int32Array(1024);    // its outer box, -1 if none
    this.item = new Int32Array(1024);     // its node
    this.rows = [];                       // boxes by row
    this.labels = [];                     // {row, text}: rows without boxes
    this.heaps = [];                      // {row, heap}: strips without boxes, which begin in that row
    this.marks = null;                    // {row, of}: such a strip
    this.begin = 0, this.extent = 0;      // the x of its left and its right end
  }
  add(row, x, width, frame, outer, item) {
    const box = this.count++;
    if (box === this.x.length) this.grow();
    this.x[box] = x;
    this.width[box] = width;
    this.row[box] = row;
    this.frame[box] = frame;
    this.outer[box] = outer;
    this.item[box] = item;
    (this.rows[row] ??= []).push(box);
    return box;
  }
  grow() {
    for (const [name, column] of Object.entries(this)) {
      if (!ArrayBuffer.isView(column)) continue;
      this[name] = new column.constructor(2 * column.length);
      this[name].set(column);
    }
  }
  close() {
    for (let row = 0; row < this.rows.length; ++row) this.rows[row] ??= [];
    return this;
  }
  // The first box of the row that ends after x.
  firstBehind(row, x) {
    const boxes = this.rows[row];
    let low = 0, high = boxes.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.x[boxes[middle]] + this.width[boxes[middle]] > x) high = middle;
      else low = middle + 1;
    }
    return low;
  }
  at(row, x) {
    const boxes = this.rows[row] ?? [], place = boxes.length ? this.firstBehind(row, x) : 0;
    return place < boxes.length && this.x[boxes[place]] <= x ? boxes[place] : -1;
  }
  // Where the box is seen, from and to. A box that is a share of columns may have been at any time in these.
  span(box) {
    const {column} = this, from = this.x[box], to = from + this.width[box];
    return column > 0 ? [Math.floor((from + 1e-3) / column) * column, Math.ceil((to - 1e-3) / column) * column] : [from, to];
  }
  // The first box that is for the same as `box` of `other`, a layout of the same tree; -1 if there is none.
  sameAs(other, box) {
    if (box < 0) return -1;
    const row = other.row[box], boxes = this.rows[row] ?? [], [from, end] = other.span(box);
    for (let place = boxes.length ? this.firstBehind(row, from) : 0; place < boxes.length && this.x[boxes[place]] < end; ++place)
      if (this.item[boxes[place]] === other.item[box]) return boxes[place];
    return -1;
  }
  // The outer boxes of `box`, the outermost first, and itself.
  path(box) {
    const path = [];
    for (; box >= 0; box = this.outer[box]) path.unshift(box);
    return path;
  }
}

function depthOf(tree, width) {
  const depth = new Int32Array(tree.outer.length);
  let most = 0;
  for (let node = 1; node < depth.length; ++node) {
    depth[node] = depth[tree.outer[node]] + 1;
    if (width[node] > 0 && depth[node] > most) most = depth[node];
  }
  return {depth, most};
}

// Puts the tree below (or above) row `top`; the widest child is on the left. skipRoot: the root's children begin at x 0 in the first row.
function layTree(layout, tree, width, {top, flip, skipRoot, rows}) {
  const rowOf = (depth) => (flip ? top + rows - 1 - depth : top + depth) - (skipRoot ? (flip ? -1 : 1) : 0);
  const {start, list} = tree.children, {text} = tree.data.frames;
  const order = (a, b) => width[b] - width[a] || (text[tree.frame[a]] < text[tree.frame[b]] ? -1 : 1);
  const open = [{node: 0, x: 0, depth: 0, outer: -1}];
  while (open.length) {
    const {node, x, depth, outer} = open.pop();
    const box = skipRoot && node === 0 ? -1 : layout.add(rowOf(depth), x, width[node], tree.frame[node], outer, node);
    const inside = [];
    for (let i = start[node]; i < start[node + 1]; ++i) if (width[list[i]] > 0) inside.push(list[i]);
    if (inside.length > 1) inside.sort(order);
    let end = x;
    for (const child of inside) end += width[child];
    for (let i = inside.length - 1; i >= 0; --i) {
      end -= width[inside[i]];
      open.push({node: inside[i], x: end, depth: depth + 1, outer: box});
    }
  }
}

function layLeftHeavy(tree, width, flip) {
  const layout = Object.assign(new Layout(), {flipped: flip});
  layout.extent = width[0];
  layTree(layout, tree, width, {top: 0, flip, rows: depthOf(tree, width).most + 1});
  layout.tree = () => tree;
  return layout.close();
}

// Callers above, the function between, callees below.
function laySandwich(callers, callees, widths) {
  const layout = new Layout();
  const above = Math.max(1, depthOf(callers, widths[0]).most);   // including the function's own row, which the callees' tree draws
  layout.extent = widths[1][0];
  layTree(layout, callers, widths[0], {top: 0, flip: true, skipRoot: true, rows: above});
  const own = layout.rows[above - 1]?.pop();
  const split = layout.count;
  layTree(layout, callees, widths[1], {top: above - 1, flip: false, skipRoot: true});
  layout.tree = (box) => (box < split && box !== own ? callers : callees);
  layout.inverted = (box) => layout.tree(box) === callers;
  layout.focusRow = above - 1;
  return layout.close();
}

// The functions by their own cost, and on each its callers.
function layBottomUp(tree, width, flip) {
  const layout = Object.assign(layLeftHeavy(tree, width, flip), {bottomUp: true});
  layout.inverted = (box) => layout.outer[box] >= 0 && layout.outer[layout.outer[box]] >= 0;
  return layout;
}
