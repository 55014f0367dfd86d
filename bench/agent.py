"""What luaspy agent costs on a host with 20 Lua programs that wait and two that work: its CPU time and its memory.

    agent.py LUASPY LUA...     without run.sh: any Lua

An engine that takes everything runs in this process. A row is one agent, after its first half minute, in which it reads symbols and finds
programs."""

import http.server
import os
import re
import subprocess
import sys
import tempfile
import threading
import time

from target import Target, say

IDLE, BUSY = 20, 2
WORK = """
local function hot(n) local s = 0 for i = 1, n do s = s + i % 7 end return s end
local function cold(n) local t = {} for i = 1, n do t[i % 7] = {i} end return t end
print("READY") io.flush()
if arg[1] == "wait" then io.read(1) end
while true do hot(3000) cold(1000) end
"""


class Engine(http.server.ThreadingHTTPServer):
    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self):
            self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_):
            pass

    def __init__(self):
        super().__init__(("127.0.0.1", 0), self.Handler)
        threading.Thread(target=self.serve_forever, daemon=True).start()


def cpu_of(pid):
    with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def resident_of(pid):
    with open(f"/proc/{pid}/status", encoding="utf-8") as file:
        return int(re.search(r"VmRSS:\s+(\d+)", file.read())[1]) / 1024


def storm(seconds):
    """A shell that starts a program each second, as beside a test run."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        subprocess.run(["sh", "-c", "true; true"], check=True)
        time.sleep(1)


def cost(luaspy, options, seconds, during):
    """% of one CPU, MiB, and the rate at the end."""
    with tempfile.TemporaryDirectory() as folder:
        socket = os.path.join(folder, "socket")
        agent = subprocess.Popen([luaspy, "agent", "--to", f"http://127.0.0.1:{Engine().server_address[1]}", "--socket", socket, *options], stderr=subprocess.DEVNULL)
        try:
            time.sleep(30)
            before, began = cpu_of(agent.pid), time.monotonic()
            during(seconds)
            used = 100 * (cpu_of(agent.pid) - before) / (time.monotonic() - began)
            status = subprocess.run([luaspy, "agent", "--status", "--socket", socket], stdout=subprocess.PIPE, text=True, check=True).stdout
            return used, resident_of(agent.pid), re.search(r"([0-9.]+) Hz of", status)[1]
        finally:
            agent.terminate()
            agent.wait()


def table_of(luaspy, lua, seconds):
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        script = os.path.join(folder, "bench.lua")
        with open(script, "w", encoding="utf-8") as file:
            file.write(WORK)
        targets = [Target(lua + [script, "wait"]) for _ in range(IDLE)] + [Target(lua + [script, "work"]) for _ in range(BUSY)]
        only = ["--name", script]
        kept = only + ["--keep", "10m", "--snapshots", folder]
        for name, options, during in [("19 Hz, whatever it costs", only + ["--max-cpu", "100"], time.sleep), ("19 Hz, at most 1 %", only, time.sleep),
                                      ("the same, `--keep 10m`", kept, time.sleep), ("the same, `--idle`", only + ["--idle"], time.sleep),
                                      ("the same, `--alloc`", only + ["--alloc"], time.sleep),
                                      ("19 Hz, whatever it costs, beside a program that starts each second", only + ["--max-cpu", "100"], storm)]:
            used, resident, rate = cost(luaspy, options, seconds, during)
            rows.append([name, f"{used:.2f} %", f"{resident:.0f} MiB", f"{rate} Hz"])
            say(f"{name}: {rows[-1]}")
        for target in targets:
            target.end()
    return rows


def measure(setup, report):
    lua = setup.debian("bookworm", "usr/bin/lua5.4")
    report.table(f"What `luaspy agent` costs: {IDLE} Lua programs that wait, {BUSY} that work", ["agent", "of one CPU", "memory", "rate at the end"],
                 table_of(setup.luaspy, lua, 30 if setup.quick else 120))


if __name__ == "__main__":
    for line in table_of(sys.argv[1], sys.argv[2:], 60):
        print(" | ".join(line))
