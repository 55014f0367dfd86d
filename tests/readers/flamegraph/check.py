#!/usr/bin/env python3
"""Open flame graph pages in headless Chromium from files, use them, and look at what they show."""
import argparse
import pathlib
import re
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from browser import Failure, browse, run_check
from pages import DOWN, ENTER, ESCAPE, HELPERS, MARKS, RIGHT, ROW, RUN, SHIFT, STRIP, UP, Page, contains, equal, percent


def check_first_sight(page, pictures):
    page.settle()
    equal("title", page.text("h1"), 'lua5.4 "my script".lua')
    contains("facts", page.text("#facts"), "Lost2 late ticks, 1 thread ended")
    equal("doubts", page.texts("#doubts li"), [])
    equal("legend", dict(zip(page.texts("#legend li span:nth-child(2)"), page.texts("#legend .share"))),
          {"Lua": "33.3 %", "C called by Lua": "16.7 %", "other native code": "16.7 %", "garbage collector": "16.7 %", "no function: waits, tail calls": "16.7 %"})
    page.browser.screenshot(pictures / "left.png")


def check_zoom(page):
    work = ("main (lua5.4)", "main chunk (app/main.lua)", "work (app/main.lua:10)")
    page.point(work)
    tip = page.text("#tip")
    for text in ("work (app/main.lua:10)", "Lua · app/main.lua:10", "own350.0 %", "total466.7 %", "garbage collector 25.0 %"):
        contains("tip", tip, text)
    page.point(work, "pointerDown", "pointerUp")
    page.settle()
    equal("zoomed to", page.texts("#crumbs button"), ["all", *work])
    page.script("await until(() => location.hash.startsWith('#zoom='))")
    contains("told", page.text("#detail"), "own 50.0 %, total 66.7 %, 4 samples")
    # When zoomed, the box is as wide as the graph.
    page.pointer(*page.script(f"const b = canvas.getBoundingClientRect(); return [b.right - 20, b.top + {3.5 * ROW}]"))
    contains("told of the zoomed box", page.text("#detail"), "work (app/main.lua:10)")
    address = page.script("return location.hash")
    page.keys("body", ESCAPE)
    equal("after Escape", page.texts("#crumbs button"), ["all"])
    page.open(address)
    equal("by address", page.texts("#crumbs button"), ["all", *work])
    page.keys("body", "0")


def check_keys(page):
    page.script("document.getElementById('canvas').focus({focusVisible: true})")
    page.keys("#canvas", DOWN + DOWN + DOWN)
    contains("told at the focus", page.text("#detail"), "work (app/main.lua:10)")
    page.keys("#canvas", RIGHT)
    contains("told right of it", page.text("#detail"), "(...tail calls...)")
    page.keys("#canvas", ENTER)
    equal("zoomed by key", page.texts("#crumbs button")[-1], "(...tail calls...)")
    page.keys("#canvas", ESCAPE)
    page.keys("body", "?")
    equal("help", page.script("return document.getElementById('help').open"), True)
    page.click("#help button")


def check_search(page, pattern, thread=None):
    page.keys("body", "/")
    equal("focus", page.script("return document.activeElement.id"), "search")
    page.keys("#search", pattern)
    part, whole = page.data.matched(pattern, thread)
    if not 0 < part < whole:
        raise Failure(f"{pattern} tells nothing")
    equal(f"share of {pattern}", page.text("#matched"), f"{percent(part, whole)} matched")
    page.keys("#search", ENTER)
    if not re.search(pattern, page.text("#detail"), re.I):
        raise Failure(f"next match: {page.text('#detail')!r}")
    page.keys("#canvas", ESCAPE)
    equal("after Escape", page.text("#matched"), "")
    page.keys("body", "/")
    page.keys("#search", "(((")   # not a regular expression
    equal("share of what is in no name", page.text("#matched"), "no match")
    page.keys("#search", ESCAPE)


def check_functions(page, function):
    page.keys("body", "3")
    own, total = page.data.functions()
    whole = sum(own.values())
    rows = page.script("return all('#table tbody tr').map(r => [...r.cells].map(c => c.textContent))")
    equal("functions", {row[4]: row[:4] for row in rows},
          {name: [percent(own[name], whole), percent(total[name], whole), str(own[name]), str(total[name])] for name in total})
    equal("order", [int(row[2]) for row in rows], sorted((int(row[2]) for row in rows), reverse=True))
    page.click("#table th:nth-child(4) button")
    equal("hottest by total", int(page.text("#table tbody td:nth-child(4)")), max(total.values()))
    page.keys("#filter", function[:5])
    equal("filtered", page.texts("#table tbody .name"), [function])
    page.click("#table tbody .name")
    equal("head of the relations", page.text("#chosen"), f"{function}: own {percent(own[function], whole)}, total {percent(total[function], whole)}")
    callers, callees = page.data.relations(function)
    for selector, counts, nobody in (("#callers", callers, "nothing: outermost"), ("#callees", callees, "itself")):
        found = dict(zip(page.texts(f"{selector} li > :nth-child(2)"), page.texts(f"{selector} .share")))
        equal(selector, found, {name or nobody: f"{n} · {percent(n, total[function])}" for name, n in counts.items()})


