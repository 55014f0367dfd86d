"""How long a thread is stopped: whole samples by luaspy and by others, relative to a bare stop, by turns in one process."""

import figures
from target import OTHER, SAME, Failed, Target, run

KINDS = ["bare", "registers", "again", "luaspy", "labelled", "libunwind", "libdwfl"]
# stack.lua's levels and calls that give about 20 native and 10 Lua frames, and 100 and 60.
DEPTHS = {
    "20 + 10": {"lua5.1": (0, 5), "lua5.4": (0, 5), "luajit": (3, 3), "luajit -joff": (3, 3)},
    "20 + 10, functions thrown away": {"lua5.1": (0, 5, "thrown"), "lua5.4": (0, 5, "thrown"),
                                       "luajit": (3, 3, "thrown"), "luajit -joff": (3, 3, "thrown")},
    "100 + 60": {"lua5.1": (13, 42), "lua5.4": (13, 42), "luajit": (30, 27), "luajit -joff": (30, 27)},
}
LABELS_GOAL = 1.5   # a sample with four labels ÷ one without, p50
GOALS = {"20 + 10": (1.6, 2.0), "20 + 10, functions thrown away": (None, None), "100 + 60": (2.0, None)}   # p50, p99
NOISE = {0.5: 1.1, 0.99: 1.5}   # if the A/A ratio may be this far from 1, the other ratios mean nothing
PREEMPTED = 5   # a bare stop's p99 ÷ p50; on an otherwise idle machine it is below 3


class Stops:
    """The output of bench_stops."""

    def __init__(self, text):
        self.times, self.lost, self.frames_of = {}, {}, {}
        for line in text.splitlines():
            words = line.split()
            if words[0] == "frames":
                self.native, self.lua = int(words[1]), int(words[2])
            elif words[0] == "lost":
                self.lost[words[1]] = int(words[2])
            elif words[0] == "frames_of":
                self.frames_of[words[1]] = int(words[2])
            else:
                self.times.setdefault(words[0], []).append(int(words[1]) / 1e3)
        count = len(self.times["registers"])
        self.rounds = [{kind: times[i] for kind, times in self.times.items()} for i in range(count)]
        # A thread that has just gone to sleep is sampled without a stop; such samples are left out.
        self.rounds = [r for r in self.rounds if all(r.values())]

    def check(self, name):
        if self.lua == 0:
            raise Failed(f"luaspy sees no Lua in {name}")
        for kind, what in (("luaspy", "no Lua stack"), ("labelled", "no Lua stack, or not the labels")):
            if self.lost[kind] > 0.02 * len(self.rounds) + 2 or len(self.rounds) < 20:
                raise Failed(f"{self.lost[kind]} of luaspy's samples of {name} have {what}; {len(self.rounds)} rounds are complete")

    def ratio(self, over, share, under="registers"):
        return figures.ratio_of_quantiles(self.rounds, over, under, share)

    def verdict(self, ratio, share, goal):
        same = self.ratio("again", share)
        noise = max(same.high, 1 / same.low)
        if self.preempted() and share > 0.5:
            return None
        return figures.verdict(ratio.widened(factor=noise), goal, noise > NOISE[share])

    def preempted(self):
        """Were the slowest stops caused by another process on the tracer's CPU?"""
        bare = [r["registers"] for r in self.rounds]
        return figures.quantile(bare, 0.99) > PREEMPTED * figures.median(bare)

    def pair(self, kind):
        return "{:.1f} / {:.1f}".format(*(figures.quantile([r[kind] for r in self.rounds], share) for share in (0.5, 0.99)))


def look_at(setup, name, depth, cpu):
    command, environment = setup.lua(name, *DEPTHS[depth][name])
    count = 150 if setup.quick else 900
    with Target(command, cpu=SAME, environment=environment) as target:
        near = SAME if cpu == SAME and OTHER is not None else -1
        out, _ = run([setup.bench("stops"), str(target.pid), "1000", str(count), str(SAME if OTHER is None else OTHER), str(near)] + KINDS)
    seen = Stops(out)
    seen.check(name)
    return seen


def measure(setup, report):
    for where, cpu in (("its CPU", SAME), ("another CPU", OTHER)):
        if cpu is None:
            report.remark("There is one CPU only: nothing was measured from another one.")
            continue
        rows, most_labelled = [], None
        for depth, goals in GOALS.items():
            worst = {}
            for name in DEPTHS[depth]:
                seen = look_at(setup, name, depth, cpu)
                ratios = {share: seen.ratio("luaspy", share) for share in (0.5, 0.99)}
                for share, ratio in ratios.items():
                    if share not in worst or ratio.value > worst[share][0].value:
                        worst[share] = (ratio, name, seen)
                rows.append([name + "".join(depth.partition(",")[1:]), f"{seen.native} + {seen.lua}", seen.pair("bare"), seen.pair("registers"), seen.pair("luaspy"),
                             ratios[0.5].text(), ratios[0.99].text(), ", ".join(seen.ratio("again", s).text() for s in (0.5, 0.99)),
                             seen.pair("labelled"), seen.pair("libunwind"), seen.pair("libdwfl")])
                labelled = seen.ratio("labelled", 0.5, under="luaspy")
                if most_labelled is None or labelled.value > most_labelled[0].value:
                    most_labelled = (labelled, name, seen)
            for share, goal in zip((0.5, 0.99), goals):
                ratio, name, seen = worst[share]
                if goal is not None:
                    report.goal(f"stop, p{share * 100:.0f}, {depth.replace(' + ', ' native + ')} Lua frames, from {where}: "
                                f"whole sample ÷ bare stop with registers; the worst, {name}", f"≤ {goal:g}", ratio.text(), seen.verdict(ratio, share, goal))
        ratio, name, seen = most_labelled
        report.goal(f"stop, p50, with four labels ÷ without, from {where}; the worst, {name}", f"≤ {LABELS_GOAL:g}", ratio.text(), seen.verdict(ratio, 0.5, LABELS_GOAL))
        report.table(f"Stops at 1 kHz, tracer on {'the target’s CPU' if cpu == SAME else where}: p50 / p99 in µs; ÷ is luaspy over a bare stop with registers, and A/A two of those, at p50 and p99",
                     ["target", "native + Lua frames", "bare stop", "with registers", "luaspy, whole sample", "÷ p50", "÷ p99", "A/A", "luaspy, four labels", "libunwind-ptrace", "libdwfl"], rows)
