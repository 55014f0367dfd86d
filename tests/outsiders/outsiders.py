#!/usr/bin/env python3
"""Judges luaspy on programs from Debian that embed Lua and are used in no other test.

    outsiders.py LUASPY WORKDIR [NAME...]     judges all hosts of hosts.toml, or the named ones
    outsiders.py --list                       lists the hosts
    outsiders.py --markdown FILE ...          also writes the table as a page

Each host is unpacked below WORKDIR (nothing is installed) and runs work.lua in a chroot: three parts that share its CPU time
50 : 30 : 20 by its own clock. So what luaspy must show is known in advance. Exit status 1: a host was not available, or
luaspy was wrong about one.
"""
import argparse
import ctypes
import dataclasses
import datetime
import os
import pathlib
import platform
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
import tomllib

HERE = pathlib.Path(__file__).resolve().parent
PARTS = {"lua_part": 50, "callback_part": 30, "coroutine_part": 20}
CHAIN = ["run", "work", "slice"]  # the callers of each part, outermost first
CALLBACKS = {"replace": "gsub", "before": "sort"}  # their callers, in C
# The functions with most of each part's time, and their least percentage: without these a stack has
# lost its inner half.
INNER = {"lua_part": ({"spin"}, 90), "callback_part": (set(CALLBACKS), 60), "coroutine_part": ({"descend"}, 75)}
RIGHT = "right"
NOT_JOINED = "[native and Lua frames not joined]"
DEPTH = 21  # frames of descend in a coroutine, at most
ELSEWHERE = 2.0  # default percentage of the samples that may be outside of the parts

ADDRESS = "127.61.17.5"  # where hosts without a unix socket listen: nothing else uses this address

CLONE_NEWNS, CLONE_NEWUSER = 0x20000, 0x10000000
MS_BIND, MS_REC, MS_PRIVATE = 4096, 16384, 1 << 18
PR_SET_CHILD_SUBREAPER = 36
libc = ctypes.CDLL(None, use_errno=True)


class Unavailable(Exception):
    """A host that is not available, or does not start to work."""


def call(function, *arguments):
    if function(*arguments) != 0:
        raise OSError(ctypes.get_errno(), f"{function.__name__}: {os.strerror(ctypes.get_errno())}")


def mount(source, target, flags):
    call(libc.mount, source and os.fsencode(source), os.fsencode(target), None, flags, None)


def enter(root, folder, as_user):
    """In the new process: makes `root` its root, with `folder` as /outsider. Root does not need a user namespace for this."""
    user, group = os.geteuid(), os.getegid()
    call(libc.unshare, CLONE_NEWNS | (CLONE_NEWUSER if user else 0))
    if user:
        inside = 1000 if as_user else 0
        pathlib.Path("/proc/self/setgroups").write_text("deny")
        pathlib.Path("/proc/self/uid_map").write_text(f"{inside} {user} 1")
        pathlib.Path("/proc/self/gid_map").write_text(f"{inside} {group} 1")
    mount(None, "/", MS_REC | MS_PRIVATE)
    for system in ("/proc", "/dev"):
        mount(system, f"{root}{system}", MS_BIND | MS_REC)
    mount(folder, f"{root}/outsider", MS_BIND)
    mount(f"{folder}/tmp", f"{root}/tmp", MS_BIND)
    os.chroot(root)
    os.chdir("/outsider")
    if not user and as_user:
        os.setgroups([])
        os.setgid(65534)
        os.setuid(65534)


# ---------------------------------------------------------------- processes


def parents():
    """The parent of each process."""
    found = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                found[int(entry)] = int(pathlib.Path(f"/proc/{entry}/stat").read_text().rpartition(")")[2].split()[1])
            except (OSError, IndexError):
                pass
    return found


def descendants():
    """Processes that this one has started, and their descendants; as a subreaper it also finds daemons."""
    above, found = parents(), {os.getpid()}
    while True:
        more = {pid for pid, parent in above.items() if parent in found} - found
        if not more:
            return found - {os.getpid()}
        found |= more


def cpu_seconds(pid):
    try:
        fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    except (OSError, IndexError):
        return 0.0


def end_all():
    """Ends the processes that were started for a host, by pid."""
    for _ in range(50):
        left = descendants()
        for pid in left:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return
        time.sleep(0.02)


# ---------------------------------------------------------------- hosts


@dataclasses.dataclass
class Working:
    pid: int
    lua: str  # its version according to the program; empty if unknown