def check_labels(page):
    """30 + 10 samples of one request, 50 of another, 10 of none."""
    equal("names of labels", page.script("return all('#label optgroup').map(e => e.label)"), ["request", "user"])
    equal("their values", page.texts("#label option"), ["any", "GET /list: 50.0 %", "GET /<b>cart</b>: 40.0 %", "a=b: 40.0 %"])
    main, query = "main chunk (server.lua)", "query (server.lua:2)"
    page.choose("label", "request\nGET /<b>cart</b>")
    page.settle()
    equal("what is applied", page.texts("#applied li span"), ["only request=GET /<b>cart</b>", "40 samples"])
    for path, expected in (((main,), "total 100.0 %, 40 samples"), ((main, "render (server.lua:1)"), "total 75.0 %, 30 samples")):
        left, top, width = page.script("const b = canvas.getBoundingClientRect(); return [b.left, b.top, b.width]")
        page.pointer(left + width * 0.4, top + ROW * (len(path) + 0.5))
        contains("the box", page.text("#detail"), f"{path[-1]}: ")
        contains("with the label", page.text("#detail"), expected)
    contains("colours of it alone", page.text("#legend"), "compiler75.0 %")
    page.keys("body", "2")
    page.settle()
    left, top, width = page.script("const b = canvas.getBoundingClientRect(); return [b.left, b.top, b.width]")
    page.pointer(left + width * 0.15, top + 22 + ROW * 1.5)
    contains("in the order of time", page.text("#detail"), "40 samples, 400 ms, from 0")
    page.pointer(left + width * 0.6, top + 22 + ROW * 1.5)
    equal("another request is no gap", "has no sample" in page.text("#tip"), False)
    page.keys("body", "1")
    page.script("document.querySelector('#applied button').click()")
    equal("taken back", (page.script("return label.value"), page.script("return applied.hidden")), ("", True))
    page.choose("label", "request\nGET /list")
    page.script("await until(() => location.hash.includes('list'))")
    page.open(page.script("return location.hash"))
    page.settle()
    page.point((main,))
    contains("by its address", page.text("#detail"), "total 100.0 %, 50 samples")
    equal("the choice", page.script("return label.value"), "request\nGET /list")
    page.choose("label", "user\na=b")
    page.settle()
    contains("a value with =", page.text("#applied"), "40 samples")
    page.open("#label=request%0Anothing")
    page.point((main,))
    contains("no such label", page.text("#detail"), "total 100.0 %, 100 samples")
    check_colours_of_labels(page, (main, "render (server.lua:1)"))


def check_colours_of_labels(page, path):
    list_, cart, none = [242, 182, 50], [108, 189, 240], [233, 227, 208]   # the largest value, the second one, samples without it

    def row_of(number, at):
        return page.script("const r = canvas.getBoundingClientRect(); return arguments[1].map(x => colourAt(r.width * x, arguments[0]))", number, at)

    page.open("#")
    page.choose("colour", "label:request")
    page.settle()
    equal("the legend", page.texts("#legend li"), ["GET /list50.0 %", "GET /<b>cart</b>40.0 %", "without request10.0 %"])
    equal("shares of a box", row_of(ROW + 2, [0.25, 0.7, 0.95]), [list_, cart, none])
    page.point(path[:1])
    contains("its tip", page.text("#tip"), "GET /list 50.0 % · GET /<b>cart</b> 40.0 % · without request 10.0 %")
    page.choose("colour", "label:user")
    page.settle()
    equal("another label", page.texts("#legend li"), ["without user60.0 %", "a=b40.0 %"])
    page.choose("label", "request\nGET /list")
    page.settle()
    equal("of one request", page.texts("#legend li"), ["without user100.0 %"])
    page.open("#view=time&colour=label:request")
    page.settle()
    equal("by its address, in the order of time", row_of(22 + ROW + 2, [0.15, 0.6, 0.95]), [cart, list_, none])
    left, top, width = page.script("const b = canvas.getBoundingClientRect(); return [b.left, b.top, b.width]")
    page.pointer(left + width * 0.6, top + 22 + ROW * 1.5)
    contains("a tip there", page.text("#tip"), "GET /list")
    page.open("#colour=label:nothing")
    page.settle()
    equal("no such label", page.script("return colour.value"), "kind")


def check_views(page, pictures):
    page.keys("body", "2")
    equal("view", page.script("return document.querySelector('[data-view=time]').getAttribute('aria-pressed')"), "true")
    # The second thread sleeps in its first sample, from 10 to 20 ms of 40; its lane begins behind the first one's.
    depth = max(len(page.data.stacks[n]) for n in page.data.json["sets"][0]["threads"][0]["runs"][::RUN])
    left, top, width = page.script("const b = canvas.getBoundingClientRect(); return [b.left, b.top, b.width]")
    heaps = STRIP * len(page.data.json["sets"][0]["heaps"])
    page.pointer(left + width * 15 / 40, top + 22 + ROW * (heaps + MARKS + depth + 2 + 2.5))
    equal("in the order of time", page.text("#detail"), "[epoll_wait]: 1 samples, 10 ms, from 10 ms")
    contains("tip", page.text("#tip"), "total116.7 %50.0 %10 ms")
    check_heaps(page, (left, top, width))
    check_marks(page, (left, top + ROW * heaps, width), heaps)
    page.choose("thread", "1")
    page.keys("body", "1")
    page.open("#heat=true")
    page.settle()
    page.pointer(*heat_at(page, 0, 0)(24))
    equal("what sleeps counts apart", page.text("#tip"), "0.00 s to 0.02 s: 2 samples, 1 asleep")
    page.open("#thread=1")
    page.point(())
    contains("one thread", page.text("#detail"), 'worker; "two" (thread 101): total 33.3 %, 2 samples')
    page.choose("thread", "all")
    page.choose("colour", "state")
    contains("states", page.text("#legend"), "machine code16.7 %")
    page.choose("colour", "kind")
    light = page.script("return getComputedStyle(document.body).backgroundColor")
    page.click("#theme")
    dark = page.script("return getComputedStyle(document.body).backgroundColor")
    corner = page.script("return colourAt(4, canvas.clientHeight - 4)")
    equal("dark", (light, dark, max(corner) < 64), ("rgb(255, 255, 255)", "rgb(20, 23, 27)", True))
    page.browser.screenshot(pictures / "dark.png")
    page.click("#theme")


def check_heaps(page, place):
    """Two heaps, from 10 and from 20 ms on of 40, above the threads."""
    left, top, width = place

    def at(ms, strip, row):
        return left + width * ms / 40, top + 22 + ROW * (STRIP * strip + row)
    for ms, strip, text in ((15, 0, "Lua heap: 39.1 KiB at 15 ms; collector: pause, at least 0 cycles by then"), (35, 0, "Lua heap: 117.2 KiB at 35 ms; collector: sweeping, at least 1 cycle by then"),
                            (30, 1, "Lua heap 2: 2.9 MiB at 30 ms; collector: pause, at least 0 cycles by then")):
        page.pointer(*at(ms, strip, 1.5))
        equal(f"heap {strip + 1} at {ms} ms", (page.text("#detail"), page.text("#tip")), (text, text))
        equal("the tip is seen", page.script("return document.getElementById('tip').hidden"), False)
    page.pointer(*at(15, 1, 1.5))   # before its first value
    equal("a heap that is not known yet", page.script("return document.getElementById('tip').hidden"), True)
    page.settle()
    # The curve: the first heap has a third of its height from 10 ms on, all of it from 31 ms on.
    colours = [page.script("return colourAt(arguments[0], arguments[1])", width * ms / 40, 22 + ROW * row) for ms, row in ((5, 2.8), (15, 1.3), (15, 2.8), (35, 1.3), (35, 2.8))]
    empty, known = colours[0], colours[2]
    equal("the curve", [colour == known for colour in colours], [False, False, True, True, True])
    equal("above the curve", colours[1], empty)


