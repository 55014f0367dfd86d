"""container.py TARGETS COMMAND...: COMMAND is `luaspy agent` in a container that sees the processes of the host. It has to sample a Lua program outside of it,
and to name its functions."""
import gzip
import pathlib
import re
import signal
import sys
import tempfile

import engines

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "sending"))
from engine import Engine

SYS_CHROOT, SYS_PTRACE, PERFMON = 18, 19, 38   # capability.h; the first one is chroot's, which makes the container of this test


def main():
    targets, command = pathlib.Path(sys.argv[1]), sys.argv[2:]
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        script = folder / "service.lua"
        script.write_text((pathlib.Path(__file__).resolve().parent / "service.lua").read_text())
        engine = Engine()
        with engines.lua(targets, script, folder / "lua.log") as program, engines.Program([*command, "--to", engine.url, "--every", 2, "--name", script], folder / "agent.log") as agent:
            agent.said(f"samples process {program.pid} (")
            status = pathlib.Path(f"/proc/{agent.pid}/status").read_text()
            allowed = int(re.search(r"CapEff:\t(\w+)", status)[1], 16)
            assert allowed == sum(1 << number for number in (SYS_CHROOT, SYS_PTRACE, PERFMON)), hex(allowed)
            engines.until(lambda: len(engine.requests) >= 2, "two batches")
            said = agent.end(signal.SIGINT)
        sent = b"".join(gzip.decompress(body) for _, _, body in engine.requests)
        for word in (b"add (", b"text (", b"service.lua", b"process.runtime.version", b"5.4"):
            assert word in sent, (word, said)
        print(f"{len(engine.requests)} batches of a program outside of the container")


main()
