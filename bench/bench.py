"""The part of run.sh that runs once everything is built. bench/README.md explains what it measures and how to read it."""

import argparse
import os
import platform
import signal
import sys
import time

import agent
import alloc
import heap
import others
import recording
import slowdown
import stops
import threads
from target import CPUS, Failed, say

SECTIONS = {
    "stops": stops.measure,
    "slowdown": slowdown.measure,
    "record": recording.measure_record,
    "cpu": recording.measure_cpu,
    "threads": threads.measure,
    "idle": recording.measure_idle,
    "first": recording.measure_first,
    "memory": recording.measure_memory,
    "heap": heap.measure,
    "alloc": alloc.measure,
    "agent": agent.measure,
    "others": others.measure,
}


NOISY = "too noisy to tell"


class Setup:
    """Paths, and the commands of the targets."""

    def __init__(self, options):
        self.folder = options.folder
        self.quick = options.quick
        self.here = os.path.dirname(os.path.realpath(__file__))
        self.workloads = os.path.join(self.here, "workloads")
        self.luaspy = self.path("build/luaspy")
        self.runners = {root: runner.split() for root, runner in (word.split("=", 1) for word in options.run)}

    def path(self, name):
        return os.path.join(self.folder, name)

    def bench(self, name):
        return self.path(f"build/bench/bench_{name}")

    def debian(self, root, program):
        """The words that run a program from Debian."""
        return self.runners[root] + [self.path(f"targets/debian/{root}/{program}")]

    def lua(self, name, *arguments):
        """The words that run stack.lua, and their environment. Names: lua5.1, lua5.4, luajit, luajit -joff."""
        words = name.split()
        root = "bookworm-luajit" if words[0] == "luajit" else "bookworm"
        modules = self.path(f"targets/debian/{root}/usr/share/luajit-2.1.0-beta3")
        environment = {"LUA_PATH": f"{self.workloads}/?.lua;{modules}/?.lua", "LUA_CPATH": self.path(f"programs/{words[0][3:]}/?.so")}
        script = os.path.join(self.workloads, "stack.lua")
        return self.debian(root, f"usr/bin/{words[0]}") + words[1:] + [script] + [str(a) for a in arguments], environment

    def program(self, name, *arguments):
        """A program of workloads/, which is linked with Debian's liblua5.4."""
        return self.runners["bookworm"] + [self.path(f"programs/{name}")] + [str(a) for a in arguments]


class Report:
    """The output: each section's table as it comes, the goals at the end."""

    def __init__(self):
        self.tables, self.goals, self.remarks = [], [], []

    def table(self, title, columns, rows):
        lines = [f"**{title}**", "", "| " + " | ".join(columns) + " |", "|" + "---|" * len(columns)]
        lines += ["| " + " | ".join(row) + " |" for row in rows]
        self.tables.append("\n".join(lines))
        print("\n" + self.tables[-1], flush=True)

    def goal(self, what, goal, figure, met, untold=NOISY):
        """met: True, False, or None if it cannot be decided; `untold` is the reason."""
        self.goals.append((what, goal, figure, {True: "yes", False: "**no**", None: untold}[met]))

    def remark(self, text):
        self.remarks.append(text)
        say(text)

    def print(self, setup, seconds):
        print(f"\n<!-- ------------------------------ for docs/cost.md ------------------------------ -->\n\n{machine()}; "
              f"`bench/run.sh{' --quick' if setup.quick else ''}`, {seconds / 60:.0f} minutes. In brackets: what nine of ten repetitions would give.\n")
        if self.goals:   # some sections have none
            print("| what | goal | figure | met |\n|---|---|---|---|")
        for row in self.goals:
            print("| " + " | ".join(row) + " |")
        for table in self.tables:
            print("\n" + table)
        untold = sum(met == NOISY for *_, met in self.goals)
        if untold:
            self.remark(f"The machine is too noisy to tell {untold} of {len(self.goals)} figures.")
        if self.remarks:
            print("\n" + "\n".join(f"- {text}" for text in self.remarks))


def machine():
    model = "CPU unknown"
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        for line in file:
            if line.startswith("model name"):
                model = line.split(":", 1)[1].strip()
                break
    return f"{time.strftime('%Y-%m-%d')}, Linux {platform.release()}, {model}, {len(CPUS)} CPUs"


def busy_share():
    """The share of time of all CPUs, over one second."""
    def times():
        with open("/proc/stat", encoding="utf-8") as file:
            words = [int(word) for word in file.readline().split()[1:9]]
        return sum(words), words[3] + words[4]   # proc(5): all, idle and iowait
    total, idle = times()
    time.sleep(1)
    total_now, idle_now = times()
    return 1 - (idle_now - idle) / (total_now - total)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--only", action="append", choices=SECTIONS)
    parser.add_argument("--folder", required=True)
    parser.add_argument("--run", action="append", required=True)
    options = parser.parse_args()
    setup = Setup(options)
    report = Report()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    start = time.monotonic()
    failed = False
    busy = busy_share()
    if busy > 0.1:
        report.remark(f"The machine was not idle at the start: others took {100 * busy:.0f} % of its CPUs.")
    for name, measure in SECTIONS.items():
        if options.only and name not in options.only:
            continue
        say(f"{name} …")
        try:
            measure(setup, report)
        except Failed as failure:
            failed = True
            report.remark(f"{name} could not be measured: {failure}")
    report.print(setup, time.monotonic() - start)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
