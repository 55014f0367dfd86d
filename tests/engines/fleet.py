"""fleet.py LUASPY TARGETS WORK: the recipe of docs/fleet.md with a Collector, as it is written there but for ports: its configuration, the agent on three hosts, and its
SQL, which has to answer what the agents' profiles say."""
import collections
import pathlib
import re
import shlex
import signal
import sys
import tempfile

import duckdb

import engines

HOSTS = ("web1", "web2", "web3")


def hottest(file):
    """By the innermost Lua function of each stack."""
    functions = collections.Counter()
    for profile in engines.received(file):
        for stack, count in profile.samples.items():
            lua = [name for name, _, kind in stack if kind == "lua"]
            if lua:
                functions[lua[-1]] += count * profile.period / 1e9
    return functions


def main():
    luaspy, targets, work = (pathlib.Path(word).resolve() for word in sys.argv[1:4])
    here = pathlib.Path(__file__).resolve().parent
    page = (here.parents[1] / "docs/fleet.md").read_text(encoding="utf-8")
    port = str(engines.free_port())
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "collector.yaml").write_text(engines.blocks("yaml")[0].replace("0.0.0.0:4318", f"127.0.0.1:{port}").replace("service:\n", "service:\n  telemetry: {metrics: {level: none}}\n"))
        start, = re.findall(r"`otelcol (--config[^`]*)`", page)
        command = engines.agent_of_page(luaspy, "http://collector:4318", f"http://127.0.0.1:{port}")
        programs, agents = [], []
        collector = engines.Program([work / "otelcol", *shlex.split(start)], folder / "collector.log", cwd=folder).said("Everything is ready")
        try:
            for host in HOSTS:
                script = folder / f"{host}.lua"
                script.write_text((here / "service.lua").read_text())
                programs.append(engines.lua(targets, script, folder / f"{host}.program"))
                # Less than the 15 s of the recipe, so that the test is short.
                agents.append(engines.Program([*command, "--attribute", f"host.name={host}", "--name", script, "--every", 2, "--rate", 97, "--max-cpu", 100], folder / f"{host}.agent"))
            file = folder / "profiles.json"
            engines.until(lambda: file.exists() and all(file.read_text().count(host) >= 3 for host in HOSTS), "three batches of each agent")
            for agent in agents:
                agent.end(signal.SIGINT)
        finally:
            for each in (*agents, *programs):
                each.end(signal.SIGKILL)
            collector.end()
        with open(file, "a", encoding="utf-8") as again:
            again.write(file.read_text().splitlines()[0] + "\n")   # a batch that came twice
        sql = engines.blocks("sql")[0].replace("profiles*.json", f"{folder}/profiles*.json")
        rows = duckdb.sql(sql).fetchall()
        lines = file.read_text().splitlines()
        file.write_text("\n".join(lines[:-1]) + "\n")
        expected = hottest(file)
        assert [round(seconds, 6) for _, seconds, _ in rows] == [round(seconds, 6) for _, seconds in expected.most_common(10)], (rows, expected)
        assert all(abs(seconds - expected[name]) < 1e-6 for name, seconds, _ in rows), (rows, expected)
        assert len(sql.strip().splitlines()) <= 12
        print(f"{len(lines) - 1} batches of {len(HOSTS)} hosts; hottest: {rows[0][0].split(' (')[0]} with {rows[0][2]} %, and {len(rows)} functions in all: SQL and profiles agree")


main()
