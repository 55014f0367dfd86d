#!/usr/bin/env python3
"""Are luaspy's samples where the CPU time is spent? tests/bias/README.md explains what this measures, and how."""
import argparse
import csv
import dataclasses
import math
import os
import re
import signal
import sys

sys.dont_write_bytecode = True   # this folder may be read-only, and belongs to the sources
from measure import Cell, Workplace

CALLS = ["os.clock", "clock", "write", "futex", "socket"]
PERIODS = [10, 100, 1000]
COLUMNS = ["target", "call", "each µs", "spinners", "user", "Hz", "threads", "quota", "CPU", "luaspy %", "samples", "perf %",
           "samples of perf", "clock %", "σ from perf", "σ from clock", "samples ÷ ticks", "verdict"]


def main_cells(targets):
    """The measurements that decide: every call and period on a quiet and a busy machine, then each condition with two calls."""
    for name, command in targets:
        for microseconds in PERIODS:
            for call in CALLS:
                for spinners in (0, 3):
                    yield Cell(name, command, call, microseconds, spinners)
        for call in ("os.clock", "write"):
            for user in (False, True):
                for rate in (100, 1000):
                    for spinners in (0, 1, 3, 8):
                        yield Cell(name, command, call, 30, spinners, user, rate)
            for more in ({"threads": 8}, {"threads": 8, "user": True}, {"threads": 8, "rate": 100},
                         {"threads": 8, "spinners": 3}, {"quota": 20}, {"quota": 20, "spinners": 3},
                         {"quota": 20, "user": True}, {"quota": 20, "threads": 8}, {"cpu": 0}, {"cpu": 1},
                         {"cpu": 1, "spinners": 3}, {"cpu": 1, "user": True}):
                yield Cell(name, command, call, 30, **more)


def all_cells(targets):
    """Every condition with every other."""
    for name, command in targets:
        for call in CALLS:
            for microseconds in PERIODS:
                for user in (False, True):
                    for rate in (100, 1000):
                        for spinners in (0, 1, 3, 8):
                            for cpu in (-1, 1):
                                for threads, quota in ((1, 0), (8, 0), (1, 20)):
                                    yield Cell(name, command, call, microseconds, spinners, user, rate, threads,
                                               quota, cpu)


def quick_cells(options):
    """os.clock and write each 15 µs, in lua5.4, quiet and beside three spinning processes."""
    for spinners in (0, 3):
        for call in ("os.clock", "write"):
            yield Cell("lua5.4", ("lua5.4",), call, 15, spinners, options.user, options.rate)


def short_cells(targets):
    """The part that is short enough for a test."""
    for spinners in (0, 3):
        for name, command in targets:
            for call in ("os.clock" if "lua5" in name else "clock", "write"):
                yield Cell(name, command, call, 15, spinners, os.geteuid() != 0)


def verdict(result):
    """How a result misses the goals, in words; empty if it meets them."""
    wrong = []
    if abs(result.from_perf()) > 2:
        wrong.append("not perf's")
    if abs(result.from_clock()) > 2:
        wrong.append("not the clock's")
    # A call of 1.5 % may show as 3 % if luaspy is root's, as 5 % if it is a user's.
    truth, samples = result.truth(), max(1, result.luaspy.samples)
    most = truth * (10 / 3 if result.cell.user else 2)
    if result.luaspy.share > most + 2 * math.sqrt(most / samples):
        wrong.append("beyond the bound")
    # Reading the CPU clock ends a thread's turn if its time is over, and a CPU sampler that has taken
    # another process's CPU starts one: such turns have fewer ticks than time.
    looks_at_clock = result.cell.spinners != 0 and result.cell.kind in ("os.clock", "clock")
    if result.executing < (0.65 if looks_at_clock else 0.9):
        wrong.append("ticks lost")
    if result.executing > 1.2:
        wrong.append("waiting counted")
    return ", ".join(wrong)


def short_verdict(results):
    """The same for a test, for one result or all: errors that neither chance (3 standard deviations) nor a busy machine explains."""
    samples = sum(one.luaspy.samples for one in results)
    hits = sum(one.luaspy.hits for one in results)
    most = [min(0.9, one.clock * (4 if one.cell.user else 3) + 0.01) for one in results]
    bound = sum(share * one.luaspy.samples for share, one in zip(most, results))
    spread = math.sqrt(sum(share * (1 - share) * one.luaspy.samples for share, one in zip(most, results)))
    least = sum(one.clock / 4 * one.luaspy.samples for one in results)
    if hits > bound + 3 * spread:
        return f"{hits} in calls, at most {bound:.0f} ±{3 * spread:.0f} expected"
    if hits < least - 3 * math.sqrt(least):
        return f"{hits} in calls, at least {least:.0f} ±{3 * math.sqrt(least):.0f} expected"
    return "" if samples >= 30 * len(results) else f"{samples} samples"


def percent(share):
    return "-" if math.isnan(share) else f"{100 * share:.2f}"


def sigmas(number):
    return "-" if math.isnan(number) else f"{number:+.1f}"


