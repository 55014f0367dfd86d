"""pprof.py LUASPY TARGETS WORK: what is pushed as pprof, read by google/pprof. It has to show for each function the samples, with
and without callees, that luaspy's own folded stacks have."""
import pathlib
import re
import subprocess
import sys
import tempfile

import engines

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "sending"))
from engine import Engine


def shown(pprof, file):
    """By function: samples, and samples with callees."""
    text = subprocess.run([pprof, "-top", "-sample_index=samples", "-nodecount=1000000", "-nodefraction=0", "-edgefraction=0", "-symbolize=none", file],
                          check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout
    rows = [re.match(r" *(\d+) +\S+% +\S+% +(\d+) +\S+%  (.+)$", line) for line in text.splitlines()]
    return {row[3]: (int(row[1]), int(row[2])) for row in rows if row}


def expected(stacks):
    functions = {}
    for stack, count in stacks.items():
        for name in set(stack):
            flat, all_of_it = functions.get(name, (0, 0))
            functions[name] = flat + count * (stack[-1] == name), all_of_it + count
    return functions


def main():
    luaspy, targets, work = (pathlib.Path(word).resolve() for word in sys.argv[1:4])
    pprof = work / "bin/pprof"
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        recording, pushed, written = folder / "program.luaspy", folder / "pushed.pb.gz", folder / "written.pb.gz"
        engines.record_program(luaspy, targets, recording)
        engine = Engine()
        subprocess.run([luaspy, "push", recording, "--format", "pyroscope", "--to", engine.url, "--service", "shop"], check=True, stdout=subprocess.DEVNULL, env=engines.environment())
        ((_, _, body),) = engine.requests
        pushed.write_bytes(body)
        subprocess.run([luaspy, "report", "-f", "pprof", "--lines", "-o", written, recording], check=True, stderr=subprocess.DEVNULL)
        ours = expected(engines.folded(engines.report(luaspy, recording, "folded")))
        for file in (pushed, written):
            theirs = shown(pprof, file)
            assert theirs == ours, {name: (theirs.get(name), ours.get(name)) for name in theirs.keys() | ours.keys() if theirs.get(name) != ours.get(name)}
            raw = subprocess.run([pprof, "-raw", "-symbolize=none", file], check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout
            values = [tuple(map(int, row)) for row in re.findall(r"^ +(\d+) +(\d+): \d", raw, re.M)]
            samples, ns = (sum(column) for column in zip(*values))
            assert samples == sum(flat for flat, _ in ours.values()) and 0.7 < ns / (2_000_000 * samples) < 1.3, (samples, ns)   # a sample stands for the time since the one before
        labels = set(re.findall(r"(\w+):\[", subprocess.run([pprof, "-raw", "-symbolize=none", pushed], check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout))
        assert {"thread", "process", "vm_state", "state"} == labels, labels
        print(f"{len(ours)} functions, {samples} samples: google/pprof shows what luaspy does")


main()
