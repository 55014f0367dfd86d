"""How much slower the target gets, measured by its own progress in windows with and without looks in one run."""

import figures
from stops import DEPTHS
from target import OTHER, SAME, Failed, Target, run

GOALS = {100: 0.005, 1000: 0.04, 5000: 0.20}    # slowdown beyond 1
NEXT_TO_NOTHING = 1e-4                           # smallest slowdown to divide by, because noise can make it negative
BARE_GOAL = 1.3                                  # at 1 kHz: luaspy's over that of bare stops


class Windows:
    """The output of bench_windows: for each kind of look, windows between two windows without looks."""

    def __init__(self, text):
        self.lost, self.kinds = {}, {}
        windows = []
        for line in text.splitlines():
            words = line.split()
            if words[0] == "lost":
                self.lost[words[1]] = int(words[2])
            else:
                windows.append((words[0], *map(int, words[1:])))
        starved = 0
        for i in range(1, len(windows) - 1, 2):
            # If other processes take the target's CPU for a whole window, there is nothing to
            # compare.
            if any(progress == 0 for _, _, progress, *_ in windows[i - 1:i + 2]):
                starved += 1
                continue
            before, on, after = (wall / progress for _, wall, progress, *_ in windows[i - 1:i + 2])
            name, wall, _, cpu, ticks, stops, stopped = windows[i]
            self.kinds.setdefault(name, []).append({"slowdown": on / ((before + after) / 2), "wall": wall, "cpu": cpu, "ticks": ticks, "stops": stops,
                                                    "stopped": stopped})
        if starved > 0.2 * len(windows) / 2:
            raise Failed(f"the target made no progress in {starved} pairs of windows: others have its CPU")

    def slowdown(self, kind):
        """The slowdown beyond 1."""
        return figures.bootstrap([w["slowdown"] for w in self.kinds[kind]], lambda some: figures.median(some) - 1)

    def beyond(self, kind):
        return max(figures.median([w["slowdown"] for w in self.kinds[kind]]) - 1, NEXT_TO_NOTHING)

    def over_bare(self, kind, bare):
        rounds = list(zip(self.kinds[kind], self.kinds[bare]))

        def beyond(some, i):
            return max(figures.median([pair[i]["slowdown"] for pair in some]) - 1, NEXT_TO_NOTHING)
        return figures.bootstrap(rounds, lambda some: beyond(some, 0) / beyond(some, 1))

    def share(self, kind, what):
        """The share of wall time of `what`: cpu, stopped."""
        return sum(w[what] for w in self.kinds[kind]) / sum(w["wall"] for w in self.kinds[kind])

    def rate(self, kind, what="stops"):
        return sum(w[what] for w in self.kinds[kind]) / sum(w["wall"] for w in self.kinds[kind]) * 1e9

    def check(self, kind, name):
        stops = sum(w["stops"] for w in self.kinds[kind])
        if stops == 0 or self.lost[kind] > 0.02 * stops + 2:
            raise Failed(f"{self.lost[kind]} of luaspy's {stops} samples of {name} have no Lua stack")


def percent(figure):
    return figure.map(lambda v: 100 * v).text("{:.2f}") + " %"


def windows(setup, target, rate, pairs, kinds):
    other = OTHER if OTHER is not None else SAME
    out, _ = run([setup.bench("windows"), str(target.pid), str(target.address), str(rate), str(pairs), str(SAME), str(other)] + kinds)
    return Windows(out)


def measure(setup, report):
    pairs = 15 if setup.quick else 70
    kinds = ["nothing", "luaspy", "luaspy@same", "bare@same"] + (["luaspy@other", "bare@other"] if OTHER is not None else [])
    rows = []
    for name, rates in (("lua5.4", GOALS), ("luajit", [1000])):
        command, environment = setup.lua(name, *DEPTHS["20 + 10"][name])
        with Target(command, cpu=SAME, environment=environment) as target:
            for rate in rates:
                seen = windows(setup, target, rate, pairs, kinds)
                seen.check("luaspy", name)
                rows.append(row(name, rate, seen))
                add_goals(report, name, rate, seen)
    report.table("Slowdown of the target, beyond 1; luaspy as it comes; luaspy and bare stops from its CPU, and from another one",
                 ["target", "rate", "nothing (A/A)", "luaspy", "stops a second", "stood still", "CPU: waiting only · bare stops · luaspy", "luaspy, same CPU", "bare, same CPU", "luaspy, another CPU", "bare, another CPU"], rows)


def row(name, rate, seen):
    def of(kind):
        return percent(seen.slowdown(kind)) if kind in seen.kinds else "one CPU"
    return [name, f"{rate} Hz", of("nothing"), of("luaspy"), f"{seen.rate('luaspy'):.0f}", f"{100 * seen.share('luaspy', 'stopped'):.2f} %",
            " · ".join(f"{100 * seen.share(kind, 'cpu'):.1f}" for kind in ("nothing", "bare@same", "luaspy")) + " %", of("luaspy@same"), of("bare@same"), of("luaspy@other"), of("bare@other")]


def add_goals(report, name, rate, seen):
    nothing, slowdown = seen.slowdown("nothing"), seen.slowdown("luaspy")
    noise = max(abs(nothing.low), abs(nothing.high))
    noisy = noise > GOALS[rate] / 2
    report.goal(f"slowdown of {name} at {rate} Hz, beyond 1", f"≤ {100 * GOALS[rate]:g} %", percent(slowdown),
                figures.verdict(slowdown.widened(by=noise), GOALS[rate], noisy))
    if rate == 1000:
        for where in ("same", "other"):
            if f"bare@{where}" in seen.kinds:
                what = f"the same ÷ that of bare stops from {'its' if where == 'same' else 'another'} CPU"
                bare = seen.slowdown(f"bare@{where}")
                if bare.low <= noise:   # nothing to divide by
                    report.goal(what, f"≤ {BARE_GOAL}", f"that of bare stops is {percent(bare)}", None)
                    continue
                over = seen.over_bare("luaspy", f"bare@{where}")
                report.goal(what, f"≤ {BARE_GOAL}", over.text(), figures.verdict(over, BARE_GOAL, noisy))