def row(result, wrong):
    cell = result.cell
    return [cell.target, result.call, cell.microseconds, cell.spinners, "user" if cell.user else "root", cell.rate,
            cell.threads, cell.quota or "-", cell.cpu if cell.cpu >= 0 else "-", percent(result.luaspy.share),
            result.luaspy.samples, percent(result.perf.share), result.perf.samples, percent(result.clock),
            sigmas(result.from_perf()), sigmas(result.from_clock()), f"{result.executing:.2f}", wrong or "right"]


def print_row(result, wrong):
    cell = result.cell
    print(f"{cell.target:10} {result.call:8} each {cell.microseconds:4} µs, {cell.conditions():34} "
          f"luaspy {percent(result.luaspy.share):>6} % of {result.luaspy.samples:5}  "
          f"perf {percent(result.perf.share):>6} % of {result.perf.samples:5} ({sigmas(result.from_perf()):>6} σ)  "
          f"clock {percent(result.clock):>6} % ({sigmas(result.from_clock()):>6} σ)  "
          f"{100 * result.executing:4.0f} % of ticks  {wrong or 'right'}", flush=True)


def markdown(path):
    """A table of results in the form of docs/accuracy.md."""
    with open(path) as file:
        rows = list(csv.reader(file, delimiter="\t"))
    print("| " + " | ".join(COLUMNS) + " |\n|" + "---|" * len(COLUMNS))
    for one in rows:
        print("| " + " | ".join(one) + " |")
    judge([one[-1] for one in rows])


def judge(verdicts):
    """The summary, and the exit status: by chance alone one in 20 results is more than 2 σ from the truth."""
    wrong = [one for one in verdicts if one not in ("", "right")]
    unlucky = [one for one in wrong if not re.search("bound|lost|counted|expected|samples", one)]
    print(f"{len(verdicts)} results, {len(wrong)} not as they should be", file=sys.stderr)
    luck = 0.1 * len(verdicts) + 2 * math.sqrt(0.1 * len(verdicts))
    return 1 if len(wrong) > len(unlucky) or len(unlucky) > luck else 0


def find_targets(options):
    """Names and commands, from the tables of tests/targets or the PATH. Words after a name are options."""
    known = {}
    for table in ("targets.tsv", "luajits.tsv"):
        if options.targets:
            with open(os.path.join(options.targets, table)) as file:
                known.update((line.split("\t")[0], tuple(line.split("\t")[3].split())) for line in file)
    usual = ["debian-lua5.4-bookworm", "debian-luajit-bookworm"] if options.targets else ["lua5.4", "luajit"]
    for name in options.target or usual:
        first, *more = name.split()
        if options.targets and first not in known:
            sys.exit(f"there is no {first} in {options.targets}")
        yield name, known.get(first, (first,)) + tuple(more)


def run(options):
    targets = list(find_targets(options))
    forms = {"quick": lambda: quick_cells(options), "short": lambda: short_cells(targets),
             "table": lambda: main_cells(targets), "all": lambda: all_cells(targets)}
    cells = list(forms[options.form]())
    if os.geteuid() != 0:
        cells = [cell for cell in cells if not cell.quota]
    if options.slice:
        first, _, last = options.slice.partition("-")
        cells = cells[int(first):int(last)]
    if options.held >= 0:
        cells = [dataclasses.replace(cell, cpu=options.held) for cell in cells if cell.threads == 1]
    workplace = Workplace(options.luaspy, options.form != "short", options.held)
    results, verdicts = [], []
    try:
        for cell in cells:
            for result in workplace.measure(cell, options.seconds * (2 if cell.rate < 1000 else 1)):
                wrong = short_verdict([result]) if options.form == "short" else verdict(result)
                results.append(result)
                verdicts.append(wrong)
                print_row(result, wrong)
                if options.summary:
                    print(result.summary)
                if options.output:
                    with open(options.output, "a") as file:
                        csv.writer(file, delimiter="\t", lineterminator="\n").writerow(row(result, wrong))
    finally:
        workplace.remove()
    if options.form != "short":
        return judge(verdicts)
    together = short_verdict(results)
    print("all together:", together or "right")
    return 1 if together or any(verdicts) else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("form", choices=["quick", "short", "table", "all", "markdown"])
    parser.add_argument("luaspy", help="the program to judge (markdown: a file that --output wrote)")
    parser.add_argument("--targets", help="prepare.sh's folder; if not given, lua5.4 and luajit of the PATH")
    parser.add_argument("--target", action="append", help="a name there, with options of its own; several times")
    parser.add_argument("--seconds", type=float, default=5, help="of each run; twice that at 100 Hz")
    parser.add_argument("--rate", type=int, default=1000, help="quick: samples a second")
    parser.add_argument("--user", action="store_true", help="quick: target and luaspy belong to nobody")
    parser.add_argument("--summary", action="store_true", help="print luaspy's, too")
    parser.add_argument("--held", type=int, default=-1, help="hold target and luaspy on this CPU, see tests/bias/README.md")
    parser.add_argument("--slice", help="only some of the runs, FROM-TO, counted from 0, TO not included")
    parser.add_argument("--output", help="append the results to this file, separated by tabs")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))   # ctest's timeout: ends everything that was started
    return markdown(options.luaspy) if options.form == "markdown" else run(options)


if __name__ == "__main__":
    sys.exit(main())
