"""volume.py LUASPY TARGETS WORK: what an agent sends of a host, as it is by default (19 Hz, a batch each 15 s): bytes of a batch, samples, its own CPU
time and memory. docs/fleet.md has the figures. It takes three minutes."""
import contextlib
import gzip
import os
import pathlib
import signal
import subprocess
import sys
import tempfile

import engines

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "sending"))
from engine import Engine

from opentelemetry.proto.collector.profiles.v1development.profiles_service_pb2 import ExportProfilesServiceRequest

BATCHES = 3   # that are counted: the first one is shorter


def agent_figures(pid):
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    memory, = [int(line.split()[1]) for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("VmHWM")]
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK"), memory / 1024


def measure(luaspy, what, folder, seconds_of_cpu):
    """`seconds_of_cpu`(): what the programs have used."""
    engine = Engine()
    with engines.Program([luaspy, "agent", "--to", engine.url, "--name", folder], folder / f"{what}.agent") as agent:
        engines.PATIENCE = 120
        engines.until(lambda: len(engine.requests) >= 1, "the first batch")
        before, cpu = agent_figures(agent.pid)[0], seconds_of_cpu()
        engines.until(lambda: len(engine.requests) >= 1 + BATCHES, "the batches")
        after, memory = agent_figures(agent.pid)
        cpu = seconds_of_cpu() - cpu
        agent.end(signal.SIGINT)
    bodies = [body for _, _, body in engine.requests[1:1 + BATCHES]]
    messages = [ExportProfilesServiceRequest.FromString(gzip.decompress(body)) for body in bodies]
    profiles = [profile for message in messages for resource in message.resource_profiles for scope in resource.scope_profiles for profile in scope.profiles]
    samples = sum(sample.values[0] for profile in profiles for sample in profile.samples)
    size = sum(map(len, bodies)) / BATCHES
    print(f"{what}: {size / 1e3:.1f} kB a batch ({sum(len(gzip.decompress(body)) for body in bodies) / BATCHES / 1e3:.1f} kB before gzip), {size / 15:.0f} bytes a second; "
          f"{len(profiles) / BATCHES:.1f} profiles of {sum(len(profile.samples) for profile in profiles) / BATCHES:.0f} different samples, {samples / BATCHES:.0f} in all; "
          f"the programs used {100 * cpu / (15 * BATCHES):.0f} % of a CPU, the agent {100 * (after - before) / (15 * BATCHES):.2f} % and {memory:.0f} MiB")


def cpu_of(programs):
    return lambda: sum(agent_figures(each.pid)[0] for each in programs)


def main():
    luaspy, targets, _ = (pathlib.Path(word).resolve() for word in sys.argv[1:4])
    here = pathlib.Path(__file__).resolve().parent
    for what in ("script", "redis", "nginx", "host"):
        with tempfile.TemporaryDirectory() as name, contextlib.ExitStack() as ends:
            folder = pathlib.Path(name)
            start = lambda program: ends.enter_context(program)
            programs = []
            if what in ("script", "host"):
                script = folder / "service.lua"
                script.write_text((here / "service.lua").read_text())
                programs.append(start(engines.lua(targets, script, folder / "lua.log")))
            if what in ("redis", "host"):
                programs.append(start(engines.redis(targets, folder)))
            if what == "nginx":
                programs.append(start(engines.nginx(targets, folder)))
            if what == "host":
                idle = folder / "idle.lua"
                idle.write_text("io.write('READY\\n') io.flush() io.read()\n")
                for i in range(20):
                    waits = start(engines.Program([*engines.command_of(targets, "debian-lua5.4-bookworm"), idle], folder / f"idle{i}.log", stdin=subprocess.PIPE))
                    programs.append(waits.said("READY"))
            measure(luaspy, what, folder, cpu_of(programs))


main()