def check_marks(page, place, rows):
    """At 12.5, 21 and 31 ms of 40, below the heaps."""
    left, top, width = place
    for ms, text in ((12.5, "abort app/main.lua:12 at 12.5 ms: NYI: bytecode FNEW at app/main.lua:13; failed attempts: 10"),
                     (21, 'blacklisted app/main.lua:12 at 21 ms: NYI: FastFunc "x"<script>; failed attempts: 11'),
                     (31, "trace 3 app/main.lua:30 at 31 ms: from trace 1 exit 2, root 1, 230 bytes")):
        page.pointer(left + width * ms / 40, top + 22 + ROW * 1.5)
        equal(f"mark at {ms} ms", (page.text("#detail"), page.text("#tip")), (text, text))
    page.pointer(left + width * 16 / 40, top + 22 + ROW * 1.5)
    equal("where no mark is", page.script("return document.getElementById('tip').hidden"), True)
    page.settle()
    colours = [page.script("return colourAt(arguments[0], arguments[1])", width * ms / 40 + 1, 22 + ROW * (rows + 1.5)) for ms in (5, 12.5, 21, 31)]
    equal("each kind has a colour of its own", len({tuple(colour) for colour in colours}), 4)


def check_together(page):
    page.keys("body", "2")
    [heap] = page.data.json["sets"][0]["heaps"]
    left, top, width = page.script("const b = canvas.getBoundingClientRect(); return [b.left, b.top, b.width]")
    page.pointer(left + width * 0.75, top + 22 + ROW * 1.5)
    equal("six heaps", page.text("#detail"), "Lua heap, 6 states together: 6.0 MiB at 4.50 s; collector: marking, at least 0 cycles by then")
    page.pointer(left + width * 0.75, top + 22 + ROW * (STRIP + 1.5))
    contains("two marks", page.text("#detail"), " at 4.50 s: loop; 1 more within ")
    page.pointer(left + width * 0.25, top + 22 + ROW * (STRIP + 1.5))
    contains("one mark", page.text("#detail"), "trace 7 heaps.lua:3 at 1.50 s: loop")
    page.pointer(left + width * 0.25, top + 22 + ROW * (STRIP + MARKS + 1.5))
    contains("the thread below it", page.text("#detail"), "main chunk (heaps.lua): 600 samples")


def check_folding(page, pictures):
    page.settle()
    page.browser.screenshot(pictures / "deep.png")
    # main 100; even, odd 30 times each: 30; down 200 times: 30; function: 40.
    texts = {"main": "main chunk (app/deep.lua)", "down": "down (app/deep.lua:2)", "unnamed": "function (app/deep.lua:7)"}
    left, top, width = page.script("const b = canvas.getBoundingClientRect(); return [b.left, b.top, b.width]")
    at = lambda share, row: (left + width * share, top + ROW * (row + 0.5))
    page.pointer(*at(0.5, 2))
    contains("a folded box", page.text("#detail"), "down (app/deep.lua:2) ×200: own 10.0 %, total 30.0 %")
    contains("its tip", page.text("#tip"), "up to 200 on one stack")
    page.pointer(*at(0.45, 3))
    contains("what it calls", page.text("#detail"), "leaf (app/deep.lua:9): own 20.0 %")
    page.pointer(*at(0.9, 3))
    contains("a cycle", page.text("#detail"), "odd (app/deep.lua:6) ×30: own 30.0 %")
    page.pointer(*at(0.9, 2))
    contains("its other function", page.text("#detail"), "even (app/deep.lua:5) ×30: own 0.0 %, total 30.0 %")
    page.keys("body", "r")
    page.settle()
    page.pointer(*at(0.5, 2))
    contains("unfolded", page.text("#detail"), "down (app/deep.lua:2): own 0.0 %, total 30.0 %")
    page.script("await until(() => location.hash.includes('fold=false'))")
    page.keys("body", "r")
    page.keys("body", "h")
    page.settle()
    contains("the hottest", page.text("#detail"), "leaf (app/deep.lua:9): own 40.0 %")
    equal("the way there", page.texts("#crumbs button"), ["all", texts["main"], texts["unnamed"], "leaf (app/deep.lua:9)"])
    page.keys("body", "0")
    page.keys("body", "4")
    page.settle()
    page.pointer(*at(0.1, 1))
    contains("bottom up", page.text("#detail"), "leaf (app/deep.lua:9): total 60.0 %, 60 samples")
    page.pointer(*at(0.1, 2))
    contains("its caller", page.text("#detail"), "function (app/deep.lua:7): total 40.0 %")
    contains("its caller", page.text("#tip"), "called from here4040.0 %")
    page.keys("body", "1")


