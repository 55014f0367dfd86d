"""64 threads of which two work, compared with two threads that both work."""

import os
import signal

import figures
from slowdown import percent, windows
from target import Target

GOAL = 0.2


def measure(setup, report):
    slices, pairs = (2, 8) if setup.quick else (5, 14)
    counts = (2, 64)
    targets = {count: Target(setup.program("threads", count, 2)) for count in counts}
    seen = {count: [] for count in counts}
    try:
        # By turns; the target that is not measured is stopped meanwhile.
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
    rows = []
    for count, parts in seen.items():
        for part in parts:
            part.check("luaspy", f"{count} threads")
        kind = [w for part in parts for w in part.kinds["luaspy"]]
        wall = sum(w["wall"] for w in kind)
        slowdown = figures.bootstrap([w["slowdown"] for w in kind], lambda some: figures.median(some) - 1)
        rows.append([f"{count}, 2 running", f"{sum(w['stops'] for w in kind) / wall * 1e9:.0f}", f"{1e3 * sum(w['stopped'] for w in kind) / wall:.1f} ms",
                     f"{100 * sum(w['cpu'] for w in kind) / wall:.1f} %", percent(slowdown)])
    turns = list(zip(seen[64], seen[2]))
    for what, ratio in (("time stood still", lambda a, b: a.share("luaspy", "stopped") / b.share("luaspy", "stopped")),
                        ("CPU of luaspy", lambda a, b: a.share("luaspy", "cpu") / b.share("luaspy", "cpu")),
                        ("slowdown", lambda a, b: a.beyond("luaspy") / b.beyond("luaspy"))):
        figure = figures.bootstrap(turns, lambda some, ratio=ratio: figures.median([ratio(a, b) for a, b in some]))
        report.goal(f"64 threads of which 2 run, at 1 kHz: {what} ÷ that with 2 threads", "1 ± 0.2", figure.text(), verdict(figure))
    report.table("Many threads, luaspy at 1 kHz", ["threads", "stops a second", "stood still a second, in sum", "CPU of luaspy", "slowdown beyond 1"], rows)


def verdict(figure):
    if figure.low > 1 + GOAL or figure.high < 1 - GOAL:
        return False
    return None if figure.high - figure.low > 2 * GOAL else abs(figure.value - 1) <= GOAL
