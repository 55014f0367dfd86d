#!/usr/bin/env python3
"""Runs each command line of README.md, docs/ and --help as it is written there.

    commands.py LUASPY SOURCE TARGETS WORK

A command line is a line of a block of code, or of the examples of --help, that begins with `luaspy`; what follows `#`, or in
--help two blanks, says what it is for. Each is run in a PID namespace and in a folder with what the lines name: my.lua in Debian's
lua5.4 as process 1234, nginx with two workers, redis-server and Neovim in a script, and files. It has to end with status 0, and to print
something or write its file. What records for long is ended by Ctrl-C, as people end it; what needs a terminal has one, in which q is
pressed.
"""
import concurrent.futures
import contextlib
import http.server
import json
import os
import pathlib
import pty
import re
import select
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

PID = 1234
LIMIT = 60           # seconds for one command
ENOUGH = 1.5         # seconds, after which a recording of a given duration is ended
NO_SAMPLES = 11      # a status of luaspy
LUA, REDIS, NGINX, NEOVIM = "debian-lua5.4-bookworm", "redis", "nginx", "neovim"

MY_LUA = """
-- Objects of a class, and functions with these names, which the examples ask for.
Account = {__name = "Account"}
Account.__index = Account
accounts = {}
local function discount(sum) local x = sum for i = 1, 200 do x = x * 0.999 + i % 3 end return x end
for i = 1, 500 do accounts[i] = setmetatable({balance = i}, Account) end
local waiting = coroutine.wrap(function() coroutine.yield() end)
waiting()
if arg[1] == "for ever" then io.write("READY\\n") io.flush() end
local stop = os.clock() + 0.5
while arg[1] == "for ever" or os.clock() < stop do
  for i = 1, 500 do accounts[i] = setmetatable({balance = discount(i)}, Account) end
end
"""

# Requests are all that works: one takes some 600 ms, longer than the examples call slow, and works and waits by turns. Of four at a time,
# one always waits.
BEGIN = "io.stdout:write('READY\\n') io.stdout:flush()"
SERVE = "for _ = 1, 10 do local begin = os.clock() repeat for i = 1, 1e4 do local x = i % 3 end until os.clock() - begin > 0.015 ngx.sleep(0.045) end ngx.say('done')"


def of_markdown(page):
    inside = False
    for line in page.read_text(encoding="utf-8").splitlines():
        if line.startswith("```"):
            inside = not inside
        elif inside and re.match(r"luaspy [a-z]+( |$)", line):
            yield re.split(r"\s+#", line)[0].strip()


def of_help(luaspy):
    commands = ["", "record", "report", "top", "dump", "ps", "heap", "alloc", "doctor", "jit", "push", "agent"]
    for command in commands:
        text = subprocess.run([luaspy, *([command] if command else []), "--help"], check=True, capture_output=True, text=True).stdout
        for line in text.splitlines():
            if re.match(r" +luaspy [a-z]+ ?", line) and "[OPTIONS]" not in line:
                yield re.split(r"  +", line.strip())[0]


def target(targets, name):
    for file in ("targets.tsv", "hosts.tsv", "luajit-hosts.tsv", "luajits.tsv"):
        for line in (targets / file).read_text().splitlines():
            fields = line.split("\t")
            if fields[0] == name:
                return fields[3].split(" ")
    raise SystemExit(f"commands: {name} is not prepared in {targets}")


class Engines(http.server.BaseHTTPRequestHandler):
    """Of the environment's proxy: all engines that the lines name."""

    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_):
        pass