def check_edits(page):
    names = lambda: page.texts("#applied li > span")
    page.script("const b = canvas.getBoundingClientRect(); canvas.dispatchEvent(new MouseEvent('contextmenu', {clientX: b.left + b.width / 10, clientY: b.top + 50, cancelable: true}))")
    equal("menu", page.texts("#menu button span"), ["Zoom into it", "Callers and callees", "Only this and what it calls", "Leave its samples out",
                                                    "As one, with all that it calls", "Its source", "Copy its name"])
    page.click("#menu button:nth-of-type(3)")
    equal("only", names(), ["only function (app/deep.lua:7) and what it calls", "40 samples"])
    left, top, width = page.script("const b = canvas.getBoundingClientRect(); return [b.left, b.top, b.width]")
    page.pointer(left + width / 2, top + ROW * 1.5)
    contains("the only one", page.text("#detail"), "function (app/deep.lua:7): own 0.0 %, total 100.0 %, 40 samples")
    page.pointer(left + width / 2, top + ROW * 2.5)
    page.keys("body", "x")
    equal("without", names(), ["only function (app/deep.lua:7) and what it calls", "without leaf (app/deep.lua:9)", "0 samples"])
    address = page.script("await until(() => location.hash.includes('without')); return location.hash")
    page.open(address)
    equal("by address", len(names()), 3)
    page.keys("body", ESCAPE)
    equal("after Escape", names(), ["only function (app/deep.lua:7) and what it calls", "40 samples"])
    page.click("#applied button")
    equal("taken back", names(), [])
    page.open("#view=table&edits=single.999_only.-1_what.0&range=7_x&fold=maybe")   # what is not in this page is ignored
    equal("nothing is applied", names(), [])
    page.keys("#filter", "function (")
    page.click("#table tbody .name")
    page.keys("body", "k")
    equal("as one", names()[0], "function (app/deep.lua:7) with all that it calls as one")
    page.script("filter.value = ''; filter.dispatchEvent(new Event('input'))")
    rows = {row[4]: row[:2] for row in page.script("return all('#table tbody tr').map(r => [...r.cells].map(c => c.textContent))")}
    equal("it has what it calls", (rows["function (app/deep.lua:7)"], rows["leaf (app/deep.lua:9)"]), (["40.0 %", "40.0 %"], ["20.0 %", "20.0 %"]))
    page.keys("body", ESCAPE)
    page.keys("body", "1")


def check_source(page, pictures):
    page.open("#source=true")
    lines = lambda: page.script("return all('#source-lines tr').map(r => [...r.cells].map(c => c.textContent))")
    found = lines()
    equal("lines", len(found), 13)
    equal("a text", found[0], ["", "", "1", "-- </script><b>"])
    equal("the deep line once", found[2], ["10.0 %", "30.0 %", "3", "  return (down(n - 1))"])
    equal("own", (found[5][:2], found[8][:2], found[12][:2]), (["30.0 %", "30.0 %"], ["60.0 %", "60.0 %"], ["", "70.0 %"]))
    page.browser.screenshot(pictures / "source.png")
    page.keys("body", "t")   # lines: function (app/deep.lua:7) and :8 are two boxes
    page.settle()
    left, top, width = page.script("const b = canvas.getBoundingClientRect(); return [b.left, b.top, b.width]")
    page.pointer(left + width * 0.75, top + ROW * 1.5)
    contains("a line's box", page.text("#detail"), "main chunk (app/deep.lua:12): own 0.0 %, total 30.0 %")
    page.keys("body", "t")
    page.script("all('[data-view=left]')[0].click()")
    page.open(f"#source=true&edits=without.{page.data.texts.index('down (app/deep.lua:2)')}")
    equal("costs are of what is shown", lines()[2][:2], ["", ""])


def check_kinds(page):
    """A box has the colour of what it does itself: 5 samples of the collector in `leaf`, which `walk` has called, are all of `walk`'s."""
    walk, leaf = ("walk (tree.lua:3)",), ("walk (tree.lua:3)", "leaf (tree.lua:9)")
    is_lua = lambda colour: colour[1] > 160   # the collector's is darker in green
    page.settle()
    equal("left heavy", (is_lua(page.colour(walk)), is_lua(page.colour(leaf))), (True, False))
    page.keys("body", "2")
    page.settle()
    width = page.script("return canvas.clientWidth")
    equal("in the order of time", [is_lua(page.script("return colourAt(arguments[0], arguments[1])", width * 54.5 / 57, 22 + ROW * row + 2)) for row in (1, 2)], [True, False])
    page.keys("body", "1")


def check_gaps(page):
    """What is white in the order of time is explained, and only that."""
    page.keys("body", "2")
    page.settle()
    left, top, width = page.script("const b = canvas.getBoundingClientRect(); return [b.left, b.top, b.width]")
    at = lambda ms, row: page.pointer(left + width * ms / 1000, top + 22 + ROW * (row + 0.5))
    causes = "threads slept at 1,234 ticks, waited for a CPU at 3 ticks, 2 looks were lost or left out"
    for row in (1, 2):
        at(350, row)
        equal("a gap", page.text("#tip"), f"main (thread 1) has no sample from 200 ms to 500 ms. In the whole recording: {causes}.")
    contains("legend", page.text("#legend"), f"no sample: {causes}")
    at(700, 2)   # no box, but a sample
    equal("no gap", page.script("return document.getElementById('tip').hidden"), True)
    page.keys("body", "1")
    equal("legend of what has no order", "no sample" in page.text("#legend"), False)


def check_room(page):
    """In a window of 1,280 pixels the tools are in one row, and nothing of the header is cut."""
    equal("tools", page.script("const t = all('.tools > *').filter(e => e.offsetHeight); return new Set(t.map(e => Math.round((e.getBoundingClientRect().top + e.getBoundingClientRect().bottom) / 2 / 8))).size"), 1)
    equal("inside", page.script("return innerWidth - Math.max(...all('.tools > *').map(e => e.getBoundingClientRect().right)) >= 0"), True)
    equal("statistics are folded", page.script("return document.getElementById('facts').hidden"), True)
    equal("the title is whole", page.script("const h = document.querySelector('h1'); return h.scrollWidth <= h.clientWidth && h.scrollHeight <= h.clientHeight + 1"), True)
    page.keys("body", "a")
    equal("statistics on demand", page.script("return document.getElementById('facts').hidden"), False)
    page.keys("body", "a")


def check_modes(page):
    """What each mode shows is what base/mode.cpp says."""
    rows = lambda: {row[4]: row[2:4] for row in page.script("return all('#table tbody tr').map(r => [...r.cells].map(c => c.textContent))")}
    page.keys("body", "3")
    lua = {"main chunk (parts.lua)": ["5", "15"], "work (parts.lua:3)": ["0", "10"]}
    merged = {**lua, "string.gsub [C]": ["0", "10"], "main (lua5.4)": ["0", "17"], "match (lua5.4)": ["12", "12"], "[start of the process]": ["3", "3"]}
    equal("C and Lua", rows(), merged)
    page.keys("body", "v")
    everything = {**merged, "main chunk (parts.lua)": ["0", "15"], "_start (lua5.4)": ["3", "20"], "pmain [C]": ["0", "15"], "luaV_execute (lua5.4)": ["5", "15"]}
    del everything["[start of the process]"]
    equal("everything", rows(), everything)
    page.keys("body", "v")
    equal("Lua only", rows(), {**lua, "string.gsub [C]": ["10", "10"], "[outside of Lua]": ["5", "5"]})
    equal("said", page.script("return document.querySelector('#mode').selectedOptions[0].textContent"), "Lua only")
    address = page.script("await until(() => location.hash.includes('mode=lua')); return location.hash")
    page.open(address)
    equal("by address", "match (lua5.4)" in rows(), False)
    page.choose("mode", "merged")
    equal("C and Lua again", rows(), merged)