class Host:
    def __init__(self, recipe):
        self.name = recipe["name"]
        self.root = recipe.get("root", "bookworm")
        self.recipe = recipe
        self.version = ""

    def unpack(self, workdir):
        command = ["bash", str(HERE / "unpack.sh"), str(workdir), self.root, *self.recipe["packages"]]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            raise Unavailable("cannot be unpacked: " + " ".join(done.stderr.strip().splitlines()[-3:]))
        uris = (workdir / "outsiders" / f"{self.root}.have").read_text()
        package = self.recipe.get("versioned", self.recipe["packages"][0])
        found = re.findall(rf"/{re.escape(package)}_([^_/]+)_\w+\.deb$", uris, re.M)
        self.version = re.sub(r"^\d+%3a", "", found[-1]) if found else ""
        if "source" in self.recipe:
            self.compile(workdir)

    def compile(self, workdir):
        """A host of our own: with nothing that is loaded at run time, so that the suite's C library does not matter."""
        root, program = workdir / "outsiders" / self.root, self.program(workdir)
        program.parent.mkdir(exist_ok=True)
        command = ["cc", "-O1", "-g0", "-static", "-Wall", "-o", str(program), str(HERE / "hosts" / self.recipe["source"]), f"-I{root}/usr/include/lua5.4",
                   f"-I{root}/usr/include/x86_64-linux-gnu",
                   f"{root}/usr/lib/x86_64-linux-gnu/liblua5.4.a", "-lm"]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            raise Unavailable("cannot be compiled: " + " ".join(done.stderr.strip().splitlines()[-3:]))

    def program(self, workdir):
        return workdir / "outsiders" / "programs" / self.name

    def start(self, workdir):
        root = workdir / "outsiders" / self.root
        folder = workdir / "outsiders" / "run" / self.name
        shutil.rmtree(folder, ignore_errors=True)
        (folder / "tmp").mkdir(parents=True)
        for path in (folder, folder / "tmp"):
            path.chmod(0o777)
        work = (HERE / "work.lua").read_text().replace("DIRECTORY", "/outsider")
        seconds = "run(1000)"
        for name, text in {"work.lua": "@work@" + seconds + "\n", **self.recipe.get("files", {})}.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text.replace("@work@", work).replace("@run@", seconds))
        for name, text in self.recipe.get("hex", {}).items():
            (folder / name).write_bytes(bytes.fromhex(text))
        if "source" in self.recipe:
            shutil.copy(self.program(workdir), folder / "host")
        # The folder's owner is the user who runs the host: only root and that user may write here.
        environment = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/outsider", "TMPDIR": "/tmp", "LC_ALL": "C.UTF-8", "TERM": "dumb",
                       "LD_LIBRARY_PATH": ":".join(f"/usr/lib/x86_64-linux-gnu/{name}" for name in ("blas", "lapack", "pulseaudio")),
                       **self.recipe.get("environment", {})}
        with open(folder / "output", "wb") as output:
            as_user, terminal = self.recipe.get("as_user", False), self.recipe.get("terminal", False)
            stdin, stdout = subprocess.DEVNULL, output
            if terminal:
                environment["TERM"] = "linux"
                self.terminal, stdin = os.openpty()
                stdout = stdin
            process = subprocess.Popen(self.recipe["command"], env=environment, stdout=stdout, stderr=output, stdin=stdin,
                                       start_new_session=True, preexec_fn=lambda: enter(str(root), str(folder), as_user))
        if "request" in self.recipe:
            script = self.recipe.get("script", "").replace("@work@", work).replace("@run@", seconds)
            request = self.recipe["request"].replace("@size@", str(len(script))).replace("@script@", script).encode()
            process.connections = []  # live as long as the process
            for _ in range(self.recipe.get("requests", 1)):
                process.connections.append(self.connect(folder, process))
                process.connections[-1].sendall(request)
        working = self.await_ready(folder, process)
        return dataclasses.replace(working, pid=process.pid) if self.recipe.get("tree") else working

    def connect(self, folder, process):
        """Connects to the host's socket, /outsider/socket, or to its port, as soon as it listens there."""
        deadline = time.monotonic() + 30
        descriptor = os.open(folder, os.O_PATH)
        while time.monotonic() < deadline and process.poll() is None:
            if "port" in self.recipe:
                try:
                    return socket.create_connection((ADDRESS, self.recipe["port"]))
                except OSError:
                    time.sleep(0.05)
                    continue
            connection = socket.socket(socket.AF_UNIX)
            try:
                # The path may be too long for a socket address.
                connection.connect(f"/proc/self/fd/{descriptor}/socket")
                return connection
            except OSError:
                connection.close()
                time.sleep(0.05)
        raise Unavailable("does not listen: " + self.said(folder))

    def await_ready(self, folder, process):
        deadline = time.monotonic() + self.recipe.get("patience", 60)
        while time.monotonic() < deadline:
            try:
                said = (folder / "ready").read_text().splitlines()
                if len(said) == 2 and process:
                    return Working(int(said[0]), said[1])
            except (OSError, ValueError):
                pass
            if self.recipe.get("mute"):  # this Lua cannot write files: the process that uses the CPU is the one at work
                pid = max(descendants(), key=cpu_seconds, default=0)
                if cpu_seconds(pid) > 1.5:
                    return Working(pid, "")
            if not descendants() or (process.poll() not in (None, 0)):
                break
            time.sleep(0.05)
        raise Unavailable("does not get to work: " + self.said(folder, process))

    @staticmethod
    def said(folder, process=None):
        """The last lines of the host's output and of its answer."""
        text = (folder / "output").read_text(errors="replace").strip().splitlines()[-4:]
        for connection in getattr(process, "connections", [])[:1]:
            connection.setblocking(False)
            try:
                text.append(connection.recv(1000).decode(errors="replace"))
            except OSError:
                pass
        return " / ".join(text)[-600:] or "it says nothing"


