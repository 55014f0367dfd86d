// Input outside of the graph: keys of the page, the address, the theme. At the end, the page is started.

// Matches a regular expression in a line of each text, ignoring case; an invalid one is matched literally.
function matching(texts, query) {
  let pattern;
  try { pattern = new RegExp(query, "imu"); } catch { pattern = new RegExp(query.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"), "imu"); }
  return Uint8Array.from(texts, (text) => pattern.test(text));
}

// The address contains what is shown, so that it can be sent to others who have the file.
let hashTimer = 0;
function writeHash(page) {
  clearTimeout(hashTimer);
  hashTimer = setTimeout(() => writeHashNow(page), 100);   // browsers refuse it if it is called too often
}

function writeHashNow(page) {
  const {state, chart, layout, zoomed} = page, words = new URLSearchParams();
  const usual = {view: "left", thread: "all", label: "", colour: page.data.comparison ? "change" : "kind", flip: false, width: "after", query: "", mode: page.data.mode, fold: true, lines: page.data.lines, source: false, heat: false};
  for (const [name, value] of Object.entries(usual)) if (state[name] !== value) words.set(name, state[name]);
  if (state.edits.length > 0) words.set("edits", state.edits.map(({how, fn}) => `${how}.${fn}`).join("_"));
  if (state.range) words.set("range", state.range.join("_"));
  if (state.cls >= 0) words.set("class", state.cls);
  if (state.view === "table" && !page.data.heap) words.set("fn", state.fn);
  else if (!chart.isWhole()) words.set("zoom", zoomed >= 0 && state.view !== "time" ? String(layout.item[zoomed]) : `${chart.from},${chart.to}`);
  const text = words.toString();
  if (text === location.hash.slice(1)) return;
  try { history.replaceState(null, "", "#" + text); } catch { /* an address that may not be changed, as in some frames */ }
}

const colours = () => [...byId("colour").options].map((option) => option.value);

// Ignores what does not fit this profile. Returns the zoom.
function readHash(page) {
  const words = new URLSearchParams(location.hash.slice(1)), {state, data} = page;
  const choose = (name, allowed) => { if (allowed.includes(words.get(name))) state[name] = words.get(name); };
  choose("view", ["left", "table", "bottom", ...(data.inOrder ? ["time"] : [])]);
  choose("thread", ["all", ...(data.comparison ? [] : page.now.threads.map((_, i) => String(i)))]);
  choose("label", data.comparison ? [] : data.labels.flat());
  choose("colour", colours());
  choose("width", ["after", "before"]);
  if (data.mode !== "native") choose("mode", Object.keys(modeTexts));
  for (const [name, usual] of [["flip", false], ["fold", true], ["lines", data.lines], ["source", false], ["heat", false]]) state[name] = (words.get(name) ?? String(usual)) === "true";
  state.source &&= data.sources.size > 0;
  state.heat &&= data.inOrder;
  state.edits = (words.get("edits") ?? "").split("_").map((text) => text.split(".")).map(([how, fn]) => ({how, fn: Number(fn)}))
    .filter(({how, fn}) => Object.hasOwn(editTexts, how) && data.frames.fn[fn] === fn);
  const range = (words.get("range") ?? "").split("_").map(Number);
  state.range = data.inOrder && range.length === 2 && range[0] >= 0 && range[0] < range[1] && range[1] < Infinity ? range : null;
  state.query = words.get("query") ?? "";
  const fn = Number(words.get("fn") ?? -1);
  if (Number.isInteger(fn) && fn < data.frames.count) state.fn = fn;
  state.cls = data.heap?.classes.text[words.get("class") ?? -1] !== undefined ? Number(words.get("class")) : -1;
  return words.get("zoom");
}

function restoreZoom(page, zoom) {
  if (!zoom || (page.state.view === "table" && !page.data.heap)) return;
  const numbers = zoom.split(",").map(Number), {layout, chart} = page;
  if (numbers.some((n) => !Number.isFinite(n))) return;
  if (numbers.length === 2 && numbers[0] < numbers[1]) chart.look(numbers[0], numbers[1]), page.moved();
  else if (numbers.length === 1 && layout.item.indexOf(numbers[0]) > 0) page.zoom(layout.item.indexOf(numbers[0]));
}

function setTheme(dark) {
  document.documentElement.dataset.theme = dark ? "dark" : "light";
  byId("theme").textContent = dark ? "Light" : "Dark";
}

// Browsers may refuse localStorage to files.
const remembered = {
  get() { try { return localStorage.getItem("luaspy-theme"); } catch { return null; } },
  set(theme) { try { localStorage.setItem("luaspy-theme", theme); } catch { /* then it is not remembered */ } },
};

function switchTheme(page) {
  const dark = document.documentElement.dataset.theme !== "dark";
  setTheme(dark);
  remembered.set(dark ? "dark" : "light");
  page.chart.draw();
  page.heat?.fill();
}

// From the focus to the next match, row by row, from left to right.
function nextMatch(page, by) {
  const {layout, chart, matches} = page;
  if (!matches) return;
  const boxes = layout.rows.flat().filter((box) => layout.frame[box] >= 0 && matches[layout.frame[box]] && layout.width[box] * chart.scale >= 0.5);
  if (boxes.length === 0) return;
  const at = boxes.indexOf(chart.focus);
  byId("canvas").focus({focusVisible: true});
  chart.move(boxes[(at < 0 ? (by > 0 ? 0 : -1) : at + by) % boxes.length] ?? boxes[boxes.length - 1]);
}

// The choice after the one that the page has.
function next(page, name) {
  const all = [...byId(name).options].map((option) => option.value);
  page.set({[name]: all[(all.indexOf(page.state[name]) + 1) % all.length]});
}

// Does something with the function that keys mean.
const withTold = (act) => (page) => { if (page.toldFrame() >= 0) act(page, page.toldFrame()); };
const editTold = (how) => withTold((page, frame) => page.edit(how, page.data.frames.fn[frame]));

function openMenu(page) {
  const box = page.toldBox(), {left, top} = byId("canvas").getBoundingClientRect(), {chart, layout} = page;
  if (box < 0) return page.menu.open(page.toldFrame(), -1, left, top);
  page.menu.open(layout.frame[box], box, left + Math.max(0, (layout.x[box] - chart.from) * chart.scale), chart.place(box) + rowHeight);
}

function switchSource(page) {
  if (page.data.sources.size === 0) return;
  const frame = page.toldFrame();
  if (page.state.source && (frame < 0 || page.data.frames.fn[frame] === page.source.frame)) page.set({source: false});
  else page.showSource(frame);
}

function switchHeat(page) {
  if (!page.heat) return;
  page.set({heat: !page.state.heat});
  if (page.state.heat) byId("heat-canvas").focus();
}

const keys = {
  "1": (page) => page.set({view: "left"}),
  "2": (page) => { if (page.data.inOrder) page.set({view: "time"}); },
  "3": (page) => page.set({view: "table"}),
  "4": (page) => page.set({view: "bottom"}),
  "0": (page) => page.reset(),
  "/": () => byId("search").select(),
  "?": () => byId("help").showModal(),
  Escape: (page) => page.back(),
  s: withTold((page, frame) => page.relate(frame)),
  f: editTold("only"),
  x: editTold("without"),
  k: editTold("single"),
  m: withTold(openMenu),
  h: (page) => page.hottest(),
  r: (page) => page.set({fold: !page.state.fold}),
  t: (page) => { if (!byId("lines").hidden) page.set({lines: !page.state.lines}); },
  l: switchSource,
  w: switchHeat,
  c: (page) => next(page, "colour"),
  v: (page) => { if (page.data.mode !== "native") next(page, "mode"); },
  i: (page) => { if (page.state.view !== "table") page.set({flip: !page.state.flip}); },
  d: switchTheme,
  a: () => showFacts(byId("facts").hidden),
  n: (page) => nextMatch(page, 1),
  N: (page) => nextMatch(page, -1),
  "+": (page) => { page.chart.magnify(0.7); page.moved(); },
  "-": (page) => { page.chart.magnify(1 / 0.7); page.moved(); },
};

function listen(page) {
  const canvas = byId("canvas"), search = byId("search");
  for (const button of document.querySelectorAll("[data-view]")) button.addEventListener("click", () => page.set({view: button.dataset.view}));
  for (const id of ["thread", "label", "mode", "colour", "width"]) byId(id).addEventListener("change", (event) => page.set({[id]: event.target.value}));
  for (const name of ["flip", "fold", "lines"]) byId(name).addEventListener("click", () => page.set({[name]: !page.state[name]}));
  byId("source-open").addEventListener("click", () => page.set({source: !page.state.source}));
  byId("heat-open").addEventListener("click", () => switchHeat(page));
  byId("hottest").addEventListener("click", () => page.hottest());
  byId("about").addEventListener("click", keys.a);
  byId("theme").addEventListener("click", () => switchTheme(page));
  byId("help-open").addEventListener("click", () => byId("help").showModal());
  // Pressing it must not change the box that is described.
  byId("actions").addEventListener("pointerdown", (event) => event.preventDefault());
  byId("actions").addEventListener("click", () => withTold(openMenu)(page));
  search.addEventListener("input", () => page.find(search.value));
  search.addEventListener("keydown", (event) => {
    if (event.key === "Enter") nextMatch(page, 1);
    else if (event.key === "Escape") page.find(""), canvas.focus();
    else return;
    event.preventDefault();
  });
  document.addEventListener("keydown", (event) => {
    // A second Ctrl-F opens the browser's own search.
    if ((event.ctrlKey || event.metaKey) && event.key === "f" && document.activeElement !== search) search.select(), event.preventDefault();
    if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented || byId("help").open) return;
    if (["INPUT", "SELECT"].includes(event.target.tagName) || !keys[event.key]) return;
    keys[event.key](page);
    event.preventDefault();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", (event) => { if (!remembered.get()) setTheme(event.matches), page.chart.draw(), page.heat?.fill(); });
  addEventListener("hashchange", () => { const zoom = readHash(page); page.render(); page.search(); restoreZoom(page, zoom); });
}

setTheme(remembered.get() ? remembered.get() === "dark" : matchMedia("(prefers-color-scheme: dark)").matches);
const data = load(JSON.parse(byId("data").textContent));
listen(data.heap ? new HeapPage(data) : new Page(data));
performance.mark("drawn");
