"""check.py FOLDER PROFILE_PROTO CALLGRIND_ANNOTATE GOLDEN: reads what write_formats wrote into FOLDER with other programs: pprof with protoc and pprof's
own schema, callgrind with callgrind_annotate, chrometrace and firefox as JSON by the rules of their documentation. The results must agree with the
profile. GOLDEN is a folder: NAME.pprof.txt is a profile's pprof as protoc shows it; LUASPY_UPDATE_GOLDEN=1 writes it again."""
import collections
import gzip
import json
import os
import pathlib
import re
import subprocess
import sys
import xml.etree.ElementTree


def equal(found, expected, what):
    if found != expected:
        if isinstance(found, dict) and isinstance(expected, dict):
            found, expected = ({key: one[key] for key in one if key not in other or other[key] != one[key]} for one, other in ((found, expected), (expected, found)))
        sys.exit(f"{what}: {str(found)[:500]}, not {str(expected)[:500]}")


def costs(facts, key, own, total):
    """The costs in the profile, by function."""
    return {function[key]: (function[own], function[total]) for function in facts["functions"]}


class Sums:
    """Own and total costs by function, from stacks of functions, outermost first."""

    def __init__(self):
        self.costs = collections.defaultdict(lambda: (0, 0))

    def add(self, stack, cost):
        for function in set(stack):
            own, total = self.costs[function]
            self.costs[function] = own + (cost if stack[-1] == function else 0), total + cost


# ---------------------------------------------------------------- pprof

def text_format(text):
    """A message as protoc --decode shows it: by field name, all values of that field."""
    escapes = {b"n": b"\n", b"t": b"\t", b"r": b"\r"}

    def one(match):
        return escapes.get(match[1]) or (bytes([int(match[1], 8)]) if match[1].isdigit() else match[1])

    def unescaped(string):
        return re.sub(rb"\\([0-7]{3}|.)", one, string.encode()).decode()

    stack = [collections.defaultdict(list)]
    for line in text.splitlines():
        line = line.strip()
        if line == "}":
            stack.pop()
        elif line.endswith(" {"):
            message = collections.defaultdict(list)
            stack[-1][line[:-2]].append(message)
            stack.append(message)
        else:
            name, value = line.split(": ", 1)
            stack[-1][name].append(unescaped(value[1:-1]) if value.startswith('"') else value == "true" if value in ("true", "false") else int(value))
    assert len(stack) == 1
    return stack[0]


def check_pprof(path, facts, proto, golden):
    packed = path.read_bytes()
    equal(packed[4:8], bytes(4), "time in the gzip header")
    text = subprocess.run(["protoc", f"--proto_path={proto.parent}", "--decode=perftools.profiles.Profile", proto.name], input=gzip.decompress(packed),
                          stdout=subprocess.PIPE, check=True).stdout.decode()
    assert not re.search(r"^\s*\d+:", text, re.M), "a field that the schema does not have"
    if golden and os.environ.get("LUASPY_UPDATE_GOLDEN"):
        golden.write_text(text)
    if golden:
        equal(text, golden.read_text(), str(golden))
    profile = text_format(text)
    strings = profile["string_table"]
    equal(strings[0], "", "the first string")

    def string(message, field):
        return strings[message[field][0]] if message[field] else ""

    def by_id(messages):
        found = {message["id"][0]: message for message in messages}
        assert len(found) == len(messages) and 0 not in found
        return found

    weight = {"nanoseconds": ("time", "nanoseconds"), "bytes": ("space", "bytes"), "objects": ("objects", "count")}[facts["unit"]]
    equal([(string(type, "type"), string(type, "unit")) for type in profile["sample_type"]], [("samples", "count"), weight], "sample types")
    equal(strings[profile["default_sample_type"][0]], weight[0], "default_sample_type")
    [period_type] = profile["period_type"]
    equal((string(period_type, "type"), string(period_type, "unit")), weight, "period_type")
    equal(profile["time_nanos"], [facts["started_s"] * 10**9], "time_nanos")
    equal(profile["duration_nanos"], [facts["duration_ns"]], "duration_nanos")
    equal(profile["period"], [round(1e9 / facts["rate"])] if facts["unit"] == "nanoseconds" else [], "period")
    mappings, functions, locations = by_id(profile["mapping"]), by_id(profile["function"]), by_id(profile["location"])
    samples, weights, threads, states = Sums(), Sums(), collections.Counter(), collections.Counter()
    lines = collections.Counter()
    for location in locations.values():
        assert len(location["line"]) == 1 and all(mapping in mappings for mapping in location["mapping_id"])
    for sample in profile["sample"]:
        used = [locations[id] for id in reversed(sample["location_id"])]
        stack = [string(functions[location["line"][0]["function_id"][0]], "name") for location in used]
        count, weight = sample["value"]
        samples.add(stack, count)
        weights.add(stack, weight)
        labels = {string(label, "key"): string(label, "str") for label in sample["label"]}
        equal(set(labels), {"thread", "tid", "process", "pid", "vm_state", "state"}, "labels")
        threads[labels["thread"], labels["tid"], labels["pid"]] += count
        states[{"sleeping": "asleep", "running": labels["vm_state"]}.get(labels["state"], labels["state"])] += count
        if stack:
            lines[stack[-1], (used[-1]["line"][0]["line"] or [0])[0]] += count
    equal(dict(samples.costs), costs(facts, "text", "own", "total"), "samples")
    equal(dict(weights.costs), costs(facts, "text", "own_weight", "total_weight"), "weights")
    equal(dict(states), facts["states"], "states")
    equal(dict(threads), {(thread["text"], str(thread["tid"]), str(thread["pid"])): thread["samples"] for thread in facts["threads"]}, "threads")
    equal(dict(lines), {(function["text"], int(line)): count for function in facts["functions"] for line, count in function["lines"].items()}, "lines")