def check_range(page, pictures):
    page.keys("body", "2")
    page.settle()
    page.browser.screenshot(pictures / "busy.png")
    contains("summed", page.text("#crumbs"), "each 5.00 s summed")
    left, top, width = page.script("const b = canvas.getBoundingClientRect(); return [b.left, b.top, b.width]")
    page.script("document.getElementById('canvas').focus({focusVisible: true})")
    page.keys("#canvas", DOWN + RIGHT)
    focused = page.text("#detail")
    page.keys("#canvas", ENTER)
    page.settle()
    # The box is a share of a column of 5 s; the samples in it are somewhere in these.
    equal("zoomed by key", (page.texts("#crumbs button")[-1], page.text("#detail").split(":")[:2]), (focused.split(": ")[0], focused.split(":")[:2]))
    if "each 5.00 s summed" in page.text("#crumbs"):
        raise Failure("Enter has not zoomed")
    page.script("await until(() => location.hash.includes('zoom'))")
    page.keys("#canvas", ESCAPE)
    page.keys("body", "0")
    page.settle()
    y = top + 22 + ROW * 1.5
    page.pointer(left + 5, y + ROW)
    contains("a sum", page.text("#detail"), "second (busy.lua:2): 125 samples, 1.25 s")
    page.pointer(left + width / 2 - 5, y)
    contains("one box over all columns", page.text("#detail"), "main chunk (busy.lua): 6,000 samples, 60.0 s")
    drag = [{"type": "pointerMove", "duration": 0, "x": round(left + width / 2), "y": round(y)}, {"type": "pointerDown", "button": 0},
            {"type": "pointerMove", "duration": 0, "x": round(left + width * 3 / 4), "y": round(y)}, {"type": "pointerUp", "button": 0}]
    page.browser.call("POST", "/actions", {"actions": [{"type": "pointer", "id": "mouse", "parameters": {"pointerType": "mouse"}, "actions": drag}]})
    page.settle()
    [text, samples] = page.texts("#applied li > span")
    equal("range", (bool(re.fullmatch(r"(29\.9|30\.\d) s to (44\.9|45\.\d) s", text)), bool(re.fullmatch(r"1,(49|50)\d samples", samples))), (True, True))
    page.pointer(5, 5)
    page.keys("body", "3")
    rows = {row[4]: row[0] for row in page.script("return all('#table tbody tr').map(r => [...r.cells].map(c => c.textContent))")}
    equal("functions of the range", rows, {"second (busy.lua:2)": "75.0 %", "first (busy.lua:1)": "25.0 %", "main chunk (busy.lua)": "0.0 %"})
    page.open("#view=time&range=30000000_31000000&colour=state")
    equal("by address", page.texts("#applied li > span"), ["30.0 s to 31.0 s", "100 samples"])
    equal("legend of the range", page.texts("#legend .share"), ["100.0 %"])
    equal("single samples", page.script("return all('.sums').length"), 0)
    left, top = page.script("const b = canvas.getBoundingClientRect(); return [b.left, b.top]")
    page.pointer(left + 5, top + 22 + ROW * 2.5)
    contains("one sample", page.text("#detail"), "first (busy.lua:1): 1 samples, 10 ms, from 30.0 s")
    page.keys("body", ESCAPE)
    equal("after Escape", page.texts("#applied li"), [])
    for view in ("table", "left", "time", "bottom"):
        page.open(f"#view={view}&range=1_2")   # before the first sample ends: nothing of it
        page.keys("body", "hx0")
        page.quiet()
    page.open("#view=table&range=1_2")
    equal("nothing", (page.texts("#table tbody tr"), page.text("#chosen"), page.texts("#callers li"), page.texts("#callees li")), ([], "no samples", [], []))
    page.keys("body", ESCAPE)
    equal("all again", len(page.texts("#table tbody tr")), 3)


def heat_at(page, column, row):
    """The middle of a cell of the heatmap, by its width; rows from the bottom up."""
    left, top = page.script("const b = document.getElementById('heat-canvas').getBoundingClientRect(); return [b.left, b.top]")
    return lambda width: (left + 46 + width * (column + 0.5), top + 3 * (49 - row) + 1)


