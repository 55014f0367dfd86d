"""The cost of other tools on the same target, and what they see of it."""

import os
import re
import select
import shutil
import signal
import subprocess
import tempfile
import time

import figures
from pace import by_windows
from slowdown import percent, windows
from stops import DEPTHS, KINDS, Stops
from target import OTHER, SAME, Counter, Failed, Target, run

COLUMNS = ["what", "target", "one look costs the target", "slowdown at 1 kHz, beyond 1", "CPU, of a core", "what it sees"]
PROFILER, HOOK = 1, 2   # tools.lua
SEES = {
    "luaspy": "C and Lua in one stack, with lines; functions that a trace has inlined too",
    "libunwind": "native frames ({}); no Lua",
    "libdwfl": "native frames ({}); no Lua",
    "eu-stack": "native frames ({}); no Lua",
    "gdb": "native frames ({}); no Lua",
    "perf record -g": "native frames ({}), by frame pointers, which these programs don't keep; no Lua",
    "perf record --call-graph dwarf": "native frames ({}); no Lua",
    "jit.p": "Lua functions with lines, inlined ones too; no native frames",
    "hook": "Lua functions with lines, C functions that Lua called; no native frames; not where machine code runs",
}


def on_other_cpu():
    os.sched_setaffinity(0, {SAME if OTHER is None else OTHER})


def start(setup, name, environment=None):
    command, own = setup.lua(name, *DEPTHS["20 + 10"][name])
    return Target(command, cpu=SAME, environment={**own, **(environment or {})})


# In luaspy's own bench program: from the target's CPU.
def in_process(setup, rows):
    """Also returns how many native frames lua5.4 has."""
    native = {}
    for name in ("lua5.4", "luajit"):
        with start(setup, name) as target:
            out, _ = run([setup.bench("stops"), str(target.pid), "1000", "50" if setup.quick else "300",
                          str(SAME if OTHER is None else OTHER), str(-1 if OTHER is None else SAME)] + KINDS)
            stops = Stops(out)
            stops.check(name)
            native[name] = stops.native
            kinds = {"bare": "bare stops", "luaspy": "luaspy", "libunwind": "libunwind-ptrace, caches on", "libdwfl": "libdwfl, attached all the time"}
            seen = windows(setup, target, 1000, 10 if setup.quick else 30, [f"{kind}@same" for kind in kinds])
        for kind, what in kinds.items():
            sees = SEES[kind].format(f"{stops.frames_of[kind]} of {stops.native}") if kind in SEES else "nothing"
            rows.append([what, name, f"{stops.pair(kind)} µs (p50 / p99 of the stop)", percent(seen.slowdown(f"{kind}@same")),
                         f"{100 * seen.share(f'{kind}@same', 'cpu'):.1f} %", sees])
    return native["lua5.4"]


