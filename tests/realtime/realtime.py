#!/usr/bin/env python3
"""Does luaspy end when it should, and harm nobody, whatever policy, quota or freezer holds its target? README.md explains it."""
import argparse
import contextlib
import dataclasses
import os
import re
import signal
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
LATE = 0.2          # s: by how much a recording may end late
MOST_CPU = 12       # s that a target may use, in case it is forgotten
NOBODY = 65534
CPUS = sorted(os.sched_getaffinity(0))


@dataclasses.dataclass(frozen=True)
class Cell:
    name: str
    policy: str = "other"        # fifo, rr, deadline
    priority: int = 0
    pinned: bool = True          # the target is held on the last CPU
    shares: bool = False         # luaspy may use only that CPU, too
    user: bool = False           # luaspy and the target are nobody's
    command: str = "record"
    seconds: float = 2
    quota: int = 0               # % of a CPU
    frozen: str = ""             # cgroup, signal
    others: int = 0              # priority of FIFO threads of others that compute, on all CPUs
    stranger: int = 0            # priority of one on the target's CPU
    end: str = ""                # how it ends: "" by -d; interrupt: SIGINT; target: the target ends


def policies(user=False, shares=False):
    of = ", a user's luaspy" if user else ""
    where = " on luaspy's only CPU" if shares else ""
    for policy, priority in (("fifo", 1), ("fifo", 10), ("fifo", 50), ("fifo", 99), ("rr", 10), ("rr", 99)):
        yield Cell(f"{policy} {priority}{where}{of}", policy, priority, user=user, shares=shares)


def all_cells():
    yield Cell("an ordinary thread")
    yield Cell("an ordinary thread on luaspy's only CPU", shares=True)
    yield from policies()
    yield Cell("deadline", "deadline", pinned=False)
    yield Cell("fifo 10, not held on a CPU", "fifo", 10, pinned=False)
    yield from policies(shares=True)
    if os.geteuid() == 0:
        yield from policies(user=True)
        yield Cell("deadline, a user's luaspy", "deadline", pinned=False, user=True)
        yield from policies(user=True, shares=True)
    for command in ("top", "alloc", "dump"):
        for priority in (10, 99):
            yield Cell(f"{command}: fifo {priority}", "fifo", priority, command=command)
        yield Cell(f"{command}: fifo 10 on luaspy's only CPU", "fifo", 10, command=command, shares=True)
    yield Cell("an ordinary thread, fifo 20 of others on its CPU", stranger=20)
    yield Cell("fifo 10, fifo 20 of others on its CPU", "fifo", 10, stranger=20)
    for others in (20, 99):
        yield Cell(f"an ordinary thread, fifo {others} of others on all CPUs", others=others)
        yield Cell(f"fifo 10, fifo {others} of others on all CPUs", "fifo", 10, others=others)
    for quota in (5, 50):
        yield Cell(f"a quota of {quota} %", quota=quota)
    yield Cell("a quota of 5 % on luaspy's only CPU", quota=5, shares=True)
    for frozen in ("cgroup", "signal"):
        for command in ("record", "top", "alloc"):
            yield Cell(f"{command}: frozen by a {frozen}", frozen=frozen, command=command)
    for end in ("interrupt", "target"):
        yield Cell(f"fifo 10, ends by {end}", "fifo", 10, end=end)
        yield Cell(f"fifo 10 on luaspy's only CPU, ends by {end}", "fifo", 10, end=end, shares=True)
        yield Cell(f"fifo 99, ends by {end}", "fifo", 99, end=end)


