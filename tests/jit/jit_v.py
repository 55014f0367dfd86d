"""jit_v.py LUASPY TARGETS [BUILD...]: what luaspy jit says of aborts.lua must be what LuaJIT's own jit.v has written of the same process: every
root abort with its reason and its places, how often each place was tried, what is blacklisted, and every trace with its start and its link;
and nothing else. On builds of LuaJIT of different years, with references of 64 and of 32 bits."""
import concurrent.futures
import json
import pathlib
import re
import signal
import subprocess
import sys
import tempfile

BUILDS = ["2.0.20260330-gc32", "2.1.20170501-gc64", "2.1.20170501-gc32", "2.1.tarantool2.6-gc64", "2.1.20220320-gc64", "2.1.20220320-gc32",
          "2.1.20230119-gc32", "2.1.20250117-gc32", "2.1.20251030-gc32", "2.1.newest-gc64", "2.1.newest-gc32"]
ABORT = re.compile(r"\[TRACE --- (\(\S+\) )?\S+?:(\d+) -- (.*?)(?: at \S+?:(\d+))?\]$")
TRACE = re.compile(r"\[TRACE +(\d+) (?:\((\d+)/(\w+)\) )?\S+?:(\d+) (.*)\]$")
# Not kept: LuaJIT tries again at once, and gives no penalty.
NO_PENALTY = {"retry recording", "hit mcode limit (retrying)"}


class Log:
    """What jit.v has written."""

    def __init__(self, text, opcodes):
        self.aborts, self.traces = [], {}   # (start, reason, place); number: (start, link, parent, exit)
        for line in text.splitlines():
            if abort := ABORT.match(line):
                side, start, reason, place = abort.groups()
                if side is None and reason.strip() not in NO_PENALTY:
                    self.aborts.append((int(start), self.reason(reason.strip(), opcodes), int(place or start)))
            elif trace := TRACE.match(line):
                number, parent, out, start, link = trace.groups()
                stitched = out == "stitch"
                self.traces[int(number)] = (int(start), self.link(link), None if stitched or not parent else (int(parent), int(out)))
            elif line == "[TRACE flush]":
                sys.exit("aborts.lua is not to flush traces")
            elif line.startswith("[TRACE"):
                sys.exit(f"jit.v has written what this test does not know: {line}")

    @staticmethod
    def reason(text, opcodes):
        number = re.fullmatch(r"NYI: bytecode (\d+)", text)
        return f"NYI: bytecode {opcodes[int(number[1])]}" if number else text

    @staticmethod
    def link(text):
        if text.startswith("stitch"):
            return "stitch"   # the number of the trace that follows comes later
        if text == "-- fallback to interpreter":
            return "interpreter"
        to = re.fullmatch(r"-> (\d+)(?: (\S+))?", text)
        return f"{to[2] or 'root'} {to[1]}" if to else text


def opcodes_of(source):
    names = re.search(r'bcnames = "([^"]*)"', (source / "jit" / "vmdef.lua").read_text())[1]
    return [names[i:i + 6].strip() for i in range(0, len(names), 6)]


def check(what, seen, expected):
    if seen != expected:
        missing, invented = [each for each in expected if each not in seen], [each for each in seen if each not in expected]
        raise AssertionError(f"{what}: missing {missing}, invented {invented}")


def abort_of(abort, start):
    return (start["line"], abort["reason"], abort["at"]["line"] if abort["at"] else None)