# Programs that look once.
def once(setup, rows, name, command, frame, native):
    if not shutil.which(command[0]):
        rows.append([f"`{' '.join(command)}`", "lua5.4", "not to be had here", "", "", ""])
        return
    lost, cpu = [], []
    frames = []
    with start(setup, "lua5.4") as target:
        counter = Counter(target)
        for _ in range(3 if setup.quick else 10):
            begun, before = time.monotonic(), counter.read()[0]
            time.sleep(0.1)
            pace = (time.monotonic() - begun) / (counter.read()[0] - before)
            used = os.times()
            begun, before = time.monotonic(), counter.read()[0]
            # eu-stack's exit status also reports missing symbols.
            seen = subprocess.run(command + ["-p", str(target.pid)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                  text=True, preexec_fn=on_other_cpu, check=False)
            lost.append(1e3 * (time.monotonic() - begun - pace * (counter.read()[0] - before)))
            now = os.times()
            cpu.append(1e3 * (now.children_user + now.children_system - used.children_user - used.children_system))
            frames.append(len(re.findall(frame, seen.stdout, re.MULTILINE)))
        counter.close()
    if not any(frames):
        raise Failed(f"{name} shows no frame")
    cost = figures.bootstrap(lost, figures.median)
    rows.append([f"`{' '.join(command)}`", "lua5.4", f"{cost.text('{:.1f}')} ms", "once only", f"{figures.median(cpu):.0f} ms a look", SEES[name].format(f"{figures.median(frames):.0f} of {native}")])


class Perf:
    """perf record of a target; it can be paused."""

    def __init__(self, folder, target, options):
        self.control, self.answer = (os.path.join(folder, name) for name in ("control", "answer"))
        self.data = os.path.join(folder, "data")
        for fifo in (self.control, self.answer):
            os.mkfifo(fifo)
        self.files = [os.open(fifo, os.O_RDWR) for fifo in (self.control, self.answer)]
        self.process = subprocess.Popen(["perf", "record", "-F", "999", *options, "-p", str(target.pid), "-D", "-1", "-o", self.data,
                                         "--control", f"fifo:{self.control},{self.answer}"],
                                        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, preexec_fn=on_other_cpu)

    def switch(self, on):
        os.write(self.files[0], b"enable\n" if on else b"disable\n")
        for _ in range(100):
            if select.select([self.files[1]], [], [], 0.1)[0]:
                os.read(self.files[1], 100)
                return
            if self.process.poll() is not None:
                break
        self.process.kill()
        raise Failed("perf: " + (self.process.stderr.read().strip().splitlines() or ["no answer"])[0])

    def cpu(self):
        with open(f"/proc/{self.process.pid}/stat", encoding="utf-8") as file:
            words = file.read().rsplit(")", 1)[1].split()
        return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")

    def end(self):
        self.process.send_signal(signal.SIGINT)
        self.process.communicate()
        for file in self.files:
            os.close(file)

    def frames(self):
        """The median over the first samples."""
        counts, count = [], 0
        with subprocess.Popen(["perf", "script", "-i", self.data, "-F", "ip,sym"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as script:
            for line in script.stdout:
                if line.strip():
                    count += 1
                elif count:
                    counts.append(count)
                    count = 0
                if len(counts) == 200:
                    break
            script.kill()
        return figures.median(counts) if counts else 0


def perf(setup, rows, name, options, native):
    what = f"`{name}`, 999 Hz"
    if not shutil.which("perf"):
        rows.append([what, "lua5.4", "not to be had here", "", "", ""])
        return
    with start(setup, "lua5.4") as target, tempfile.TemporaryDirectory(dir=setup.folder) as folder:
        counter = Counter(target)
        recording = Perf(folder, target, options)
        try:
            recording.switch(True)
            recording.switch(False)
            before = recording.cpu()
            measured = by_windows(counter, recording.switch, 12 if setup.quick else 70, 0.06)
            cpu = (recording.cpu() - before) / measured.on_wall
            recording.end()
            rows.append([what, "lua5.4", measured.cost(999), percent(measured.slowdown()), f"{100 * cpu:.1f} %, and the kernel's in the target",
                         SEES[name].format(f"{recording.frames():.0f} of {native}")])
        except Failed as failure:
            rows.append([what, "lua5.4", f"does not run here: {failure}", "", "", ""])
        finally:
            counter.close()


def jit_p(setup, rows):
    with start(setup, "luajit", {"BENCH_PROFILE": setup.path("log/jit.p")}) as target:
        counter = Counter(target)
        # Turning it on or off discards all machine code.
        measured = by_windows(counter, lambda on: counter.want(PROFILER if on else 0), 5 if setup.quick else 20, 0.2, settle=0.1)
        counter.close()
    with open(setup.path("log/jit.p"), encoding="utf-8") as file:
        if "work" not in file.read():
            raise Failed("jit.p has not seen the workload")
    rows.append(["LuaJIT's `jit.p`, 1 ms, in the target", "luajit", measured.cost(1000), percent(measured.slowdown()), "the target's", SEES["jit.p"]])


def hook(setup, rows):
    """Starts with any count, to find the one that makes a thousand calls a second."""
    count = 10000
    for final in (False, True):
        with start(setup, "lua5.4", {"BENCH_COUNT": str(count)}) as target:
            counter = Counter(target)
            looks = counter.read()[1]
            measured = by_windows(counter, lambda on, counter=counter: counter.want(HOOK if on else 0), 30 if final and not setup.quick else 5, 0.06)
            rate = (counter.read()[1] - looks) / measured.on_wall
            counter.close()
        if rate == 0:
            raise Failed("the count hook is not called")
        if not final:
            count = max(100, round(count * rate / 1000))
    rows.append([f"a count hook with `debug.traceback`, every {count} instructions ({rate:.0f} Hz), in the target", "lua5.4", measured.cost(rate),
                 percent(measured.slowdown()), "the target's", SEES["hook"]])


def measure(setup, report):
    rows = []
    native = in_process(setup, rows)
    once(setup, rows, "eu-stack", ["eu-stack"], r"^#\d+", native)
    once(setup, rows, "gdb", ["gdb", "-batch", "-nx", "-ex", "bt"], r"^#\d+", native)
    perf(setup, rows, "perf record -g", ["-g"], native)
    perf(setup, rows, "perf record --call-graph dwarf", ["--call-graph", "dwarf"], native)
    jit_p(setup, rows)
    hook(setup, rows)
    report.table("Others on the same targets (20 native and 10 Lua frames); in-process ones and luaspy from the target's CPU, programs from another one", COLUMNS, rows)
