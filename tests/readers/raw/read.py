#!/usr/bin/env python3
"""Reads a raw recording of version 1 or 2 as described in docs/raw-format.md, and prints it folded, with lines: with numbers of samples, or with their
weights if these are not times. With a second argument, `heaps`, `labels`, `marks` or `coroutines`, it prints the sizes of heaps, how many samples have each label, the marks, or the suspended coroutines, instead. check.sh compares the results with luaspy's."""
import sys
import zlib

LUA, C, NATIVE, MARKER, KERNEL = range(5)


class Reader:
    def __init__(self):
        self.strings, self.frames, self.threads, self.stacks = [], [], [], [()]
        self.counts, self.weights, self.about = {}, {}, {}   # counts, weights: by stack
        self.labels, self.labelled = [()], {}   # by set; samples by set
        self.weight, self.unit, self.at = 0, None, 0
        self.marks = []   # (time, line)
        self.suspended = {}   # how often a coroutine was seen there, by stack
        self.states, self.sizes, self.cycles, self.heaps = [], [], [], []   # heaps: lines

    def record(self, kind, body):
        fields = numbers(body) if 3 <= kind <= 10 or kind in (12, 13, 15, 16, 17) else []
        if kind == 1:
            key, rest = text(body)
            self.about[key] = text(rest)[0]
            if key == "unit" and self.version > 1:
                assert self.about[key] in ("nanoseconds", "bytes", "objects"), "a unit that is not known"
                assert self.unit in (None, self.about[key]), "another unit"
                self.unit = self.about[key]
        elif kind == 2:
            self.strings.append(body.decode())
        elif kind == 3:
            near = fields[0] & 8 != 0
            prototype = fields[5] if len(fields) > 5 else 0
            own = len(fields) > 6 and fields[6] & 1 != 0
            kind = KERNEL if len(fields) > 6 and fields[6] & 2 else fields[0] & 7
            self.frames.append([kind, self.strings[fields[1]], self.strings[fields[2]], fields[3], fields[4], near, prototype, own])
        elif kind == 4:
            self.stacks.append(self.stacks[fields[0]] + (fields[1],))
        elif kind == 5:
            self.threads.append(fields)
        elif kind == 15:
            assert 0 < fields[0] <= 16 and len(fields) == 1 + 2 * fields[0]
            self.labels.append(tuple((self.strings[name], self.strings[value]) for name, value in zip(fields[1::2], fields[2::2])))
        elif kind == 12:
            self.states.append(fields)
            self.sizes.append(0)
            self.cycles.append(0)
        elif kind == 13:
            state, flags, change = fields
            self.sizes[state] += -change if flags & 16 else change
            self.cycles[state] += 1 if flags & 8 else 0
            assert flags & 7 <= 4 and 0 <= self.sizes[state] <= 2**47
            self.heaps.append(f"{self.states[state][0]} {state} {self.at} ns: {self.sizes[state]} bytes, {self.cycles[state]} cycles")
        elif kind == 16 and fields[0] < 4:
            what, at, pid, file, line, number, why = fields[:7]
            place = f"{self.strings[file]}:{line}" if self.strings[file] else ""
            self.marks.append((at, f"{at} ns {pid} {('abort', 'blacklisted', 'flush', 'trace')[what]} {place} {number}: {self.strings[why]}"))
        elif kind == 17:
            at, weight, pid, program, process, state, unread, groups = fields[:8]
            for i in range(groups):
                number, stack, labels, count, longest = fields[8 + 5 * i:13 + 5 * i]
                assert number <= 200 and self.strings[process] and (labels == 0 or self.labels[labels][0][0] == "coroutine")
                self.suspended[stack] = self.suspended.get(stack, 0) + count
        elif kind == 6:
            self.at += fields[0]
            self.weight = fields[1] if len(fields) > 1 else fields[0]
        elif kind == 7 and fields[1] & 8 == 0:
            assert self.unit, "a sample before the unit"
            self.counts[fields[2]] = self.counts.get(fields[2], 0) + 1
            self.weights[fields[2]] = self.weights.get(fields[2], 0) + self.weight
            last = fields[3 + (fields[1] & 2 != 0) + 15 * (fields[1] & 4 != 0):]   # waits, cpu, labels
            for label in self.labels[last[2] if len(last) > 2 else 0]:
                self.labelled[label] = self.labelled.get(label, 0) + 1

    def block(self, payload):
        while payload:
            kind, rest = number(payload)
            size, rest = number(rest)
            self.record(kind, rest[:size])
            payload = rest[size:]

    def file(self, data):
        assert data[:7] == b"LUASPY\x1a" and data[7] in (1, 2), "no raw recording, or one of a version that is not known"
        self.version, at = data[7], 8
        self.unit = "nanoseconds" if self.version == 1 else None
        while at < len(data):
            size, crc = int.from_bytes(data[at:at + 4], "little"), int.from_bytes(data[at + 4:at + 8], "little")
            payload = data[at + 8:at + 8 + size]
            if len(payload) != size or zlib.crc32(payload) != crc:
                break
            self.block(payload)
            at += 8 + size

    def settle(self):
        seen = {}
        for stack, count in self.counts.items():
            for frame in self.stacks[stack]:
                seen[frame] = seen.get(frame, 0) + count
        points, owners = {}, {}
        for index, (kind, name, file, defined, _, _, prototype, own) in enumerate(self.frames):
            if kind == LUA and defined and own:
                owners.setdefault((file, defined, prototype), set()).add(name)
            elif kind == LUA and defined:
                names = points.setdefault((file, defined, prototype), {})
                names[name] = names.get(name, 0) + (0 if name == "function" else 1 if name == "for iterator" else 2 * seen.get(index, 0))
        given, twins, same = {}, {}, {}
        for function in sorted({*points, *owners}, key=lambda function: (function[0].encode(), *function[1:])):
            names, shown = points.get(function, {}), set(owners.get(function, ()))
            if len(shown) == 1:
                given[function] = min(shown)
            elif names:
                most = max(names.values())
                given[function] = min((name for name in names if names[name] == most), key=lambda name: name.encode())
            if names:
                shown.add(given[function])
            for name in shown:
                place = function[0], function[1], name
                count = same[place] = same.get(place, 0) + 1
                twins[function, name] = f"#{count}" if count > 1 else ""
        for frame in self.frames:
            twin = ""
            if frame[0] == LUA and frame[3]:
                function = frame[2], frame[3], frame[6]
                if not frame.pop():
                    frame[1] = given[function]
                twin = twins[function, frame[1]]
            else:
                frame.pop()
            frame[6] = twin


