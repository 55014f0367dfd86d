// Trees that are made from a tree: the callees and the callers of a function, and all stacks from the innermost function outwards.

// A tree that is built from paths.
class Merged {
  constructor(data) {
    Object.assign(this, {data, shaping: new Shaping(data.frames.count)});
    this.added = [];   // by turns a node, and the index of its own amounts in `sums`
  }
  child(node, frame) { return this.shaping.child(node, frame); }
  add(node, from) { this.added.push(node, from); }
  tree(sums) {
    const {outer, frame} = this.shaping;
    const own = sums.map((column) => {
      const sum = new Float64Array(outer.length);
      if (column.some(Boolean)) for (let i = 0; i < this.added.length; i += 2) sum[this.added[i]] += column[this.added[i + 1]];
      return sum;
    });
    return makeTree(this.data, Int32Array.from(outer), Int32Array.from(frame), own);
  }
}

// The callees of the frame: the root's only child is the frame itself.
function calleesOf(tree, nodes, frame) {
  const merged = new Merged(tree.data), {start, list} = tree.children, open = nodes.map((node) => [node, merged.child(0, frame)]);
  while (open.length) {
    const [node, at] = open.pop();
    merged.add(at, node);
    for (let i = start[node]; i < start[node + 1]; ++i) open.push([list[i], merged.child(at, tree.frame[list[i]])]);
  }
  return merged.tree(tree.own);
}

// The callers of the frame, inverted: the root's only child is the frame, whose children are its callers.
function callersOf(tree, nodes, frame) {
  const merged = new Merged(tree.data);
  for (const node of nodes) {
    let at = merged.child(0, frame);
    for (let outer = tree.outer[node]; outer !== 0; outer = tree.outer[outer]) at = merged.child(at, tree.frame[outer]);
    merged.add(at, node);
  }
  return merged.tree(tree.total);
}

// All stacks inverted: the root's children are the functions by their own cost, whose children are their callers. Callers of less than `least` of the whole
// are left out: where every stack is different, there would be millions.
function bottomUp(tree, width) {
  const least = 1 / 20_000, merged = new Merged(tree.data);
  const enough = tree.total[width][0] * least, cut = new Set();
  const amount = (node) => tree.own[width][node] + (tree.data.comparison ? tree.own[tree.data.columns.before + width][node] : 0);
  // Stacks whose innermost frames are the same, by turns the stack and how far it has been followed.
  const open = [{node: 0, stacks: []}];
  for (let node = 0; node < tree.outer.length; ++node) if (tree.own[0][node] > 0 || amount(node) > 0) open[0].stacks.push(node, node);
  while (open.length) {
    const {node, stacks} = open.pop(), groups = new Map();
    for (let i = 0; i < stacks.length; i += 2) {
      if (stacks[i + 1] === 0) { merged.add(node, stacks[i]); continue; }
      const inner = merged.child(node, tree.frame[stacks[i + 1]]);
      if (!groups.has(inner)) groups.set(inner, {stacks: [], amount: 0});
      groups.get(inner).stacks.push(stacks[i], tree.outer[stacks[i + 1]]);
      groups.get(inner).amount += amount(stacks[i]);
    }
    for (const [inner, group] of groups) {
      if (group.amount >= enough) { open.push({node: inner, stacks: group.stacks}); continue; }
      cut.add(inner);
      for (let i = 0; i < group.stacks.length; i += 2) merged.add(inner, group.stacks[i]);
    }
  }
  return Object.assign(merged.tree(tree.own), {cut});
}
