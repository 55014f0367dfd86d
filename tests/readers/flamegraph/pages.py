"""What a flame graph page must show, computed from its data independently of the page's own code."""
import collections
import json
import re

ROW = 20     # pixels, as in graph.js
RUN = 5      # numbers of a run


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