def check_heat(page, pictures):
    """Seconds by 20 ms; what is chosen in it is the range of all views."""
    page.open()
    equal("folded away", page.script("return document.getElementById('heat').hidden"), True)
    page.keys("body", "w")
    page.settle()
    page.browser.screenshot(pictures / "heat.png")
    contains("its words", page.text("#heat-note"), "Each column is 1.00 s, from the bottom up; each cell 20 ms:")
    width = 20   # pixels of a column: 60 of them in a window of 1,280
    page.pointer(*heat_at(page, 30, 25)(width))
    equal("told of a cell", (page.text("#tip"), page.text("#detail")), ("30.50 s to 30.52 s: 2 samples",) * 2)
    page.pointer(*heat_at(page, 30, 25)(width), "pointerDown", "pointerUp")
    equal("a click", page.texts("#applied li > span"), ["30.50 s to 30.52 s", "2 samples"])
    (x, y), (to, up) = heat_at(page, 14, 0)(width), heat_at(page, 15, 24)(width)
    drag = [{"type": "pointerMove", "duration": 0, "x": round(x), "y": round(y)}, {"type": "pointerDown", "button": 0},
            {"type": "pointerMove", "duration": 0, "x": round(to), "y": round(up)}, {"type": "pointerUp", "button": 0}]
    page.browser.call("POST", "/actions", {"actions": [{"type": "pointer", "id": "mouse", "parameters": {"pointerType": "mouse"}, "actions": drag}]})
    equal("a drag", page.texts("#applied li > span"), ["14.0 s to 15.5 s", "150 samples"])
    page.settle()
    page.browser.screenshot(pictures / "heat-range.png")
    left, top, graph = page.script("const b = canvas.getBoundingClientRect(); return [b.left, b.top, b.width]")
    page.pointer(left + graph / 4, top + ROW * 2.5)
    contains("the graph of that part", page.text("#detail"), "first (busy.lua:1): own 74.7 %, total 74.7 %, 112 samples")
    address = page.script("await until(() => location.hash.includes('heat=true')); return location.hash")
    page.open(address)
    equal("by address", (page.script("return document.getElementById('heat').hidden"), page.texts("#applied li > span")), (False, ["14.0 s to 15.5 s", "150 samples"]))
    page.keys("body", "w")
    equal("folded again", page.script("return document.getElementById('heat').hidden"), True)
    page.keys("body", "w")
    equal("the keyboard is in it", page.script("return document.activeElement.id"), "heat-canvas")
    page.keys("#heat-canvas", RIGHT)
    contains("a second later", page.text("#detail"), "15.00 s to 15.02 s: 2 samples")
    page.browser.call("POST", "/actions", {"actions": [{"type": "key", "id": "keys", "actions": [
        {"type": step, "value": key} for step, key in (("keyDown", SHIFT), ("keyDown", UP), ("keyUp", UP), ("keyUp", SHIFT))]}]})
    contains("and more", page.text("#detail"), "15.00 s to 15.04 s: 4 samples")
    page.keys("#heat-canvas", ENTER)
    equal("chosen by key", page.texts("#applied li > span"), ["15.00 s to 15.04 s", "4 samples"])
    page.keys("#heat-canvas", ESCAPE)
    equal("taken back", page.texts("#applied li"), [])
    page.keys("body", "w")


def check_long_heat(page):
    """Columns are as coarse as is needed for some hundred of them, and the odd one is seen."""
    page.open("#heat=true")
    page.settle()
    contains("its words", page.text("#heat-note"), "Each column is 50.0 s, from the bottom up; each cell 1.00 s:")
    equal("inside", page.script("const c = document.getElementById('heat-canvas'); return [c.width <= innerWidth, document.documentElement.scrollWidth <= innerWidth]"), [True, True])
    page.pointer(*heat_at(page, 108, 0)(5))
    equal("the odd one", page.text("#tip"), "5400.0 s to 5401.0 s: 40 samples")
    page.pointer(*heat_at(page, 107, 0)(5))
    equal("another one", page.text("#tip"), "5350.0 s to 5351.0 s: 1 samples")
    red = lambda column, row: page.script("const pen = document.createElement('canvas').getContext('2d'), heat = document.getElementById('heat-canvas'); pen.drawImage(heat, 46 + 5 * arguments[0] + 1, 3 * (49 - arguments[1]) + 1, 1, 1, 0, 0, 1, 1); const d = pen.getImageData(0, 0, 1, 1).data; return d[0] - d[2]", column, row)
    equal("darker, pale, nothing", (red(108, 0) > 150, 10 < red(107, 0) < 100, abs(red(107, 5)) < 10), (True, True, True))


def check_small(page, pictures):
    """The graph has most of a small window, and nothing is wider than it."""
    for width, height in ((1000, 500), (420, 760), (1440, 900)):
        page.browser.call("POST", "/goog/cdp/execute", {"cmd": "Emulation.setDeviceMetricsOverride",
                                                        "params": {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}})
        page.open()
        page.settle()
        page.browser.screenshot(pictures / f"small-{width}.png")
        seen = page.script("return [canvas.clientHeight, document.documentElement.scrollWidth]")
        equal(f"at {width}x{height}", (seen[0] > height * 0.55, seen[1] <= width), (True, True))
    page.browser.call("POST", "/goog/cdp/execute", {"cmd": "Emulation.clearDeviceMetricsOverride", "params": {}})


def check_hostile(page):
    for view in "1243":
        page.keys("body", view)
    page.click("#table tbody .name")
    page.settle()
    equal("owned", page.script("return [window.owned === undefined, document.images.length, document.scripts.length, document.querySelectorAll('b').length]"), [True, 0, 3, 0])
    names = page.texts("#table tbody .name")
    contains("names", names, "</script><script>window.owned=1</script> (</script><script>window.owned=1</script>:1)")
    contains("names", names, "__proto__ (__proto__:1)")
    if any(ord(c) in range(0x202a, 0x202f) for name in names for c in name):
        raise Failure("a name turns the direction of text")


def check_large(page):
    times = [page.script("return performance.getEntriesByName('drawn')[0].startTime")]
    for view in ("time", "table"):
        page.open(f"#view={view}")
        times.append(page.script("return performance.getEntriesByName('drawn')[0].startTime"))
    if max(times) > 10_000:
        raise Failure(f"100,000 samples took {times} ms to open")
    return "100,000 samples open in {:.0f} ms, in the order of time in {:.0f}, as functions in {:.0f}".format(*times)


def report(args, *arguments):
    return subprocess.run([args.luaspy, "report", *arguments], check=True, capture_output=True, text=True, env={"LC_ALL": "C.UTF-8", "PATH": "/usr/bin:/bin"}).stdout


def same_numbers(what, found, expected, most=0.1001):
    """Rounding may go either way where both are equally near."""
    for name in expected.keys() | found.keys():
        ones, others = found.get(name), expected.get(name)
        if ones is None or others is None or any(abs(one - other) > most for one, other in zip(ones, others)):
            raise Failure(f"{what}: {name}: {ones} instead of {others}")


