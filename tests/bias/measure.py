"""One run of bias.py: a target under some conditions, sampled by luaspy and by perf at the same time."""
import contextlib
import dataclasses
import math
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
KINDS = ["nothing", "clock", "write", "futex", "send", "recv", "os.clock", "nothing of Lua"]   # as in bias.c
WORDS, SLOTS = 64, 65
NOBODY = 65534


@dataclasses.dataclass(frozen=True)
class Cell:
    """One run: the target, its work, and the conditions."""
    target: str
    command: tuple
    kind: str
    microseconds: int
    spinners: int = 0
    user: bool = False
    rate: int = 1000
    threads: int = 1
    quota: int = 0          # percent of a CPU, 0: unlimited
    cpu: int = -1           # the CPU to which the target is pinned, -1: not pinned

    def calls(self):
        return ["send", "recv"] if self.kind == "socket" else [self.kind]

    def conditions(self):
        words = [f"{self.spinners} spinners", "user" if self.user else "root", f"{self.rate} Hz"]
        words += [f"{self.threads} threads"] * (self.threads > 1)
        words += [f"quota {self.quota} %"] * (self.quota > 0)
        words += [f"on CPU {self.cpu}"] * (self.cpu >= 0)
        return ", ".join(words)


@dataclasses.dataclass
class Share:
    """The share of one call in all samples (perf, luaspy) or in the CPU time (clock)."""
    hits: int = 0
    samples: int = 0

    @property
    def share(self):
        return self.hits / self.samples if self.samples else math.nan


@dataclasses.dataclass
class Result:
    cell: Cell
    call: str
    luaspy: Share
    perf: Share
    clock: float            # by the target's own clock
    executing: float        # samples for each tick that found a thread executing
    summary: str

    def from_perf(self):
        """How many standard deviations luaspy's share is from perf's, based on the samples of both."""
        if not self.luaspy.samples or not self.perf.samples:
            return math.nan
        share = (self.luaspy.hits + self.perf.hits + 1) / (self.luaspy.samples + self.perf.samples + 2)
        variance = share * (1 - share) * (1 / self.luaspy.samples + 1 / self.perf.samples)
        return (self.luaspy.share - self.perf.share) / math.sqrt(variance)

    def from_clock(self):
        """The same for the target's clock, which is wrong by up to a tenth: it does not include the way into the call."""
        if not self.luaspy.samples or math.isnan(self.clock):
            return math.nan
        share = min(1.0, max(self.clock, 1 / self.luaspy.samples))
        variance = share * (1 - share) / self.luaspy.samples + (0.1 * self.clock) ** 2
        return (self.luaspy.share - self.clock) / math.sqrt(variance)

    def truth(self):
        """perf's share or the clock's: with only a few samples in the call, the clock is more precise."""
        return self.perf.share if self.perf.hits >= 100 else self.clock


class Counters:
    """The file that bias.c counts in."""

    def __init__(self, path):
        self.path = path
        with open(path, "wb") as file:
            file.truncate(WORDS * SLOTS * 8)
        os.chmod(path, 0o666)

    def read(self):
        with open(self.path, "rb") as file:
            words = memoryview(file.read()).cast("q")
        return [words[i * WORDS:(i + 1) * WORDS].tolist() for i in range(SLOTS)]

    @staticmethod
    def threads(slots):
        return [slot for slot in slots[1:] if slot[0]]

    @staticmethod
    def ns_in(slots, call):
        """CPU time in the calls of one kind, all threads together."""
        per_ns = slots[0][0] / 1e6
        index, total = KINDS.index(call), 0.0
        for slot in Counters.threads(slots):
            calls, sums, believed = (slot[1 + i * len(KINDS):1 + (i + 1) * len(KINDS)] for i in range(3))
            if believed[index]:
                less = 7 if call == "os.clock" else 0
                empty = sums[less] / believed[less] if believed[less] else 0
                total += calls[index] * max(0.0, sums[index] / believed[index] - empty)
        return total / per_ns


def cpu_ns(pid, threads):
    total = 0
    for slot in threads:
        with open(f"/proc/{pid}/task/{slot[0]}/schedstat") as file:
            total += int(file.read().split()[0])
    return total