def check_report(report, log):
    (compiler,) = report["compilers"]
    assert compiler["found"] and compiler["compiler_on"], compiler
    attempts = {}
    for start, _, _ in log.aborts:
        attempts[start] = attempts.get(start, 0) + 1
    seen = {}
    for one in compiler["attempts"]:
        seen[one["start"]["line"]] = seen.get(one["start"]["line"], 0) + one["attempts"]
    check("how often each place was tried", seen, attempts)
    last = {}
    for start, reason, _ in log.aborts:
        last[start] = re.sub(r" \S+$", "", reason) if reason.startswith(("NYI: bytecode", "NYI: FastFunc", "NYI: unsupported variant", "NYI: C function")) else reason
    for one in compiler["attempts"]:
        (abort,) = one["aborts"]
        text = re.sub(r" \(which one was not seen\)$", "", abort["reason"])
        assert text.startswith(last[one["start"]["line"]]), (one, last)
    blacklisted = {one["start"]["line"] for one in compiler["attempts"] if one["blacklisted"]}
    check("blacklisted", {one["line"] for one in compiler["blacklisted"]} - {0}, blacklisted)
    check("blacklisted after 11 attempts", blacklisted, {start for start, times in attempts.items() if times >= 11})
    traces = {}
    for one in report["traces"]:
        parent = (one["parent"]["trace"], one["parent"]["exit"]) if one["parent"] else None
        link = "stitch" if one["link"].startswith("stitch") else one["link"]
        traces[one["number"]] = (one["start"]["line"], link, parent)
    # LuaJIT throws away a trace that only returns when another one needs the code (lj_record.c, rec_func_jit).
    check("traces", sorted(traces.items()), sorted(item for item in log.traces.items() if item[0] in traces or item[1][1] != "return"))
    assert compiler["strings"]["complete"] and compiler["strings"]["strings"] > 100 and compiler["all_functions"], compiler


def check_events(events, log):
    """The aborts that were not seen once with all that is known of them: at the call of a C function, LuaJIT does not keep the place."""
    def at_c_function(abort):
        return re.match("NYI: (FastFunc|C function|unsupported variant)", abort[1])

    def without_place(abort):
        return (*abort[:2], None) if at_c_function(abort) else abort
    seen = {without_place(abort_of(event["abort"], event["start"])) for event in events if event["kind"] == "abort"}
    whole = {each for each in seen if (each[2] is not None or at_c_function(each)) and "not seen" not in each[1]}
    expected = set(map(without_place, log.aborts))
    assert whole <= expected, f"invented: {whole - expected}"
    assert any(event["kind"] == "blacklisted" for event in events), "nothing was seen to be blacklisted"
    assert {event["trace"]["number"] for event in events if event["kind"] == "trace"} == set(log.traces), "traces that come"
    return expected - whole


def run(luaspy, targets, build, folder):
    """On a busy machine luaspy may be late: an abort is over, and another one has begun. It has to see each of them some time."""
    never_seen = None
    for _ in range(12):
        line, not_seen = run_once(luaspy, targets, build, folder)
        never_seen = not_seen if never_seen is None else never_seen & not_seen
        if not never_seen:
            return line
    raise AssertionError(f"not seen in 12 runs: {never_seen}")


def run_once(luaspy, targets, build, folder):
    base = targets / "build" / f"luajit-{build}"
    log_file = folder / f"{build}.log"
    script = pathlib.Path(__file__).parent / "aborts.lua"
    with subprocess.Popen([base / "bin" / "luajit", f"-jv={log_file}", script], env={"LUA_PATH": f"{base}/src/?.lua"}, stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE) as program:
        try:
            assert program.stdout.readline() == b"READY\n"
            with subprocess.Popen([luaspy, "jit", "--watch", "--json", "--pid", str(program.pid)], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as watch:
                assert b"watching" in watch.stderr.readline()
                program.stdin.write(b"\n")
                program.stdin.flush()
                assert program.stdout.readline() == b"DONE\n"
                watch.send_signal(signal.SIGINT)
                events = [json.loads(line) for line in watch.stdout.read().splitlines()]
            words = [luaspy, "jit", "--json", "-d", "0.1", "--pid", str(program.pid)]
            report = json.loads(subprocess.run(words, check=True, stdout=subprocess.PIPE).stdout)
        finally:
            program.kill()
    log = Log(log_file.read_text(), opcodes_of(base / "src"))
    assert len(set(log.aborts)) >= 5 and len(log.traces) >= 5, "jit.v has written too little"
    check_report(report, log)
    not_seen = check_events(events, log)
    return f"{build}: {len(log.aborts)} aborts at {len({start for start, _, _ in log.aborts})} places, {len(log.traces)} traces", not_seen


def main():
    luaspy, targets, *builds = sys.argv[1:]
    failed = False
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(2) as pool:
        running = {build: pool.submit(run, luaspy, pathlib.Path(targets), build, pathlib.Path(folder)) for build in builds or BUILDS}
        for build, future in running.items():
            try:
                print(future.result())
            except AssertionError as error:
                failed = True
                print(f"{build}: {error}")
    sys.exit(1 if failed else 0)


main()
