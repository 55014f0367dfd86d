// Numbers and texts as the page shows them. What comes from the profile becomes text, never markup.

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

const signed = (text, value) => (value > 0 ? "+" : "") + text.replace("-", "−");

function placeOf(frames, frame) {
  const kind = {lua: "Lua", c: "C function called by Lua", native: "native", marker: "no function"}[frames.kind[frame]];
  const file = frames.file[frame];
  return `${kind}${file ? ` · ${file}${frames.line[frame] > 0 ? `:${frames.line[frame]}` : ""}` : ""}`;
}

// What was before is scaled, so that it can be compared with what is now.
function compared(data, sums, at) {
  const {columns, comparison} = data, byTime = comparison.by === "time" ? 1 : 0;
  return {after: sums[columns.samples + byTime][at], before: sums[columns.before + byTime][at] * comparison.scale};
}

function amount(data, value, of) { return data.comparison.by === "time" ? duration(value) : percent(value, of); }

function changeText(data, {after, before}, of) {
  const difference = after - before;
  const text = data.comparison.by === "time" ? duration(difference) : `${(of > 0 ? 100 * difference / of : 0).toFixed(1)}`;
  return signed(text, difference);
}

function relativeText({after, before}) {
  if (before === 0) return after === 0 ? "" : "new";
  if (after === 0) return "gone";
  return signed(`${(100 * (after / before - 1)).toFixed(0)} %`, after - before);
}