def check_report(browser, args, work, name):
    """The page of a recording says what `report` says of it."""
    report(args, str(work / f"{name}.luaspy"), "-o", str(work / f"{name}-page.html"))
    page = Page(browser, work, f"{name}-page")
    text = report(args, str(work / f"{name}.luaspy"), "--top", "1000")
    number = lambda words: float(words.replace(" %", "").replace(",", "").replace("<", ""))
    head, rest = text.split("%Own", 1)
    functions = rest.split("%Own", 1)[0]
    expected = {m[5]: tuple(float(m[i]) for i in (1, 2, 3, 4)) for m in re.finditer(r"^ +([\d.]+) +([\d.]+) +([\d.]+) +([\d.]+)  (.+)$", functions, re.M)}
    page.keys("body", "3")
    rows = page.script("return all('#table tbody tr').map(r => [...r.cells].map(c => c.textContent))")
    escaped = lambda function: re.sub(r"\\u00(..)", r"\\x\1", function)   # control characters
    same_numbers(f"functions of {name}", {escaped(row[4]): tuple(number(cell) for cell in row[:4]) for row in rows}, expected)
    facts = dict(zip(page.texts("#facts dt"), page.texts("#facts dd")))
    equal("samples", re.findall(r"(\d+) samples? of (\d+) thread", head), re.findall(r"(\d+) of (\d+) thread", facts["Samples"]))
    equal("rate", re.findall(r"looked ([\d.]+) times", head), re.findall(r"^([\d.]+) Hz", facts["Rate"]))
    lost = re.search(r"lost: (.*); [\d.]+ % of all looks", head)
    equal("lost", re.sub(r" \([^)]*\)", "", lost[1]) if lost else "nothing", facts["Lost"])
    asleep = re.search(r"asleep: at (\d+) tick", head)
    equal("asleep", asleep[1] if asleep else None, (re.search(r"asleep at (\d+) tick", facts["Samples"]) or [None, None])[1])
    stacks = re.search(r"stacks: ([\d.]+) % have Lua calls, ([\d.]+) %", head)
    same_numbers("stacks", {"": tuple(float(n) for n in re.findall(r"[\d.]+(?= %)", facts["Stacks"]))}, {"": tuple(float(stacks[i]) for i in (1, 2))})
    page.quiet()


def check_report_of_difference(browser, args, work):
    """The page of a difference says what `report --diff` says, also of functions that have moved."""
    both = ["--diff", str(work / "before.luaspy"), str(work / "after.luaspy")]
    report(args, *both, "-o", str(work / "moved.html"))
    rows = re.findall(r"^ +([\d.]+) +([\d.]+) +([-+][\d.]+) .*  (\S[^()]*\([^()]*\))(?: → (.+))?$", report(args, *both, "--top", "1000"), re.M)
    expected = {after or before: (float(a), float(c)) for b, a, c, before, after in rows}
    page = Page(browser, work, "moved")
    page.settle()
    main = "main chunk (moved.lua)"
    was = {after: before for _, _, _, before, after in rows if after}
    equal("moved", was, {"render (moved.lua:4)": "render (moved.lua:1)", "function (moved.lua:23)": "function (moved.lua:20)", "function (moved.lua:33)": "function (moved.lua:30)"})
    for after, before in was.items():
        page.point((main, after))
        contains("the tip says where it was", page.text("#tip"), f"before: {before}")
    red, _, blue = page.colour((main, "render (moved.lua:4)"))
    equal("what has less is blue", blue > red + 60, True)
    page.keys("body", "3")
    shown = page.script("return all('#table tbody tr').map(r => [...r.cells].map(c => c.textContent))")
    number = lambda cell: float(cell.replace(" %", "").replace("−", "-").replace("<", ""))
    same_numbers("difference", {row[4]: (number(row[0]), number(row[1])) for row in shown if row[4] != main}, expected)
    page.quiet()


def check_difference(page, pictures):
    main, slower, steady, gone = "main chunk (versions.lua)", "slower (versions.lua:4)", "steady (versions.lua:2)", "gone (versions.lua:6)"
    page.settle()
    page.browser.screenshot(pictures / "diff.png")
    check_room(page)
    contains("compared", page.text("#compared"), "what was before counts 1.20 times")
    page.point((main, slower))
    for text in ("total50.0 %40.0 %+10.0+25 %", "samples600400"):
        contains("tip of what became slower", page.text("#tip"), text)
    page.point((main, steady))
    contains("tip of what did not", page.text("#tip"), "total41.7 %50.0 %−8.3−17 %")
    page.pointer(5, 5)
    red, _, blue = page.colour((main, slower))
    equal("slower is orange", red > blue + 60, True)
    red, _, blue = page.colour((main, steady))
    equal("a smaller share is blue", blue > red + 60, True)
    page.choose("width", "before")
    page.point((main, gone), before=True)
    contains("tip of what is gone", page.text("#tip"), "total0.0 %10.0 %−10.0gone")
    page.keys("body", "3")
    rows = {row[4]: row[:2] for row in page.script("return all('#table tbody tr').map(r => [...r.cells].map(c => c.textContent))")}
    equal("what is fresh", rows["fresh (versions.lua:6)"], ["8.3 %", "+8.3"])


def check_weights(page, texts):
    """In bytes and objects, widths, shares and texts show the weights of samples, and there is no order of time."""
    work = ("main (lua5.4)", "main chunk (app/main.lua)", "work (app/main.lua:10)")
    page.settle()
    part, whole = sum(n for stack, n in page.data.samples().items() if stack[:3] == work), sum(page.data.samples().values())
    own = page.data.samples()[work]
    contains("facts", page.text("#facts"), f"Total{texts['fact']}")
    contains("threads", page.text("#thread"), f"all 2 ({texts['fact']})")
    page.point(work)
    contains("head of the tip", page.text("#tip"), f"{page.data.json['unit']}of allsamples")
    contains("tip", page.text("#tip"), f"own{texts['own']}{percent(own, whole)}3total{texts['total']}{percent(part, whole)}4")
    contains("tip", page.text("#tip"), f"garbage collector {percent(texts['collector'], part)}")
    contains("told", page.text("#detail"), f"own {percent(own, whole)}, total {percent(part, whole)}, 4 samples, {texts['told']}")
    legend = dict(zip(page.texts("#legend li span:nth-child(2)"), page.texts("#legend .share")))
    equal("legend", legend["garbage collector"], percent(texts["collector"], whole))
    equal("order of time", page.script("return document.querySelector('[data-view=time]').hidden"), True)
    page.keys("body", "2")
    equal("view", page.script("return document.querySelector('[data-view=left]').getAttribute('aria-pressed')"), "true")
    page.keys("body", "?")
    equal("help", page.text("#weighed"), f"Here samples count by the {page.data.json['unit']} that they stand for.")
    page.click("#help button")
    page.choose("thread", "1")
    page.point(())
    contains("one thread", page.text("#detail"), f'worker; "two" (thread 101): total {percent(texts["thread"], whole)}, 2 samples, ')
    page.choose("thread", "all")
    check_search(page, "gsub|work")
    page.keys("body", "3")
    rows = {row[4]: row[:4] for row in page.script("return all('#table tbody tr').map(r => [...r.cells].map(c => c.textContent))")}
    equal("a row", rows[work[2]], [percent(own, whole), percent(part, whole), texts["own"], texts["total"]])
    equal("its hint", page.script("return all('#table tbody tr').find(r => r.cells[4].textContent.startsWith('work')).cells[3].title"), "4 samples")
    equal("head of the column", page.script("return document.querySelector('#table th:nth-child(3)').title"), page.data.json["unit"])
    page.script("all('#table tbody .name').find(e => e.textContent.startsWith('work')).click()")
    equal("callers", page.texts("#callers .share"), [f"{texts['total']} · 100.0 %"])
    page.browser.screenshot(page.file.with_suffix(".png"))


