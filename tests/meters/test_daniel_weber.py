"""Readings of roughness after Daniel & Weber."""

import numpy as np
import pytest

from amt_stream import measure
from tests.data.synth import render

FS = 48000


def rough(carrier, rate, duration=1.5):
    """A tone of 60 dB, fully modulated."""
    part = {"kind": "am_tone", "frequency": carrier, "rate": rate, "depth": 1.0}
    part |= {"level_db_spl": 60, "duration": duration}
    return render({"duration": duration, "components": [part]}, FS)[:, 0]


def read(sound, **settings):
    return measure(sound, FS, "daniel_weber", calibration="pascal", **settings)


def test_rows_and_summary():
    """Edges of the sound count in no statistic, also not in the maximum."""
    found = read(rough(1000, 70)[:, None], columns="daniel_weber*")
    asper = found["daniel_weber_asper"]
    np.testing.assert_allclose(found["time_s"], np.arange(16) / 10)
    np.testing.assert_allclose(asper[1:-1], 1, atol=0.002)
    for statistic in ("mean", "r5", "r10", "max"):
        name = f"daniel_weber_{statistic}_asper"
        assert found.summary[name] == pytest.approx(1, abs=0.003), name


def test_of_two_channels_it_is_the_higher():
    sounds = rough(1000, 70), rough(4000, 70)
    found = read(np.stack(sounds, 1))
    both, left, right = (found[f"daniel_weber{side}_asper"][5] for side in ("", "_left", "_right"))
    assert both == left == pytest.approx(1, abs=0.002)
    assert 0.5 < right < 0.7


def test_specific_roughness_is_highest_at_the_carrier():
    found = read(rough(1000, 70)[:, None], outputs=["daniel_weber_specific_roughness"])
    specific = found["daniel_weber_specific_roughness"]
    _, axis = found.axes["daniel_weber_specific_roughness"]
    assert axis.values[specific[5, 0].argmax()] == pytest.approx(8.5, abs=1)  # 1 kHz
    assert 0.5 * specific[5, 0].sum() == pytest.approx(found["daniel_weber_asper"][5], rel=1e-5)


def test_a_step_counts_when_it_came():
    """Frames stand for the middle of their window."""
    found = read(np.append(rough(1000, 70, 1.0), np.zeros(FS))[:, None])
    asper = found["daniel_weber_asper"]
    assert asper[9] == pytest.approx(1, abs=0.002)
    assert asper[10] > 0.1
    assert not asper[11:].any()
