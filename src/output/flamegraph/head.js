// What the page says above the graph: the recording, the choices, and what is applied to it.

function fillHeader(data) {
  const [first] = data.sets, now = data.sets[data.sets.length - 1], target = byId("target");
  target.textContent = (first.target === now.target ? first.target : `${first.target} → ${now.target}`) || "luaspy";
  target.title = target.textContent;
  document.title = `${target.textContent} - luaspy`;
  target.className = data.comparison ? "both" : "";
  const fact = (name, value, className = "") => element("div", {className}, element("dt", {textContent: name}), element("dd", {textContent: value}));
  if (data.comparison && data.heap) {
    const [before, after] = data.sets.map((set) => wholeOf(set, 3));
    byId("compared").textContent = `Live objects: ${bytes(before)} before, ${bytes(after)} after: ${signed(bytes(after - before), after - before)}`;
  } else if (data.comparison) {
    const {by, scale} = data.comparison, of = columnName(data, data.columns.counted);
    const scaled = `what was before counts ${scale.toPrecision(3)} times`;
    const how = by === "shares" ? `by share of ${of}: ${scaled}` : scale === 1 ? `by ${by}, as it was measured` : `by ${by} for each second: ${scaled}`;
    byId("compared").textContent = `Compared ${how}`;
  }
  byId("compared").hidden = !data.comparison;
  for (const doubt of data.comparison?.doubts ?? []) byId("doubts").append(element("li", {textContent: `doubtful: ${visible(doubt)}`}));
  for (const set of data.sets) {
    const label = data.comparison ? [fact(set.label, "", "label")] : [];
    for (const doubt of set.doubts) byId("doubts").append(element("li", {textContent: `doubtful: ${data.comparison ? `${set.label}: ` : ""}${doubt}`}));
    byId("facts").append(element("div", {}, ...label, ...set.facts.map(([name, value]) => fact(name, value))));
  }
}

// What does not depend on the user.
function fillChoices(data) {
  const colours = data.heap ? [["kind", "by type"], ["function", "by class"]]
    : [["kind", "by kind"], ["state", "by what the VM did"], ["function", "by function"], ["module", "by file"]];
  const offered = data.comparison ? [["change", "by change"], ...colours.filter(([value]) => value !== "state")] : colours;
  for (const [value, textContent] of offered) byId("colour").append(element("option", {value, textContent}));
  for (const [value, textContent] of Object.entries(modeTexts)) byId("mode").append(element("option", {value, textContent}));
  byId("mode-field").hidden = data.mode === "native";
  byId("width-field").hidden = data.comparison === null;
  document.querySelector("[data-view=time]").hidden = byId("heat-open").hidden = !data.inOrder;
  const hasLines = data.frames.nameAt.some((name, frame) => name !== data.frames.name[frame]);
  byId("lines").hidden = !hasLines;
  byId("source-open").hidden = data.sources.size === 0;
  byId("weighed").hidden = data.columns.counted === data.columns.samples || data.heap !== null;
  byId("weighed").textContent = `Here samples count by the ${data.unit} that they stand for.`;
  fillLabels(data);
  showFacts(false);
}

function fillLabels(data) {
  const most = 200, {all, names} = countLabels(data);   // values of a name that can be chosen
  byId("label-field").hidden = names.length === 0 || data.comparison !== null;
  if (!data.comparison) byId("colour").append(...names.map(({name}) => element("option", {value: labelledBy + name, textContent: `by ${name}`})));
  const option = (value, textContent) => element("option", {value, textContent});
  byId("label").replaceChildren(option("", "any"), ...names.map(({name, values}) => element("optgroup", {label: name},
    ...values.slice(0, most).map(([label, amount]) => option(label, `${label.slice(name.length + 1)}: ${percent(amount, all)}`)),
    ...(values.length > most ? [element("option", {disabled: true, textContent: `${count(values.length - most)} more, of less: luaspy report --label`})] : []))));
}

// They are there on demand: first of all there is the graph.
function showFacts(shown) {
  byId("facts").hidden = !shown;
  byId("about").setAttribute("aria-expanded", shown);
}

