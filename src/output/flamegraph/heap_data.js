// What only the data of a heap has. heap_page.h describes its form.

const classWidth = 4;   // numbers of a class in a Lua state: its number, objects, own bytes, retained bytes

// In a heap a frame is what an object is called, with its class: cls[frame], -1 for none. Other columns are of functions only. sought: what a search looks
// at; the fields of a table are its class only if it has no better one, and they would be found where they are no name of anything large.
function loadHeapFrames({frames: {kind, text, class: cls}, heap}, strings) {
  const none = new Array(text.length).fill(0), names = text.map((i) => strings[i]), ofClass = heap.classes.text.map((i) => strings[i]);
  return {
    count: text.length, kind: kind.map((k) => kinds[k]), file: none.map(() => ""), name: names, nameAt: names, defined: none, part: none, current: none,
    near: none.map(() => false), fn: Int32Array.from(none, (_, frame) => frame), cls, sought: names.map((name, frame) => (ofClass[cls[frame]]?.startsWith("{") ?? true ? name : `${name}\n${ofClass[cls[frame]]}`)),
  };
}

function loadHeap({heap, sets}, strings) {
  const paths = new Map();
  for (let i = 0; i < heap.paths.length; i += 2) paths.set(heap.paths[i], strings[heap.paths[i + 1]]);
  return {
    classes: {text: heap.classes.text.map((i) => strings[i]), kind: heap.classes.kind.map((k) => kinds[k])},
    paths, leads: heap.leads.map(([node, text]) => ({node, text: visible(text)})),
    counts: sets.map((set) => set.threads.map((state) => state.classes)),   // by set and state
  };
}

// The sums of each class over the states (indices; null: all) of a set, by class: {objects, own, retained}.
function sumClasses({counts}, set, states) {
  const sums = new Map();
  counts[set].forEach((numbers, state) => {
    if (states && !states.includes(state)) return;
    for (let i = 0; i < numbers.length; i += classWidth) {
      if (!sums.has(numbers[i])) sums.set(numbers[i], {objects: 0, own: 0, retained: 0});
      const sum = sums.get(numbers[i]);
      sum.objects += numbers[i + 1], sum.own += numbers[i + 2], sum.retained += numbers[i + 3];
    }
  });
  return sums;
}
