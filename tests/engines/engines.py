"""The engines and the programs that they are asked about: started on loopback, in a folder, and ended by number."""
import collections
import json
import os
import pathlib
import re
import shlex
import signal
import socket
import subprocess
import time
import urllib.request

# Of each of these, what is asked of another program waits at most so many seconds.
PATIENCE = 60


def command_of(targets, name):
    """As tests/targets/prepare.sh has prepared it."""
    for table in ("targets.tsv", "hosts.tsv", "luajit-hosts.tsv"):
        for line in (targets / table).read_text(encoding="utf-8").splitlines():
            fields = line.split("\t")
            if fields[0] == name:
                return fields[3].split(" ")
    raise SystemExit(f"{name} is not prepared in {targets}")


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def environment():
    return {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}


def until(condition, what):
    end = time.monotonic() + PATIENCE
    while not (result := condition()):
        if time.monotonic() > end:
            raise SystemExit(f"{what}: not within {PATIENCE} s")
        time.sleep(0.05)
    return result


class Program:
    """Ended at the end of `with`, however that comes."""

    ends_by = signal.SIGTERM

    def __init__(self, command, log, variables=None, **options):
        self.log = pathlib.Path(log)
        with open(self.log, "ab") as out:
            options.setdefault("stdin", subprocess.DEVNULL)
            self.process = subprocess.Popen(list(map(str, command)), stdout=out, stderr=out, env=environment() | (variables or {}), **options)
        self.pid = self.process.pid

    def said(self, text, times=1):
        def has():
            if self.process.poll() is not None:
                raise SystemExit(f"{self.log} ends:\n{self.log.read_text()[-2000:]}")
            return self.log.read_text(encoding="utf-8", errors="replace").count(text) >= times
        until(has, f"{self.log} has no '{text}'")
        return self

    def end(self, signal_number=None):
        """What it has written to its log."""
        if self.process.poll() is None:
            self.process.send_signal(signal_number or self.ends_by)
            try:
                self.process.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                self.process.kill()
        self.process.wait()
        return self.log.read_text(encoding="utf-8", errors="replace")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.end()


def blocks(language):
    """Of docs/fleet.md, as they stand there."""
    page = (pathlib.Path(__file__).resolve().parents[2] / "docs/fleet.md").read_text(encoding="utf-8")
    found = re.findall(rf"^```{language}\n(.*?)^```", page, re.M | re.S)
    assert found, language
    return found


def agent_of_page(luaspy, engine, url):
    """The command that sends to this engine there, with another URL."""
    command, = [shlex.split(one) for one in blocks("sh") if one.startswith("luaspy agent ") and engine in one]
    assert engine in command, command
    return [luaspy, *(url if word == engine else word for word in command[1:])]


def report(luaspy, recording, form, *words):
    """As text."""
    return subprocess.run([luaspy, "report", "-f", form, *words, "-o", "-", recording], check=True, stdout=subprocess.PIPE, text=True).stdout


def record_program(luaspy, targets, recording):
    """Four seconds of program.lua, at 500 Hz."""
    script = pathlib.Path(__file__).resolve().parent / "program.lua"
    subprocess.run([luaspy, "record", "-r", "500", "-o", recording, "--", *command_of(targets, "debian-lua5.4-bookworm"), script], check=True, stderr=subprocess.DEVNULL)


# What a Collector is told: where it listens, and where it writes to.
TO_FILE = 'file: {{path: "{file}"}}'
TO_NEXT = 'otlphttp: {{endpoint: "{url}", sending_queue: {{enabled: false}}}}'


def collector(work, name, port, exporter):
    """An OpenTelemetry Collector at this port of loopback. It keeps nothing itself: `exporter` has it before the answer."""
    configuration = work / f"{name}.yaml"
    configuration.write_text(f"""
receivers: {{otlp: {{protocols: {{http: {{endpoint: "127.0.0.1:{port}"}}}}}}}}
exporters: {{{exporter}}}
service:
  telemetry: {{metrics: {{level: none}}}}
  pipelines: {{profiles: {{receivers: [otlp], exporters: [{exporter.split(":")[0]}]}}}}
""")
    log = work / f"{name}.log"
    log.unlink(missing_ok=True)
    return Program([work / "otelcol", "--config", configuration, "--feature-gates=+service.profilesSupport"], log).said("Everything is ready")


def lua(targets, script, log):
    return Program([*command_of(targets, "debian-lua5.4-bookworm"), script, "for ever"], log).said("READY")


def redis(targets, folder):
    """It runs a script that never ends."""
    server = Program([*command_of(targets, "redis"), "--port", "0", "--unixsocket", folder / "redis", "--dir", folder, "--save", "", "--appendonly", "no"],
                     folder / "redis.log").said("ready to accept")
    server.ends_by = signal.SIGKILL   # it takes no other while a script runs
    server.connection = socket.socket(socket.AF_UNIX)
    server.connection.connect(str(folder / "redis"))
    script = ("local function add(n) local s = 0 for i = 1, n do s = s + i % 7 end return s end "
              "local function text(n) local t = {} for i = 1, n do t[i] = tostring(i) .. 'x' end return table.concat(t) end "
              "while true do add(30000) text(1500) end")
    server.connection.sendall(f"*3\r\n$4\r\nEVAL\r\n${len(script)}\r\n{script}\r\n$1\r\n0\r\n".encode())
    return server


