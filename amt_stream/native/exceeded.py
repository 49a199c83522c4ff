"""Percentiles since the start, for the plans of programs without Python."""

import math

from amt_stream.dsp.functional.compiler.dispatch import Array, kernel
from amt_stream.meters.accumulators import loops


@kernel
def find_exceeded(
    values: Array,
    number: int,
    rising: int,
    renewed: int,
    width: float,
    least: int,
    most: int,
    percents: Array,
    counted: Array,
    rise: Array,
    exceeding: Array,
    more: Array,
    exceeded: Array,
) -> None:
    """Percentiles (percent, n) after each of `values` (n,), as `Percentiles` calculates them.

    number: of the first value; those below 0 do not count
    rising: number of the first value that is not of the rise from silence
    renewed: values between updates
    width, least, most: classes, as in `loops.count`
    counted, rise, exceeding: state: counts of classes; how many values the rise has, and their
        sorted classes; percentiles as last renewed
    more: memory for as many numbers as the rise has
    """
    for k in range(len(values)):
        place = number + k
        if place >= rising:
            loops.count(values[k : k + 1], width, least, most, least, counted)
        elif place >= 0 and not math.isnan(values[k]):
            of = loops.class_number(values[k], width, least, most)
            rise[0] += 1
            j = rise[0]
            while j > 1 and rise[j - 1] > of:
                rise[j] = rise[j - 1]
                j -= 1
            rise[j] = of
        if place >= 0 and place % renewed == 0:
            heard = loops.find_rise(rise[1 : rise[0] + 1], least, least, counted, more)
            loops.find(percents, width, most, least, counted, more[:heard], exceeding)
        for i in range(len(exceeding)):
            exceeded[i, k] = exceeding[i]
