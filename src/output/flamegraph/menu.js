// What can be done with a function, where the pointer is.

class Menu {
  constructor(page) {
    Object.assign(this, {page, menu: byId("menu")});
    document.addEventListener("pointerdown", (event) => { if (!this.menu.contains(event.target)) this.close(); });
    this.menu.addEventListener("keydown", (event) => this.key(event));
  }

  // `box`: -1 if it is not a box of the graph.
  open(frame, box, x, y) {
    const {page, menu} = this, {words} = page.data, fn = page.data.frames.fn[frame], name = page.data.frames.name[fn];
    const actions = [
      ...(box >= 0 ? [["Zoom into it", "Enter", () => page.zoom(box)]] : []),
      ...(box >= 0 && page.timesOf(box) > 1 ? [["Unfold what repeats", "r", () => page.set({fold: false})]] : []),
      [words.relations, "s", () => page.relate(frame)],
      [`Only this and what it ${words.calls}`, "f", () => page.edit("only", fn)],
      [words.without, "x", () => page.edit("without", fn)],
      [`As one, with all that it ${words.calls}`, "k", () => page.edit("single", fn)],
      ...(page.data.sources.has(page.data.frames.file[frame]) ? [["Its source", "l", () => page.showSource(frame)]] : []),
      ["Copy its name", "", () => copy(name)],
      ...page.ownActions(frame, box),
    ];
    menu.replaceChildren(element("strong", {textContent: name}), ...actions.map(([text, key, act]) => {
      const item = element("button", {type: "button", role: "menuitem"}, element("span", {textContent: text}), element("kbd", {textContent: key}));
      item.addEventListener("click", () => { this.close(); act(); });
      return item;
    }));
    menu.hidden = false, byId("tip").hidden = true;
    const {width, height} = menu.getBoundingClientRect();
    menu.style.left = Math.max(4, Math.min(x, innerWidth - width - 4)) + "px";
    menu.style.top = Math.max(4, Math.min(y, innerHeight - height - 4)) + "px";
    this.from = document.activeElement;
    menu.querySelector("button").focus();
  }

  close() {
    if (this.menu.hidden) return;
    const inside = this.menu.contains(document.activeElement);
    this.menu.hidden = true;
    if (inside) this.from?.focus();
  }

  key(event) {
    const items = [...this.menu.querySelectorAll("button")], at = items.indexOf(document.activeElement);
    if (event.key === "Escape" || event.key === "Tab") this.close();
    else if (event.key === "ArrowDown") items[(at + 1) % items.length].focus();
    else if (event.key === "ArrowUp") items[(at + items.length - 1) % items.length].focus();
    else if (event.key !== "Enter" && event.key !== " ") return;
    event.stopPropagation();
    if (event.key !== "Enter" && event.key !== " ") event.preventDefault();
  }
}

function copy(text) { navigator.clipboard?.writeText(text).catch(() => {}); }