class Place:
    """A folder with the files that the lines name, and the programs. Only in a PID namespace of its own."""

    def __init__(self, luaspy, targets, folder):
        self.folder = folder
        folder.mkdir(parents=True)
        self.programs = []
        self.targets = targets
        (folder / "bin").mkdir()
        self.environment = {**os.environ, "PATH": f"{folder / 'bin'}:{os.environ['PATH']}", "LC_ALL": "C.UTF-8", "TERM": "xterm", "COLUMNS": "100", "LINES": "40", "DISPLAY": ":9", "XDG_RUNTIME_DIR": str(folder)}
        engines = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Engines)
        threading.Thread(target=engines.serve_forever, daemon=True).start()
        self.environment = {**self.environment, "http_proxy": f"http://127.0.0.1:{engines.server_address[1]}", "no_proxy": ""}
        self.script("luaspy", [str(luaspy)])
        self.script("lua5.4", target(targets, LUA))
        self.script("luajit", target(targets, "debian-luajit-bookworm"))
        self.script("xdg-open", ["true"])   # a browser
        for name in ("my.lua", "app.lua", "benchmark.lua"):
            (folder / name).write_text(MY_LUA)

    def script(self, name, command):
        path = self.folder / "bin" / name
        path.write_text("#!/bin/sh\nexec " + " ".join(f"'{word}'" for word in command) + ' "$@"\n')
        path.chmod(0o755)

    def start(self, command, ready="READY"):
        program = subprocess.Popen(command, cwd=self.folder, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True)
        self.programs.append(program)
        while ready:
            line = program.stdout.readline()
            if ready in line:
                break
            if not line:
                raise SystemExit(f"commands: {command} did not get ready")
        return program

    def start_all(self, lines):
        pathlib.Path("/proc/sys/kernel/ns_last_pid").write_text(str(PID - 1))
        program = self.start([*target(self.targets, LUA), "my.lua", "for ever"])
        if program.pid != PID:
            raise SystemExit(f"commands: the program is {program.pid}, not {PID}")
        if any("--snapshot " in line for line in lines):
            self.start_agent()
        if any("nginx" in line for line in lines):
            self.start_nginx()
        if any("redis" in line for line in lines):
            self.start_redis()
        if any("nvim" in line for line in lines):
            self.start_neovim()

    def start_agent(self):
        """That which the lines ask for snapshots, once it has samples."""
        (self.folder / "kept").mkdir()
        self.programs.append(subprocess.Popen(["luaspy", "agent", "--keep", "1m", "--snapshots", "kept"], cwd=self.folder, env=self.environment, stderr=subprocess.DEVNULL))
        end = time.monotonic() + LIMIT
        while subprocess.run(["luaspy", "agent", "--snapshot", str(PID)], cwd=self.folder, env=self.environment, check=False, capture_output=True).returncode != 0:
            if time.monotonic() > end:
                raise SystemExit("commands: the agent has no samples")

    def start_nginx(self):
        nginx = target(self.targets, NGINX)
        configuration = pathlib.Path(nginx[-1]).read_text().replace("master_process off;", f"master_process on; worker_processes 2; {'user root;' if os.geteuid() == 0 else ''}")
        for part, instead in (("start", BEGIN), ("serve", SERVE)):
            if f'require("host-nginx").{part}()' not in configuration:
                raise SystemExit(f"commands: {nginx[-1]} has no {part}()")
            configuration = configuration.replace(f'require("host-nginx").{part}()', instead)
        (self.folder / "nginx.conf").write_text(configuration)
        self.start([*nginx[:-1], str(self.folder / "nginx.conf"), "-p", str(self.folder)])
        for _ in range(4):
            threading.Thread(target=self.ask_nginx, daemon=True).start()

    def ask_nginx(self):
        """For as long as it answers."""
        with contextlib.suppress(OSError):
            while True:
                with socket.socket(socket.AF_UNIX) as connection:
                    connection.connect(str(self.folder / "socket"))
                    connection.sendall(b"GET /cart HTTP/1.0\r\n\r\n")
                    while connection.recv(4096):
                        pass

    def start_redis(self):
        self.start([*target(self.targets, REDIS), "--port", "0", "--unixsocket", "redis", "--dir", str(self.folder), "--save", "", "--appendonly", "no"], "ready to accept")
        self.connection = socket.socket(socket.AF_UNIX)
        os.chdir(self.folder)   # the path of a socket is short
        self.connection.connect("redis")
        self.connection.sendall(b"EVAL \"local x = 0 while true do x = x + 1 end\" 0\r\n")

    def start_neovim(self):
        (self.folder / "busy.lua").write_text("io.write('READY\\n') io.flush() local function redraw() vim.fn.sort(vim.fn.range(2000)) end while true do redraw() end")
        environment, *nvim = target(self.targets, NEOVIM)   # "/usr/bin/env", and what it sets
        self.start([environment, f"HOME={self.folder}", f"XDG_STATE_HOME={self.folder}", *nvim, "--headless", "-u", "NONE", "-i", "NONE", "-n", "-S", "busy.lua"])

    def make_files(self):
        def run(*words):
            done = subprocess.run(words, cwd=self.folder, env=self.environment, check=False, capture_output=True, text=True)
            if done.returncode != 0:
                raise SystemExit(f"commands: {shlex.join(words)}: status {done.returncode}\n{done.stderr}")

        (self.folder / "password").write_text("me:secret\n")
        for name, seconds in (("a", "3.5"), ("b", "1.5"), ("before", "1.5"), ("after", "1.5"), ("shop", "0.5"), ("prof", "0.5")):   # of `a`, seconds 2 to -1 are asked for
            run("luaspy", "record", "-f", "raw", "-o", f"{name}.luaspy", "-d", seconds, "--pid", str(PID))
        for name in ("before", "now"):
            run("luaspy", "heap", "-o", f"{name}.luaheap", "--pid", str(PID))
        run("luaspy", "report", "a.luaspy", "-o", "profile.html")
        run("gcore", "-o", "core", str(PID))

    def end(self):
        for program in self.programs:
            program.kill()
            program.wait()

    def run(self, line, enough=ENOUGH):
        """Why the line is wrong; None if it is not. On a busy machine, the programs may have had no CPU in a short recording: then it takes longer."""
        words = shlex.split(line.split("|")[0])
        if words[1] == "top" and "--batch" not in words:
            return self.run_in_terminal(line, words)
        long = "-d" in words and float(words[words.index("-d") + 1]) > ENOUGH or "--interval" in words or words[1] == "record" and "--pid" in words and "-d" not in words or words[1] == "agent"
        with tempfile.TemporaryFile("w+") as out:
            command = subprocess.Popen(words, cwd=self.folder, env=self.environment, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT)
            try:
                if long:
                    try:
                        command.wait(enough)
                    except subprocess.TimeoutExpired:
                        command.send_signal(signal.SIGINT)
                status = command.wait(LIMIT)
            except subprocess.TimeoutExpired:
                command.kill()
                command.wait()
                return f"{line}: it does not end"
            out.seek(0)
            text = out.read()
        written = words[words.index("-o") + 1] if "-o" in words else "-"
        files = list(self.folder.glob(re.sub("%[tp]", "*", written)))
        said = text.strip() if written == "-" else files and files[0].read_bytes()
        if status == NO_SAMPLES and long and enough == ENOUGH:
            return self.run(line, 10 * ENOUGH)
        return f"{line}: status {status}\n{text}" if status != 0 or not said else None

    def run_in_terminal(self, line, words):
        pid, terminal = pty.fork()
        if pid == 0:
            os.chdir(self.folder)
            os.execvpe(words[0], words, self.environment)
        text, end, pressed = b"", time.monotonic() + LIMIT, False
        while time.monotonic() < end:
            if select.select([terminal], [], [], 0.1)[0]:
                try:
                    piece = os.read(terminal, 65536)
                except OSError:
                    break
                if not piece:
                    break
                text += piece
            if not pressed and b"discount" in text:
                os.write(terminal, b"q")
                pressed = True
        os.close(terminal)
        _, status = os.waitpid(pid, 0)
        status = os.waitstatus_to_exitcode(status)
        return f"{line}: status {status}, {'ended' if pressed else 'without the hottest function'}\n{text[-2000:]!r}" if status != 0 or not pressed else None