def short_cells():
    """What fits into 20 s. An ordinary user has no thread of a real-time policy to look at."""
    quick = {"seconds": 0.5}
    if os.geteuid() != 0:
        yield Cell("an ordinary thread on luaspy's only CPU", shares=True, **quick)
        yield Cell("frozen by a signal", frozen="signal", **quick)
        yield Cell("ends by interrupt", end="interrupt", **quick)
        return
    yield Cell("fifo 10", "fifo", 10, **quick)
    yield Cell("fifo 99", "fifo", 99, **quick)
    yield Cell("deadline", "deadline", pinned=False, **quick)
    yield Cell("fifo 10, not held on a CPU", "fifo", 10, pinned=False, **quick)
    yield Cell("fifo 10 on luaspy's only CPU", "fifo", 10, shares=True, **quick)
    yield Cell("fifo 10, a user's luaspy", "fifo", 10, user=True, **quick)
    yield Cell("alloc: fifo 10", "fifo", 10, command="alloc", **quick)
    yield Cell("an ordinary thread, fifo 20 of others on its CPU", stranger=20, **quick)
    yield Cell("an ordinary thread, fifo 20 of others on all CPUs", others=20, **quick)
    yield Cell("frozen by a cgroup", frozen="cgroup", **quick)
    yield Cell("fifo 10, ends by interrupt", "fifo", 10, end="interrupt", **quick)


class Group:
    """A cgroup of its own, of version 1 or 2: a quota of CPU time, a freezer."""

    def __init__(self, controller):
        root = "/sys/fs/cgroup"
        self.old = os.path.isdir(os.path.join(root, controller))
        base = os.path.join(root, controller) if self.old else root
        self.path = os.path.join(base, f"luaspy-realtime-{os.getpid()}")
        os.mkdir(self.path)

    def put(self, name, value):
        with open(os.path.join(self.path, name), "w") as file:
            file.write(str(value))

    def limit(self, percent):
        period = 100000
        if self.old:
            self.put("cpu.cfs_period_us", period)
            self.put("cpu.cfs_quota_us", period * percent // 100)
        else:
            self.put("cpu.max", f"{period * percent // 100} {period}")

    def freeze(self, yes):
        if self.old:
            self.put("freezer.state", "FROZEN" if yes else "THAWED")
        else:
            self.put("cgroup.freeze", int(yes))

    def remove(self):
        for _ in range(100):
            with contextlib.suppress(OSError):
                os.rmdir(self.path)
                return
            time.sleep(0.02)


class Target:
    def __init__(self, lua, cell, folder, policy=None, priority=None, cpus=None):
        self.progress = os.path.join(folder, f"progress-{time.monotonic_ns()}")
        policy, priority = policy or cell.policy, priority or cell.priority
        cpus = cpus or ([CPUS[-1]] if cell.pinned else CPUS)
        command = [lua, os.path.join(HERE, "work.lua"), self.progress, str(MOST_CPU)]
        if policy == "deadline":   # 80 % of a CPU
            command = ["chrt", "-d", "--sched-runtime", "8000000", "--sched-deadline", "10000000", "--sched-period", "10000000",
                       "0"] + (["setpriv", "--reuid", str(NOBODY), "--regid", str(NOBODY), "--clear-groups"] if cell.user else []) + command

        def prepare():
            os.sched_setaffinity(0, cpus)
            if policy in ("fifo", "rr"):
                os.sched_setscheduler(0, os.SCHED_FIFO if policy == "fifo" else os.SCHED_RR, os.sched_param(priority))
            else:
                os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
            if cell.user and policy != "deadline":
                os.setgid(NOBODY)
                os.setuid(NOBODY)
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, preexec_fn=prepare, cwd=folder)
        assert self.process.stdout.readline() == b"READY\n"
        self.pid = self.process.pid

    def rounds(self):
        with open(self.progress) as file:
            return int(file.read() or 0)

    def rate(self, seconds):
        before, since = self.rounds(), time.monotonic()
        time.sleep(seconds)
        return (self.rounds() - before) / (time.monotonic() - since)

    def harm(self):
        """What is wrong with it; empty if nothing is."""
        if self.process.poll() is not None:
            return "it has ended"
        with open(f"/proc/{self.pid}/status") as file:
            status = file.read()
        for _ in range(50):   # a thread that was asked to stop is released soon
            if "TracerPid:\t0" in status:
                break
            time.sleep(0.01)
            with open(f"/proc/{self.pid}/status") as file:
                status = file.read()
        if "TracerPid:\t0" not in status:
            return "it is traced"
        state = re.search(r"State:\t(\S)", status)[1]
        return "" if state in "RS" else f"its state is {state}"

    def end(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()


@dataclasses.dataclass
class Outcome:
    late: float = 0       # s after it should have ended; without what luaspy needs to end on an ordinary target
    recorded: str = ""
    samples: int = -1
    slower: float = 0     # how much slower the target was, %
    text: str = ""
    wrong: list = dataclasses.field(default_factory=list)


def luaspy_command(luaspy, cell, target, folder):
    output = os.path.join(folder, f"out-{time.monotonic_ns()}")
    duration = [] if cell.end else ["-d", str(cell.seconds)]
    pid = ["--pid", str(target.pid)]
    return {"record": [luaspy, "record", *duration, "-o", output + ".folded", *pid],
            "top": [luaspy, "top", "--batch", "--interval", str(cell.seconds), *duration, *pid],
            "alloc": [luaspy, "alloc", *duration, "-o", output + ".folded", *pid],
            "dump": [luaspy, "dump", *pid]}[cell.command]


def begin_of(process, most):
    """When luaspy began to record: then it has more than one thread. How long it takes until then depends on the target's size,
    and on who else wants the CPU."""
    give_up = time.monotonic() + most
    while process.poll() is None and time.monotonic() < give_up:
        with contextlib.suppress(OSError):
            if len(os.listdir(f"/proc/{process.pid}/task")) > 1:
                break
        time.sleep(0.002)
    return time.monotonic()


def run_luaspy(command, cell, target, most):
    """Its output, how long it took, and whether it had to be killed."""
    def prepare():
        os.sched_setaffinity(0, [CPUS[-1]] if cell.shares else CPUS)
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
        if cell.user:
            os.setgroups([])
            os.setgid(NOBODY)
            os.setuid(NOBODY)
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, preexec_fn=prepare, text=True)
    began = begin_of(process, most) if cell.command != "dump" else time.monotonic()
    ended_at = None
    if cell.end:
        time.sleep(cell.seconds)
        if cell.end == "interrupt":
            process.send_signal(signal.SIGINT)
        else:
            target.process.kill()
        ended_at = time.monotonic()
    try:
        text, _ = process.communicate(timeout=most)
        killed = False
    except subprocess.TimeoutExpired:
        process.kill()
        target.end()   # it may be what luaspy waits for
        text, _ = process.communicate()
        killed = True
    return text, time.monotonic() - (ended_at or began), killed


