"""check.py SOURCE LUASPY LUA...: the output of each --json for a program in LUA (a command) must conform to its schema in SOURCE/docs, with every
option; and the schemas must be complete: a field that they do not have is also an error."""
import json
import pathlib
import subprocess
import sys
import tempfile

import jsonschema

PROGRAM = """
local function receive(...) coroutine.yield(...) end
for i = 1, 10 do _G[i] = coroutine.create(function() receive(i) end) coroutine.resume(_G[i]) end
local function grow() for i = 1, 100 do _G[#_G + 1] = {tostring(i)} end end
local function wait(text, number) io.write("READY\\n") io.flush() %s end
wait("text", 12)
"""
WORK = """
local function join(n) local t = {} for i = 1, n do t[i] = tostring(i) end return #table.concat(t) end
local function add(n) local s = 0 for i = 1, n do s = s + i %% 7 end return s end
local function work() join(200) for i = 1, %d do add(2000) end end
for i = 1, %d do work() end
"""
# What conforms is not yet complete: these lack properties of their own, which "allOf" takes from others.
DUMP_FIELDS = {"version", "subprocesses", "pid", "command", "lua", "read_as", "later", "movements", "threads", "states", "deadlocks", "stood_still_ns", "disturbed"}


class Schema:
    def __init__(self, path, fields=None):
        schema = json.loads(path.read_text())
        jsonschema.Draft7Validator.check_schema(schema)
        self.validator, self.fields = jsonschema.Draft7Validator(schema), fields

    def check(self, text, words):
        """All objects of a text, of which there is at least one; returns them."""
        objects, decoder, at = [], json.JSONDecoder(), 0
        while text[at:].strip():
            one, at = decoder.raw_decode(text, at + len(text[at:]) - len(text[at:].lstrip()))
            objects.append(one)
            self.check_one(one, words)
        if not objects:
            sys.exit(f"{words}: no object")
        return objects

    def check_one(self, one, words):
        errors = sorted(self.validator.iter_errors(one), key=lambda error: len(error.path))
        for error in errors:
            deepest = max([error, *(error.context or [])], key=lambda each: len(each.absolute_path))
            sys.exit(f"{words}: {deepest.message} at {list(deepest.absolute_path)}")
        if one.get("version") != 1:
            sys.exit(f"{words}: no version")
        if self.fields and set(one) - self.fields:
            sys.exit(f"{words}: the schema does not have {set(one) - self.fields}")

    def check_complete(self, one, path):
        """A field that the schema does not have is an error, in the object at the path."""
        inner = one
        for step in path:
            inner = inner[step]
        inner["unknown"] = 1
        if self.validator.is_valid(one):
            sys.exit(f"a field that the schema does not have passes at {path}")
        del inner["unknown"]


def output_of(words):
    return subprocess.run([str(word) for word in words], check=True, stdout=subprocess.PIPE).stdout.decode()


