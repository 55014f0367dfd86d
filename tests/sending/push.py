"""push.py LUASPY LUA...: `luaspy push` against an engine that answers as it is told. What arrives must be what `report`
writes, byte for byte; each kind of refusal must be told in the engine's own words, and tried again only where that may
help."""
import base64
import gzip
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.parse

from engine import Engine, fields, varint

WORK = """
local function add(n) local s = 0 for i = 1, n do s = s + i % 7 end return s end
for i = 1, 600 do add(20000) end
"""


class Push:
    def __init__(self, luaspy, recording, lua):
        self.luaspy, self.recording, self.lua = luaspy, recording, lua

    def __call__(self, url, *words, environment=None):
        variables = {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}
        done = subprocess.run([self.luaspy, "push", str(self.recording), "--to", url, *map(str, words)], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, check=False, env=variables | (environment or {}))
        return done.returncode, done.stdout, done.stderr

    def written(self, *words):
        return subprocess.run([self.luaspy, "report", str(self.recording), "-o", "-", *words], check=True, stdout=subprocess.PIPE).stdout


def check_otlp(push, engine):
    engine.expect((200, {}, b""))
    status, said, why = push(engine.url)
    assert status == 0 and "samples" in said and engine.url in said and why == "", (status, said, why)
    ((path, headers, body),) = engine.requests
    assert path == "/v1development/profiles", path
    assert headers["Content-Type"] == "application/x-protobuf" and headers["Content-Encoding"] == "gzip", headers
    assert "Authorization" not in headers and "X-Scope-Orgid" not in headers, headers
    assert gzip.decompress(body) == push.written("-f", "otlp", "--lines")
    engine.expect((200, {}, b""))
    assert push(engine.url + "/own/path", "--attribute", "service.name=shop", "--attribute", "team=a=b")[0] == 0
    ((path, _, body),) = engine.requests
    text = gzip.decompress(body)
    assert b"s3cret" not in text
    assert path == "/own/path" and b"shop" in text and b"a=b" in text, path


def pprof(packed):
    """The strings, and the sum of each value, of a profile (github.com/google/pprof, proto/profile.proto)."""
    strings, sums = set(), [0, 0]
    for number, value in fields(gzip.decompress(packed)):
        if number == 6:
            strings.add(value.decode())
        if number == 2:
            (values,) = [inner for of, inner in fields(value) if of == 2]
            one, at = varint(values, 0)
            sums = [sums[0] + one, sums[1] + varint(values, at)[0]]
    return strings, sums


def check_pprof(push, packed):
    """All that `report` writes, but for the numbers of threads and processes."""
    strings, sums = pprof(packed)
    all_strings, all_sums = pprof(push.written("-f", "pprof", "--lines"))
    assert sums == all_sums and sums[0] > 0, (sums, all_sums)
    assert {"add", "main chunk", "thread"} <= {one.split(" (")[0] for one in strings}, strings
    assert {"tid", "pid", "cpu"} <= all_strings - strings, all_strings - strings
    # The program instead of its command line. Its name alone is also there if a frame of it is.
    program = pathlib.Path(push.lua).name
    new = strings - all_strings
    assert program in strings and new - {program} == {f"command: {program}"}, (new, all_strings - strings)
    assert not any("s3cret" in one for one in strings), strings


def check_others(push, engine):
    engine.expect((200, {}, b""))
    assert push(engine.url, "--format", "pyroscope", "--service", "shop", "--attribute", "host.name=a{b},c")[0] == 0
    ((path, _, body),) = engine.requests
    parts = urllib.parse.urlsplit(path)
    query = dict(urllib.parse.parse_qsl(parts.query, strict_parsing=True))
    assert parts.path == "/ingest" and query["name"] == "shop{host_name=a_b__c}", query
    assert query["format"] == "pprof" and query["spyName"] == "luaspy", query
    assert abs(int(query["until"]) - time.time()) < 3600 and int(query["from"]) < int(query["until"]), query
    check_pprof(push, body)

    many = [word for i in range(16) for word in ("--attribute", f"a{i}=b")]
    status, _, why = push(engine.url, "--format", "pyroscope", *many)
    assert status == 2 and "There are 16 attributes" in why and len(engine.requests) == 1, (status, why)

    taken = b"\0\0\0\0\0" + b"\x80\0\0\0\x10grpc-status: 0\r\n"   # as Parca answers
    engine.expect((200, {}, taken))
    assert push(engine.url, "--format", "parca", "--service", "shop", "--attribute", "process.pid=7")[0] == 0
    ((path, headers, body),) = engine.requests
    assert path == "/parca.profilestore.v1alpha1.ProfileStoreService/WriteRaw" and headers["Content-Type"] == "application/grpc-web+proto"
    assert body[0] == 0 and int.from_bytes(body[1:5], "big") == len(body) - 5
    (series,) = [value for number, value in fields(body[5:]) if number == 2]
    (names, sample) = [value for _, value in fields(series)]
    labels = {name.decode(): value.decode() for (_, name), (_, value) in (fields(one) for _, one in fields(names))}
    assert labels == {"__name__": "luaspy", "service_name": "shop"}, labels  # no label for each process that ever was
    check_pprof(push, dict(fields(sample))[1])
    for answer, words in (((200, {"Grpc-Status": "3", "Grpc-Message": "invalid label name: 1a"}, b""), "status 3 of gRPC, invalid label name: 1a."),
                          ((200, {}, b"none"), "not as Parca does: the path may be wrong."), ((200, {"Content-Type": "text/html"}, taken), "a page for people")):
        engine.expect(answer)
        status, _, why = push(engine.url + "/own/path", "--format", "parca")
        assert status == 8 and f"/own/path answered 200: {words}" in why and len(engine.requests) == 1, (status, why)


