"""Medians, quantiles, ratios and their confidence intervals."""

import random


def quantile(values, share):
    """A quantile, by linear interpolation between the two nearest values."""
    ordered = sorted(values)
    place = share * (len(ordered) - 1)
    low = int(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (place - low)


def median(values):
    return quantile(values, 0.5)


class Figure:
    """A value and the interval that contains it in nine of ten repetitions."""

    def __init__(self, value, low, high):
        self.value, self.low, self.high = value, low, high

    def widened(self, factor=1.0, by=0.0):
        """Widens the interval by what an A/A comparison shows of the machine's noise."""
        return Figure(self.value, self.low / factor - by, self.high * factor + by)

    def text(self, form="{:.2f}"):
        return f"{form.format(self.value)} ({form.format(self.low)}–{form.format(self.high)})"

    def map(self, function):
        values = [function(v) for v in (self.value, self.low, self.high)]
        return Figure(values[0], min(values[1:]), max(values[1:]))


def bootstrap(rounds, statistic, repetitions=200):
    """`statistic` of the rounds, and its interval for rounds that are drawn again from them."""
    generator = random.Random(1)
    drawn = [statistic(generator.choices(rounds, k=len(rounds))) for _ in range(repetitions)]
    return Figure(statistic(rounds), quantile(drawn, 0.05), quantile(drawn, 0.95))


def ratio_of_quantiles(rounds, over, under, share):
    """Rounds are dicts with one time for each kind of look."""
    return bootstrap(rounds, lambda some: quantile([r[over] for r in some], share) / quantile([r[under] for r in some], share))


def verdict(figure, goal, noisy):
    """Is the figure at most the goal? If the interval is on one side of it, that decides; else the value, or None if `noisy`."""
    if figure.high <= goal or figure.low > goal:
        return figure.high <= goal
    return None if noisy else figure.value <= goal
