"""How much slower a program gets by luaspy alloc, beside what luaspy says that it costs.

The programs are tests/live/programs/allocations.c, which count their own allocations: that is their progress. In one run of
each, windows with luaspy are between windows without. The time is that in which the thread ran or stood still: where other
processes have its CPU, that does not count."""

import os
import re
import struct
import subprocess
import time

import figures
from target import Failed, Target, run

COSTS = [1, 3, 10]    # --max-cost, %
WORKLOADS = ["loops", "callbacks"]
SITES = 8


class Allocating(Target):
    """A program whose counts can be read."""

    def __init__(self, command):
        self.process = subprocess.Popen(["setpriv", "--pdeathsig", "KILL"] + command, stdin=subprocess.DEVNULL,
                                        stdout=subprocess.PIPE, text=True)
        Target.running.append(self)
        address = self.process.stdout.readline()
        if self.process.stdout.readline() != "READY\n":
            raise Failed(f"{' '.join(command)} has not begun")
        self.address = int(address, 16)
        self.pid = self.process.pid

    def progress(self):
        """Calls so far."""
        with open(f"/proc/{self.pid}/mem", "rb", buffering=0) as memory:
            memory.seek(self.address + 8)
            return sum(struct.unpack(f"={SITES}q", memory.read(8 * SITES)))

    def waited(self):
        """For a CPU, s (proc(5), schedstat)."""
        with open(f"/proc/{self.pid}/schedstat", encoding="ascii") as file:
            return int(file.read().split()[1]) / 1e9

    def window(self, during):
        """Seconds a call while `during` is done."""
        calls, waited, start = self.progress(), self.waited(), time.monotonic()
        during()
        seconds = time.monotonic() - start - (self.waited() - waited)
        return seconds / max(self.progress() - calls, 1)


def compare(luaspy, target, cost, pairs, seconds):
    """What it took of the program's time, and what luaspy said of that, in %."""
    said, ratios = [], []

    def look():
        _, errors = run([luaspy, "alloc", "--pid", str(target.pid), "-d", str(seconds), "--max-cost", str(cost), "-f", "folded", "-o", os.devnull])
        said.append(float(re.search(r"cost: some ([0-9.]+) %", errors).group(1)))

    before = target.window(lambda: time.sleep(seconds))
    for _ in range(pairs):
        on = target.window(look)
        after = target.window(lambda: time.sleep(seconds))
        ratios.append(100 * (1 - (before + after) / 2 / on))
        before = after
    return figures.bootstrap(ratios, figures.median), figures.median(said)


def measure(setup, report):
    pairs, seconds = (3, 1.5) if setup.quick else (5, 3)
    script = os.path.join(setup.here, "../tests/targets/workloads/allocations.lua")
    rows = []
    for workload in WORKLOADS:
        with Allocating(setup.program("allocations", script, workload)) as target:
            for cost in COSTS:
                slower, said = compare(setup.luaspy, target, cost, pairs, seconds)
                rows.append([f"lua5.4, {workload}", f"{cost} %", slower.text("{:.1f}") + " %", f"{said:.1f} %"])
    report.table(f"What `luaspy alloc` takes of a program's time, {pairs} pairs of {seconds} s", ["target", "`--max-cost`", "took", "luaspy says"], rows)
