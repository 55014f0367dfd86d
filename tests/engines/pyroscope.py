"""pyroscope.py LUASPY TARGETS WORK: a recording and the batches of an agent go to Pyroscope, which has to give back, stack by stack, what luaspy has
recorded; a profile of more samples and bytes, and of deeper stacks, than it takes at once has to arrive whole."""
import collections
import gzip
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time

import engines

SAMPLES, CPU = "process_cpu:samples:count:time:nanoseconds", "process_cpu:time:nanoseconds:time:nanoseconds"


def many_stacks(count, depth):
    """A pprof of now: so many stacks of this depth, of functions f0, f1 ..., and one of 3,000 frames."""
    strings = ["", "samples", "count", "time", "nanoseconds", "deepest"] + [f"f{i}" for i in range(count)] + [f"level{i}" for i in range(3000)]
    out = [engines.field(1, engines.field(1, 1) + engines.field(2, 2)), engines.field(1, engines.field(1, 3) + engines.field(2, 4)), engines.field(9, time.time_ns()), engines.field(10, 10**10), *(engines.field(6, one.encode()) for one in strings)]
    for i in range(1, count + 3001):
        out.append(engines.field(5, engines.field(1, i) + engines.field(2, i + 5)))
        out.append(engines.field(4, engines.field(1, i) + engines.field(4, engines.field(1, i) + engines.field(2, 1))))
    levels = [engines.varint(count + 1 + i) for i in range(3000)]
    for i in range(1, count + 1):
        out.append(engines.field(2, engines.field(1, engines.varint(i) + b"".join(reversed(levels[:depth - 1]))) + engines.field(2, engines.varint(1) + engines.varint(1000))))
    out.append(engines.field(2, engines.field(1, b"".join(reversed(levels))) + engines.field(2, engines.varint(7) + engines.varint(7000))))
    return gzip.compress(b"".join(out))


def push(luaspy, url, file, *words):
    done = subprocess.run([luaspy, "push", file, "--to", url, "--format", "pyroscope", *words], check=False, capture_output=True, text=True, env=engines.environment())
    return done.returncode, done.stdout + done.stderr


def check_large(luaspy, url, folder):
    file, count, depth = folder / "large.pb.gz", 40_000, 200
    file.write_bytes(many_stacks(count, depth))
    status, said = push(luaspy, url, file, "--service", "large")
    parts = re.search(r" in (\d+) parts", said)
    assert status == 0 and parts and int(parts[1]) > 2, said
    stacks = engines.merged(url, SAMPLES, '{service_name="large"}')
    assert stacks.total() == count + 7, stacks.total()
    deepest, = [stack for stack, times in stacks.items() if times == 7]
    assert len(deepest) == 1000 and deepest[:2] == ("level0", "[...]") and deepest[-1] == "level2999", (len(deepest), deepest[:3])
    return f"{count + 1} stacks, {file.stat().st_size / 1e6:.1f} MB: arrived whole, in {parts[1]} parts"


def check_agent(luaspy, targets, url, folder):
    """Two workers of one service: the labels of both are the same, and so are the times of their batches."""
    service = (pathlib.Path(__file__).resolve().parent / "service.lua").read_text()
    scripts = folder / "one.lua", folder / "two.lua"
    scripts[0].write_text(service)
    scripts[1].write_text(re.sub(r"\badd\b", "plus", re.sub(r"\btext\b", "words", service)))
    command = engines.agent_of_page(luaspy, "http://pyroscope:4040", url)
    with engines.lua(targets, scripts[0], folder / "one.log"), engines.lua(targets, scripts[1], folder / "two.log"):
        with engines.Program([*command, "--rate", 199, "--every", 2, "--max-cpu", 100, "--max-stopped", 20, "--name", folder, "--attribute", "service.name=workers",
                              "--attribute", "host.name=web1"], folder / "agent.log") as agent:
            engines.until(lambda: engines.merged(url, SAMPLES, '{service_name="workers"}').total() > 800, "no batches of the agent")
            said = agent.end(signal.SIGINT)
    assert " 0 refused, 0 dropped, 0 not sent" in said, said
    leaves = collections.Counter()
    for stack, count in engines.merged(url, SAMPLES, '{service_name="workers",host_name="web1",deployment_environment="prod"}').items():
        leaves[stack[-1].split(" (")[0]] += count
    assert 0.2 < leaves["add"] / (leaves["add"] + leaves["plus"]) < 0.8 and leaves["text"] > 0 and leaves["words"] > 0, leaves
    series = engines.ask(url, "Series", {"matchers": ['{service_name="workers"}']})["labelsSet"]
    names = {label["name"]: label["value"] for one in series for label in one["labels"]}
    assert names["process"] == "lua5.4" and not {"pid", "tid", "process_pid"} & names.keys(), names
    states = {label["value"] for one in series for label in one["labels"] if label["name"] == "vm_state"}
    return f"two workers: {leaves.total()} samples of the agent in {len(series)} series ({len(states)} states of the VM), {len(names)} labels"


def main():
    luaspy, targets, work = (pathlib.Path(word).resolve() for word in sys.argv[1:4])
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        recording = folder / "program.luaspy"
        with engines.pyroscope(work, folder, engines.free_port()) as server:
            engines.record_program(luaspy, targets, recording)
            status, said = push(luaspy, server.url, recording, "--service", "shop", "--attribute", "host.name=web1")
            assert status == 0, said
            expected = engines.folded(engines.report(luaspy, recording, "folded"))
            found = engines.merged(server.url, SAMPLES, '{service_name="shop",host_name="web1"}')
            assert found == expected, (found - expected, expected - found)
            ns = engines.merged(server.url, CPU, '{service_name="shop"}').total()
            assert 0.7 < ns / (2_000_000 * expected.total()) < 1.3, ns   # a sample stands for the time since the one before
            print(f"{len(expected)} stacks, {expected.total()} samples: Pyroscope has what luaspy has")
            print(check_large(luaspy, server.url, folder))
            print(check_agent(luaspy, targets, server.url, folder))


main()