# ---------------------------------------------------------------- callgrind

def check_callgrind(path, facts, annotate):
    def shown(*options):
        run = subprocess.run(["perl", annotate, "--auto=no", "--threshold=100", "--show-percs=no", *options, path], stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=True)
        equal(run.stderr.decode(), "", "complaints of callgrind_annotate")
        functions = {}
        for line in run.stdout.decode().split("file:function", 1)[1].splitlines()[2:]:
            found = re.match(r" *([\d,]+) +([\d,]+)  (.*) \[[^\[]*\]$", line)
            if found:
                assert found[3] not in functions, f"twice: {found[3]}"
                functions[found[3]] = tuple(int(number.replace(",", "")) for number in found.group(1, 2))
        totals = re.search(r"^ *([\d,]+) +([\d,]+)  PROGRAM TOTALS$", run.stdout.decode(), re.M)
        equal(tuple(int(number.replace(",", "")) for number in totals.group(1, 2)), (facts["samples"], facts["weight"]), "totals")
        return functions

    def expected(samples, weight):
        return {function["text"]: (function[samples], function[weight]) for function in facts["functions"] if function[samples] > 0}

    def without_file(functions, threads):
        """callgrind_annotate prepends its file to a function, and that may contain colons too."""
        texts = sorted((function["text"] for function in facts["functions"]), key=len, reverse=True)
        found = {}
        for name, cost in functions.items():
            if name.startswith("???:thread "):
                threads[name[len("???:"):]] = cost
                continue
            text = next((text for text in texts if name.endswith(":" + text)), name)
            found[text] = cost
        return found

    own = without_file(shown(), {})
    equal({name: cost for name, cost in own.items() if cost[0] > 0}, expected("own", "own_weight"), "own costs")
    threads = {}
    equal(without_file(shown("--inclusive=yes"), threads), expected("total", "total_weight"), "inclusive costs")
    equal(threads, {f"thread {thread['text']} ({thread['tid']})": (thread["samples"], thread["weight"]) for thread in facts["threads"]}, "threads")


# ---------------------------------------------------------------- chrometrace

def heaps_of(facts):
    """Times (ns) and bytes, by process and name."""
    return {(heap["pid"], heap["name"]): [tuple(value) for value in heap["values"]] for heap in facts["heaps"]}


def marks_of(facts):
    """In the order of time."""
    return sorted(((mark["at_ns"], mark["pid"], mark["kind"], mark["place"], mark["number"], mark["text"]) for mark in facts["marks"]), key=lambda mark: mark[0])


def title_of(kind, place, number):
    return " ".join(part for part in (kind, str(number) if kind == "trace" else "", place) if part)


