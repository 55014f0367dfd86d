#!/usr/bin/env python3
"""Load .heapsnapshot files into the loader of Chromium's own DevTools and compare what that finds.

check.py LUASPY SCRIPT TARGETS WORK NAME...: runs the script with each Lua of that name in TARGETS
(targets.tsv, luajits.tsv). luaspy writes the heap as .heapsnapshot and as JSON lines. Every object's own and
retained size, every reference and the classes of DevTools' summary have to be those of luaspy.

check.py --allocations LUASPY SCRIPT TARGETS WORK NAME: luaspy alloc writes what the script (kept_objects.lua)
keeps. DevTools has to show the right stack for each sampled object.

Chromium's port for debuggers serves the modules of its DevTools, so nothing has to be fetched.
"""
import collections
import ctypes
import json
import os
import pathlib
import struct
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from browser import Failure, Skipped, browse, run_check

# load(): the text of a file, as DevTools has it.
LOADER = """
const worker = await import('/devtools/entrypoints/heap_snapshot_worker/heap_snapshot_worker.js');
const load = async (text) => {
  const loader = new worker.HeapSnapshotLoader.HeapSnapshotLoader({sendEvent() {}});
  for (let at = 0; at < text.length; at += 100000) loader.write(text.slice(at, at + 100000));
  loader.close();
  await loader.parsingComplete;
  const channel = new MessageChannel();
  new worker.HeapSnapshot.SecondaryInitManager(channel.port2);
  return loader.buildSnapshot(channel.port1);
};
"""

# Returns everything of arguments[0] that is compared, as lists; of arguments[1], a later snapshot, what
# DevTools' comparison says.
LOAD = LOADER + """
const snapshot = await load(arguments[0]), later = await load(arguments[1]);
const nodes = [], edges = [];
for (const all = snapshot.allNodes(); all.hasNext(); all.next()) {
  const node = all.item();
  nodes.push([node.id(), node.type(), node.name(), node.className(), node.selfSize(), node.retainedSize(), node.distance()]);
  for (const own = node.edges(); own.hasNext(); own.next())
    edges.push([node.id(), own.edge.node().id(), own.edge.type(), String(own.edge.name())]);
}
const summary = Object.values(snapshot.aggregatesWithFilter({})).map(each => [each.name, each.count, each.self, each.maxRet]);
const diff = later.calculateSnapshotDiff(1, snapshot.aggregatesForDiff(later.interfaceDefinitions()));
return {nodes, edges, summary, total: snapshot.totalSize, strings: snapshot.getStatistics().v8heap.strings,
        changes: Object.values(diff).map(each => [each.name, each.addedCount, each.removedCount])};
"""

# Of arguments[0]: each object that has an allocation stack, and what DevTools sums up by functions.
LOAD_ALLOCATIONS = LOADER + """
const snapshot = await load(arguments[0]);
const objects = [];
for (const all = snapshot.allNodes(); all.hasNext(); all.next()) {
  const node = all.item(), stack = snapshot.allocationStack(node.nodeIndex);
  if (stack) objects.push([node.type(), node.name(), stack.map(each => [each.functionName, each.scriptName, each.line])]);
}
return {objects, functions: snapshot.allocationTracesTops().map(each =>
  [each.name, each.count, each.size, each.liveCount, each.liveSize])};
"""


def equal(found, expected, what):
    if found == expected:
        return
    if isinstance(found, (set, collections.Counter)):
        found, expected = found - expected, expected - found
    raise Failure(f"{what}: {str(found)[:400]}, not {str(expected)[:400]}")


def id_of(address):
    """As docs/heap-formats.md says."""
    return 2 * (int(address, 16) >> 3 & 0x7fffffff) + 1


class Heap:
    """What luaspy says, from its JSON lines."""

    def __init__(self, lines):
        self.root, *objects = lines
        self.live = {id_of(each["address"]): each for each in objects if not each.get("dead")}
        equal(len(self.live), self.root["live"], "live objects")

    def references(self):
        for number, its in self.live.items():
            for each in its["references"] + its.get("weak", []):
                to = id_of(each["to"])
                if to not in self.live:
                    continue
                yield number, to
                if "while" in each:
                    yield id_of(each["while"]), to

    def classes(self):
        """DevTools' name of each class, with count, own and retained bytes."""
        fixed = {"string": "(string)", "Lua function": "Function", "C function": "Function", "prototype": "(compiled code)",
                 "trace": "(compiled code)"}
        sums = collections.defaultdict(lambda: [0, 0])
        for its in self.live.values():
            if its["size"]:  # the main coroutine may have nothing of its own; DevTools leaves such nodes out
                of = sums[fixed.get(its["type"], its["class"])]
                of[0] += 1
                of[1] += its["size"]
        return {name: tuple(of) for name, of in sums.items()}


