"""agent.py LUASPY TARGETS WORK: `luaspy agent` beside a Lua script, redis and nginx under load, for a Collector. What the
Collector wrote has to name the functions, frames and lines that `luaspy record` of the same time has, with their shares."""
import collections
import math
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile

import engines

RATE, SECONDS, EVERY = 199, 4, 5   # so many seconds of CPU each program is recorded for
ALIKE = 4.5    # standard deviations between two shares of the same: less than once in 100,000 comparisons
LUCK = 0.01    # besides: what changes in the seconds that only one of them has


def with_line(frame):
    """The text of a frame in the folded stacks with lines."""
    function, line, kind = frame
    if kind != "lua":
        return function
    return re.sub(r"^(.*) \((.*?)(?::\d+)?\)$", rf"\1 (\2:{line})", function)


def compare(what, ours, theirs):
    """The largest difference of two shares of one name."""
    all_ours, all_theirs = ours.total(), theirs.total()
    assert all_ours > 300 and all_theirs > 300, (what, all_ours, all_theirs)
    largest, worst = 0.0, 0.0
    for name in ours.keys() | theirs.keys():
        one, other = ours[name] / all_ours, theirs[name] / all_theirs
        both = (ours[name] + theirs[name]) / (all_ours + all_theirs)
        sigma = math.sqrt(both * (1 - both) * (1 / all_ours + 1 / all_theirs))
        assert abs(one - other) <= ALIKE * sigma + LUCK, f"{what}: {name} has {one:.3f} with the Collector, {other:.3f} with record"
        largest = max(largest, abs(one - other))
        worst = max(worst, abs(one - other) / sigma if sigma else 0)
    return largest, worst


def by_leaf(stacks):
    leaves = collections.Counter()
    for stack, count in stacks.items():
        leaves[stack[-1]] += count
    return leaves


def with_callees(stacks):
    """Each name counts once in a stack; all samples stay the whole of which it is a share."""
    names = collections.Counter()
    for stack, count in stacks.items():
        for name in set(stack):
            names[name] += count
    return names


def cpu_seconds(pid):
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def check(name, pid, cpu, profiles, record):
    mine = [each for each in profiles if each.attributes["process.pid"] == pid]
    assert mine, f"nothing of {name}"
    functions, lines = collections.Counter(), collections.Counter()
    for each in mine:
        assert each.kind == "samples of cpu", each.kind
        for stack, count in each.samples.items():
            functions[tuple(frame[0] for frame in stack)] += count
            lines[tuple(map(with_line, stack))] += count
    assert len({each.id for each in mine}) == len(mine), "two profiles of one id"
    of_record, lines_of_record = record
    figures = [compare(f"{name}, {what}", one, other) for what, one, other in (
        ("functions", by_leaf(functions), by_leaf(of_record)), ("lines", by_leaf(lines), by_leaf(lines_of_record)), ("stacks", functions, of_record))]
    # Inclusive shares: a name in each stack is a share of 1, of all samples.
    ours, theirs = with_callees(lines), with_callees(lines_of_record)
    often = {frame for frame, count in theirs.items() if count > 0.02 * lines_of_record.total()}
    assert often <= ours.keys(), often - ours.keys()
    assert {frame for frame, count in ours.items() if count > 0.02 * lines.total()} <= theirs.keys(), ours.keys() - theirs.keys()
    least, most = cpu  # while it was surely sampled, and in all
    assert 0.8 * RATE * least < functions.total() < 1.1 * RATE * most, (name, functions.total(), cpu)
    print(f"{name}: {len(mine)} profiles, {functions.total()} samples of {least:.1f} to {most:.1f} s of CPU ({of_record.total()} of record), {len(functions)} stacks, "
          f"{len(by_leaf(lines))} innermost lines; the largest difference of a share: "
          + ", ".join(f"{100 * largest:.1f} % ({worst:.1f} σ) of a {what}" for (largest, worst), what in zip(figures, ("function", "line", "stack"))))


def main():
    luaspy, targets, work = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve(), pathlib.Path(sys.argv[3]).resolve()
    here = pathlib.Path(__file__).resolve().parent
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        port, file = engines.free_port(), folder / "received.json"
        collector = engines.collector(work, "agent", port, engines.TO_FILE.format(file=file))
        with collector, engines.lua(targets, here / "service.lua", folder / "lua.log") as script, engines.redis(targets, folder) as redis, engines.nginx(targets, folder) as nginx:
            programs = {"script": script.pid, "redis": redis.pid, "nginx": nginx.pid}
            used = lambda: {each: cpu_seconds(pid) for each, pid in programs.items()}
            started = used()
            agent = engines.Program([luaspy, "agent", "--to", f"http://127.0.0.1:{port}", "--rate", RATE, "--every", EVERY, "--max-cpu", 100, "--max-stopped", 20,
                                     "--name", here / "service.lua", "--name", folder], folder / "agent.log")
            with agent:
                for pid in programs.values():
                    agent.said(f"samples process {pid} (")
                found = used()
                recordings = [subprocess.Popen([luaspy, "record", "-r", str(RATE), "--max-stopped", "20", "-f", "raw", "-o", folder / f"{each}.luaspy", "--pid", str(pid)],
                                               stderr=subprocess.DEVNULL) for each, pid in programs.items()]
                engines.until(lambda: all(now > found[each] + SECONDS for each, now in used().items()), "the programs work")
                for recording in recordings:
                    recording.send_signal(signal.SIGINT)
                assert all(recording.wait() == 0 for recording in recordings)
                recorded = used()
                said = agent.end(signal.SIGINT)
                ended = used()
        collector.end()  # it writes what it has
        assert " 0 refused, 0 dropped, 0 not sent" in said, said
        profiles = list(engines.received(file))
        for each, pid in programs.items():
            def report(*words):
                text = subprocess.run([luaspy, "report", "-f", "folded", *words, "-o", "-", folder / f"{each}.luaspy"], check=True, stdout=subprocess.PIPE, text=True).stdout
                return engines.folded(text.replace(":~", ":"))   # the nearest line that is known, of machine code: OTLP has no sign for it
            check(each, pid, (recorded[each] - found[each], ended[each] - started[each]), profiles, (report(), report("--lines")))


main()