@contextlib.contextmanager
def started(command, **options):
    process = subprocess.Popen(command, **options)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


@contextlib.contextmanager
def limited(pid, percent):
    """Puts the process into a cgroup that gives it so many percent of one CPU, in slices of 100 ms."""
    if not percent:
        yield
        return
    version1 = "/sys/fs/cgroup/cpu"
    root = version1 if os.path.exists(version1 + "/cpu.cfs_quota_us") else "/sys/fs/cgroup"
    group = f"{root}/luaspy-bias-{pid}"
    try:
        os.mkdir(group)
        if root == version1:
            write_file(group + "/cpu.cfs_period_us", 100000)
            write_file(group + "/cpu.cfs_quota_us", percent * 1000)
        else:
            with contextlib.suppress(OSError):
                write_file(root + "/cgroup.subtree_control", "+cpu")
            write_file(group + "/cpu.max", f"{percent * 1000} 100000")
        write_file(group + "/cgroup.procs", pid)
    except OSError as error:
        raise SystemExit(f"a quota cannot be set: {error}") from error
    try:
        yield
    finally:
        with contextlib.suppress(OSError):
            write_file(root + "/cgroup.procs", pid)
        for _ in range(100):
            with contextlib.suppress(OSError):
                os.rmdir(group)
                break
            time.sleep(0.05)


def write_file(path, text):
    with open(path, "w") as file:
        file.write(str(text))


def folded(path, call):
    """Samples of a folded profile, and those of one call among them."""
    frame = re.compile(r"(^|;)os\.clock \[C\]" if call == "os.clock" else rf"(^|;)bias_call_{call}\b")
    found = Share()
    with open(path) as file:
        for line in file:
            stack, _, count = line.rpartition(" ")
            found.samples += int(count)
            if frame.search(stack):
                found.hits += int(count)
    return found


def in_call(frames, call):
    """Whether a sample of perf is in the call: a system call, the C library on its way there, or bias.c's function."""
    symbols = [symbol for symbol, _ in frames]
    if any(s in ("get_signal", "ptrace_stop", "schedule", "exit_to_user_mode_loop") for s in symbols):
        return False            # it is being stopped, or is given the CPU back: this time does not belong to the call
    symbol, module = frames[0]
    if symbol == f"bias_call_{call}":
        return True
    if "[kernel" in module or "[guest.kernel" in module:
        return any(s.startswith(("do_syscall_64", "entry_SYSCALL", "__x64_sys", "syscall_", "x64_sys")) for s in symbols)
    return "vdso" in module or "libc.so" in module or "libc-" in module


CALL_NUMBERS = {"send": "sendto", "recv": "recvfrom"}


def perf_shares(data, calls):
    text = subprocess.run(["perf", "script", "-i", data, "-F", "ip,sym,dso"], stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, check=True, text=True, errors="replace").stdout
    found = {call: Share() for call in calls}
    line_of = re.compile(r"\s*[0-9a-f]+ (.*?)(?:\+0x[0-9a-f]+)? \((.*)\)$")
    for sample in text.split("\n\n"):
        frames = [match.groups() for match in map(line_of.match, sample.splitlines()) if match]
        if not frames:
            continue
        for call in calls:
            found[call].samples += 1
            if in_call(frames, call) and (len(calls) == 1 or belongs(frames, call, calls)):
                found[call].hits += 1
    return found


def belongs(frames, call, calls):
    """Which of several calls a sample is in, by any function that only one of them has."""
    symbols = " ".join(symbol for symbol, _ in frames)
    named = [one for one in calls if re.search(rf"(\b|_){one}|{CALL_NUMBERS[one]}", symbols)]
    return call in named[:1] if named else call == calls[0]


