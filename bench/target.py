"""Targets: started by the bench, read over a pipe, ended by pid. Also the CPUs to which they and the bench are pinned."""

import atexit
import os
import struct
import subprocess
import sys


class Failed(Exception):
    """A program could not be run at all."""


CPUS = sorted(os.sched_getaffinity(0))
SAME = CPUS[0]                                   # the target's CPU
OTHER = CPUS[1] if len(CPUS) > 1 else None       # another one


class Target:
    """A program that has printed READY, and the address of its counter. Ends with the `with` block."""

    running = []

    def __init__(self, command, cpu=None, environment=None, cwd=None):
        self.command = command
        # However the bench ends, a target that works forever must not outlive it.
        self.process = subprocess.Popen(["setpriv", "--pdeathsig", "KILL"] + command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=cwd,
                                        env=dict(os.environ, **(environment or {})))
        Target.running.append(self)
        said = self.process.stdout.readline().split()
        if not said or said[0] != "READY":
            raise Failed(f"{' '.join(command)} said {said}, not READY")
        self.pid = self.process.pid
        self.address = int(said[1]) if len(said) > 1 else 0
        if cpu is not None:
            os.sched_setaffinity(self.pid, {cpu})

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.end()

    def end(self):
        if self in Target.running:
            Target.running.remove(self)
            self.process.kill()
            self.process.communicate()

    def finish(self):
        """Closes its input; returns its output until its end."""
        Target.running.remove(self)
        return self.process.communicate()[0]


@atexit.register
def end_all():
    for target in list(Target.running):
        target.end()


class Counter:
    """The words that workloads/counter.c shares: progress, looks, wanted, doing."""

    def __init__(self, target):
        self.address = target.address
        self.memory = os.open(f"/proc/{target.pid}/mem", os.O_RDWR)

    def read(self):
        progress, looks, _, doing = struct.unpack("=QQII", os.pread(self.memory, 24, self.address))
        return progress, looks, doing

    def want(self, what):
        """Asks for `what` and waits until the target does it."""
        os.pwrite(self.memory, struct.pack("=I", what), self.address + 16)
        while self.read()[2] != what:
            os.sched_yield()

    def close(self):
        os.close(self.memory)


def run(command, **options):
    """Runs a command to its end: its output, error output and rusage; raises Failed if its status is not 0."""
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options)
    out, err = process.communicate()
    if process.returncode != 0:
        raise Failed(f"{' '.join(command)} ended with {process.returncode}: {err.strip() or out.strip()}")
    return out, err


def say(text):
    print(f"bench: {text}", file=sys.stderr, flush=True)