def check_chrometrace(path, facts):
    trace = json.loads(path.read_text())
    instants = []
    tracks, names, processes, counters = collections.defaultdict(list), {}, {}, collections.defaultdict(list)
    for event in trace["traceEvents"]:
        place = event["pid"], event["tid"]
        if event["ph"] == "M":
            (names if event["name"] == "thread_name" else processes if event["name"] == "process_name" else {})[place] = event["args"].get("name")
            continue
        if event["ph"] == "i":
            args = event["args"]
            equal((event["s"], event["cat"], event["tid"]), ("p", "compiler", event["pid"]), "an instant event")
            equal(set(args) - {"failed attempts", "why", "link"}, set(), "what an instant event says")
            instants.append((round(event["ts"] * 1000), event["pid"], event["name"], args.get("failed attempts"), args.get("why", args.get("link", ""))))
            continue
        if event["ph"] == "C":
            [[unit, value]] = event["args"].items()
            counters[event["pid"], event["name"], unit].append((round(event["ts"] * 1000), value))
            continue
        tracks[place].append(event)
    equal({pid for pid, _ in processes}, {pid for pid, _ in names}, "processes with a name")
    equal(instants, [(at, pid, title_of(kind, place, number), number if kind in ("abort", "blacklisted") else None, text)
                     for at, pid, kind, place, number, text in marks_of(facts)], "marks")
    times, states = Sums(), collections.Counter()
    for place, events in tracks.items():
        is_state = names[place].endswith(": state")
        open_slices, last = [], 0
        for event in events:
            time = round(event["ts"] * 1000)
            assert time >= last, f"{place}: back in time at {event}"
            if open_slices and is_state:
                states[open_slices[-1]] += time - last
            elif open_slices:
                times.add(open_slices, time - last)
            last = time
            if event["ph"] == "B":
                open_slices.append(event["name"])
            else:
                equal(event["ph"], "E", "phase")
                open_slices.pop()
            assert not is_state or len(open_slices) <= 1
        assert not open_slices, f"{place}: never ends"
    equal(dict(times.costs), costs(facts, "json", "own_weight", "total_weight"), "times")
    equal(sum(states.values()), facts["weight"], "times of states")
    equal(set(states), set(facts["states"]), "states")
    equal({(pid, name): values for (pid, name, unit), values in counters.items() if unit == "bytes"}, heaps_of(facts), "heaps")
    equal({(pid, name): values[-1][1] for (pid, name, unit), values in counters.items() if unit == "at least"},
          {(heap["pid"], heap["name"] + ": collector cycles"): heap["cycles"] for heap in facts["heaps"]}, "cycles")
    equal(sorted(names.values()), sorted(f"{thread['name']} ({thread['tid']}){end}" for thread in facts["threads"] for end in ("", ": state")), "tracks")


# ---------------------------------------------------------------- firefox

# src/types/profile.ts of github.com/firefox-devtools/profiler, for version 56: the columns of each
# table, and the tables to which they refer.
TABLES = {
    "stackTable": {"frame": "frameTable", "prefix": "stackTable"},
    "frameTable": {"address": None, "inlineDepth": None, "category": "categories", "subcategory": None, "func": "funcTable", "nativeSymbol": "nativeSymbols",
                   "innerWindowID": None, "line": None, "column": None},
    "funcTable": {"name": "strings", "isJS": None, "relevantForJS": None, "resource": None, "fileName": "strings", "lineNumber": None, "columnNumber": None},
    "resourceTable": {"lib": None, "name": "strings", "host": None, "type": None},
    "nativeSymbols": {"libIndex": None, "address": None, "name": "strings", "functionSize": None},
    "markers": {"data": None, "name": "strings", "startTime": None, "endTime": None, "phase": None, "category": "categories"},
    "samples": {"stack": "stackTable", "timeDeltas": None, "weight": None},
}
COLORS = {"transparent", "purple", "green", "orange", "yellow", "lightblue", "blue", "brown", "magenta", "red", "lightred", "darkgrey", "grey"}
CATEGORY_OF_STATE = {"machine code": "Machine code of LuaJIT", "garbage collector": "Garbage collector", "asleep": "Idle", "waiting for a CPU": "Idle"} | {
    state: "LuaJIT's compiler" for state in ("trace exit", "recorder", "optimiser", "assembler")}


