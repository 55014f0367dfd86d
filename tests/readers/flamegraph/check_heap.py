#!/usr/bin/env python3
"""Open pages of heaps in headless Chromium, use them, and look at what they show.

check_heap.py LUASPY SCRIPT TARGETS WORK NAME...: runs the script (heap_page.lua) with each Lua of that name in TARGETS
(targets.tsv, luajits.tsv). What the pages show has to be what luaspy writes as JSON lines of the same heaps.
"""
import collections
import json
import math
import pathlib
import re
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from browser import Failure, browse, run_check
from pages import DOWN, ENTER, ESCAPE, HELPERS, HOME, ROW, Page, contains, equal, percent

TURNED = re.compile("[\u0000-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]")   # controls, and what turns text around


def size(n):
    """As words.js says it: halves are rounded up."""
    unit = 0
    while abs(n) >= 1023.5:
        n, unit = n / 1024, unit + 1
    number = f"{math.floor(n + 0.5)}" if unit == 0 or abs(n) >= 999.95 else f"{math.floor(n * 10 + 0.5) / 10:.1f}"
    return f"{number} {'B KiB MiB GiB'.split()[unit]}"


class Heap:
    """What luaspy says, from its JSON lines."""

    def __init__(self, text):
        lines = [json.loads(line) for line in text.rstrip("\n").split("\n")]   # U+2028 is no end of a line
        self.roots = [each for each in lines if each["type"] == "root"]
        self.live = [each for each in lines if each["type"] != "root" and not each.get("dead")]
        self.bytes = sum(each["live_bytes"] for each in self.roots)

    def of(self, name):
        return [each for each in self.live if each["class"] == name]

    def own(self, name):
        return sum(each["size"] for each in self.of(name))

    def retained(self, name):
        """Of a class that holds none of its own."""
        return sum(each["retained"] for each in self.of(name))