def measure(luaspy, lua, cell, folder, usual, most):
    outcome = Outcome()
    target, group, strangers = None, None, []
    try:
        target = Target(lua, cell, folder)
        before = target.rate(0.4)
        if cell.quota or cell.frozen == "cgroup":
            group = Group("cpu" if cell.quota else "freezer")
            group.put("cgroup.procs", target.pid)
            if cell.quota:
                group.limit(cell.quota)
            else:
                group.freeze(True)
        if cell.frozen == "signal":
            os.kill(target.pid, signal.SIGSTOP)
        cpus = CPUS if cell.others else CPUS[-1:] if cell.stranger else []
        for cpu in cpus:
            strangers.append(Target(lua, Cell(""), folder, "fifo", cell.others or cell.stranger, [cpu]))
        if cell.quota or strangers:
            before = target.rate(0.6)
        rounds, since = target.rounds(), time.monotonic()
        outcome.text, took, killed = run_luaspy(luaspy_command(luaspy, cell, target, folder), cell, target, most)
        with_luaspy = (target.rounds() - rounds) / max(time.monotonic() - since, 0.001)
        outcome.slower = 100 * (1 - with_luaspy / before) if before > 0 else 0
        expected = 0 if cell.end or cell.command == "dump" else cell.seconds
        outcome.late = took - expected - (0 if cell.end else usual)
        judge(outcome, cell, killed, target)
    finally:
        for each in strangers:
            each.end()
        if group is not None and cell.frozen:
            group.freeze(False)
        if cell.frozen == "signal" and target is not None:
            os.kill(target.pid, signal.SIGCONT)
        if target is not None:
            if cell.frozen and not outcome.wrong:
                time.sleep(0.1)
                if harm := target.harm():
                    outcome.wrong.append("harmed once it is thawed: " + harm)
            target.end()
        if group is not None:
            group.remove()
    return outcome


