"""parca.py LUASPY TARGETS WORK: what is pushed to Parca, read by Parca's published types, and checked by the rules by which Parca refuses a profile
(pkg/parcacol/ingest.go and validate.go, 0.20): names of labels, numbers 1 to n in order, an empty first string, an entry for each number."""
import base64
import gzip
import pathlib
import re
import subprocess
import sys
import tempfile

import engines

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "sending"))
from engine import Engine, fields, unpacked


def of(message, number):
    return [value for at, value in fields(message) if at == number]


def one(message, number, default=0):
    return next(iter(of(message, number)), default)


def check_pprof(profile):
    """Rules of ValidatePprofProfile(). Returns the sum of the first values."""
    strings, counts = of(profile, 6), {}
    assert strings[0] == b"" and all(text.decode() is not None for text in strings)
    for name, number, indexes in (("mapping", 3, (5, 6)), ("function", 5, (2, 3, 4)), ("location", 4, ())):
        entries = of(profile, number)
        assert [one(entry, 1) for entry in entries] == list(range(1, len(entries) + 1)), f"{name}: the numbers are not 1 to n"
        assert all(one(entry, index) < len(strings) for entry in entries for index in indexes), name
        counts[name] = len(entries)
    assert min(counts.values()) > 0, counts
    for location in of(profile, 4):
        assert one(location, 2) <= counts["mapping"]
        assert all(0 < one(line, 1) <= counts["function"] for line in of(location, 4))
    types, total = len(of(profile, 1)), 0
    for sample in of(profile, 2):
        values = unpacked(one(sample, 2))
        assert len(values) == types and all(0 < at <= counts["location"] for at in unpacked(one(sample, 1, b"")))
        assert all(one(label, 1) and max(one(label, 1), one(label, 2)) < len(strings) for label in of(sample, 3))
        total += values[0]
    return total


def check_request(work, body):
    """Returns the labels, and how many samples there are."""
    node = subprocess.run(["node", pathlib.Path(__file__).resolve().parent / "parca.mjs", work], input=body, stdout=subprocess.PIPE, check=True)
    series, = of(base64.b64decode(node.stdout), 2)
    labels = [(one(label, 1, b"").decode(), one(label, 2, b"").decode()) for label in of(one(series, 1), 1)]
    assert len(dict(labels)) == len(labels) and all(re.fullmatch("[a-zA-Z_][a-zA-Z0-9_]*", name) for name, _ in labels), labels
    sample, = of(series, 2)
    return dict(labels), check_pprof(gzip.decompress(one(sample, 1)))


def main():
    luaspy, targets, work = (pathlib.Path(word).resolve() for word in sys.argv[1:4])
    with tempfile.TemporaryDirectory() as name:
        recording = pathlib.Path(name) / "program.luaspy"
        engines.record_program(luaspy, targets, recording)
        engine = Engine()
        engine.expect((200, {}, b"{}"))
        subprocess.run([luaspy, "push", recording, "--format", "parca", "--to", engine.url, "--service", "shop", "--attribute", "host.name=web1"], check=True, stdout=subprocess.DEVNULL,
                       env=engines.environment())
        ((_, _, body),) = engine.requests
        labels, samples = check_request(work, body)
        expected = engines.folded(engines.report(luaspy, recording, "folded")).total()
        assert samples == expected and labels == {"__name__": "luaspy", "service_name": "shop", "host_name": "web1"}, (samples, expected, labels)
        print(f"{samples} samples with labels {labels}: Parca's types and rules take them")


main()
