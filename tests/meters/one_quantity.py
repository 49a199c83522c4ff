"""Meters of one quantity of one channel, as models have them, for tests of its statistics."""

import numpy as np

from amt_stream.meters.accumulators import PERCENTS, Statistic, Statistics
from amt_stream.meters.names import NameForm
from amt_stream.meters.rows.models.loudness import LEVEL, LoudnessReadings
from amt_stream.meters.rows.models.zwicker import LOUDNESS, SHARPNESS

KINDS = ("max", "mean")


class QuantityMeter(Statistics):
    """Statistics of one series, with columns such as "max_sone", "n5_sone" and "n5_10min_sone".

    letter: what percentiles begin with
    """

    def __init__(self, rule, letter, unit, columns=()):
        self.rule, self.letter, self.unit, self.columns = rule, letter, unit, tuple(columns)
        super().__init__({"": rule}, 1, [self.statistic(name) for name in columns])

    @property
    def form(self):
        return NameForm(f"{self.letter}{{percent}}{{window}}_{self.unit}")

    def pause(self):
        self.paused = True

    def unpause(self):
        self.paused = False

    def statistic(self, name):
        for kind in KINDS:
            if name == f"{kind}_{self.unit}":
                return Statistic("", 0, kind)
        parts = self.form.read(name)
        return Statistic("", 0, "exceeded", int(parts["percent"]), parts["window"])

    def update(self, time_s, values, valid=None):
        valid = np.ones(len(values), bool) if valid is None else valid
        return super().update(time_s, {"": values[None]}, {"": valid})

    def tail(self, time_s, values, valid=None):
        valid = np.ones(len(values), bool) if valid is None else valid
        super().tail(time_s, {"": values[None]}, {"": valid})

    def reading(self):
        kinds = KINDS if self.rule.averages else KINDS[:1]
        names = [f"{kind}_{self.unit}" for kind in kinds]
        names += [self.form.write(percent=p) for p in PERCENTS]
        found = {n: Statistics.reading(self, self.statistic(n)) for n in [*names, *self.columns]}
        measured_s, excluded_s = self.counted_s("")
        return found | {
            "t_max_s": self.time_of_maximum_s(""),
            "measured_s": measured_s,
            "excluded_s": excluded_s,
        }


def zwicker_meter(columns=()):
    return QuantityMeter(LOUDNESS.rule, "n", "sone", columns)


def sharpness_meter(columns=()):
    return QuantityMeter(SHARPNESS[0].rule, "s", "acum", columns)


def loudness_meter(columns=()):
    (level,) = (one for one in LoudnessReadings().table if one.of == LEVEL)
    return QuantityMeter(level.rule, "ltl_n", "phon", columns)


def ecma_meter(metric, columns=()):
    (unit,) = metric.quantity.units
    return QuantityMeter(metric.rule, metric.letter, unit, columns)
