"""How long a running process stands still for `luaspy heap`."""

import os

import figures
from target import Target, run


def measure(setup, report):
    rounds, objects, goal, goal_ratio = 6 if setup.quick else 20, 2_000_000, 0.6, 1.2
    rows = []
    script = os.path.join(setup.workloads, "heap.lua")
    for name, root in (("lua5.4", "bookworm"), ("luajit", "bookworm-luajit")):
        with Target(setup.debian(root, f"usr/bin/{name}") + [script, str(objects)]) as target:
            out, _ = run([setup.bench("heap"), str(target.pid), str(rounds)])
        times = [[float(word) for word in line.split()] for line in out.splitlines()]
        rate = figures.bootstrap(times, lambda some: figures.median([snapshot / size for snapshot, _, _, size in some]))
        ratio = figures.bootstrap(times, lambda some: figures.median([snapshot / everyone for snapshot, _, everyone, _ in some]))
        to_one = figures.bootstrap(times, lambda some: figures.median([snapshot / one for snapshot, one, _, _ in some]))
        report.goal(f"standstill of `luaspy heap`, {name}", f"≤ {goal} ms per MB", rate.text("{:.2f}") + " ms per MB", rate.value <= goal)
        report.goal(f"standstill ÷ bare copy, {name}", f"≤ {goal_ratio}", ratio.text(), figures.verdict(ratio, goal_ratio, True))
        rows.append([name, f"{times[0][3] / 1e6:.0f} MB", rate.text("{:.2f}"), ratio.text(), to_one.text()])
    report.table(f"How long a process stands still for `luaspy heap`, {rounds} times",
                 ["target", "copied", "ms per MB", "÷ bare copy by all CPUs", "÷ bare copy by one"], rows)
