"""agent_control.py LUASPY LUA...: what is asked of a running `luaspy agent`: snapshots of what it has kept."""
import configparser
import os
import pathlib
import re
import signal
import socket
import stat
import subprocess
import sys
import tempfile

from agent import WORK, Program, until

SLEEPY = """
local function naps() io.read(1) end
io.write("READY\\n") io.flush()
naps()
"""
STUCK = """
local function spins() while true do end end
io.write("READY\\n") io.flush()
spins()
"""


class Agent:
    """Running, with what it has said."""

    def __init__(self, luaspy, folder, *options, **environment):
        self.luaspy, self.socket, self.errors = luaspy, folder / "agent.sock", folder / "errors"
        with open(self.errors, "w", encoding="utf-8") as written:
            self.process = subprocess.Popen([luaspy, "agent", "--socket", self.socket, "--every", "1", "--rate", "100", "--max-cpu", "100", "--max-stopped", "10", *options], stderr=written, env=os.environ | environment)

    def ask(self, *options):
        return subprocess.run([self.luaspy, "agent", "--socket", self.socket, *options], capture_output=True, text=True, timeout=60)

    def said(self):
        return self.errors.read_text()

    def until(self, condition, what):
        until(condition, what, self.process)

    def end(self):
        self.process.send_signal(signal.SIGTERM)
        assert self.process.wait(30) == 0
        assert not self.socket.exists()



def check_snapshots(agent, folder, busy, sleepy):
    snapshots = folder / "snapshots"

    def shows_both():
        for path in agent.ask("--snapshot", str(busy)).stdout.split():
            text = subprocess.run([agent.luaspy, "report", path], capture_output=True, text=True, check=True).stdout
            pathlib.Path(path).unlink()
            return "hot (" in text and "cold (" in text
    agent.until(shows_both, "samples of both functions")
    answer = agent.ask("--snapshot", str(busy))
    (path,) = answer.stdout.split()
    assert pathlib.Path(path).parent == snapshots and stat.S_IMODE(os.stat(path).st_mode) == 0o600, path
    text = subprocess.run([agent.luaspy, "report", path], capture_output=True, text=True, check=True).stdout
    assert "hot (" in text and "cold (" in text and "looked 0.0" not in text, text
    both = agent.ask("--snapshot").stdout.split()
    assert sorted(int(pathlib.Path(path).name.split("-")[2]) for path in both) == sorted([busy, sleepy]), both
    (of_sleepy,) = [path for path in both if f"-{sleepy}-" in path]
    states = subprocess.run([agent.luaspy, "report", "-f", "folded", "-o", "-", of_sleepy], capture_output=True, text=True, check=True).stdout
    assert "naps" in states, states
    nobody = agent.ask("--snapshot", str(os.getpid()))
    assert nobody.returncode == 11 and "No samples are kept of process" in nobody.stderr, nobody


def check_triggers(luaspy, folder, busy):
    """Each condition writes one snapshot, of that process, and not another one."""
    for when in ["cpu > 2", "heap > 1K", "looks-stuck 1s"]:
        place = folder / "triggered"
        place.mkdir()
        agent = Agent(luaspy, folder, "--name", folder / "stuck.lua", "--keep", "60", "--snapshots", place, "--when", when)
        try:
            agent.until(lambda: f"process {busy}: {when}: written: {place}/luaspy-lua5.4-{busy}-" in agent.said(), when)
            agent.end()
            assert agent.said().count("written: ") == 1, agent.said()
            (written,) = place.iterdir()
            written.unlink()
            place.rmdir()
        finally:
            agent.process.kill()
            agent.process.wait()
            print(agent.said())
    for options, why in [(["--when", "rss > 5"], "'rss > 5': it has to be 'cpu > PERCENT'"), (["--keep", "1"], "--keep needs --snapshots"), ([], "say where profiles go")]:
        wrong = subprocess.run([luaspy, "agent", *options], capture_output=True, text=True, timeout=60)
        assert wrong.returncode == 2 and why in wrong.stderr, wrong


def http(port, request):
    with socket.create_connection(("127.0.0.1", port), timeout=30) as client:
        client.sendall(request)
        return client.makefile(newline="").read()


