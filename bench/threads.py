"""64 threads of which two work, beside two that work."""

import os
import signal

import figures
from slowdown import Windows, percent, windows
from target import Target

GOAL = 0.2


def measure(setup, report):
    slices, pairs = (2, 8) if setup.quick else (5, 14)
    counts = (2, 64)
    targets = {count: Target(setup.program("threads", count, 2)) for count in counts}
    seen = {count: [] for count in counts}
    try:
        # By turns; the one that is not looked at is stopped meanwhile.
        for target in targets.values():
            os.kill(target.pid, signal.SIGSTOP)
        for _ in range(slices):
            for count, target in targets.items():
                os.kill(target.pid, signal.SIGCONT)
                seen[count].append(windows(setup, target, 1000, pairs, ["luaspy"]))
                os.kill(target.pid, signal.SIGSTOP)
    finally:
        for target in targets.values():
            target.end()
    rows, figure = [], {}
    for count, parts in seen.items():
        for part in parts:
            part.check("luaspy", f"{count} threads")
        kind = [w for part in parts for w in part.kinds["luaspy"]]
        wall = sum(w["wall"] for w in kind)
        figure[count] = {
            "stopped": sum(w["stopped"] for w in kind) / wall,
            "CPU": sum(w["cpu"] for w in kind) / wall,
            "slowdown": figures.bootstrap([w["slowdown"] for w in kind], lambda some: figures.median(some) - 1),
        }
        rows.append([f"{count}, 2 running", f"{sum(w['stops'] for w in kind) / wall * 1e9:.0f}", f"{1e3 * figure[count]['stopped']:.1f} ms",
                     f"{100 * figure[count]['CPU']:.1f} %", percent(figure[count]["slowdown"])])
    for what in ("stopped", "CPU"):
        stable = figures.bootstrap(list(zip(seen[64], seen[2])), lambda some: figures.median([a.share("luaspy", key(what)) / b.share("luaspy", key(what)) for a, b in some]))
        report.goal(f"64 threads of which 2 run, at 1 kHz: {'time stood still' if what == 'stopped' else 'CPU of luaspy'} ÷ that with 2 threads", "1 ± 0.2",
                    stable.text(), None if stable.high - stable.low > 2 * GOAL else abs(stable.value - 1) <= GOAL)
    a, b = figure[64]["slowdown"].value, figure[2]["slowdown"].value
    report.goal("the same: slowdown", "1 ± 0.2", f"{a / b:.2f}" if b > 0 else "–", abs(a / b - 1) <= GOAL if b > 0 else None)
    report.table("Many threads, luaspy at 1 kHz", ["threads", "stops a second", "stood still a second, in sum", "CPU of luaspy", "slowdown beyond 1"], rows)


def key(what):
    return {"stopped": "stopped", "CPU": "cpu"}[what]