// The threads with their shares of what is shown; the busiest first. Returns their order.
function fillThreads(data, now, range) {
  const threads = now.threads.map((thread, i) => ({i, thread, amount: countedOf(data, thread, range)})).sort((a, b) => b.amount - a.amount);
  const all = threads.reduce((sum, t) => sum + t.amount, 0), option = (value, textContent) => element("option", {value, textContent});
  byId("thread").replaceChildren(option("all", `all ${threads.length} (${columnText(data, data.columns.counted, all)})`),
    ...threads.map(({i, thread, amount}) => option(String(i), `${threadText(thread)}: ${percent(amount, all)}`)));
  byId("thread-field").hidden = threads.length < 2 || data.comparison !== null;
  return threads.map(({i}) => i);
}

// Each thing that is applied, with a button that takes it back.
function fillApplied(page) {
  const {state, data} = page, list = byId("applied");
  const chip = (text, change) => {
    const button = element("button", {type: "button", textContent: "×", title: "Take it back", ariaLabel: `Take back: ${text}`});
    button.addEventListener("click", () => page.set(change));
    return element("li", {}, element("span", {textContent: text, title: text}), button);
  };
  const chips = state.edits.map((edit) => chip(editTexts[edit.how](data.frames.name[edit.fn], data.words.calls), {edits: state.edits.filter((other) => other !== edit)}));
  if (state.label !== "") chips.unshift(chip(`only ${shownLabel(state.label)}`, {label: ""}));
  if (state.range) chips.unshift(chip(rangeText(...state.range), {range: null}));
  list.replaceChildren(...chips);
  list.hidden = chips.length === 0;
  if (chips.length === 0) return;
  const tree = page.whole, shown = tree.total[data.columns.counted][0], back = element("button", {type: "button", textContent: "Take all back"});
  back.addEventListener("click", () => page.set({edits: [], range: null, label: ""}));
  list.append(element("li", {className: "rest"}, element("span", {textContent: columnText(data, data.columns.counted, shown)}), ...(chips.length > 1 ? [back] : [])));
}

// The way to the box that is zoomed to, and in the order of time what a box is.
function fillCrumbs(page) {
  const {layout, zoomed, chart} = page, nav = byId("crumbs");
  nav.replaceChildren();
  const path = zoomed < 0 ? [] : layout.path(zoomed).filter((box) => layout.frame[box] >= 0), shown = path.slice(-3);
  const put = (text, go) => {
    const button = element("button", {type: "button", textContent: text, title: text});
    button.addEventListener("click", go);
    nav.append(...(nav.childElementCount ? [element("span", {textContent: "›"})] : []), button);
  };
  put("all", () => page.reset());
  if (shown.length < path.length) nav.append(element("span", {textContent: "› …"}));
  for (const box of shown) put(page.textOf(box), () => page.zoom(box));
  if (zoomed < 0 && !chart.isWhole()) nav.append(element("span", {textContent: "› a part of it"}));
  if (layout.column > 0) nav.append(element("span", {className: "sums", textContent: `each ${duration(layout.column)} summed; zoom in for single samples`}));
}

// The controls as the state is.
function fillControls(page) {
  const {state} = page;
  for (const button of document.querySelectorAll("[data-view]")) button.setAttribute("aria-pressed", button.dataset.view === state.view);
  for (const name of ["thread", "label", "mode", "colour", "width"]) byId(name).value = state[name];
  for (const name of ["flip", "fold", "lines"]) byId(name).setAttribute("aria-pressed", state[name]);
  byId("search").value = state.query;
  byId("source-open").setAttribute("aria-pressed", state.source);
  byId("flip").hidden = byId("fold").hidden = state.view === "table";
  writeHash(page);
}

// `sums`: by function, for colours by file.
function fillLegend({state, data, tree}, sums) {
  const items = legendOf(state.colour, data, tree, sums), all = tree.total[data.columns.counted][0];
  if (state.colour !== "change") items.sort((a, b) => b.amount - a.amount);
  const [{missing}] = data.sets;
  if (state.view === "time" && missing.some((n) => n > 0)) items.push({colour: "var(--paper)", text: `no sample: ${missingText(data.sets[0])}`, amount: null});
  byId("legend").replaceChildren(...items.map(({colour, text, amount}) => element("li", {}, swatch(colour), element("span", {textContent: text}),
    ...(amount === null ? [] : [element("span", {className: "share", textContent: percent(amount, all)})]))));
}
