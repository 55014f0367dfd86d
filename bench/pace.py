"""A target's pace, by its own counter, in windows with a tool and windows without."""

import random
import time

import figures


class Measured:
    """Windows with and without a tool: the target's pace in each, by its own counter."""

    def __init__(self):
        self.ratios, self.on_wall = [], 0.0

    def slowdown(self):
        return figures.bootstrap(self.ratios, lambda some: figures.median(some) - 1)

    def cost(self, rate):
        """The cost of one look in µs: the time that the target lost."""
        slowdown = self.slowdown()
        if slowdown.low <= 0:
            return "lost in noise"
        beyond = slowdown.value
        return f"≈ {1e6 * beyond / (1 + beyond) / rate:.0f} µs"


def by_windows(counter, switch, pairs, length, settle=0.0):
    """switch(True) and switch(False) return when the tool is on and off; the next `settle` seconds are not measured."""
    def pace():
        time.sleep(settle)
        start, before = time.monotonic(), counter.read()[0]
        time.sleep(length * random.uniform(0.7, 1.3))
        now, progress = time.monotonic(), counter.read()[0] - before
        return (now - start) / progress, now - start
    measured = Measured()
    before, _ = pace()
    for _ in range(pairs):
        switch(True)
        on, wall = pace()
        switch(False)
        after, _ = pace()
        measured.ratios.append(on / ((before + after) / 2))
        measured.on_wall += wall
        before = after
    return measured