def compare(found, heap):
    objects = [node for node in found["nodes"] if node[0] in heap.live]
    roots = [node for node in found["nodes"] if node[0] not in heap.live]
    equal(len(objects), len(heap.live), "objects")
    equal(len({node[0] for node in objects}), len(objects), "different ids")
    equal([node[1] for node in roots], ["synthetic", "object", "synthetic", "synthetic"], "nodes beside the objects")
    equal(roots[2][4] + roots[3][4], heap.root["counter"] - heap.root["live_bytes"], "bytes beside the objects")
    equal(roots[3][4], heap.root["dead_bytes"], "bytes of garbage")
    equal({(node[0], node[4], node[5]) for node in objects},
          {(number, its["size"], its["retained"]) for number, its in heap.live.items()}, "id, own and retained size")
    equal(found["total"], heap.root["counter"], "bytes")
    state = roots[1][0]
    equal(collections.Counter((one, other) for one, other, _, _ in found["edges"] if one in heap.live),
          collections.Counter(heap.references()), "references")
    equal(collections.Counter(other for one, other, kind, _ in found["edges"] if one == state and kind == "internal"),
          collections.Counter(id_of(each["to"]) for each in heap.root["references"]), "roots")
    equal({name: (count, own) for name, count, own, _ in found["summary"] if name != "(synthetic)"}, heap.classes(), "classes")
    equal(found["strings"], sum(its["size"] for its in heap.live.values() if its["type"] == "string"), "bytes of strings")
    far = [node for node in objects if node[6] >= 100000000]
    equal(far, [], "objects that DevTools takes for the system's")


def known_objects(found, heap):
    """Objects of the script, as DevTools shows them."""
    summary = {name: (count, retained) for name, count, _, retained in found["summary"]}
    equal(summary["{body, id, when}"][0], 3000, "{body, id, when}")
    equal(summary["Account"][0], 100, "Account")
    equal(sum("coroutine of function (known_objects.lua:" in name and count for name, (count, _) in summary.items()), 20, "coroutines")
    names = {node[0]: node[2] for node in found["nodes"]}
    ways = collections.defaultdict(collections.Counter)
    for one, other, kind, name in found["edges"]:
        ways[names[other]][names[one], kind, name] += 1
    for body, edges in (("{entries}", {("property", "cachemod")}), ("push (known_objects.lua:11)", {("property", "push")})):
        equal({(kind, name) for (_, kind, name) in ways[body]} & edges, edges, f"references to {body}")
    kinds = collections.Counter((names[one], kind, name) for one, _, kind, name in found["edges"])
    equal(kinds["{body, id, when}", "property", "body"], 3000, "fields")
    equal(kinds["push (known_objects.lua:11)", "context", "queue"], 1, "upvalues")
    equal(kinds["Account", "internal", "metatable"], 100, "metatables")
    equal(sum(count for (one, kind, name), count in kinds.items()
              if one.startswith("coroutine of ") and kind == "context" and name.startswith("local mine of ")), 20, "locals")
    if kinds["{__mode}", "property", "__mode"] < 2:  # Lua's own libraries may have more
        raise Failure("weak tables without their modes")
    has_ephemerons = " 5.1" not in heap.root["lua"] and "LuaJIT" not in heap.root["lua"]
    weak = collections.Counter(kind for _, other, kind, _ in found["edges"] if kind == "weak")
    pairs = collections.Counter(name.split(" / ")[1].split(" (")[0] for _, _, kind, name in found["edges"]
                                if kind == "internal" and " / part of key " in name)
    equal(weak["weak"], 11, "weak references")  # a value, ten keys
    equal(pairs["part of key"], 20 if has_ephemerons else 0, "ephemerons")
    changes = {name: (added, removed) for name, added, removed in found["changes"]}
    equal(changes["{fresh}"], (150, 0), "new objects")
    equal({"{body, id, when}", "Account", "{next, value}"} & set(changes), set(), "classes with changes")


def luaspy_says(luaspy, pid, file):
    done = subprocess.run([luaspy, "heap", "--pid", str(pid), "-o", file], text=True, capture_output=True)
    if done.returncode:
        raise Failure(f"luaspy heap -o {file}: {done.stderr}")
    return pathlib.Path(file).read_text(encoding="utf-8")


