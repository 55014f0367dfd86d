"""The real luaspy, as a process: its CPU time, its effect on a target that waits, the time to the first sample, its memory."""

import json
import os
import re
import signal
import subprocess
import tempfile
import time

import figures
from pace import by_windows
from stops import DEPTHS
from target import SAME, Counter, Failed, Target, run


class Recording:
    """luaspy record of a target for some seconds: its rusage, its output, and its peak memory on the way."""

    def __init__(self, setup, target, rate, seconds, options=(), points=()):
        command = [setup.luaspy, "record", "--pid", str(target.pid), "-r", str(rate), "-d", str(seconds), "-o", setup.path("recorded.folded"), *options]
        start = time.monotonic()
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        self.peaks = []   # kB, at the points of time asked for
        for point in points:
            try:
                process.wait(start + point - time.monotonic())
                break
            except subprocess.TimeoutExpired:
                self.peaks.append(peak(process.pid))
        self.said = process.stderr.read()
        _, status, usage = os.wait4(process.pid, 0) if process.returncode is None else (0, process.returncode, None)
        self.wall = time.monotonic() - start
        process.returncode = status
        self.status = os.waitstatus_to_exitcode(status)
        self.cpu = usage.ru_utime + usage.ru_stime if usage else 0

    def number(self, pattern, default=None):
        found = re.search(pattern, self.said)
        if not found and default is None:
            raise Failed(f"luaspy does not say {pattern}: {self.said}")
        return float(found[1]) if found else default

    def check(self):
        if self.status != 0:
            raise Failed(f"luaspy record ended with {self.status}: {self.said}")
        if self.number(r"stacks: ([0-9.]+) % have Lua") < 95:
            raise Failed(f"luaspy's stacks are not complete: {self.said}")
        return self


def peak(pid):
    with open(f"/proc/{pid}/status", encoding="utf-8") as file:
        for line in file:
            if line.startswith("VmHWM:"):
                return int(line.split()[1])
    return 0


def measure_cpu(setup, report):
    seconds, goal, rows = 4 if setup.quick else 10, 0.03, []
    for name in ("lua5.4", "luajit"):
        command, environment = setup.lua(name, *DEPTHS["20 + 10"][name])
        with Target(command, cpu=SAME, environment=environment) as target:
            short = Recording(setup, target, 1000, 1).check()
            # The difference of the two halves shows the precision of the whole.
            halves = [Recording(setup, target, 1000, seconds / 2).check() for _ in range(2)]
        shares = [half.cpu / half.wall for half in halves]
        without_start = [(half.cpu - short.cpu) / (half.wall - short.wall) for half in halves]
        figure = figures.Figure(sum(shares) / 2, min(shares), max(shares))
        ticks = sum(half.number(r"looked ([0-9.]+) times a second") for half in halves) / 2
        report.goal(f"CPU of luaspy, recording {name} at 1 kHz", f"≤ {100 * goal:g} % of a core", f"{100 * figure.value:.1f} %",
                    figures.verdict(figure, goal, max(shares) > 1.5 * min(shares)))
        rows.append([name, f"{ticks:.0f}", f"{100 * figure.value:.1f} %", " · ".join(f"{100 * s:.1f} %" for s in shares),
                     f"{100 * sum(without_start) / 2:.1f} %", f"{short.cpu:.2f} s"])
    report.table("CPU of `luaspy record -r 1000`, of one core", ["target", "ticks a second", "CPU", "of two runs", "without what starts and ends it", "a run of a second takes"], rows)