def check_firefox_tables(thread, categories, strings):
    sizes = {name: thread[name]["length"] for name in TABLES} | {"strings": len(strings), "categories": len(categories)}
    for table, columns in TABLES.items():
        equal(set(thread[table]) - {"length", "weightType"}, set(columns), f"columns of {table}")
        for column, points_into in columns.items():
            values = thread[table][column]
            equal(len(values), sizes[table], f"length of {table}.{column}")
            assert points_into is None or all(value is None or type(value) is int and 0 <= value < sizes[points_into] for value in values), f"{table}.{column}"
    assert all(prefix is None or prefix < stack for stack, prefix in enumerate(thread["stackTable"]["prefix"])), "a stack before the one that it continues"
    frames = thread["frameTable"]
    assert all(sub < len(categories[category]["subcategories"]) for category, sub in zip(frames["category"], frames["subcategory"]))


def check_markers(profile, facts):
    """RawMarkerTable and MarkerSchema in src/types of the same."""
    strings, markers = profile["shared"]["stringArray"], []
    schemas = {schema["name"]: schema for schema in profile["meta"]["markerSchema"]}
    for thread in profile["threads"]:
        table = thread["markers"]
        for i, data in enumerate(table["data"]):
            fields = schemas[data["type"]]["fields"]
            assert all(set(field) == {"key", "label", "format"} for field in fields), fields
            equal(set(data) - {"type"} - {field["key"] for field in fields}, set(), "fields of a marker that its schema does not have")
            equal((table["phase"][i], table["endTime"][i]), (0, None), "an instant marker")
            markers.append((round(table["startTime"][i] * 10**6), int(thread["pid"]), strings[table["name"][i]], data.get("place", ""),
                            data.get("attempts", data.get("trace", 0)), data.get("what", "")))
    equal(sorted(markers), sorted((at, pid, "LuaJIT " + kind, place, number, text) for at, pid, kind, place, number, text in marks_of(facts)), "markers")


def check_firefox(path, facts):
    profile = json.loads(path.read_text())
    meta, strings = profile["meta"], profile["shared"]["stringArray"]
    equal((meta["preprocessedProfileVersion"], meta["interval"], meta["startTime"], meta["symbolicated"]), (56, 1000 / facts["rate"], facts["started_s"] * 1000, True), "meta")
    check_markers(profile, facts)
    categories = meta["categories"]
    assert {category["color"] for category in categories} <= COLORS and all(category["subcategories"][0] == "Other" for category in categories)
    equal(next(category["name"] for category in categories if category["color"] == "grey"), "Other", "default category")
    assert len(set(strings)) == len(strings)
    of_time = facts["unit"] == "nanoseconds"   # samples are counted; else they have weights
    sums, of_categories, threads, total_ns = Sums(), collections.Counter(), {}, 0
    for thread in profile["threads"]:
        check_firefox_tables(thread, categories, strings)
        assert type(thread["pid"]) is str and type(thread["tid"]) is int
        equal(thread["samples"]["weightType"], "bytes" if facts["unit"] == "bytes" else "samples", "weightType")
        frames, functions, table, samples = thread["frameTable"], thread["funcTable"], thread["stackTable"], thread["samples"]

        def function(frame):
            id = frames["func"][frame]
            file = functions["fileName"][id]
            return strings[functions["name"][id]], "" if file is None else strings[file], functions["lineNumber"][id] or 0

        chains, time = {None: []}, 0
        for stack, prefix in enumerate(table["prefix"]):
            chains[stack] = chains[prefix] + [function(table["frame"][stack])]
        times = []
        for stack, delta, weight in zip(samples["stack"], samples["timeDeltas"], samples["weight"]):
            assert delta >= 0 and weight >= 0
            time += delta
            times.append(time)
            sums.add(chains[stack], weight)
            of_categories[categories[frames["category"][table["frame"][stack]]]["name"] if stack is not None else None] += weight
        threads[thread["name"], thread["tid"], thread["pid"]] = sum(samples["weight"])
        # The last sample lasts to the end; entries without weight mark times without samples.
        total_ns += sum(round((until - at) * 10**6) for at, until, weight in zip(times, times[1:], samples["weight"]) if weight)
    equal(dict(sums.costs), {(function["name"], function["file"], function["line_defined"]): (function["own" if of_time else "own_weight"], function["total" if of_time else "total_weight"])
                             for function in facts["functions"]}, "costs")
    equal(threads, {(thread["name"], thread["tid"], str(thread["pid"])): thread["samples" if of_time else "weight"] for thread in facts["threads"]}, "threads")
    heaps = {}
    for counter in profile.get("counters", []):   # RawCounter in src/types/profile.ts
        equal(set(counter), {"name", "category", "description", "color", "pid", "mainThreadIndex", "samples"}, "fields of a counter")
        equal(set(counter["samples"]), {"time", "count", "length"}, "columns of a counter")
        assert counter["category"] == "Memory" and counter["color"] in ("blue", "green", "grey", "ink", "magenta", "orange", "purple", "red", "teal", "yellow")
        equal(profile["threads"][counter["mainThreadIndex"]]["pid"], counter["pid"], "process of a counter's thread")
        times, counts = counter["samples"]["time"], counter["samples"]["count"]
        equal((len(times), len(counts)), (counter["samples"]["length"],) * 2, "length of a counter")
        heaps[int(counter["pid"]), counter["name"]] = [(round(at * 10**6), sum(counts[:i + 1])) for i, at in enumerate(times)]
    equal(heaps, heaps_of(facts), "heaps")
    if not of_time:
        return   # these have no length, and samples determine the categories
    assert abs(total_ns - facts["weight"]) <= facts["weight"] * 1e-9, (total_ns, facts["weight"])
    in_states = collections.Counter()
    for state, count in facts["states"].items():
        if state in CATEGORY_OF_STATE:
            in_states[CATEGORY_OF_STATE[state]] += count
    without_stack = of_categories.pop(None, 0)
    for category, count in in_states.items():
        assert count - without_stack <= of_categories[category] <= count, (category, count, of_categories)