def check_numbers(agent, busy):
    """What it says of itself, to people and to Prometheus, however others behave."""
    port = int(re.search(r"metrics are at http://127.0.0.1:(\d+)/metrics", agent.said())[1])
    agent.until(lambda: f"luaspy_process_samples_total{{pid=\"{busy}\",name=\"lua5.4\"}} " in http(port, b"GET /metrics HTTP/1.1\r\n\r\n"), "its samples are counted")
    slow = [socket.create_connection(("127.0.0.1", port)) for _ in range(18)]
    for client in slow[::3]:
        client.sendall(b"GET /met")   # half a request; others send none, or one that is too long
    for client in slow[1::3]:
        try:
            client.sendall(b"GET /" + b"x" * 100_000)
        except (BrokenPipeError, ConnectionResetError):
            pass
    head, body = http(port, b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n").split("\r\n\r\n")
    assert head.startswith("HTTP/1.1 200 OK\r\n") and f"Content-Length: {len(body)}" in head, head
    values = {}
    for line in body.splitlines():
        if not line.startswith("#"):
            name, value = line.rsplit(" ", 1)
            values[name] = float(value)
    assert values["luaspy_agent_processes"] == 2 and values["luaspy_agent_samples_total"] > 0 and values["luaspy_agent_cpu_seconds_total"] > 0, values
    assert http(port, b"GET /etc/passwd HTTP/1.1\r\n\r\n").startswith("HTTP/1.1 404 ")
    status = agent.ask("--status")
    assert status.returncode == 0 and "2 Lua programs, " in status.stdout and "sends nothing" in status.stdout and "keeps the last " in status.stdout, status
    assert f"{busy}  lua5.4  " in status.stdout and "Lua 5.4" in status.stdout, status


def received(notices):
    lines = []
    try:
        while True:
            lines += notices.recv(4096).decode().splitlines()
    except BlockingIOError:
        return lines


def check_notices(luaspy, folder):
    """sd_notify(3): over a socket with a name in the file system, and over one without."""
    for name, address in [(str(folder / "notify"), str(folder / "notify")), (f"@luaspy-{os.getpid()}", f"\0luaspy-{os.getpid()}")]:
        notices = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        notices.bind(address)
        notices.setblocking(False)
        environment = {"NOTIFY_SOCKET": name, "WATCHDOG_USEC": "300000"}
        agent = Agent(luaspy, folder, "--name", name, "--keep", "60", "--snapshots", folder, **environment)
        said = []
        try:
            agent.until(lambda: said.extend(received(notices)) or said.count("WATCHDOG=1") > 2, "it says that it lives")
            agent.end()
            said += received(notices)
            assert said[0] == "READY=1" and said[-1] == "STOPPING=1", said
        finally:
            agent.process.kill()
            agent.process.wait()


def check_configuration(luaspy, folder):
    """The same names as the options; the command line counts more; what is wrong is said with its line."""
    file = folder / "agent.conf"
    file.write_text(f"""# an agent
keep = "1m"
snapshots = "{folder}"
name = ["nobody", "no one"]
idle = true
rate = 7
when = "cpu > 90"

""")
    agent = Agent(luaspy, folder, "--config", file, "--keep=30")
    try:
        agent.until(lambda: agent.ask("--status").returncode == 0, "it runs")
        assert "Hz of 100;" in agent.ask("--status").stdout and "the last 30 s are kept" in agent.said(), agent.said()
        agent.end()
    finally:
        agent.process.kill()
        agent.process.wait()
    for line, why in [("rat = 7", "has no option --rat. Did you mean --rate?"), ("rate = 5000", "it has to be from 0.1 to 1000"), ("rate = [1, 2]", "rate takes one value"),
                      ("idle = 3", "idle has to be true or false"), ("status = true", "status belongs on the command line"), ("[agent]", "it has to be KEY = VALUE"), ("rate", "it has to be KEY = VALUE"),
                      ("when = \"rss > 5\"", "it has to be 'cpu > PERCENT'"), ("rate = 7\nrate = 8", "rate is given more than once"), ("\x1b = 7", "has no option --\\x1b")]:
        file.write_text(f"# one line before\n{line}\n")
        wrong = subprocess.run([luaspy, "agent", "--config", file], capture_output=True, text=True, timeout=60)
        assert wrong.returncode == 2 and f"{file}:{2 + line.count(chr(10))}: " in wrong.stderr and why in wrong.stderr and "\x1b" not in wrong.stderr, (line, wrong)
    missing = subprocess.run([luaspy, "agent", "--config", folder / "nowhere"], capture_output=True, text=True, timeout=60)
    assert missing.returncode == 2 and "No such file" in missing.stderr, missing


def check_unit(luaspy, folder, busy):
    """The package's unit and configuration: with the rights that it leaves, and as a user without others, the agent samples programs of another user."""
    package = pathlib.Path(__file__).parents[2] / "src/agent/package"
    unit = configparser.ConfigParser(strict=False, interpolation=None, allow_no_value=True)
    unit.optionxform = str
    unit.read(package / "luaspy-agent.service")
    service = unit["Service"]
    assert service["ExecStart"].endswith(" agent --config /etc/luaspy/agent.conf") and service["Type"] == "notify" and service["NoNewPrivileges"] == "yes", dict(service)
    assert service["AmbientCapabilities"] == service["CapabilityBoundingSet"], dict(service)
    (file := folder / "agent.conf").write_text((package / "agent.conf").read_text().replace("/var/lib/luaspy", str(folder / "state")))
    (folder / "state").mkdir()
    runtime = folder / "run"
    runtime.mkdir()
    prefix = []
    if os.geteuid() == 0:
        rights = "-all," + ",".join("+" + name.removeprefix("CAP_").lower() for name in service["AmbientCapabilities"].split())
        prefix = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", "--bounding-set", rights, "--inh-caps", rights, "--ambient-caps", rights, "--no-new-privs"]
        for place in (folder / "state", runtime):
            os.chown(place, 65534, 65534)
    with open(folder / "unit-errors", "w", encoding="utf-8") as errors:
        agent = subprocess.Popen([*prefix, luaspy, "agent", "--config", file, "--to", "http://127.0.0.1:9", "--every", "1", "--name", folder / "busy.lua"],
                                 stderr=errors, env=os.environ | {"RUNTIME_DIRECTORY": str(runtime)})
    ask = lambda *options: subprocess.run([luaspy, "agent", "--socket", runtime / "agent.sock", *options], capture_output=True, text=True, timeout=60)
    try:
        until(lambda: f"{busy}  lua5.4  " in ask("--status").stdout and ", 0 samples," not in ask("--status").stdout, "the unit's agent samples", agent)
        snapshot = ask("--snapshot", str(busy))
        assert snapshot.returncode == 0 and snapshot.stdout.startswith(str(folder / "state")), snapshot
        agent.send_signal(signal.SIGTERM)
        assert agent.wait(30) == 0
    finally:
        agent.kill()
        agent.wait()
        print((folder / "unit-errors").read_text())


def check_socket(agent):
    assert stat.S_IMODE(os.stat(agent.socket).st_mode) == 0o600
    if os.geteuid() == 0:   # somebody else, who was let into the folder
        other = subprocess.run([sys.executable, "-c", f"""
import os, socket
path, allowed = {str(agent.socket)!r}, socket.socket(socket.AF_UNIX)
allowed.connect(path)
os.setresuid(65534, 65534, 65534)
late = socket.socket(socket.AF_UNIX)
try:
    late.connect(path)
    print("connected")
except PermissionError:
    print("kept out")
"""], capture_output=True, text=True, check=True)
        assert other.stdout == "kept out\n", other
    slow = []
    for beginning in [b"", b"snap", b"x" * 100_000]:   # half a request, one that is too long, and many of them
        for _ in range(5):
            client = socket.socket(socket.AF_UNIX)
            client.connect(str(agent.socket))
            try:
                client.sendall(beginning)
            except (BrokenPipeError, ConnectionResetError):
                pass
            slow.append(client)
    assert agent.ask("--snapshot").returncode == 0   # it waits for them for 2 s each, 8 at a time
    unknown = socket.socket(socket.AF_UNIX)
    unknown.connect(str(agent.socket))
    unknown.sendall(b"make coffee\n")
    assert unknown.makefile().read() == "error 2\nThis agent does not know that.\n"
    second = subprocess.run([agent.luaspy, "agent", "--socket", agent.socket, "--keep", "1m", "--snapshots", agent.socket.parent], capture_output=True, text=True, timeout=60)
    assert second.returncode == 8 and "Cannot listen at" in second.stderr, second


def main():
    luaspy, *lua = sys.argv[1:]
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        scripts = {"busy.lua": WORK, "sleepy.lua": SLEEPY, "stuck.lua": STUCK}
        for script, text in scripts.items():
            (folder / script).write_text(text)
        (folder / "snapshots").mkdir()
        programs = [Program(lua, folder / script) for script in ("busy.lua", "sleepy.lua")]
        (folder / "agent.sock").write_text("")   # what is no socket stays
        agent = Agent(luaspy, folder, "--name", name, "--idle", "--keep", "60", "--snapshots", folder / "snapshots")
        assert agent.process.wait(30) == 8 and "Cannot listen at" in agent.said()
        (folder / "agent.sock").unlink()
        stale = socket.socket(socket.AF_UNIX)   # of an agent that was killed
        stale.bind(str(folder / "agent.sock"))
        stale.close()
        agent = Agent(luaspy, folder, "--name", name, "--idle", "--keep", "60", "--snapshots", folder / "snapshots", "--metrics", "0")
        try:
            check_snapshots(agent, folder, *[each.process.pid for each in programs])
            check_numbers(agent, programs[0].process.pid)
            check_socket(agent)
            agent.end()
            gone = agent.ask("--snapshot")
            assert gone.returncode == 8 and "Nobody answers at" in gone.stderr, gone
            programs.append(Program(lua, folder / "stuck.lua"))
            check_triggers(luaspy, folder, programs[-1].process.pid)
            check_notices(luaspy, folder)
            check_configuration(luaspy, folder)
            if os.geteuid() == 0:
                folder.chmod(0o755)
            check_unit(luaspy, folder, programs[0].process.pid)
        finally:
            agent.process.kill()
            agent.process.wait()
            for program in programs:
                program.end()
            print(agent.said())


if __name__ == "__main__":
    main()
