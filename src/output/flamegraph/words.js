// Numbers and texts as the page shows them. Strings from the profile become text, never markup.

function element(tag, properties = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name in made) made[name] = value;
    else made.setAttribute(name, value);
  }
  made.append(...children);
  return made;
}

function swatch(colour) {
  const made = element("span", {className: "swatch"});
  made.style.backgroundColor = colour;
  return made;
}

function percent(part, of) {
  const share = of > 0 ? 100 * part / of : 0;
  return share > 0 && share < 0.05 ? "<0.1 %" : `${share.toFixed(1)} %`;
}

const count = (n) => Math.round(n).toLocaleString("en");

function duration(us) {
  const size = Math.abs(us);
  if (size >= 100e6) return `${(us / 1e6).toFixed(0)} s`;
  if (size >= 1e6) return `${(us / 1e6).toPrecision(3)} s`;
  if (size >= 1e3) return `${+(us / 1e3).toPrecision(3)} ms`;
  return `${Math.round(us)} µs`;
}

// A range of time (µs), with as many decimals as its length needs.
function rangeText(from, to) {
  const decimals = Math.min(6, Math.max(1, Math.floor(-Math.log10((to - from) / 1e6)) + 1)), time = (us) => `${(us / 1e6).toFixed(decimals)} s`;
  return `${time(from)} to ${time(to)}`;
}

function bytes(n) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
  let unit = 0;
  for (; Math.abs(n) >= 1023.5; ++unit) n /= 1024;
  return `${n.toFixed(unit === 0 || Math.abs(n) >= 999.95 ? 0 : 1)} ${units[unit]}`;
}

const timesText = (times) => (times > 1 ? ` ×${times}` : "");

// What of a box's text fits into `room` letters: all, without the folders of the file, the name alone, or its beginning. A function whose only name is
// "function" is known by where it is.
function fitting(text, room) {
  if (text.length <= room) return text;
  const [, name, folders, rest, times = ""] = /^(.*) \((.*\/)?([^/]*)\)( ×\d+)?$/u.exec(text) ?? [text, text, "", ""];
  const shorter = name === "function" ? [`${rest}${times}`, rest, rest.slice(rest.lastIndexOf(":"))]
    : folders ? [`${name} (${rest})${times}`, `${name}${times}`, name] : [`${name}${times}`, name];
  return shorter.find((one) => one.length <= room) ?? (name === "function" ? rest : name).slice(0, room - 1) + "…";
}

// What a page calls things, by what it shows.
const profileWords = {
  samples: "samples", total: "total", calls: "calls", function: "function", named: "function", relations: "Callers and callees", without: "Leave its samples out", repeats: "calls of itself",
};
const heapWords = {
  samples: "objects", total: "retains", calls: "holds", function: "class", named: "name", relations: "Its class", without: "Leave its bytes out", repeats: "boxes that repeat in it",
};

// For the columns samples and weight: the name of what they count, an amount in a table whose head has that name, and an amount in a sentence.
const columnName = (data, column) => (column === data.columns.samples ? data.words.samples : data.unit);
const otherColumn = ({columns}) => columns.samples + columns.weight - columns.counted;
function cellText(data, column, n) { return {time: duration, bytes}[columnName(data, column)]?.(n) ?? count(n); }
function columnText(data, column, n) {
  const text = cellText(data, column, n), name = columnName(data, column);
  return name === "samples" ? `${text} samples` : name === "objects" ? `${text} object${n === 1 ? "" : "s"}` : text;
}

const signed = (text, value) => (value > 0 ? "+" : "") + text.replace("-", "−");

function placeOf(frames, frame) {
  const kind = {lua: "Lua", c: "C function called by Lua", native: "native", marker: "no function", kernel: "kernel"}[frames.kind[frame]];
  const file = frames.file[frame];
  return `${kind}${file ? ` · ${file}${frames.line[frame] > 0 ? `:${frames.line[frame]}` : ""}` : ""}`;
}

// The amount before is scaled, so that it can be compared with the one after.
function compared(data, sums, at) {
  const {columns, comparison} = data;
  return {after: sums[columns.width][at], before: sums[columns.before + columns.width][at] * comparison.scale};
}

function amount(data, value, of) { return data.comparison.by === "shares" ? percent(value, of) : cellText(data, data.columns.weight, value); }

function changeText(data, {after, before}, of) {
  const difference = after - before;
  const text = data.comparison.by === "shares" ? `${(of > 0 ? 100 * difference / of : 0).toFixed(1)}` : cellText(data, data.columns.weight, difference);
  return signed(text, difference);
}

function relativeText({after, before}) {
  if (before === 0) return after === 0 ? "" : "new";
  if (after === 0) return "gone";
  return signed(`${(100 * (after / before - 1)).toFixed(0)} %`, after - before);
}