class Process:
    """A Lua that runs the script, waiting for input."""

    def __init__(self, command, luaspy, script, work):
        self.luaspy, self.work = luaspy, work
        self.lua = subprocess.Popen([*command, script.name], cwd=script.parent, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.ready()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.lua.kill()
        self.lua.wait()

    def ready(self):
        if self.lua.stdout.readline() != "READY\n":
            raise Failure("the script has not run")

    def go_on(self):
        self.lua.stdin.write("\n")
        self.lua.stdin.flush()
        self.ready()

    def write(self, name):
        self.say("--pid", str(self.lua.pid), "-o", self.work / name)

    def say(self, *words):
        done = subprocess.run([self.luaspy, "heap", *words], text=True, capture_output=True)
        if done.returncode:
            raise Failure(f"luaspy heap {words}: {done.stderr}")
        contains("said", done.stderr, f"{words[-1]}: ")

    def heap(self, name):
        return Heap((self.work / name).read_text(encoding="utf-8"))


def rows(page):
    return page.script("return all('#table tbody tr').map(r => [...r.cells].map(c => c.textContent))")


def own_of(data, text):
    """The own bytes of each frame with that text."""
    sums = collections.Counter()
    for state in data["sets"][0]["threads"]:
        for node, _, _, weight, _ in zip(*[iter(state["runs"])] * 5):
            sums[data["nodes"]["frame"][node]] += weight
    return [n for frame, n in sums.items() if data["strings"][data["frames"]["text"][frame]] == text]


def in_state(heap, *path):
    """A path in the page: with several states each has an outermost box."""
    names = [f"{root['lua']} at {root['global_state']}" for root in heap.roots if root["live"] > 10_000]
    return (*names, *path) if len(heap.roots) > 1 else path


def check_first_sight(page, heap, pictures):
    page.settle()
    page.browser.screenshot(pictures / "heap.png")
    contains("title", page.text("h1"), "heap_page.lua")
    main = max(heap.roots, key=lambda root: root["live"])
    contains("totals", page.text("#facts"), f"{size(main['live_bytes'])} in {main['live']:,} live objects")
    contains("the counter", page.text("#facts"), "the objects found make +0 bytes (+0.0000 %)")
    for wrong in ("samples", "no function", "0.00 s", "Hz", "threads"):
        if wrong in page.script("return document.body.innerText"):
            raise Failure(f"{wrong!r} is on the page of a heap")
    equal("views", page.script("return all('[data-view]').filter(e => !e.hidden).map(e => e.textContent)"), ["Who holds what", "Classes", "Bottom up"])
    equal("not of heaps", page.script("return ['mode-field', 'lines', 'source-open', 'width-field'].map(id => document.getElementById(id).hidden)"), [True] * 4)
    equal("whole", sum(page.data.samples().values()), heap.bytes)
    page.point(())
    contains("the root", page.text("#detail"), f"all: retains {size(heap.bytes)} (100.0 %)")
    legend = dict(zip(page.texts("#legend li span:nth-child(2)"), page.texts("#legend .share")))
    data = page.data.json
    joined = sum(run[3] for state in data["sets"][0]["threads"] for run in zip(*[iter(state["runs"])] * 5)
                 if data["frames"]["class"][data["nodes"]["frame"][run[0]]] < 0)
    equal("small boxes", legend["small boxes, joined"], percent(joined, heap.bytes))
    if not 0 < joined < heap.bytes / 10:
        raise Failure(f"{joined} bytes are in small boxes")
    contains("said", page.text("#facts"), f"with {size(joined)} together")


def check_leads(page, heap):
    [lead] = [each for each in page.texts("#leads button") if "list: 99,998 tables {next, value}" in each]
    page.script("all('#leads button').find(e => e.textContent === arguments[0]).click()", lead)
    page.settle()
    equal("zoomed to", page.texts("#crumbs button")[-1], "list")
    first = max(heap.of("{next, value}"), key=lambda each: each["retained"])
    contains("told", page.text("#detail"), f"list: retains {size(first['retained'])} ({percent(first['retained'], heap.bytes)}), own {size(first['size'])}, 1 object")
    contains("class and path", page.text("#detail"), "class: {next, value} (table) · path: list")
    page.keys("body", ESCAPE)
    equal("after Escape", page.texts("#crumbs button"), ["all"])
    page.settle()


def check_boxes(page, heap):
    accounts, entries = heap.of("Account"), heap.of("{body, id, when}")
    box = in_state(heap, "_G", "accounts", "Account")
    page.point(box)
    contains("tip", page.text("#tip"), f"retains{size(heap.retained('Account'))}{percent(heap.retained('Account'), heap.bytes)}")
    contains("tip", page.text("#tip"), f"own{size(heap.own('Account'))}{percent(heap.own('Account'), heap.bytes)}{len(accounts):,}")
    contains("tip", page.text("#tip"), "Account (table)")
    page.point(box, "pointerDown", "pointerUp")
    page.settle()
    equal("the way", page.texts("#crumbs button")[-3:], ["_G", "accounts", "Account"])
    if not re.search(r"path of the largest: accounts\[\d+\]$", page.text("#detail")):
        raise Failure(f"path of an account: {page.text('#detail')!r}")
    page.script("await until(() => location.hash.startsWith('#zoom='))")
    address = page.script("return location.hash")
    page.open(address)
    equal("by address", page.texts("#crumbs button")[-1], "Account")
    page.keys("body", "0")
    page.settle()
    loaded = in_state(heap, "package.loaded", "cache")
    page.point(loaded, "pointerDown", "pointerUp")
    page.settle()
    contains("path", page.text("#detail"), "path: package.loaded.cache")
    page.keys("body", "h")
    page.settle()
    contains("the largest", page.text("#detail"), f"{{body, id, when}}: retains {size(sum(each['retained'] for each in entries))}")
    page.keys("body", "0")
    page.script("document.getElementById('canvas').focus({focusVisible: true})")
    page.keys("#canvas", HOME + DOWN * len(in_state(heap, "_G", "list")))
    page.keys("#canvas", ENTER)
    page.settle()
    contains("by keys", page.text("#detail"), "class: {next, value} (table) · path: list")
    page.keys("#canvas", ESCAPE)
    page.settle()


def check_search(page, heap):
    page.keys("body", "/")
    page.keys("#search", "^acc.unt$")
    equal("searched", page.text("#matched"), f"{size(heap.retained('Account'))}, {percent(heap.retained('Account'), heap.bytes)} matched")
    page.keys("#search", ENTER)
    contains("next match", page.text("#detail"), "class: Account (table)")
    page.keys("#canvas", ESCAPE)
    equal("after Escape", page.text("#matched"), "")
    page.keys("body", "/")
    page.keys("#search", "(((")
    equal("nothing", page.text("#matched"), "no match")
    page.keys("#search", ESCAPE)


def check_classes(page, heap, pictures):
    page.keys("body", "3")
    page.settle()
    counts = collections.Counter(each["class"] for each in heap.live)
    shown = rows(page)
    retained = {row[3]: row[:3] for row in shown}
    for name in ("Account", "{body, id, when}"):
        equal(name, retained[f"{name} (table)"], [size(heap.retained(name)), size(heap.own(name)), f"{counts[name]:,}"])
    equal("strings", retained["string"][1:], [size(heap.own("string")), f"{counts['string']:,}"])
    page.click("#table th:nth-child(3) button")
    objects = [int(row[2].replace(",", "")) for row in rows(page)]
    equal("order by objects", (objects, objects[0]), (sorted(objects, reverse=True), max(counts.values())))
    page.click("#table th:nth-child(3) button")
    equal("other order", int(rows(page)[0][2]), 1)
    page.keys("#filter", "account")
    equal("filtered", [row[3] for row in rows(page)], ["Account (table)"])
    page.click("#table tbody .name")
    text = f"Account (table): {size(heap.retained('Account'))}, {percent(heap.retained('Account'), heap.bytes)}"
    equal("highlighted", (page.text("#matched"), page.script("return all('#table [aria-current]').length")), (text, 1))
    page.settle()
    page.browser.screenshot(pictures / "heap-classes.png")
    address = page.script("await until(() => location.hash.includes('class=')); return location.hash")
    page.open(address)
    equal("by address", page.text("#matched"), text)
    page.keys("body", ESCAPE)
    equal("after Escape", (page.text("#matched"), page.script("return all('#table [aria-current]').length")), ("", 0))
    page.keys("body", "1")
    page.settle()
    page.point(in_state(heap, "_G", "accounts", "Account"))
    page.keys("body", "s")
    equal("from a box", page.text("#table [aria-current] .name"), "Account (table)")
    page.keys("body", ESCAPE)
    page.keys("body", "1")
    page.settle()


def check_edits(page, heap):
    page.point(in_state(heap, "_G", "list"))
    page.keys("body", "x")
    first = max(heap.of("{next, value}"), key=lambda each: each["retained"])
    equal("without", page.texts("#applied li > span"), ["without list", size(heap.bytes - first["retained"])])
    page.keys("body", ESCAPE)
    page.settle()
    page.point(in_state(heap, "_G", "list"))
    page.keys("body", "m")
    equal("menu", page.texts("#menu button span"), ["Zoom into it", "Its class", "Only this and what it holds", "Leave its bytes out", "As one, with all that it holds",
                                                    "Copy its name", "Copy its path"])
    page.keys("#menu button", ESCAPE)
    page.keys("body", "4")
    page.settle()
    whole = max(own_of(page.data.json, "string"))   # the library of that name is a box, too
    page.script("search.value = '^string$'; search.dispatchEvent(new Event('input'))")
    page.keys("body", "n")
    contains("bottom up", page.text("#detail"), f"string: own {size(whole)}")
    page.keys("body", ESCAPE)
    page.keys("body", "1")


def check_depth(page):
    page.open("#fold=false")
    page.settle()
    depth = max(len(stack) for stack in page.data.stacks)
    equal("boxes in each other", 90 < depth <= 102, True)
    equal("rows", page.script("return scroller.scrollHeight"), (depth + 1) * ROW)
    if page.file.stat().st_size > 2 << 20:
        raise Failure(f"the page has {page.file.stat().st_size} bytes")
    page.open()
    return page.script("return performance.getEntriesByName('drawn')[0].startTime")


def check_hostile(page):
    names = [text for text in page.data.texts if "owned" in text or "</script>" in text]
    equal("names", len(names), 3)
    if max(map(len, page.data.texts)) > 200:
        raise Failure("a name is very long")
    for view in "143":
        page.keys("body", view)
        page.settle()
    page.click("#table th:nth-child(4) button")
    page.keys("#filter", "script")
    contains("a class", page.text("#table tbody .name"), "</script><b>class</b>")
    page.click("#table tbody .name")
    page.keys("body", "1")
    page.script("for (const query of ['owned', '__proto__', 'constructor', 'long']) { search.value = query; search.dispatchEvent(new Event('input')); "
                "if (matched.textContent === 'no match') throw query; }")
    page.keys("body", "n")
    contains("a long name", page.text("#detail"), "longlong")
    for name, shown in (("gpj", "\\u202egpj.exe"), ("x01", "\\x01\\x02\\x1b[31m"), ("u2028", "\\u2028\\u2029"), ("xff", "\\xff\\xfe"), ("line.*break", "line\\x0abreak")):
        page.script("search.value = arguments[0]; search.dispatchEvent(new Event('input'))", name)
        page.keys("body", "n")
        contains(name, page.text("#detail"), shown)
        if TURNED.search(page.text("#detail") + page.text("#tip")):
            raise Failure(f"{name}: hidden characters")
    equal("owned", page.script("return [window.owned === undefined, document.images.length, document.scripts.length, document.querySelectorAll('b').length]"), [True, 0, 3, 0])
    page.keys("body", ESCAPE + "0")


def check_small_window(page, pictures):
    for width, height in ((500, 800), (1280, 800)):
        page.browser.call("POST", "/goog/cdp/execute", {"cmd": "Emulation.setDeviceMetricsOverride",
                                                        "params": {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}})
        for view in ("left", "table"):
            page.open(f"#view={view}")
            page.settle()
            page.browser.screenshot(pictures / f"heap-{view}-{width}.png")
            equal(f"at {width}, {view}", page.script("return [canvas.clientHeight > 120, document.documentElement.scrollWidth <= innerWidth]"), [True, True])
    page.browser.call("POST", "/goog/cdp/execute", {"cmd": "Emulation.clearDeviceMetricsOverride", "params": {}})


def check_states(page, heap):
    """Each state has a root, and the classes of each can be seen alone."""
    names = {f"{root['lua']} at {root['global_state']}": root for root in heap.roots}
    equal("roots", {stack[0] for stack in page.data.stacks if len(stack) == 1}, set(names))
    other = min(heap.roots, key=lambda root: root["live"])
    name = f"{other['lua']} at {other['global_state']}"
    contains("lead", page.text("#leads"), f"In {name}: ")
    page.open()
    page.point((name,))
    contains("a state", page.text("#detail"), f"{name}: retains {size(other['live_bytes'])}")
    number = [state["name"] for state in page.data.json["sets"][0]["threads"]].index(name)
    page.choose("thread", str(number))
    page.keys("body", "3")
    equal("its classes", sum(int(row[2].replace(",", "")) for row in rows(page)), other["live"])
    page.keys("body", "1")
    page.choose("thread", "all")


def check_difference(page, before, now, pictures):
    page.settle()
    page.browser.screenshot(pictures / "heap-diff.png")
    accounts = in_state(now, "_G", "accounts")
    grown = now.retained("Account") - before.retained("Account")
    lead = page.text("#leads button")
    contains("what grew first", lead, f"accounts got +1,000 Account (table): +{size(grown)}")
    contains("live", page.text("#compared"), f"{size(before.bytes)} before, {size(now.bytes)} after")
    page.point((*accounts, "Account"))
    both = [size(heap.retained("Account")) for heap in (now, before)]
    contains("tip", page.text("#tip"), f"retains{both[0]}{both[1]}+{size(grown)}+33 %")
    contains("objects", page.text("#tip"), "objects")
    contains("told", page.text("#detail"), f"change +{size(grown)}")
    page.pointer(5, 5)
    red, _, blue = page.colour((*accounts, "Account"))
    equal("grown is orange", red > blue + 60, True)
    red, _, blue = page.colour(in_state(now, "package.loaded", "cache", "entries", "{body, id, when}"))
    equal("less is blue", blue > red + 60, True)
    page.script("all('#leads button')[0].click()")
    page.settle()
    equal("zoomed to", page.texts("#crumbs button")[-1], "Account")
    page.keys("body", "03")
    found = {row[4]: row[:4] for row in rows(page)}
    own = now.own("Account")
    equal("what grew", found["Account (table)"], [f"+{size(own - before.own('Account'))}", size(own), "+1,000", "4,000"])
    equal("what shrank", found["{body, id, when} (table)"][2:], ["−1,000", "2,000"])
    changes = page.script("return all('#table tbody tr').map(r => r.cells[0].className)")
    equal("order", changes, sorted(changes, key=["up", "", "down"].index))
    page.keys("body", "1")


def check_lua(browser, process, luaspy, work):
    for file in ("heap.html", "heap.jsonl", "before.luaheap"):
        process.write(file)
    before = process.heap("heap.jsonl")
    page = Page(browser, work, "heap")
    check_first_sight(page, before, work)
    check_leads(page, before)
    check_boxes(page, before)
    check_search(page, before)
    check_classes(page, before, work)
    check_edits(page, before)
    drawn = check_depth(page)
    check_hostile(page)
    check_small_window(page, work)
    if len(before.roots) > 1:
        check_states(page, before)
    page.quiet()
    process.go_on()
    for file in ("now.jsonl", "now.luaheap"):
        process.write(file)
    process.say("--diff", work / "before.luaheap", work / "now.luaheap", "-o", work / "diff.html")
    process.say("--diff", work / "now.luaheap", work / "now.luaheap", "-o", work / "same.html")
    page = Page(browser, work, "diff")
    check_difference(page, before, process.heap("now.jsonl"), work)
    page.quiet()
    page = Page(browser, work, "same")
    equal("the same", page.texts("#leads button"), ["Nothing has grown."])
    page.click("#leads button")
    page.quiet()
    return f"{len(before.live)} objects, {(work / 'heap.html').stat().st_size} bytes, drawn in {drawn:.0f} ms"


def check(luaspy, script, targets, work, names):
    commands = dict(line.split("\t")[0:4:3] for file in ("targets.tsv", "luajits.tsv") for line in (targets / file).read_text().splitlines())
    said = []
    work.mkdir(parents=True, exist_ok=True)
    with browse(work, HELPERS) as browser:
        for name in names:
            folder = work / name
            folder.mkdir(exist_ok=True)
            with Process(commands[name].split(), luaspy, script, folder) as process:
                try:
                    said.append(f"{name}: {check_lua(browser, process, luaspy, folder)}")
                except Failure as failure:
                    raise Failure(f"{name}: {failure}") from None
    return "; ".join(said)


def main():
    luaspy, script, targets, work = (pathlib.Path(argument).resolve() for argument in sys.argv[1:5])
    run_check("heap page", 280, lambda: check(luaspy, script, targets, work, sys.argv[5:]))


if __name__ == "__main__":
    main()
