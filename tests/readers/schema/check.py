"""check.py SCHEMA LUASPY LUA...: the output of dump --json for a program in LUA (a command) must conform to docs/dump.schema.json, with every option;
and the schema must be complete: a field that it does not have is also an error."""
import json
import subprocess
import sys

import jsonschema

PROGRAM = """
local function receive(...) coroutine.yield(...) end
for i = 1, 10 do _G[i] = coroutine.create(function() receive(i) end) coroutine.resume(_G[i]) end
local function wait(text, number) io.write("READY\\n") io.flush() %s end
wait("text", 12)
"""
FIELDS = {"version", "subprocesses", "pid", "command", "lua", "rows", "later", "movements", "threads", "states", "deadlocks", "stood_still_ns", "disturbed"}


def check(validator, object, options):
    errors = sorted(validator.iter_errors(object), key=str)
    if errors:
        sys.exit(f"{options}: {errors[0].message} at {list(errors[0].absolute_path)}")
    unknown = set(object) - FIELDS
    if unknown:
        sys.exit(f"{options}: the schema does not have {unknown}")


def main():
    schema, luaspy, *lua = sys.argv[1:]
    with open(schema) as file:
        schema = json.load(file)
    jsonschema.Draft7Validator.check_schema(schema)
    validator = jsonschema.Draft7Validator(schema)
    for work in ("io.read()", "while true do end"):
        with subprocess.Popen(lua + ["-e", PROGRAM % work], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as program:
            try:
                assert program.stdout.readline() == b"READY\n"
                for options in ([], ["--locals"], ["--coroutines"], ["-s", "-v", "--locals", "--coroutines", "--count", "2", "--interval", "0.1"]):
                    text = subprocess.run([luaspy, "dump", "--json", "--pid", str(program.pid)] + options, check=True, stdout=subprocess.PIPE).stdout
                    check(validator, json.loads(text), options)
                broken = json.loads(text)
                broken["threads"][0]["frames"][0]["unknown"] = 1
                assert not validator.is_valid(broken), "a field that the schema does not have passes"
            finally:
                program.kill()


main()
