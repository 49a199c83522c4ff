"""The main figures against bounds, in units of a loop of arithmetic: a slip of a third fails.

Seconds would say as much of the machine as of the code. Loop and figures are measured in turn, so
that both see the same machine, and their medians are compared.
"""

import numpy as np
import pytest

from amt_stream import Glasberg2002
from amt_stream.offline.benchmark import calibration_loop, machine
from tests.bench import (
    test_bs1770,
    test_chains,
    test_front_end,
    test_glasberg2002,
    test_modulation_banks,
    test_sound_level,
    test_speed,
    test_zwicker,
)

pytestmark = pytest.mark.bench

SLACK = 4 / 3
TURNS = 5

FIGURES = {
    "Moore2016, 10 ms": (lambda: test_speed.shares(10, 2), 2.1),
    "Moore2016, 1 ms": (lambda: test_speed.shares(1, 2), 4.3),
    "Moore2016 coarse, 10 ms": (lambda: test_speed.shares(10, 2, accuracy="coarse"), 1.45),
    "Glasberg2002, 10 ms": (lambda: test_glasberg2002.shares(Glasberg2002, 1, 10), 0.9),
    "ZwickerTimeVarying, 10 ms": (lambda: test_zwicker.shares(10), 0.4),
    "BS1770 and its meter, stereo, 10 ms": (lambda: test_bs1770.shares()[1], 0.65),
    "SoundLevel and its meter, 10 ms": (lambda: test_sound_level.shares(10, metered=True), 0.54),
    "Dau1997, 10 ms": (lambda: test_chains.shares(test_chains.Dau1997(fs=48000)), 0.8),
    "gammatone, 32 bands, 10 ms": (
        lambda: test_front_end.shares(test_front_end.gammatone(32), seconds=2),
        0.25,
    ),
    "modulation bank 32 x 7, 10 ms": (
        lambda: test_modulation_banks.shares(test_modulation_banks.BANKS["efilt, 32 x 7"], False),
        0.45,
    ),
    "King2019 bank 32 x 5, 10 ms": (
        lambda: test_modulation_banks.shares(
            test_modulation_banks.BANKS["King2019, 32 x 5"], False
        ),
        0.57,
    ),
}
"""How a figure is measured, and its ratio to the loop when that was last agreed on."""


def test_no_main_figure_has_become_a_third_slower():
    loops, runs = [], {name: [] for name in FIGURES}
    for _ in range(TURNS):
        for name, (measure, _) in FIGURES.items():
            loops.append(calibration_loop())
            runs[name].append(np.median(measure()))
    loop = np.median(loops)
    print(f"\n{machine()}")
    print(
        f"calibration loop: median {1e3 * loop:.1f} ms, of CPU shares to it, {TURNS} runs in turn"
    )
    slower = []
    for name, taken in runs.items():
        ratio, was = np.median(taken) / loop, FIGURES[name][1]
        print(f"  {name:38} share {np.median(taken):.4f}   ratio {ratio:.3f}   was {was:.3f}")
        if ratio > SLACK * was:
            slower.append(f"{name}: {ratio:.3f} instead of {was:.3f}")
    assert not slower, f"a third slower, or more: {slower}"