class Halting:
    """luaspy record of a target at 1 kHz, halted as by Ctrl-Z: then none of its threads ticks. Only CPU time while on is counted."""

    def __init__(self, setup, target, options):
        command = [setup.luaspy, "record", "--pid", str(target.pid), "-r", "1000", "--max-stopped", "100", "-f", "raw", "-o", setup.path("halting.luaspy"), *options]
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        self.on, self.off, self.cpu_on, self.wall_on = 0.0, 0.0, 0.0, 0.0
        time.sleep(1)   # by then it has learned what the target does
        self.begin()

    def begin(self):
        self.on, self.off = time.monotonic(), self.cpu()

    def cpu(self):
        """Seconds of CPU time of all its threads."""
        total = 0
        for thread in os.listdir(f"/proc/{self.process.pid}/task"):
            with open(f"/proc/{self.process.pid}/task/{thread}/schedstat", encoding="utf-8") as file:
                total += int(file.read().split()[0])
        return total / 1e9

    def halted(self):
        with open(f"/proc/{self.process.pid}/stat", encoding="utf-8") as file:
            return file.read().rsplit(")", 1)[1].split()[0] == "T"

    def switch(self, on):
        if self.process.poll() is not None:
            raise Failed(f"luaspy record ended: {self.process.stderr.read()}")
        if not on:
            self.cpu_on += self.cpu() - self.off   # its threads end with the halt
            self.wall_on += time.monotonic() - self.on
        self.process.send_signal(signal.SIGCONT if on else signal.SIGTSTP)
        while self.halted() == on:
            time.sleep(0.001)
        if on:
            time.sleep(0.02)   # new CPU samplers
            self.begin()

    def end(self):
        self.process.send_signal(signal.SIGCONT)
        self.process.send_signal(signal.SIGINT)
        return self.process.communicate()[1]


def measure_record(setup, report):
    pairs, rows = 15 if setup.quick else 60, []
    goals = {"slowdown": 0.045, "cpu": 0.04, "stop": 10}
    for name in ("lua5.4", "luajit"):
        for cpu in (None, SAME):
            for options in ([], ["--always-stop"]):
                command, environment = setup.lua(name, *DEPTHS["20 + 10"][name])
                with Target(command, cpu=cpu, environment=environment) as target:
                    recording, counter = Halting(setup, target, options), Counter(target)
                    recording.switch(False)
                    recording.cpu_on = recording.wall_on = 0.0
                    measured = by_windows(counter, recording.switch, pairs, 0.1, 0.01)
                    said = recording.end()
                    counter.close()
                slowdown, share = measured.slowdown(), recording.cpu_on / recording.wall_on
                found = re.search(r"paused a thread for ([0-9]+) µs to look at it, for more than ([0-9]+) µs", said)
                if not found:
                    raise Failed(f"luaspy does not say how long the target stood still: {said}")
                where = "anywhere" if cpu is None else "held on a CPU"
                how = "always stopped" if options else "as a rule"
                rows.append([name, where, how, slowdown.map(lambda v: 100 * v).text("{:.1f}") + " %", f"{100 * share:.1f} %", f"{found[1]} · {found[2]} µs"])
                if not options and cpu is None:
                    what = f"`luaspy record -r 1000` of {name}"
                    report.goal(f"{what}: slowdown", f"≤ {100 * goals['slowdown']:g} %", rows[-1][3], figures.verdict(slowdown, goals["slowdown"], False))
                    report.goal(f"{what}: CPU", f"≤ {100 * goals['cpu']:g} % of a core", rows[-1][4], share <= goals["cpu"])
                    report.goal(f"{what}: standing still, median", f"≤ {goals['stop']} µs", f"{found[1]} µs", int(found[1]) <= goals["stop"])
    report.table("`luaspy record -r 1000` itself, in windows of 0.1 s", ["target", "where", "threads are", "slowdown", "CPU", "stood still, median · 99th percentile"], rows)


def measure_idle(setup, report):
    seconds, goal = 5 if setup.quick else 20, 0.002
    with Target(setup.program("waiting")) as target:
        short = Recording(setup, target, 100, 1, ["--idle"]).check()
        seen = Recording(setup, target, 100, seconds, ["--idle"]).check()
        interrupted = int(target.finish().split()[1])
    stops = 0 if "paused a thread" not in seen.said else -1
    cpu = (seen.cpu - short.cpu) / (seen.wall - short.wall)
    samples = int(seen.number(r"([0-9]+) samples"))
    report.goal("idle target, `record --idle -r 100`: stops", "0", "0" if stops == 0 else "some", stops == 0)
    report.goal("the same: EINTR that the target sees", "0", str(interrupted), interrupted == 0)
    report.goal("the same: CPU of luaspy (start and end left out)", f"< {100 * goal:g} % of a core", f"{100 * cpu:.2f} %", cpu < goal)
    report.table("A target that waits in epoll_wait, `luaspy record --idle -r 100`", ["seconds", "samples", "stops", "EINTR", "CPU", "CPU, start and end too"],
                 [[f"{seconds}", str(samples), "0" if stops == 0 else "some", str(interrupted), f"{100 * cpu:.2f} %", f"{100 * seen.cpu / seen.wall:.2f} %"]])


