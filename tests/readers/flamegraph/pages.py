"""Flame graph pages in a browser, and what they must show, computed from their data independently of the page's own code."""
import collections
import functools
import json
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from browser import Failure

ROW = 20     # pixels, as in graph.js
RUN = 5      # numbers of a run
STRIP = 3    # rows of a heap, as in heaps.js
MARKS = 2    # rows of what the compiler decided, as in marks.js

ENTER, ESCAPE, UP, DOWN, RIGHT, HOME, SHIFT = "\ue007", "\ue00c", "\ue013", "\ue015", "\ue014", "\ue011", "\ue008"
# Prepended to every script: the colour of the picture at a place, read from a copy, because
# Chromium complains about reads of the canvas itself.
HELPERS = """
const colourAt = (x, y) => {
  const pen = document.createElement('canvas').getContext('2d'), scale = canvas.width / canvas.clientWidth;
  pen.drawImage(canvas, Math.floor(x * scale), Math.floor(y * scale), 1, 1, 0, 0, 1, 1);
  return [...pen.getImageData(0, 0, 1, 1).data].slice(0, 3);
};
"""
# Waits until the page is at rest: no frame is requested, and the picture does not change.
SETTLED = """
for (let last = '', now;; last = now) {
  await new Promise(r => setTimeout(r, 30));
  await nextFrame();
  if ((now = canvas.toDataURL()) === last) return;
}
"""


def equal(what, found, expected):
    if found != expected:
        raise Failure(f"{what}: {found!r} instead of {expected!r}")


def contains(what, found, expected):
    if expected not in found:
        raise Failure(f"{what}: {expected!r} is not in {found!r}")


class Page:
    """A page in the browser."""

    def __init__(self, browser, folder, name, address=""):
        self.browser = browser
        self.file = folder / f"{name}.html"
        self.open(address)

    def open(self, address=""):
        self.browser.call("POST", "/url", {"url": "about:blank"})   # otherwise another address would only navigate within the page
        self.browser.call("POST", "/url", {"url": self.file.as_uri() + address})
        self.script("await until(() => performance.getEntriesByName('drawn').length)")

    @functools.cached_property
    def data(self):
        return Data(self.file)

    def script(self, text, *arguments):
        return self.browser.run(text, *arguments)

    def text(self, selector):
        return self.script("return document.querySelector(arguments[0]).textContent", selector)

    def texts(self, selector):
        return self.script("return all(arguments[0]).map(e => e.textContent)", selector)

    def click(self, selector):
        self.script("document.querySelector(arguments[0]).click()", selector)

    def choose(self, id, value):
        self.script("const e = document.getElementById(arguments[0]); e.value = arguments[1]; e.dispatchEvent(new Event('change'))", id, value)

    def keys(self, selector, keys):
        element = self.browser.call("POST", "/element", {"using": "css selector", "value": selector})
        self.browser.call("POST", f"/element/{next(iter(element.values()))}/value", {"text": keys})

    def settle(self):
        self.script(SETTLED)

    def pointer(self, x, y, *actions):
        self.browser.call("POST", "/actions", {"actions": [{
            "type": "pointer", "id": "mouse", "parameters": {"pointerType": "mouse"},
            "actions": [{"type": "pointerMove", "duration": 0, "x": round(x), "y": round(y)}] + [{"type": a, "button": 0} for a in actions]}]})

    def point(self, path, *actions, before=False):
        """Moves the pointer to the middle of a box of the left-heavy view, which is not zoomed; presses and releases it as in `actions`."""
        begin, end, row = self.data.left_heavy(path, before)
        left, top, width = self.script("const b = canvas.getBoundingClientRect(); return [b.left, b.top, b.width]")
        self.pointer(left + width * (begin + end) / 2, top + ROW * (row + 0.5), *actions)

    def colour(self, path):
        """The colour of the box, near its right end, where it has no text."""
        begin, end, row = self.data.left_heavy(path)
        return self.script("return colourAt(canvas.clientWidth * arguments[0] - 4, arguments[1])", end, ROW * (row + 0.3))

    def quiet(self):
        lines = self.browser.call("POST", "/se/log", {"type": "browser"})
        if lines:
            raise Failure(f"{self.file.name}: on the console: {lines[0]['message']}")


class Data:
    def __init__(self, file):
        text = file.read_text(encoding="utf-8")
        self.json = json.loads(re.search(r'id="data">(.*?)</script>', text, re.S)[1])
        strings = self.json["strings"]
        self.counted = 2 if "unit" not in self.json else 3   # the number of a run that is counted: samples, or their weight
        self.texts = [strings[i] for i in self.json["frames"]["text"]]
        self.stacks = [()]
        for outer, frame in list(zip(self.json["nodes"]["outer"], self.json["nodes"]["frame"]))[1:]:
            self.stacks.append(self.stacks[outer] + (self.texts[frame],))

    def samples(self, thread=None, before=False):
        """Stacks with their numbers of samples, bytes or objects."""
        counts = collections.Counter()
        for number, entry in enumerate(self.json["sets"][0 if before else -1]["threads"]):
            if thread in (None, number):
                for i in range(0, len(entry["runs"]), RUN):
                    counts[self.stacks[entry["runs"][i]]] += entry["runs"][i + self.counted]
        return counts

    def functions(self, thread=None):
        """The own and total cost of each function."""
        own, total = collections.Counter(), collections.Counter()
        for stack, count in self.samples(thread).items():
            own[stack[-1]] += count
            for function in set(stack):
                total[function] += count
        return own, total

    def relations(self, function):
        """Callers and callees of the outermost call of the function; '' is no caller, or the function itself."""
        callers, callees = collections.Counter(), collections.Counter()
        for stack, count in self.samples().items():
            if function in stack:
                at = stack.index(function)
                callers[stack[at - 1] if at else ""] += count
                callees[stack[at + 1] if at + 1 < len(stack) else ""] += count
        return callers, callees

    def matched(self, pattern, thread=None):
        counts = self.samples(thread)
        return sum(n for stack, n in counts.items() if any(re.search(pattern, f, re.I) for f in stack)), sum(counts.values())

    def left_heavy(self, path, before=False):
        """The place of a path's box: the shares of the width at which it begins and ends, and the row."""
        counts = self.samples(before=before)
        whole = width = sum(counts.values())
        begin = 0
        for depth in range(len(path)):
            widths = collections.Counter()
            for stack, count in counts.items():
                if stack[:depth] == path[:depth] and len(stack) > depth:
                    widths[stack[depth]] += count
            for name, count in sorted(widths.items(), key=lambda item: (-item[1], item[0])):
                if name == path[depth]:
                    width = count
                    break
                begin += count
        return begin / whole, (begin + width) / whole, len(path)   # row 0 is the whole profile


def percent(part, whole):
    return f"{100 * part / whole:.1f} %"
