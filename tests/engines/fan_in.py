"""fan_in.py LUASPY TARGETS WORK: three agents, each for a program of its own and with another host.name, send to one Collector,
which hands on to a second one. The first one is killed and started again, twice. Of each batch that an agent says it has
sent, the second Collector's file has to have each profile once: nothing that fits the buffer is lost, nothing is there twice."""
import collections
import pathlib
import re
import signal
import sys
import tempfile
import time

import engines

HOSTS = ("web1", "web2", "web3")
EVERY = 1
OUTAGES = (3, 6)   # seconds for which the first one is away


def main():
    luaspy, targets, work = (pathlib.Path(word).resolve() for word in sys.argv[1:4])
    here = pathlib.Path(__file__).resolve().parent
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        first, second, file = engines.free_port(), engines.free_port(), folder / "received.json"
        url = f"http://127.0.0.1:{second}"
        behind = engines.collector(work, "second", second, engines.TO_FILE.format(file=file))
        programs, agents = [], []
        try:
            front = engines.collector(work, "first", first, engines.TO_NEXT.format(url=url))
            for host in HOSTS:
                script = folder / f"{host}.lua"
                script.write_text((here / "service.lua").read_text())
                programs.append(engines.lua(targets, script, folder / f"{host}.program"))
                agents.append(engines.Program([luaspy, "agent", "--to", f"http://127.0.0.1:{first}", "--rate", 49, "--every", EVERY, "--max-cpu", 100, "--name", script,
                                               "--attribute", f"host.name={host}", "--buffer", 8], folder / f"{host}.agent"))
            engines.until(lambda: all(file.exists() and host in file.read_text() for host in HOSTS), "a batch of each agent")
            outages = []
            for number, seconds in enumerate(OUTAGES, 1):
                front.end(signal.SIGKILL)
                outages.append(time.time_ns())
                for agent in agents:
                    agent.said("It is tried again.", number)
                time.sleep(seconds)
                front = engines.collector(work, "first", first, engines.TO_NEXT.format(url=url))
                for agent in agents:
                    agent.said("The engine takes profiles again.", number)
            said = [agent.end(signal.SIGINT) for agent in agents]
            front.end()
        finally:
            for each in (*agents, *programs):
                each.end(signal.SIGKILL)
            behind.end()
        profiles = list(engines.received(file))
        for host, words in zip(HOSTS, said):
            counts = re.search(r"(\d+) \w+ sent, ([\d.]+) kB; (\d+) refused, (\d+) dropped, (\d+) not sent", words)
            sent, refused, dropped, waiting = (int(counts[i]) for i in (1, 3, 4, 5))
            mine = sorted((each for each in profiles if each.attributes["host.name"] == host), key=lambda each: each.time_ns)
            ids = collections.Counter(each.id for each in mine)
            twice = len(mine) - len(ids)
            assert (refused, dropped, waiting) == (0, 0, 0), words
            # Who is killed after handing on and before answering gets that batch again, with the same id.
            assert len(ids) == sent and twice <= 1, (host, sent, len(mine), ids)
            kept = [sum(began - 1e9 < each.time_ns < began + seconds * 1e9 for each in mine) for began, seconds in zip(outages, OUTAGES)]
            assert min(kept) > 0, (host, kept)
            print(f"{host}: {sent} batches sent, {counts[2]} kB; in the file {len(ids)} profiles with {sum(each.samples.total() for each in mine)} samples, {twice} of them twice, "
                  f"{' and '.join(map(str, kept))} of the {' and '.join(map(str, OUTAGES))} seconds without a Collector")


main()