def nginx(setup, folder):
    root = setup.path("targets/debian/bookworm-luajit2")
    workloads = os.path.join(setup.here, "../tests/targets/workloads/luajit")
    with open(os.path.join(workloads, "host-nginx.conf"), encoding="utf-8") as file:
        text = file.read().replace("@usr@", f"{root}/usr").replace("@workloads@", os.path.realpath(workloads))
    conf = os.path.join(folder, "nginx.conf")
    with open(conf, "w", encoding="utf-8") as file:
        file.write(text)
    return Target(setup.debian("bookworm-luajit2", "usr/sbin/nginx") + ["-e", "stderr", "-c", conf, "-p", folder], cwd=folder)


def measure_first(setup, report):
    count, goal, rows = 5 if setup.quick else 20, 100, []
    with tempfile.TemporaryDirectory() as folder:
        for name, start in (("nginx with its modules", lambda: nginx(setup, folder)), ("a 50 MB binary", lambda: Target(setup.program("big", 1, 1)))):
            first, dump = [], []
            with start() as target:
                size = sum(os.path.getsize(path) for path in mapped_files(target.pid)) / 1e6
                for _ in range(count):
                    out, _ = run([setup.bench("first"), str(target.pid)])
                    first.append(int(out.split()[0]) / 1e6)
                    begun = time.monotonic()
                    out, _ = run([setup.luaspy, "dump", "--json", "--pid", str(target.pid)])
                    dump.append(1e3 * (time.monotonic() - begun))
                    if not json.loads(out)["threads"]:
                        raise Failed(f"luaspy dump shows no thread of {name}")
            figure = figures.bootstrap(first, figures.median)
            report.goal(f"attach to first sample, {name}", f"≤ {goal} ms", figure.text("{:.0f}") + " ms", figure.value <= goal)
            rows.append([name, f"{size:.0f} MB", figure.text("{:.0f}") + " ms", f"{max(first):.0f} ms", f"{figures.median(dump):.0f} ms"])
    report.table(f"From nothing to the first finished sample with Lua in it, {count} times",
                 ["target", "files mapped", "median", "slowest", "`luaspy dump`, the process, median"], rows)


def mapped_files(pid):
    with open(f"/proc/{pid}/maps", encoding="utf-8") as file:
        paths = {line.split(maxsplit=5)[5].strip() for line in file if "/" in line}
    return [path for path in paths if os.path.isfile(path)]


def measure_memory(setup, report):
    rate, seconds, goal = 5000, 10 if setup.quick else 73, 20.0
    shares = (0.1, 0.25, 0.5, 0.75, 0.97)
    command, environment = setup.lua("lua5.4", *DEPTHS["20 + 10"]["lua5.4"])
    with Target(command, cpu=SAME, environment=environment) as target:
        seen = Recording(setup, target, rate, seconds, points=[share * seconds for share in shares] + [seconds + 60]).check()
    peaks = [kb / 1024 for kb in seen.peaks]
    samples = int(seen.number(r"([0-9]+) samples"))
    highest = max(peaks)
    per_hour = f"{samples} samples: {samples / 360000:.2f} of the 360000 that an hour at 100 Hz gives"
    report.goal("memory of luaspy, an hour at 100 Hz", f"≤ {goal:g} MB, flat", f"{highest:.1f} MB, {peaks[-1] - peaks[1]:+.1f} MB after its first quarter ({per_hour})",
                None if samples < 300000 else highest <= goal and peaks[-1] - peaks[1] <= 1, untold="too few samples to tell")
    report.table(f"Peak memory of `luaspy record -r {rate}` on lua5.4, MB; {per_hour}", [f"{100 * share:.0f} %" for share in shares], [[f"{mb:.1f}" for mb in peaks]])