def check_grown(page, measured):
    cache = ("main chunk (cache.lua)", "cache (cache.lua:2)")
    page.settle()
    equal("compared", page.text("#compared"), "Compared by bytes, as it was measured" if measured else "Compared by share of bytes: what was before counts 1.75 times")
    page.point(cache)
    contains("tip of what grew", page.text("#tip"), "total3.8 MiB976.6 KiB+2.9 MiB+300 %" if measured else "total57.1 %25.0 %+32.1+129 %")
    contains("tip of what grew", page.text("#tip"), "samples100100")
    page.pointer(5, 5)
    red, _, blue = page.colour(cache)
    equal("it is orange", red > blue + 60, True)
    page.quiet()


def check(args):
    args.work.mkdir(parents=True, exist_ok=True)
    work = args.work.resolve()
    subprocess.run([args.writer, work], check=True)
    with browse(work, HELPERS) as browser:
        page = Page(browser, work, "sample")
        check_first_sight(page, work)
        check_zoom(page)
        check_keys(page)
        check_search(page, "gsub|epoll")
        check_views(page, work)
        page.quiet()
        page = Page(browser, work, "recursive")
        check_kinds(page)
        check_search(page, "^leaf")
        check_functions(page, "walk (tree.lua:3)")
        page.browser.screenshot(work / "functions.png")
        page.quiet()
        page = Page(browser, work, "deep")
        check_folding(page, work)
        check_edits(page)
        check_source(page, work)
        check_small(page, work)
        page.quiet()
        page = Page(browser, work, "busy")
        check_range(page, work)
        check_heat(page, work)
        page.quiet()
        page = Page(browser, work, "hours")
        check_long_heat(page)
        page.quiet()
        page = Page(browser, work, "heaps")
        check_together(page)
        page.quiet()
        page = Page(browser, work, "gaps")
        check_gaps(page)
        page.quiet()
        page = Page(browser, work, "full")
        check_room(page)
        page.keys("#search", "work")   # which also shows a share
        equal("hidden tools", page.script("return all('.tools > *').filter(e => !e.offsetHeight).map(e => e.id)"), ["label-field", "width-field"])
        check_room(page)
        page.quiet()
        page = Page(browser, work, "labelled")
        check_labels(page)
        check_room(page)
        page.quiet()
        page = Page(browser, work, "parts")
        check_modes(page)
        page.quiet()
        page = Page(browser, work, "hostile")
        check_hostile(page)
        page.quiet()
        page = Page(browser, work, "large")
        said = check_large(page)
        page.quiet()
        page = Page(browser, work, "diff")
        [doubt] = page.texts("#doubts li")
        contains("doubt", doubt, "doubtful: after: Lua is in the process, but no sample has Lua")
        equal("the doubt is seen", page.script("const b = document.querySelector('#doubts li').getBoundingClientRect(); return b.width > 0 && b.height > 0 && b.bottom < 200"), True)
        check_difference(page, work)
        # `slower` has 10 % of the whole more, and a fifth of its own; `steady` has 8.3 % less, and a sixth.
        for name, seen in (("diff-small", ("slower (versions.lua:4)",)), ("diff-alike", ("slower (versions.lua:4)",))):
            page = Page(browser, work, name)
            page.settle()
            for function in ("slower (versions.lua:4)", "steady (versions.lua:2)"):
                red, _, blue = page.colour(("main chunk (versions.lua)", function))
                equal(f"{name}: {function}", abs(red - blue) > 40, function in seen)
        page = Page(browser, work, "diff-time")
        page.point(("main chunk (versions.lua)", "steady (versions.lua:2)"))
        contains("by time", page.text("#tip"), "total5.00 s5.00 s0 µs")
        page.quiet()
        page = Page(browser, work, "bytes")
        check_weights(page, {"fact": "4.0 MiB", "own": "1.5 MiB", "total": "1.5 MiB", "told": "1.5 MiB", "collector": 300_000, "thread": 4096})
        page.quiet()
        page = Page(browser, work, "objects")
        check_weights(page, {"fact": "6,226 objects", "own": "5,405", "total": "5,406", "told": "5,406 objects", "collector": 2000, "thread": 125})
        page.quiet()
        page = Page(browser, work, "instant")
        equal("legend of bytes", page.texts("#legend li span:nth-child(2)"), ["no function"])
        equal("no duration", bool(re.search(r"Recorded[-0-9: ]+ UTC, by luaspy", page.text("#facts"))), True)
        page.quiet()
        for name in ("sample", "after"):
            check_report(browser, args, work, name)
        check_report_of_difference(browser, args, work)
        for name in ("diff-bytes", "diff-bytes-measured"):
            check_grown(Page(browser, work, name), name.endswith("measured"))
    return said


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("writer", type=pathlib.Path, help="the program that writes the pages")
    parser.add_argument("luaspy", type=pathlib.Path, help="luaspy, whose report says the same as its pages")
    parser.add_argument("--work", type=pathlib.Path, required=True, help="directory for pages, log and pictures")
    parser.add_argument("--limit", type=int, default=120, help="seconds for the whole run")
    args = parser.parse_args()
    run_check("flame graph", args.limit, lambda: check(args))


if __name__ == "__main__":
    main()
