"""Unmarked values after many faults, on sound whose level steps by up to 50 dB."""

import numpy as np
import pytest

from tests.meters.test_settling import OF_THE_MOMENT, furthest_off

pytestmark = pytest.mark.soak

SECONDS = {"moore2016": (20, 12), "gm2002": (40, 18), "zwicker": (12, 8), "bs1770": (12, 8)}
SOUNDS = {"moore2016": 25, "gm2002": 12, "zwicker": 60, "bs1770": 60, "spl": 60, "third_octave": 30}
SOUNDS["spectrum"] = 30


@pytest.mark.parametrize("name", OF_THE_MOMENT)
def test_what_is_not_marked_is_as_without_faults(name, record):
    """Gaps of 1 sample to 3 s, and in one of five an overload; until the sound ends, or before."""
    seconds, last_s = SECONDS.get(name, (30, 11))
    worst, counted = dict.fromkeys(OF_THE_MOMENT[name], 0.0), 0
    for seed in range(100, 100 + SOUNDS[name]):
        found = furthest_off(name, np.random.default_rng(seed), seconds, last_s)
        counted += sum(count for _, count in found.values())
        worst = {column: max(worst[column], off) for column, (off, _) in found.items()}
    assert counted > 1000
    told = ", ".join(f"{column} {off:.4f}" for column, off in worst.items())
    what = "unmarked values of sounds with gaps against those without"
    record(f"{name}, {SOUNDS[name]} sounds: {what}", told)
    assert max(worst.values()) <= 0.05
