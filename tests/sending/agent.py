"""agent.py LUASPY LUA...: `luaspy agent` beside programs that come, go and work, for an engine that is away meanwhile."""
import gzip
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

from engine import Engine, fields, unpacked

WORK = """
local function hot(n) local s = 0 for i = 1, n do s = s + i % 7 end return s end
local function cold(n) local s = 0 for i = 1, n do s = s + i % 7 end return s end
io.write("READY\\n") io.flush()
while true do hot(3000) cold(1000) end
"""
ALLOCATES = """
local function many(n) for i = 1, n do local t = {i, i} end end
local function few(n) for i = 1, n do local t = {i, i} end end
local kept, rounds = {}, 0
for i = 1, 100000 do kept[i] = {i} end   -- a heap of some size: of one of some kB, much is freed while luaspy looks
io.write("READY\\n") io.flush()
while true do
  for i = 1, 100 do many(300) few(100) end
  rounds = rounds + 100
  local file = io.open(arg[0] .. ".count", "w")
  file:write(string.format("%20d", 400 * rounds)) file:close()
end
"""
EVERY = 1


class Program:
    def __init__(self, lua, script, **environment):
        self.process = subprocess.Popen([*lua, script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=os.environ | environment)
        assert self.process.stdout.readline() == b"READY\n"

    def end(self):
        self.process.kill()
        self.process.wait()


def strings_of(message):
    (dictionary,) = [value for number, value in fields(message) if number == 2]
    return [value.decode() for number, value in fields(dictionary) if number == 5], dictionary


def profiles_in(message, kind):
    """Of each resource: its attributes, and how much each function has as the innermost one of a stack, in its profiles of that kind
    (profiles.proto)."""
    strings, dictionary = strings_of(message)
    tables = {number: [dict_of(value) for at, value in fields(dictionary) if at == number] for number in (2, 3, 7)}
    for number, resource in fields(message):
        if number != 1:
            continue
        attributes, functions = {}, {}
        for at, value in fields(resource):
            if at == 1:
                for _, pair in fields(value):
                    key, text = dict_of(pair)[1], dict_of(dict_of(pair)[2])
                    attributes[key.decode()] = text.get(1, b"").decode() if 1 in text else text.get(3)
            if at == 2:
                profiles = [one for number, one in fields(value) if number == 2]
                for profile in [one for one in profiles if strings[dict_of(dict_of(one)[1])[1]] == kind]:
                    for _, sample in [one for one in fields(profile) if one[0] == 2]:
                        sample = dict_of(sample)
                        stack = unpacked(tables[7][sample[1]][1])
                        line = dict_of(tables[2][stack[0]][3])
                        name = strings[tables[3][line[1]][1]].split(" (")[0]
                        functions[name] = functions.get(name, 0) + sum(unpacked(sample[4]))
        yield attributes, functions


def dict_of(message):
    return dict(fields(message))


def received(engine, kind="samples"):
    for path, headers, body in list(engine.requests):
        assert path == "/v1development/profiles" and headers["Content-Encoding"] == "gzip", path
        yield from profiles_in(gzip.decompress(body), kind)


def until(condition, what, agent):
    """The agent works at its own pace: at most a minute."""
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end and agent.poll() is None, what
        time.sleep(0.05)


def samples(engine, pid, kind="samples"):
    sums = {}
    for attributes, functions in received(engine, kind):
        if attributes["process.pid"] == pid:
            for name, count in functions.items():
                sums[name] = sums.get(name, 0) + count
    return sums


def attributes_of(engine, pid, kind="samples"):
    return [attributes for attributes, functions in received(engine, kind) if functions and attributes["process.pid"] == pid]


def check_refusals(luaspy, lua, script, folder):
    """What an engine refuses is shown once, in its own words, and counted; a log on a full disk changes nothing."""
    engine, program, errors = Engine(), Program(lua, script), folder / "refusals"
    engine.expect((400, {}, b"no such tenant"))
    words = ["--to", engine.url, "--every", str(EVERY), "--max-cpu", "100", "--name", str(script)]
    try:
        with open(errors, "w", encoding="utf-8") as written:
            agent = subprocess.Popen([luaspy, "agent", *words], stderr=written, env=no_proxies())
        until(lambda: len(engine.requests) >= 3, "three batches", agent)
        agent.send_signal(signal.SIGINT)
        assert agent.wait(30) == 0
        said = errors.read_text()
        assert said.count("answered 400: no such tenant. This message is lost.") == 1 and f" {len(engine.requests)} refused, 0 dropped" in said, said
        engine.expect((200, {}, b""))
        with open("/dev/full", "w", encoding="utf-8") as full:
            agent = subprocess.Popen([luaspy, "agent", *words], stderr=full, env=no_proxies())
        until(lambda: len(engine.requests) >= 2, "two batches beside a full disk", agent)
        agent.send_signal(signal.SIGINT)
        assert agent.wait(30) == 0
    finally:
        agent.kill()
        agent.wait()
        program.end()


def check_allocations(luaspy, lua, folder):
    """Who allocates, and about how much, from some short looks."""
    script, errors = folder / "allocates.lua", folder / "allocations"
    script.write_text(ALLOCATES)
    engine, program = Engine(), Program(lua, script)
    words = ["--to", engine.url, "--every", str(EVERY), "--max-cpu", "100", "--max-stopped", "10", "--rate", "50", "--name", str(script), "--alloc"]
    with open(errors, "w", encoding="utf-8") as written:
        agent = subprocess.Popen([luaspy, "agent", *words], stderr=written, env=no_proxies())
    sizes = {"alloc_objects": 2, "alloc_space": 56 + 2 * 16}   # a table, and its array of two values

    def now():
        """Tables that were made, as the program counts them, and what was sent."""
        text = ""
        while len(text) < 20:   # it is being written
            text = pathlib.Path(f"{script}.count").read_text()
        return int(text), {kind: samples(engine, program.process.pid, kind) for kind in sizes}
    try:
        # Its first turns stand for long pauses, and in the very first one luaspy gets to know how much there is.
        until(lambda: len(attributes_of(engine, program.process.pid, "alloc_space")) > 6, "allocations", agent)
        tables_before, before = now()
        batches = len(engine.requests)
        until(lambda: len(engine.requests) > batches + 12, "the batches", agent)
        tables, seen = now()
        agent.send_signal(signal.SIGINT)
        assert agent.wait(30) == 0
        for kind, each in sizes.items():
            made = (tables - tables_before) * each
            of_both = [seen[kind][name] - before[kind][name] for name in ("many", "few")]
            print(f"{kind}: {of_both}, really {made}")
            assert 0.6 < of_both[0] / sum(of_both) < 0.9, of_both   # 3/4
            assert made / 2 < sum(of_both) < made * 1.5, (of_both, made)
    finally:
        agent.kill()
        agent.wait()
        program.end()


def no_proxies():
    return {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}


def main():
    luaspy, *lua = sys.argv[1:]
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        wanted, other = folder / "wanted.lua", folder / "other.lua"
        for script in (wanted, other):
            script.write_text(WORK)
        check_refusals(luaspy, lua, wanted, folder)
        check_allocations(luaspy, lua, folder)
        engine, first, unwanted = Engine(), Program(lua, wanted, OTEL_SERVICE_NAME="shop"), Program(lua, other)
        programs = [first, unwanted]
        engine.expect((503, {}, b""), (200, {}, b""))   # it is away at first: that is sent again
        errors = folder / "errors"
        with open(errors, "w", encoding="utf-8") as written:
            agent = subprocess.Popen([luaspy, "agent", "--to", engine.url, "--every", str(EVERY), "--rate", "100", "--max-cpu", "100", "--max-stopped", "10", "--name", str(wanted),
                                      "--attribute", "deployment.environment=test"], stderr=written, env=no_proxies())
        try:
            until(lambda: sum(samples(engine, first.process.pid).values()) > 300, "the first program", agent)
            second = Program(lua, wanted)
            programs.append(second)
            until(lambda: sum(samples(engine, second.process.pid).values()) > 100, "a program that came later", agent)
            second.end()
            until(lambda: f"process {second.process.pid} (" in errors.read_text().split("has ended")[0] and "has ended" in errors.read_text(), "it has ended", agent)
            agent.send_signal(signal.SIGINT)
            assert agent.wait(30) == 0
            assert engine.requests[0][2] == engine.requests[1][2]   # the one that was not taken
            del engine.requests[0]
            of_first = samples(engine, first.process.pid)
            share = of_first["hot"] / (of_first["hot"] + of_first["cold"])
            assert 0.55 < share < 0.9, of_first   # 3/4
            for attributes in attributes_of(engine, first.process.pid):
                assert attributes["service.name"] == "shop" and attributes["deployment.environment"] == "test", attributes
                assert attributes["host.name"] and attributes["process.runtime.name"] == "Lua" and attributes["process.runtime.version"].startswith("5.4."), attributes
            assert all(attributes["service.name"] != "shop" for attributes in attributes_of(engine, second.process.pid))
            assert not samples(engine, unwanted.process.pid)
            said = errors.read_text()
            assert "answered 503. It is tried again." in said and "takes profiles again" in said, said
            assert f"samples process {first.process.pid} (" in said and "0 refused, 0 dropped, 0 not sent" in said, said
            assert b"secret" not in b"".join(body for _, _, body in engine.requests)
        finally:
            agent.kill()
            agent.wait()
            for program in programs:
                program.end()
            print(errors.read_text())


if __name__ == "__main__":
    main()