# What an end says where there is no sample.
HONEST = re.compile(r"real-time|looks?, .*gave nothing|did not get to look|is stopped by|is frozen by|frozen|stopped by a signal|"
                    r"not seen to allocate|no stack: |lost \d|CPU time that was used meanwhile")


def judge(outcome, cell, killed, target):
    if killed:
        outcome.wrong.append("it did not end")
    elif cell.command != "dump" and outcome.late > LATE and not is_told(outcome, cell):
        outcome.wrong.append(f"{outcome.late:.2f} s late")
    told = re.search(r"([\d.]+) s, .*?(\d+) samples?\b", outcome.text)
    if told:
        outcome.recorded, outcome.samples = told[1], int(told[2])
    if not cell.frozen and cell.end != "target" and not killed:
        if harm := target.harm():
            outcome.wrong.append(harm)
    if cell.command == "dump":
        if "main chunk (" not in outcome.text and not HONEST.search(outcome.text):
            outcome.wrong.append("no stack, and no word why")
    elif outcome.samples <= 0 and not HONEST.search(outcome.text):
        outcome.wrong.append("no sample, and no word why")
    if cell.policy != "other" and not (cell.shares or cell.others or cell.stranger) and outcome.samples == 0:
        outcome.wrong.append("no sample, though luaspy has another CPU")
    if cell.policy != "other" and re.search(r"\bidle the whole|slept at all", outcome.text):
        outcome.wrong.append("says that it slept")


def is_told(outcome, cell):
    """Where luaspy has no way to run: an ordinary user on CPUs that real-time threads have taken, and root below priority 99."""
    taken = cell.shares and cell.policy in ("fifo", "rr") or bool(cell.others)
    hopeless = taken and (cell.user or max(cell.priority if cell.shares else 0, cell.others) == 99)
    return hopeless and outcome.late < 2


def usual_end(luaspy, lua, folder):
    """How much longer than -d luaspy takes with an ordinary target, from when it began to record."""
    cell = Cell("", seconds=0.3)
    took = []
    for _ in range(2):
        target = Target(lua, cell, folder)
        took.append(run_luaspy(luaspy_command(luaspy, cell, target, folder), cell, target, 30)[1] - cell.seconds)
        target.end()
    return min(took)


def main():
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("form", choices=["short", "all"])
    arguments.add_argument("luaspy")
    arguments.add_argument("lua", help="a Lua interpreter")
    arguments.add_argument("--filter", default="", help="only cells whose name contains this")
    arguments.add_argument("--most", type=float, default=0, help="s after which luaspy is killed")
    arguments.add_argument("--verbose", action="store_true", help="print what luaspy says")
    options = arguments.parse_args()
    if options.form == "all" and os.geteuid() != 0:
        sys.exit("the long form needs root: it makes real-time threads")
    if os.geteuid() == 0:   # above all targets but those of priority 99; what it starts is ordinary again
        os.sched_setscheduler(0, os.SCHED_FIFO | os.SCHED_RESET_ON_FORK, os.sched_param(99))
    failed = 0
    with tempfile.TemporaryDirectory(prefix="luaspy-realtime-") as folder:
        os.chmod(folder, 0o777)
        usual = usual_end(options.luaspy, options.lua, folder)
        print(f"luaspy ends {usual:.2f} s after an ordinary recording\n{'target':<55} {'late s':>7} {'samples':>8} {'slower %':>9}  verdict")
        for cell in short_cells() if options.form == "short" else all_cells():
            if options.filter not in cell.name:
                continue
            outcome = measure(options.luaspy, options.lua, cell, folder, usual, options.most or cell.seconds + 8)
            failed += bool(outcome.wrong)
            samples = outcome.samples if outcome.samples >= 0 else "-"
            print(f"{cell.name:<55} {outcome.late:7.2f} {samples:>8} {outcome.slower:9.1f}  {', '.join(outcome.wrong) or 'right'}",
                  flush=True)
            if options.verbose or outcome.wrong:
                print("    " + outcome.text.strip().replace("\n", "\n    "), flush=True)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