# ---------------------------------------------------------------- the judge


def lines_of_functions():
    """The line of work.lua on which each of its functions begins."""
    text = (HERE / "work.lua").read_text().splitlines()
    found = {}
    for number, line in enumerate(text, 1):
        if match := re.match(r"local function (\w+)", line):
            found[number] = match[1]
    return found


@dataclasses.dataclass
class Verdict:
    rate: int
    samples: int = 0
    shares: dict = dataclasses.field(default_factory=dict)  # percent of all samples
    elsewhere: float = 0.0
    with_lua: float = 0.0
    complete: float = 0.0
    lua: str = ""
    faults: list = dataclasses.field(default_factory=list)
    summary: str = ""


FRAME = re.compile(r"^(.*) \((.*):(\d+)\)$")


class Judge:
    def __init__(self, verdict, recipe):
        self.functions = lines_of_functions()
        self.verdict = verdict
        self.recipe = recipe
        self.counts = dict.fromkeys(PARTS, 0)
        self.inner = dict.fromkeys(PARTS, 0)
        self.wrong = {}  # what is wrong: [samples, an example]

    def fault(self, kind, count, example):
        entry = self.wrong.setdefault(kind, [0, example])
        entry[0] += count

    def file_of(self, stacks):
        """luaspy's name of work.lua's chunk: the file of most frames with the first line of lua_part."""
        line = next(line for line, name in self.functions.items() if name == "lua_part")
        files = {}
        for frames, count in stacks:
            for frame in frames:
                if (match := FRAME.match(frame)) and int(match[3]) == line:
                    files[match[2]] = files.get(match[2], 0) + count
        return max(files, key=files.get) if files else None

    def judge_stack(self, frames, count, file):
        own = []  # (position, function, the name shown) of the frames of work.lua
        for position, frame in enumerate(frames):
            match = FRAME.match(frame)
            if match and match[2] == file and int(match[3]) in self.functions:
                own.append((position, self.functions[int(match[3])], match[1]))
        names = [function for _, function, _ in own]
        stack = ";".join(frames)
        if NOT_JOINED in stack:
            self.fault("native and Lua frames not joined", count, stack)
        for _, function, shown in own:
            # Functions that C calls have no name.
            if shown != function and not (shown == "function" and function in (*CALLBACKS, "descend", "run")):
                self.fault(f"{function} is called {shown}", count, stack)
                break
        part = next((name for name in names if name in PARTS), None)
        if part is None and self.recipe.get("scheduled") and "descend" in names:
            part = "coroutine_part"
            names, own = [*CHAIN, part, *names], [(-1, "", "")] * 4 + own
        if part is None:
            if set(names) & {*CALLBACKS, "descend", "spin"}:
                self.fault("a part's function without its part", count, stack)
            return
        self.counts[part] += count
        self.inner[part] += count if INNER[part][0] & set(names) else 0
        at = names.index(part)
        if names[:at] != CHAIN:
            self.fault("not below run, work, slice", count, stack)
        for callback, caller in CALLBACKS.items():
            if callback in names:
                between = frames[own[at][0] + 1:own[names.index(callback)][0]]
                if part != "callback_part" or not any(caller in frame and frame.endswith("[C]") for frame in between):
                    self.fault(f"{callback} not below {caller}", count, stack)
        depth = names.count("descend")
        if depth and (part != "coroutine_part" or depth > DEPTH or "descend" in names[:at]):
            self.fault("the coroutine is not below its resumer", count, stack)

    def judge(self, folded, summary, truth):
        verdict = self.verdict
        verdict.summary = summary
        stacks = []
        for line in folded.splitlines():
            stack, _, count = line.rpartition(" ")
            stacks.append((stack.split(";"), int(count)))
        verdict.samples = total = sum(count for _, count in stacks)
        number = lambda pattern: float(match[1]) if (match := re.search(pattern, summary)) else -1.0
        verdict.with_lua = number(r"([\d.]+) % have Lua")
        verdict.complete = number(r"([\d.]+) % reach")
        verdict.lua = match[1] if (match := re.search(r"times a second; (.*)$", summary, re.M)) else "?"
        if total < 20:
            verdict.faults.append(f"{total} samples only")
            return
        file = self.file_of(stacks)
        if file is None:
            verdict.faults.append("no frame of the script")
        for frames, count in stacks:
            self.judge_stack(frames, count, file)
        verdict.shares = {part: 100 * count / total for part, count in self.counts.items()}
        verdict.elsewhere = abs(100 - sum(verdict.shares.values()))
        allowed = self.recipe.get("elsewhere", ELSEWHERE)
        for part, goal in PARTS.items():
            tolerance = 2 + 400 * (goal / 100 * (1 - goal / 100) / total) ** 0.5 + (allowed * goal / 100 if allowed > ELSEWHERE else 0)
            if abs(verdict.shares[part] - goal) > tolerance:
                verdict.faults.append(f"{part} has {verdict.shares[part]:.1f} %, not {goal} ± {tolerance:.1f}")
        for part, (inner, least) in INNER.items():
            share = 100 * self.inner[part] / max(self.counts[part], 1)
            verdict.summary += f"\n  {'/'.join(sorted(inner))} in {share:.1f} % of {part}"
            if share < least:
                verdict.faults.append(f"{'/'.join(sorted(inner))} in {share:.1f} % of {part} only")
        if verdict.elsewhere > allowed + 400 * (allowed / 100 / total) ** 0.5:
            verdict.faults.append(f"{verdict.elsewhere:.1f} % outside of the parts")
        if verdict.with_lua < min(98, 100 - allowed):
            verdict.faults.append(f"{verdict.with_lua:.1f} % with Lua")
        if verdict.complete < 98 and "incomplete" not in self.recipe:
            verdict.faults.append(f"native part complete in {verdict.complete:.1f} %")
        for kind, (count, example) in self.wrong.items():
            if count > 0.02 * total:
                verdict.faults.append(f"{100 * count / total:.1f} % {kind}")
                verdict.summary += f"\n  example: {kind}: {example}"
        series = re.search(r"LuaJIT|\d+\.\d+", truth)
        if series and series[0] not in verdict.lua:
            verdict.faults.append(f"recognised as {verdict.lua}, it is {truth}")