@contextlib.contextmanager
def perf_started(pid, data):
    """perf, which samples all threads of a process from now on. SIGINT ends it."""
    (control, say), (hear, answer) = os.pipe(), os.pipe()
    command = ["perf", "record", "-q", "-g", "-e", "cpu-clock", "-F", "997", "-o", data, "-p", str(pid),
               "-D", "-1", "--control", f"fd:{control},{answer}"]
    try:
        with started(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, pass_fds=(control, answer)) as perf:
            os.close(answer)
            answer = -1
            os.write(say, b"enable\n")
            if not os.read(hear, 100).startswith(b"ack"):
                raise SystemExit("perf does not start")
            yield perf
    finally:
        for end in (control, say, hear) + (answer,) * (answer >= 0):
            os.close(end)


class Workplace:
    """A folder that any user may use, with the compiled parts of the workloads."""

    def __init__(self, luaspy, use_perf=True, held=-1):
        self.folder = tempfile.mkdtemp(prefix="luaspy-bias-")
        os.chmod(self.folder, 0o777)
        self.module = self.folder + "/bias.so"
        subprocess.run(["cc", "-O2", "-fPIC", "-shared", "-pthread", "-o", self.module, HERE + "/bias.c"], check=True)
        self.spinner = self.folder + "/spinner"
        subprocess.run(["cc", "-x", "c", "-o", self.spinner, "-"], input=b"int main(void) { for (;;) {} }", check=True)
        self.script = shutil.copy(HERE + "/work.lua", self.folder)
        self.luaspy = ["taskset", "-c", str(held)] * (held >= 0) + [shutil.copy(luaspy, self.folder)]
        self.perf = use_perf and os.geteuid() == 0 and bool(shutil.which("perf"))
        for name in os.listdir(self.folder):
            os.chmod(f"{self.folder}/{name}", 0o755)

    def remove(self):
        shutil.rmtree(self.folder, ignore_errors=True)

    def measure(self, cell, seconds):
        who = {"user": NOBODY, "group": NOBODY, "extra_groups": []} if cell.user and os.geteuid() == 0 else {}
        counters = Counters(self.folder + "/counters")
        profile, data = self.folder + "/profile.folded", self.folder + "/perf.data"
        for path in (profile, data):
            with contextlib.suppress(FileNotFoundError):
                os.remove(path)
        command = ["taskset", "-c", str(cell.cpu)] * (cell.cpu >= 0) + list(cell.command)
        command += [self.script, self.module, counters.path, cell.kind, str(cell.microseconds), str(cell.threads)]
        with contextlib.ExitStack() as stack:
            target = stack.enter_context(started(command, stdout=subprocess.PIPE, cwd=self.folder, **who))
            if target.stdout.readline() != b"READY\n":
                raise SystemExit(f"{cell.target} does not work: {' '.join(command)}")
            while len(Counters.threads(counters.read())) < cell.threads:
                time.sleep(0.01)
            stack.enter_context(limited(target.pid, cell.quota))
            for _ in range(cell.spinners):
                stack.enter_context(started([self.spinner]))
            if self.perf:
                perf = stack.enter_context(perf_started(target.pid, data))
            before, time_before = counters.read(), time.monotonic()
            cpu_before = cpu_ns(target.pid, Counters.threads(before))
            run = subprocess.run(self.luaspy + ["record", "--pid", str(target.pid), "-d", str(seconds), "-r", str(cell.rate),
                                                "-f", "folded", "-o", profile],
                                 stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, cwd=self.folder, **who)
            after, wall = counters.read(), time.monotonic() - time_before
            cpu = cpu_ns(target.pid, Counters.threads(after)) - cpu_before
            if run.returncode != 0 and not os.path.exists(profile):
                raise SystemExit(f"luaspy failed ({run.returncode}): {run.stderr}")
            if self.perf:
                perf.send_signal(signal.SIGINT)
                perf.wait()
            truths = perf_shares(data, cell.calls()) if self.perf else {}
        recorded = re.search(r"luaspy: ([0-9.]+) s", run.stderr)
        ticks = cell.rate * cpu / 1e9 * (float(recorded[1]) / wall if recorded else 1)
        results = []
        for call in cell.calls():
            clock = (Counters.ns_in(after, call) - Counters.ns_in(before, call)) / cpu
            found = folded(profile, call)
            executing = found.samples / max(1, ticks)
            results.append(Result(cell, call, found, truths.get(call, Share()), clock, executing, run.stderr))
        return results