def number(data):
    """A number, and the bytes that follow it."""
    result = shift = 0
    for at, byte in enumerate(data):
        result |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return result, data[at + 1:]
    raise ValueError("a number does not end")


def numbers(data):
    found = []
    while data:
        one, data = number(data)
        found.append(one)
    return found


def text(data):
    size, rest = number(data)
    return rest[:size].decode(), rest[size:]


def shown(kind, name, file, _, line, near, twin):
    if kind == LUA:
        return f"{name} ({file}:{'~' if near else ''}{line}{twin})" if line else f"{name} ({file})"
    if kind == C:
        return f"{name} [C]"
    if kind == NATIVE and file and name != file and not name.startswith(file + "+"):
        return f"{name} ({file})"
    if kind == KERNEL and file:
        return f"{name} {file}"
    return name


def main():
    reader = Reader()
    with open(sys.argv[1], "rb") as file:
        reader.file(file.read())
    if sys.argv[2:] == ["heaps"]:
        print("\n".join(sorted(reader.heaps)))
        return
    if sys.argv[2:] == ["labels"]:
        print("\n".join(sorted(f"{name}={value} {count}" for (name, value), count in reader.labelled.items())))
        return
    if sys.argv[2:] == ["marks"]:
        print("\n".join(line for _, line in sorted(reader.marks, key=lambda mark: mark[0])))
        return
    reader.settle()
    lines = {}
    of_time = reader.suspended if sys.argv[2:] == ["coroutines"] else reader.counts
    for stack, count in (of_time if reader.unit == "nanoseconds" else reader.weights).items():
        line = ";".join(shown(*reader.frames[frame]).replace(";", ":") for frame in reader.stacks[stack])
        lines[line] = lines.get(line, 0) + count
    for line in sorted(lines, key=str.encode):
        sys.stdout.write(f"{line} {lines[line]}\n")


main()