def inside(luaspy, targets, folder, lines):
    """In the namespace: prints the faults as JSON."""
    place = Place(luaspy, targets, folder)
    try:
        place.start_all(lines)
        place.make_files()
        print(json.dumps([fault for fault in map(place.run, lines) if fault]))
    finally:
        place.end()


def main():
    if sys.argv[1] == "--inside":
        inside(*(pathlib.Path(word) for word in sys.argv[2:5]), json.loads(sys.argv[5]))
        return
    luaspy, source, targets, work = (pathlib.Path(word).resolve() for word in sys.argv[1:5])
    pages = [source / "README.md", *sorted((source / "docs").glob("*.md"))]
    lines = list(dict.fromkeys([line for page in pages for line in of_markdown(page)] + list(of_help(luaspy))))
    if len(lines) < 30:
        raise SystemExit(f"commands: only {len(lines)} were found")
    shutil.rmtree(work, ignore_errors=True)
    # Of those that take long, each has a place of its own.
    slow = [line for line in lines if "--every" in line or "--count 5" in line]
    groups = [*([line] for line in slow), [line for line in lines if line not in slow]]

    def run(number):
        # A user who is not root stays that: nginx as root gives its workers other groups, which a namespace of one user has not.
        command = ["unshare", *([] if os.geteuid() == 0 else ["-U", "--map-current-user", "--keep-caps"]), "-p", "-f", "--mount-proc", "--kill-child", sys.executable, __file__, "--inside",
                   str(luaspy), str(targets), str(work / str(number)), json.dumps(groups[number])]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        return json.loads(done.stdout) if done.returncode == 0 else [done.stderr]

    with concurrent.futures.ThreadPoolExecutor(len(groups)) as all_groups:
        faults = [fault for of_group in all_groups.map(run, range(len(groups))) for fault in of_group]
    print("\n".join(faults) or f"ok: {len(lines)} commands")
    sys.exit(1 if faults else 0)


main()