def check_answers(push, engine):
    busy = (429, {"Retry-After": "2"}, b"")
    engine.expect(busy, (503, {}, b"warming\nup"), (200, {}, b""))
    began = time.monotonic()
    status, _, why = push(engine.url)
    assert status == 0 and len(engine.requests) == 3 and time.monotonic() - began >= 2, (status, why)
    assert "answered 429. Again in 2.0 s." in why and "answered 503: warming up. Again in" in why, why
    assert len({body for _, _, body in engine.requests}) == 1
    engine.expect((200, {}, b"\x0a\x00"))   # what a Collector answers
    assert push(engine.url)[2] == ""
    engine.expect((200, {}, b"\x0a\x0c\x08\x02\x12\x08too deep"))
    status, _, why = push(engine.url)
    assert status == 0 and "did not take 2 of the profiles: too deep." in why, (status, why)
    engine.expect((200, {}, b"<html>\xff\xff"))
    assert push(engine.url)[0] == 0
    # Whose clock is wrong: that time is over.
    engine.expect((503, {"Retry-After": "Wed, 21 Oct 2015 07:28:00 GMT"}, b""), (200, {}, b""))
    status, _, why = push(engine.url)
    assert status == 0 and len(engine.requests) == 2, (status, why)
    engine.expect((0, {}, b""), (200, {}, b""))
    status, _, why = push(engine.url)
    assert status == 0 and len(engine.requests) == 2, (status, why)
    engine.expect((503, {}, b""))
    status, _, why = push(engine.url, "--patience", "0")
    assert status == 8 and len(engine.requests) == 1 and "was not sent" in why and "answered 503." in why, (status, why)
    for refusal, words in ((400, b"no such tenant \x1b[31m"), (404, b"404 page not found\n"), (413, b""), (302, b"")):
        engine.expect((refusal, {"Location": "/elsewhere"}, words))
        status, said, why = push(engine.url)
        assert status == 8 and said == "" and len(engine.requests) == 1, (refusal, status, said)
        assert f"answered {refusal}" in why and "\x1b" not in why, why
        assert words[:10].decode() in why, why


def check_full_disk(push, engine):
    engine.expect((200, {}, b""))
    with open("/dev/full", "w") as full:
        done = subprocess.run([push.luaspy, "push", push.recording, "--to", engine.url], stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert len(engine.requests) == 1 and done.returncode == 8 and "No space left" in done.stderr, done


def check_nobody(push):
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        status, _, why = push(f"http://127.0.0.1:{closed.getsockname()[1]}", "--patience", "0")
        assert status == 8 and "127.0.0.1" in why, (status, why)
    status, _, why = push("http://engine.invalid:4318", "--patience", "0")
    assert status == 8 and "engine.invalid" in why, (status, why)   # no such name (RFC 6761)
    for bad in ("ftp://x", "x:1", "http://", "http://user:password@x"):
        status, _, why = push(bad)
        assert status == 2 and why, (bad, status, why)
        assert "password@" not in why, why


def check_secrets(push, engine, folder):
    token, password = folder / "token", folder / "password"
    token.write_text("s3cret\n")
    password.write_text("me:p w\r\nrest")
    for words, environment, expected in (
            (["--bearer-file", token], {}, "Bearer s3cret"), (["--basic-file", password], {}, "Basic " + base64.b64encode(b"me:p w").decode()),
            ([], {"LUASPY_BEARER": "fromhere"}, "Bearer fromhere"), (["--tenant", "a\nb: c"], {}, None)):
        engine.expect((200, {}, b""))
        assert push(engine.url, *words, environment=environment)[0] == 0, words
        ((_, headers, _),) = engine.requests
        assert headers.get("Authorization") == expected, headers
        assert "b" not in headers
    assert headers["X-Scope-OrgID"] == "a", headers
    engine.expect((200, {}, b""))
    assert push(engine.url, "--bearer-file", folder / "missing")[0] == 2
    assert push(engine.url, "--bearer-file", token, "--basic-file", password)[0] == 2 and not engine.requests


def check_tls(push, folder):
    certificate, key = folder / "certificate.pem", folder / "key.pem"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=engine", "-addext", "subjectAltName=IP:127.0.0.1",
                    "-keyout", key, "-out", certificate], check=True, stderr=subprocess.DEVNULL)
    engine = Engine((certificate, key))
    status, _, why = push(engine.url, "--patience", "0")
    assert status == 8 and "certificate" in why.lower() and not engine.requests, (status, why)
    status, _, why = push(engine.url, "--ca", certificate)
    assert status == 0 and len(engine.requests) == 1, (status, why)


def main():
    luaspy, *lua = sys.argv[1:]
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "work.lua").write_text(WORK)
        recording = folder / "recording.luaspy"
        subprocess.run([luaspy, "record", "-r", "500", "-o", recording, "--", *lua, folder / "work.lua", "s3cret-argument"], check=True, stderr=subprocess.DEVNULL)
        push, engine = Push(luaspy, recording, lua[-1]), Engine()
        check_otlp(push, engine)
        check_others(push, engine)
        check_answers(push, engine)
        check_nobody(push)
        check_full_disk(push, engine)
        check_secrets(push, engine, folder)
        assert shutil.which("openssl"), "no openssl"
        check_tls(push, folder)


main()