def record(luaspy, working, rate, seconds, recipe, truth):
    verdict = Verdict(rate)
    command = [luaspy, "record", "--pid", str(working.pid), "-d", str(seconds), "-r", str(rate), "--max-stopped", "100", "-f", "folded", "-o", "-"]
    if recipe.get("tree"):
        command.append("-s")
    try:
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", stdin=subprocess.DEVNULL, timeout=seconds + 60)
    except subprocess.TimeoutExpired:
        verdict.faults.append("luaspy does not end")
        return verdict, ""
    if done.returncode:
        verdict.faults.append(f"luaspy ends with {done.returncode}: {done.stderr.strip().splitlines()[-1] if done.stderr.strip() else ''}")
        verdict.summary = done.stderr
    else:
        Judge(verdict, recipe).judge(done.stdout, done.stderr, truth)
    return verdict, done.stdout


def judge_host(host, luaspy, workdir, rates):
    """Verdicts for one host, one per rate."""
    host.unpack(workdir)
    try:
        try:
            working = host.start(workdir)
        except (OSError, subprocess.SubprocessError) as error:
            raise Unavailable(f"cannot be started: {error}") from error
        truth = working.lua or host.recipe.get("lua", "")
        verdicts = []
        for rate, seconds in rates:
            verdict, folded = record(luaspy, working, rate, seconds, host.recipe, truth)
            verdicts.append(verdict)
            kept = workdir / "outsiders" / "run" / f"{host.name}.{rate}"
            kept.with_name(kept.name + ".folded").write_text(folded)
            kept.with_name(kept.name + ".summary").write_text(verdict.summary)
        return working, verdicts
    finally:
        end_all()


