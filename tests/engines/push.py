"""push.py LUASPY TARGETS WORK: a recording is pushed to a Collector, and sent as JSON. What the Collector wrote to its file
has to say of each stack what the folded stacks of the recording say, to the sample; what is sent has to be read by the types
that OpenTelemetry publishes, and its tables have to be as strict readers want them."""
import collections
import pathlib
import subprocess
import sys
import tempfile
import urllib.request

from opentelemetry.proto.collector.profiles.v1development.profiles_service_pb2 import ExportProfilesServiceRequest

import engines


def send(url, file):
    request = urllib.request.Request(url, file.read_bytes(), {"Content-Type": "application/json", "OTLP-Profiles-Development-Version": "1"})
    with urllib.request.urlopen(request, timeout=engines.PATIENCE) as answer:
        assert answer.status == 200, answer.status


def check_received(file, expected):
    profiles = list(engines.received(file))
    assert len(profiles) == 2, len(profiles)
    for each in profiles:
        for key in ("service.name", "process.pid", "process.executable.name", "process.runtime.name", "process.runtime.version"):
            assert key in each.attributes, (key, each.attributes)
        assert each.kind == "samples of cpu" and each.period == 2_000_000, each
        found = collections.Counter()
        for stack, count in each.samples.items():
            found[tuple(frame[0] for frame in stack)] += count
        assert found == expected, found - expected


def check_types(message, expected):
    """By the published types: nothing that these do not know, and what Parca and Pyroscope ask for."""
    request = ExportProfilesServiceRequest.FromString(message)
    known = request.SerializeToString()
    assert len(known) == len(message), (len(known), len(message))   # an unknown field is kept, and said by none: so
    unknown = ExportProfilesServiceRequest.FromString(message)
    unknown.DiscardUnknownFields()
    assert unknown.SerializeToString() == known, "fields that the types do not know"
    tables = request.dictionary
    for name in ("mapping_table", "location_table", "function_table", "link_table", "attribute_table", "stack_table"):
        table = getattr(tables, name)
        assert len(table) > 0 and table[0] == type(table[0])(), name
    assert tables.string_table[0] == "" and len(set(tables.string_table)) == len(tables.string_table)
    strings = len(tables.string_table)
    for one in tables.function_table:
        assert max(one.name_strindex, one.system_name_strindex, one.filename_strindex) < strings
    for one in tables.location_table[1:]:
        assert one.mapping_index < len(tables.mapping_table) and one.lines and max(one.attribute_indices, default=0) < len(tables.attribute_table)
        assert all(0 < line.function_index < len(tables.function_table) for line in one.lines)
    for one in tables.stack_table[1:]:
        assert one.location_indices and all(0 < at < len(tables.location_table) for at in one.location_indices)
    total = 0
    for resource in request.resource_profiles:
        assert resource.HasField("resource") and resource.resource.attributes
        for scope in resource.scope_profiles:
            assert scope.HasField("scope") and scope.scope.name == "luaspy"
            for profile in scope.profiles:
                assert len(profile.profile_id) == 16 and any(profile.profile_id)
                assert profile.HasField("sample_type") and profile.HasField("period_type") and profile.period > 0
                assert profile.time_unix_nano > 0 and profile.duration_nano > 0
                for sample in profile.samples:
                    assert 0 < sample.stack_index < len(tables.stack_table) and len(sample.values) == 1
                    assert max(sample.attribute_indices, default=0) < len(tables.attribute_table)
                    total += sample.values[0]
    assert total == expected.total(), (total, expected.total())


def main():
    luaspy, targets, work = (pathlib.Path(word).resolve() for word in sys.argv[1:4])
    here = pathlib.Path(__file__).resolve().parent
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        port, file, recording = engines.free_port(), folder / "received.json", folder / "program.luaspy"
        url = f"http://127.0.0.1:{port}"
        subprocess.run([luaspy, "record", "-r", "500", "-o", recording, "--", *engines.command_of(targets, "debian-lua5.4-bookworm"), here / "program.lua"], check=True, stderr=subprocess.DEVNULL)

        def report(form, *words):
            written = folder / f"program.{form}"
            subprocess.run([luaspy, "report", "-f", form, *words, "-o", written, recording], check=True, stderr=subprocess.DEVNULL)
            return written

        expected = engines.folded(report("folded").read_text())
        assert len(expected) > 5 and expected.total() > 500, expected
        with engines.collector(work, "push", port, engines.TO_FILE.format(file=file)):
            subprocess.run([luaspy, "push", recording, "--to", url, "--service", "shop"], check=True, stdout=subprocess.DEVNULL)
            send(url + "/v1development/profiles", report("otlp-json"))
        check_received(file, expected)
        check_types(report("otlp", "--lines").read_bytes(), expected)
        print(f"2 messages, {len(expected)} stacks, {expected.total()} samples: as in the folded stacks; OpenTelemetry's types read the same")


main()