def nginx(targets, folder):
    """One process; a timer's coroutine is always at work."""
    return Program([*command_of(targets, "nginx"), "-p", folder], folder / "nginx.log", cwd=folder).said("READY")


def pyroscope(work, folder, port):
    """Pyroscope at this port of loopback, with all its parts in one process."""
    grpc, gossip = free_port(), free_port()
    one = ("compactor.ring.instance-addr distributor.ring.instance-addr overrides-exporter.ring.instance-addr query-frontend.instance-addr "
           "query-scheduler.ring.instance-addr store-gateway.sharding-ring.instance-addr ingester.lifecycler.addr memberlist.bind-addr memberlist.advertise-addr "
           "server.http-listen-address server.grpc-listen-address").split()
    server = Program([work / "pyroscope", *(f"-{name}=127.0.0.1" for name in one), f"-server.http-listen-port={port}", f"-server.grpc-listen-port={grpc}",
                      f"-memberlist.bind-port={gossip}", "-self-profiling.disable-push=true", "-usage-stats.enabled=false"], folder / "pyroscope.log", cwd=folder,
                     variables={"GODEBUG": "httpmuxgo121=1"})   # its routes are those of Go 1.21
    server.url = f"http://127.0.0.1:{port}"
    until(lambda: ask(server.url, "ProfileTypes", {}, fails=True) is not None, "Pyroscope is not ready")
    return server


def ask(url, what, words, fails=False):
    """Pyroscope's querier, of the last hours."""
    now = int(time.time() * 1000)
    body = {"start": now - 7_200_000, "end": now + 600_000, **words}
    request = urllib.request.Request(f"{url}/querier.v1.QuerierService/{what}", json.dumps(body).encode(), {"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
            return json.load(answer)
    except OSError as error:
        if not fails:
            raise SystemExit(f"Pyroscope, {what}: {error}: {error.read()}") from error
        return None


def merged(url, kind, selector):
    """All samples of these series as stacks of functions, outermost first."""
    profile = ask(url, "SelectMergeProfile", {"profile_typeID": kind, "label_selector": selector})
    strings = profile.get("stringTable", [])
    functions = {one["id"]: strings[number(one, "name")] for one in profile.get("function", [])}
    locations = {one["id"]: [functions[line["functionId"]] for line in one["line"]] for one in profile.get("location", [])}
    stacks = collections.Counter()
    for sample in profile.get("sample", []):
        stacks[tuple(name for at in reversed(sample["locationId"]) for name in reversed(locations[at]))] += int(sample["value"][0])
    return stacks


def varint(value):
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes(out + bytes([value]))


def field(number, value):
    """Of a message of protobuf: a number, or bytes."""
    return varint(number << 3) + varint(value) if isinstance(value, int) else varint(number << 3 | 2) + varint(len(value)) + value


Received = collections.namedtuple("Received", "attributes kind time_ns duration_ns period id samples")


def number(of, name):
    return int(of.get(name, 0))


def text_of(value, strings):
    (kind, content), = value.items()
    return strings[content] if kind == "stringValueStrindex" else content if kind == "stringValue" else int(content)


def received(file):
    """Each profile that a Collector's file exporter wrote: one message of OTLP in JSON a line. A sample is a stack, outermost
    first, of (function, line, type of its frame), and how many."""
    for line in open(file, encoding="utf-8"):
        message = json.loads(line)
        tables = message["dictionary"]
        strings = tables["stringTable"]

        def frame(index):
            location = tables["locationTable"][index]
            where = location["lines"][0]
            kinds = [text_of(each["value"], strings) for each in (tables["attributeTable"][i] for i in location.get("attributeIndices", []))
                     if strings[number(each, "keyStrindex")] == "profile.frame.type"]
            return strings[number(tables["functionTable"][number(where, "functionIndex")], "nameStrindex")], number(where, "line"), kinds[0] if kinds else ""

        frames = [frame(i) if i else None for i in range(len(tables["locationTable"]))]
        stacks = [tuple(frames[i] for i in reversed(stack.get("locationIndices", []))) for stack in tables["stackTable"]]
        for resource in message["resourceProfiles"]:
            attributes = {strings[number(each, "keyStrindex")] if "keyStrindex" in each else each["key"]: text_of(each["value"], strings)
                          for each in resource["resource"]["attributes"]}
            for scope in resource["scopeProfiles"]:
                for profile in scope["profiles"]:
                    samples = collections.Counter()
                    for sample in profile["samples"]:
                        samples[stacks[number(sample, "stackIndex")]] += sum(map(int, sample["values"]))
                    yield Received(attributes, strings[number(profile["sampleType"], "typeStrindex")] + " of " + strings[number(profile["periodType"], "typeStrindex")],
                                   number(profile, "timeUnixNano"), number(profile, "durationNano"), number(profile, "period"), profile["profileId"], samples)


def folded(text):
    """Stacks, outermost first, and how many."""
    stacks = collections.Counter()
    for line in text.splitlines():
        stack, count = line.rsplit(" ", 1)
        stacks[tuple(stack.split(";"))] += int(count)
    return stacks