# ---------------------------------------------------------------- svg

def check_svg(path, facts):
    """Well-formed, without scripts and links; the boxes lie in each other, and are as wide as they say, but for a gap of half a pixel."""
    svg = "{http://www.w3.org/2000/svg}"
    root = xml.etree.ElementTree.parse(path).getroot()
    for element in root.iter():
        assert element.tag in {svg + name for name in ("svg", "g", "title", "rect", "text")}, element.tag
        assert not any(name.startswith("on") or "href" in name or "url" in value for name, value in element.attrib.items()), element.attrib
    rows, names, by_samples = collections.defaultdict(list), set(), facts["unit"] == "nanoseconds"
    for box in root.findall(svg + "g"):
        found = re.fullmatch(r"(.*): ([\d.]+) %, (.*?)(?: samples?)?; itself ([\d.]+) %", box.find(svg + "title").text)
        rect = {name: float(box.find(svg + "rect").get(name)) for name in ("x", "y", "width")}
        rows[rect["y"]].append((rect["x"], rect["x"] + rect["width"]))
        assert abs(rect["width"] - 1180 * float(found[2]) / 100) < 1.2, (found[0], rect)
        names.add(found[1])
        if found[1] == "all":
            equal((found[2], found[3]), ("100.0", str(facts["samples"]) if by_samples else found[3]), "the whole")
    for above, below in zip(sorted(rows), sorted(rows)[1:]):
        for left, right in rows[below]:
            assert any(outer_left - 0.2 <= left and right <= outer_right + 0.7 for outer_left, outer_right in rows[above]), (left, right)
    key = "total" if by_samples else "total_weight"
    seen = {function["text"] for function in facts["functions"] if function[key] > facts["samples" if by_samples else "weight"] / 1000}
    assert seen <= names and names <= {function["text"] for function in facts["functions"]} | {"all"}, seen ^ names


def main():
    folder, proto, annotate, golden = map(pathlib.Path, sys.argv[1:])
    for name in ("sample", "sample.bytes", "sample.objects", "busy"):
        facts = json.loads((folder / f"{name}.facts").read_text())
        check_pprof(folder / f"{name}.pprof", facts, proto, golden / f"{name}.pprof.txt" if name in ("sample", "sample.bytes") else None)
        check_callgrind(folder / f"{name}.callgrind", facts, annotate)
        if facts["unit"] == "nanoseconds":
            check_chrometrace(folder / f"{name}.chrometrace", facts)
        check_firefox(folder / f"{name}.firefox", facts)
        check_svg(folder / f"{name}.svg", facts)
        print(f"{name}: {facts['samples']} samples, {len(facts['functions'])} functions")


main()
