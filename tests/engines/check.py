"""check.py RECEIVED FOLDED COUNT: RECEIVED is what a Collector's file exporter wrote, a message of OTLP in JSON a line. Each of COUNT messages has to
say of each stack what FOLDED says of it, to the sample."""
import collections
import json
import sys

received, folded, count = sys.argv[1], sys.argv[2], int(sys.argv[3])

expected = collections.Counter()
for line in open(folded, encoding="utf-8"):
    stack, samples = line.rstrip("\n").rsplit(" ", 1)
    expected[stack] += int(samples)
assert len(expected) > 5 and expected.total() > 500, expected


def index(of, name):
    return int(of.get(name, 0))


def stacks_of(message):
    tables = message["dictionary"]
    strings = tables["stringTable"]
    found = collections.Counter()
    for resource in message["resourceProfiles"]:
        attributes = {strings[index(each, "keyStrindex")] if "keyStrindex" in each else each["key"]: each["value"]
                      for each in resource["resource"]["attributes"]}
        for key in ("service.name", "process.pid", "process.executable.name", "process.runtime.name", "process.runtime.version"):
            assert key in attributes, (key, attributes)
        for scope in resource["scopeProfiles"]:
            for profile in scope["profiles"]:
                kind = strings[index(profile["sampleType"], "typeStrindex")]
                assert kind == "samples" and strings[index(profile["periodType"], "typeStrindex")] == "cpu", kind
                assert int(profile["period"]) == 2_000_000
                for sample in profile["samples"]:
                    names = []
                    for location in tables["stackTable"][index(sample, "stackIndex")].get("locationIndices", []):
                        line = tables["locationTable"][location]["lines"][0]
                        names.append(strings[index(tables["functionTable"][index(line, "functionIndex")], "nameStrindex")])
                    found[";".join(reversed(names))] += sum(int(value) for value in sample["values"])
    return found


messages = [json.loads(line) for line in open(received, encoding="utf-8")]
assert len(messages) == count, len(messages)
for message in messages:
    found = stacks_of(message)
    for stack in found.keys() | expected.keys():
        assert found[stack] == expected[stack], (stack, found[stack], expected[stack])
print(f"{count} messages, {len(expected)} stacks, {expected.total()} samples: as in the folded stacks")
