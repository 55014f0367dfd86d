"""parca.py LUASPY TARGETS WORK: a recording goes to Parca, which has to have as many samples and CPU time as it was sent, under its labels; what Parca refuses
is shown in its words."""
import gzip
import pathlib
import struct
import subprocess
import sys
import tempfile
import time
import urllib.request

import engines

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "sending"))
from engine import fields, unpacked


def query(url, method, message):
    """By gRPC-Web; the answer's message."""
    request = urllib.request.Request(f"{url}/parca.query.v1alpha1.QueryService/{method}", b"\0" + struct.pack(">I", len(message)) + message, {"Content-Type": "application/grpc-web+proto"})
    with urllib.request.urlopen(request, timeout=engines.PATIENCE) as answer:
        body = answer.read()
        assert b"grpc-status: 0" in body, (answer.headers, body)
    return body[5:5 + struct.unpack(">I", body[1:5])[0]]


def total(url, kind, selector):
    """QueryRequest: mode MERGE, of the last hour, as pprof."""
    now = int(time.time())
    merge = engines.field(1, (kind + selector).encode()) + engines.field(2, engines.field(1, now - 3600)) + engines.field(3, engines.field(1, now + 60))
    answer = dict(fields(query(url, "Query", engines.field(1, 2) + engines.field(3, merge) + engines.field(5, 1))))
    return sum(unpacked(dict(fields(sample))[2])[0] for number, sample in fields(gzip.decompress(answer[6])) if number == 2)


def push(luaspy, url, file, *words):
    done = subprocess.run([luaspy, "push", file, "--to", url, "--format", "parca", *words], check=False, capture_output=True, text=True, env=engines.environment())
    return done.returncode, done.stdout + done.stderr


def main():
    luaspy, targets, work = (pathlib.Path(word).resolve() for word in sys.argv[1:4])
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        recording = folder / "program.luaspy"
        engines.record_program(luaspy, targets, recording)
        port = engines.free_port()
        (folder / "parca.yaml").write_text('object_storage: {bucket: {type: "FILESYSTEM", config: {directory: "./data"}}}\n')
        with engines.Program([work / "parca", "--config-path=parca.yaml", f"--http-address=127.0.0.1:{port}"], folder / "parca.log", cwd=folder).said("starting server"):
            url = f"http://127.0.0.1:{port}"
            status, said = push(luaspy, url, recording, "--service", "shop", "--attribute", "host.name=web1")
            assert status == 0, said
            expected = engines.folded(engines.report(luaspy, recording, "folded")).total()
            selector = '{service_name="shop",host_name="web1"}'
            engines.until(lambda: total(url, "luaspy:samples:count:time:nanoseconds:delta", selector), "Parca shows nothing")
            samples, ns = (total(url, kind, selector) for kind in ("luaspy:samples:count:time:nanoseconds:delta", "luaspy:time:nanoseconds:time:nanoseconds:delta"))
            assert samples == expected and 0.7 < ns / (2_000_000 * expected) < 1.3, (samples, ns, expected)
            status, said = push(luaspy, url, recording, "--attribute", "1a=b")
            assert status == 8 and "invalid label name: 1a" in said, said
            status, said = push(luaspy, url + "/api/profiles/writeraw", recording)
            assert status == 8 and "answered 200" in said and "unknown service profiles" in said, said
        print(f"{samples} samples, {ns / 1e9:.2f} s: Parca has what luaspy has; what it refuses is said")


main()