# ---------------------------------------------------------------- tables


def cells(host, truth, verdict):
    shares = " / ".join(f"{verdict.shares.get(part, 0):.1f}" for part in PARTS)
    return [host.name, f"{host.version} ({host.root.split('-')[0]})", truth, verdict.lua, str(verdict.rate), str(verdict.samples), shares,
            f"{verdict.elsewhere:.1f}", f"{verdict.with_lua:.1f}", f"{verdict.complete:.1f}", "; ".join(verdict.faults) or RIGHT + (f"; {host.recipe['incomplete']}" if "incomplete" in host.recipe else "")]


HEADS = ["host", "package", "its Lua", "luaspy says", "Hz", "samples", "loop / callback / coroutine %", "elsewhere %", "with Lua %", "native complete %", "verdict"]


def markdown(rows, unavailable, rates):
    version = datetime.date.today().isoformat()
    text = (HERE / "page.md").read_text().replace("@date@", version).replace("@kernel@", f"{platform.system()} {platform.release()}")
    text = text.replace("@rates@", ", then ".join(f"at {rate} Hz for {seconds} s" for rate, seconds in rates))
    hosts = {row[0] for row in rows}
    right = hosts - {row[0] for row in rows if not row[-1].startswith(RIGHT)}
    text = text.replace("@count@", f"{len(right)} of {len(hosts)} hosts were judged right at every rate.")
    table = ["| " + " | ".join(HEADS) + " |", "|" + "---|" * len(HEADS)]
    table += ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows]
    if unavailable:
        table += ["", "Not available in this run: " + ", ".join(unavailable) + "."]
    return text.replace("@table@", "\n".join(table))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("luaspy", nargs="?")
    parser.add_argument("workdir", nargs="?", type=pathlib.Path)
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--list", action="store_true", help="print the hosts' names and packages")
    parser.add_argument("--markdown", type=pathlib.Path, metavar="FILE", help="write the table as a page")
    parser.add_argument("--quick", action="store_true", help="500 Hz only, for 3 seconds")
    options = parser.parse_args()
    hosts = [Host(recipe) for recipe in tomllib.loads((HERE / "hosts.toml").read_text())["host"]]
    if options.list:
        for host in hosts:
            print(f"{host.name:<16} {host.root:<16} {' '.join(host.recipe['packages'])}")
        return 0
    if not options.luaspy or not options.workdir:
        parser.error("LUASPY and WORKDIR are needed")
    known = {host.name: host for host in hosts}
    if unknown := [name for name in options.names if name not in known]:
        parser.error("no such host: " + " ".join(unknown))
    chosen = [known[name] for name in options.names] or hosts
    options.workdir.mkdir(parents=True, exist_ok=True)
    workdir = options.workdir.resolve()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that everything that was started is ended first
    libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    rates = [(500, 3)] if options.quick else [(100, 5), (1000, 3)]
    rows, unavailable, wrong = [], [], []
    for host in chosen:
        try:
            working, verdicts = judge_host(host, options.luaspy, workdir, rates)
        except Unavailable as reason:
            unavailable.append(host.name)
            print(f"{host.name}: {reason}", flush=True)
            continue
        for verdict in verdicts:
            row = cells(host, working.lua or host.recipe.get("lua", ""), verdict)
            rows.append(row)
            print("  ".join(row), flush=True)
        if any(verdict.faults for verdict in verdicts):
            wrong.append(host.name)
    if options.markdown:
        options.markdown.write_text(markdown(rows, unavailable, rates))
    if wrong:
        print("wrong: " + " ".join(wrong))
    if unavailable:
        print("not available: " + " ".join(unavailable))
    return 1 if wrong or unavailable else 0


if __name__ == "__main__":
    sys.exit(main())