def heaps(command, luaspy, script, work):
    """The files of a Lua that waits for its input: two snapshots, and lines for the first."""
    with subprocess.Popen([*command, script.name], cwd=script.parent, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as lua:
        if lua.stdout.readline() != "READY\n":
            raise Failure(f"{command[-1]} has not run the script")
        snapshot = luaspy_says(luaspy, lua.pid, work / "known.heapsnapshot")
        lines = luaspy_says(luaspy, lua.pid, work / "known.jsonl")
        lua.stdin.write("\n")
        lua.stdin.flush()
        lua.stdout.readline()
        later = luaspy_says(luaspy, lua.pid, work / "later.heapsnapshot")
        lua.communicate("\n")
    return snapshot, later, Heap([json.loads(line) for line in lines.splitlines()])


def has_breakpoints():
    """Whether this machine lets a process trap itself (linux/perf_event.h, version 1 of perf_event_attr)."""
    size, breakpoint, exclude_kernel, execute, perf_event_open = 72, 5, 1 << 5, 4, 298
    function = ctypes.cast(ctypes.CDLL(None).getpid, ctypes.c_void_p).value
    attributes = struct.pack("=IIQQQQQIIQQ", breakpoint, size, 0, 0, 0, 0, exclude_kernel, 0, execute, function, 8)
    descriptor = ctypes.CDLL(None, use_errno=True).syscall(perf_event_open, attributes, 0, -1, -1, 0)
    if descriptor >= 0:
        os.close(descriptor)
    return descriptor >= 0


def compare_stacks(found, script):
    """How many objects have a stack, by who has made them; each must have the right one."""
    lines = script.read_text().splitlines()

    def function(name):
        line = next(i for i, text in enumerate(lines, 1) if text.startswith(f"local function {name}("))
        return [f"{name} ({script.name}:{line})", script.name, line]

    makers = {("object", "{number}"): "make_table", ("object", "upvalue"): "make_function", ("closure", ""): "make_function"}
    counts = collections.Counter()
    for kind, name, stack in found["objects"]:
        maker = makers.get((kind, "" if kind == "closure" else name))
        equal(stack[:3], [function(maker), function("keep"), [f"main chunk ({script.name})", script.name, 0]], f"stack of {name}")
        equal(stack[-1], ["(root)", "", 0], "the end of a stack")
        counts[maker] += 1
    functions = {name: numbers for name, *numbers in found["functions"]}
    for maker, count in counts.items():
        allocated, size, live, live_size = functions[function(maker)[0]]
        equal(live, count, f"sampled objects of {maker}")
        if not allocated > live or not size > live_size:
            raise Failure(f"{maker}: {allocated} objects of {size} bytes are less than what was sampled")
    return counts


def check_allocations(browser, luaspy, script, command, work):
    """On a busy machine a recording may have few samples, by chance none of one function: so there are some."""
    counts = collections.Counter()
    for _ in range(5):
        counts += compare_stacks(allocations(browser, luaspy, script, command, work), script)
        if set(counts) == {"make_table", "make_function"}:
            return ", ".join(f"{count} objects of {maker}" for maker, count in counts.items())
    raise Failure(f"objects with a stack: {dict(counts)}")


def allocations(browser, luaspy, script, command, work):
    """What DevTools finds in a recording of the script."""
    file = work / "kept.heaptimeline"
    with subprocess.Popen([*command, script.name], cwd=script.parent, stdout=subprocess.PIPE, text=True) as lua:
        try:
            if lua.stdout.readline() != "READY\n":
                raise Failure(f"{command[-1]} has not run the script")
            done = subprocess.run([luaspy, "alloc", "--pid", str(lua.pid), "-d", "3", "--max-cost", "30", "-o", file],
                                  text=True, capture_output=True)
        finally:
            lua.kill()
    if not has_breakpoints() and "luaspy heap --every needs none" in done.stderr:
        raise Skipped("no process may have a hardware breakpoint here: no debug registers, or perf events are not allowed")
    if done.returncode:
        raise Failure(f"luaspy alloc -o {file}: {done.stderr}")
    return browser.run(LOAD_ALLOCATIONS, file.read_text(encoding="utf-8"))


def check(luaspy, script, targets, work, names, allocations):
    work.mkdir(parents=True, exist_ok=True)
    commands = dict(line.split("\t")[0:4:3] for file in ("targets.tsv", "luajits.tsv") for line in (targets / file).read_text().splitlines())
    said = []
    with browse(work) as browser:
        address = browser.capabilities["goog:chromeOptions"]["debuggerAddress"]
        browser.call("POST", "/url", {"url": f"http://127.0.0.1:{address.split(':')[1]}/json/version"})
        for name in names:
            try:
                if allocations:
                    said.append(f"{name}: {check_allocations(browser, luaspy, script, commands[name].split(), work)}")
                    continue
                snapshot, later, heap = heaps(commands[name].split(), luaspy, script, work)
                found = browser.run(LOAD, snapshot, later)
                compare(found, heap)
                known_objects(found, heap)
            except Failure as failure:
                raise Failure(f"{name}: {failure}") from None
            said.append(f"{name}: {len(heap.live)} objects, {len(found['edges'])} edges, {len(found['summary'])} classes")
    return "; ".join(said)


def main():
    allocations = sys.argv[1] == "--allocations"
    luaspy, script, targets, work, *names = sys.argv[1 + allocations:]
    luaspy, script, targets, work = (pathlib.Path(argument).resolve() for argument in (luaspy, script, targets, work))
    run_check("heapsnapshot", 240, lambda: check(luaspy, script, targets, work, names, allocations))


if __name__ == "__main__":
    main()
