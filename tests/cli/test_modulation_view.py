"""Modulation spectra in the terminal and as rows, from the command as a stranger runs it."""

import re
from types import SimpleNamespace

import numpy as np
import pytest

from amt_stream.cli.modulation import ASCII_SHADES, SHADES, Reading, line, screen
from amt_stream.outputs import below_db, hz_text, strongest

FC = np.geomspace(80, 8000, 31)
MFC = np.array([2.0, 5.236, 13.708, 35.889, 93.957])
HEALTH = SimpleNamespace(
    device_state="running",
    note="",
    load=0.12,
    block_share_p99=0.3,
    latency_s=0.063,
    overruns=0,
    lost_samples=0,
)


def spectrum(*cells):
    """Cells (ear, band, modulation, rms), the others 0."""
    rms = np.zeros((2, len(FC), len(MFC)), np.float32)
    for ear, band, modulation, value in cells:
        rms[ear, band, modulation] = value
    return rms


def reading(rms, **changed):
    settings = {
        "time_s": 12.3,
        "level_db": (60.0, 60.0),
        "calibration": "full-scale sine = 130.00 dB SPL, built-in signal",
        "calibrated": True,
        "settling": False,
        "faults": "",
        "source": "virtual_mic, 48000 Hz",
        "health": HEALTH,
    }
    return Reading(rms=rms, fc=FC, mfc=MFC, model="king2019", **settings | changed)


def test_the_strongest_cell_is_named_with_its_ear():
    found = strongest(spectrum((1, 4, 2, 0.5), (0, 3, 1, 0.4)), FC, MFC)
    assert (found.band, found.modulation, found.ear) == (4, 2, "right ear")
    assert str(found) == f"13.7 Hz in {hz_text(FC[4])} Hz, right ear, rms 0.5"
    assert strongest(spectrum((0, 3, 1, 0.4), (1, 3, 1, 0.4)), FC, MFC).ear == "both ears"
    assert strongest(spectrum(), FC, MFC) is None


def test_the_mean_is_no_modulation():
    mfc = np.array([0.0, *MFC[1:]])
    found = strongest(spectrum((0, 9, 0, 9.0), (0, 4, 2, 0.5)), FC, mfc)
    assert found.modulation == 2
    assert below_db(np.array([9.0, 0.5, 0.25, 0.0]), 0.5).round(1).tolist() == [0, 0, -6.0, -30]


@pytest.mark.parametrize("width", [40, 80, 131, 200])
@pytest.mark.parametrize("height", [23, 50])
def test_a_picture_fits_its_terminal(width, height):
    shown = reading(spectrum((0, 13, 1, 1.0), (1, 13, 1, 0.6), (1, 20, 3, 0.2)))
    lines = [re.sub(r"\x1b\[[0-9;]*m", "", text) for text in screen(shown, width, height)]
    assert len(lines) <= height
    assert max(map(len, lines)) <= max(width, 60)  # the heading keeps room for its warnings
    row = next(text for text in lines if text.startswith("  5.2 Hz"))
    _, left, _, right, _ = row.split("│")
    assert "█" in left
    assert "█" not in right
    assert "▓" in right
    assert any("strongest: 5.2 Hz in" in text and "left ear" in text for text in lines)


def test_a_terminal_without_unicode_gets_letters():
    text = "".join(screen(reading(spectrum((0, 13, 1, 1.0))), 80, 23, unicode=False))
    assert text.isascii()
    assert list(SHADES.values()) == list(ASCII_SHADES.values())


def test_silence_and_doubts_are_told():
    shown = reading(spectrum(), calibrated=False, settling=True, faults="gap")
    for text in (line(shown), "\n".join(screen(shown, 80, 23))):
        assert "silence" in text
        for word in ("uncalibrated", "settling", "faults: gap"):
            assert word in text
    assert "█" not in "".join(screen(shown, 80, 23)[3:10])