def check_running(luaspy, lua, schemas):
    for work in ("io.read()", "while true do if #_G < 20000 then grow() end end"):
        with subprocess.Popen(lua + ["-e", PROGRAM % work], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as program:
            try:
                assert program.stdout.readline() == b"READY\n"
                pid = str(program.pid)
                for options in ([], ["--locals"], ["--coroutines"], ["--traces"], ["-s", "-v", "--locals", "--coroutines", "--count", "2", "--interval", "0.1"]):
                    looks = schemas["dump"].check(output_of([luaspy, "dump", "--json", "--pid", pid] + options), options)
                schemas["dump"].check_complete(looks[0], ["threads", 0, "frames", 0])
                for options in ([], ["--rss"], ["--every", "0.1", "--count", "2"]):
                    heaps = schemas["heap"].check(output_of([luaspy, "heap", "--json", "--pid", pid] + options), options)
                    schemas["heap"].check_complete(heaps[0], [] if "--every" in options else ["states", 0])
                for options in ([], ["--states"]):
                    lists = schemas["ps"].check(output_of([luaspy, "ps", "--json"] + options), options)
                    mine = [process for process in lists[0]["processes"] if process["pid"] == program.pid]
                    assert len(mine) == 1 and len(str(mine[0]["cpu_percent"]).partition(".")[2]) <= 1, mine
                    schemas["ps"].check_complete(lists[0], ["processes", 0])
                check_report(luaspy, pid, schemas["doctor"])
                if "luajit" in lua[0] or "luajit" in lua[-1]:
                    (jit,) = schemas["jit"].check(output_of([luaspy, "jit", "--json", "-d", "0.3", "--pid", pid]), "jit")
                    for path in (["compilers", 0], []):
                        schemas["jit"].check_complete(jit, path)
            finally:
                program.kill()


def check_report(luaspy, pid, schema):
    """What doctor finds out about a Lua; it says nothing of the program's contents."""
    text = output_of([luaspy, "doctor", "--json", "--pid", pid])
    (report,) = schema.check(text, "doctor")
    assert report["process"]["pid"] == int(pid) and report["images"][0]["certain"] and report["states"][0]["holds"], report
    looks = report["threads"][0]["looks"]
    assert looks and all(look["quality"]["with_lua"] == 1 for look in looks if "lost" not in look), looks
    assert any(trial["suggested"] and trial["fits"] for trial in report["layouts_tried"]["on_stacks"]), report["layouts_tried"]
    assert "receive" not in text and "READY" not in text
    for path in (["threads", 0, "looks", 0], ["files", 0], ["layouts_tried"], []):
        schema.check_complete(report, path)
    refused = subprocess.run([luaspy, "doctor", "--json", "--pid", "4194303"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False)
    (report,) = schema.check(refused.stdout.decode(), "doctor of no process")
    assert refused.returncode == 3 and "no process" in report["refusal"], (refused.returncode, report)


def check_recordings(luaspy, lua, schema, folder):
    before, after, allocations = folder / "before.luaspy", folder / "after.luaspy", folder / "allocations.luaspy"
    script = folder / "work.lua"
    rounds = 10000 if "-joff" in lua else 5000   # for as long: half a second or more, else chance decides what the difference is
    for path, times in ((before, 5), (after, 20)):
        script.write_text(WORK % (times, rounds))
        subprocess.run([luaspy, "record", "-r", "1000", "--max-stopped", "100", "-o", str(path), "--"] + lua + [str(script)], check=True, stderr=subprocess.DEVNULL)
    subprocess.run([luaspy, "record", "--alloc", "-o", str(allocations), "--"] + lua + [str(script)], check=True, stderr=subprocess.DEVNULL)
    for words in ([before], [before, "--from", "0.05"], [allocations, "--unit", "bytes"], [allocations, "--unit", "objects"]):
        (profile,) = schema.check(output_of([luaspy, "report", "--json", *words]), words)
        samples = profile["recording"]["samples"]
        assert samples == sum(one["samples"] for one in profile["states"]) == sum(one["samples"] for one in profile["threads"]), words
        assert samples == sum(one["own_samples"] for one in profile["functions"]) > 0, words
        assert profile["recording"]["weight"] == sum(one["own"] for one in profile["functions"]), words
        assert any(one["name"] == "add" and one["line_defined"] == 3 for one in profile["functions"]) or "--unit" in words, words
    schema.check_complete(profile, ["functions", 0])
    for by in ("samples", "time", "run"):
        (difference,) = schema.check(output_of([luaspy, "report", "--json", "--diff", before, after, "--by", by]), by)
        assert difference["by"] == by and difference["can_tell"], by
        add = [one for one in difference["functions"] if "add " in str(one["function_after"])]
        assert by != "run" or add[0]["verdict"] == "more" and add[0]["after"] > 2 * add[0]["before"], add
    schema.check_complete(difference, ["functions", 0])
    check_gate([luaspy, "report", "--diff"], before, after)


def check_gate(diff, before, after):
    """--fail-if-slower has a status of its own, and names what is slower."""
    def status(*words):
        finished = subprocess.run([*diff, *map(str, words)], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, check=False)
        return finished.returncode, finished.stderr.decode()
    slower, why = status(before, after, "--fail-if-slower", "5%")
    assert slower == 12 and "Slower by more than 5 %: add (" in why, (slower, why)
    # Both ways by twice: add does four times the work, and a busy machine makes all of a run slower by less than that.
    slower, why = status(before, after, "--fail-if-slower", "100%")
    assert slower == 12 and "Slower by more than 100 %: add (" in why, (slower, why)
    assert status(before, after, "--json", "--fail-if-slower", "100")[0] == 12
    for words in ((before, after, "--fail-if-slower", "10000%"), (after, before, "--fail-if-slower", "100%")):
        assert status(*words) == (0, ""), (words, status(*words))
    assert status(before, after, "--by", "samples", "--fail-if-slower", "5%")[0] == 2


def main():
    source, luaspy, *lua = sys.argv[1:]
    lua += ["-joff"] if "luajit" in lua[-1] else []   # as slow as the other one
    docs = pathlib.Path(source) / "docs"
    fields = {"dump": DUMP_FIELDS}
    schemas = {name: Schema(docs / f"{name}.schema.json", fields.get(name)) for name in ("doctor", "dump", "heap", "jit", "ps", "report")}
    check_running(luaspy, lua, schemas)
    with tempfile.TemporaryDirectory() as folder:
        check_recordings(luaspy, lua, schemas["report"], pathlib.Path(folder))


main()
