"""Modulation spectra in the terminal and as rows, from the command as a stranger runs it."""

import json
from types import SimpleNamespace

import numpy as np
import pytest

from amt_stream.meters.rows import ModulationReadings, below_db, hz_text, strongest

FC = np.geomspace(80, 8000, 31)
MFC = np.array([2.0, 5.236, 13.708, 35.889, 93.957])


def spectrum(*cells):
    """Cells (ear, band, modulation, rms), the others 0."""
    rms = np.zeros((2, len(FC), len(MFC)), np.float32)
    for ear, band, modulation, value in cells:
        rms[ear, band, modulation] = value
    return rms


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


FS = 48000
DURATION = ["--source", "am-tone", "--duration", 1]


def test_a_tone_modulated_at_4_hz_is_the_strongest_within_a_second(run):
    done = run("meter", "--model", "king2019", "--terminal", *DURATION)
    assert done.status == 0, done.err
    last = done.out.splitlines()[-1]
    assert last.split()[:2] == ["1.0", "s"]
    band = nearest_band(1000.0)
    assert f"strongest 5.2 Hz in {hz_text(band)} Hz, both ears" in last
    assert "uncalibrated" not in last


def nearest_band(frequency):
    from amt_stream.dsp.models import ModulationSpectrum

    fc = np.asarray(ModulationSpectrum(FS).fc)
    return float(fc[np.abs(fc - frequency).argmin()])


def test_rows_have_every_cell_of_both_ears(run):
    wanted = ["meter", "--source", "am-tone", "--fast", "--duration", 1]
    done = run(*wanted, "--model", "king2019", "--format", "csv", "--step-ms", 500)
    assert done.status == 0, done.err
    rows = done.rows
    assert list(rows)[3:7] == ["ear", "band_hz", "modulation_hz", "rms"]
    assert sorted(set(rows["time_s"])) == [0.0, 0.5, 1.0]
    assert len(rows["rms"]) == 3 * 2 * 31 * 5
    assert set(rows["calibrated"]) == {"true"}
    assert done.about["models"] == [{"name": "king2019"}]
    late = rows["time_s"] == 1.0
    k = np.flatnonzero(late)[rows["rms"][late].argmax()]
    assert rows["modulation_hz"][k] == pytest.approx(5.236, abs=1e-3)
    assert rows["band_hz"][k] == pytest.approx(nearest_band(1000.0), rel=1e-6)


def test_json_lines_have_every_cell_too(run):
    wanted = ["meter", "--source", "am-tone", "--fast", "--duration", 0.1, "--step-ms", 100]
    done = run(*wanted, "--model", "dau1997", "--format", "jsonl", "--full-scale-db", 100)
    rows = [json.loads(row) for row in done.out.splitlines()[1:-1]]
    assert {row["calibrated"] for row in rows} == {True}
    first = [row for row in rows if (row["time_s"], row["ear"]) == (0.0, "left")]
    assert len(first) == 31 * 8
    assert [row["modulation_hz"] for row in first[:3]] == [0.0, 5.0, 10.0]


def test_cells_that_the_model_does_not_have_give_no_rows():
    mask = np.ones((len(FC), len(MFC)), bool)
    mask[0, 2:] = False
    rms = spectrum((1, 1, 4, 0.5))[:, None]
    frames = SimpleNamespace(time_s=np.array([0.02]), values=SimpleNamespace(rms=rms))
    readings = ModulationReadings("king2019", FC, MFC, mask)
    (rows,) = readings.take(frames)
    assert len(rows) == len(readings.cells) == 2 * (mask.sum())
    loud = [(*cell, rms) for cell, (rms,) in zip(readings.cells, rows, strict=True) if rms]
    assert loud == [("right", pytest.approx(FC[1]), pytest.approx(MFC[4]), 0.5)]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["meter", "--model", "king2019", "--field", "free"], "king2019 takes the sound as it"),
        (
            ["meter", "--model", "king2019", "--preset", "low-power"],
            "--preset low-power is for the model moore2016, and --model is king2019",
        ),
        (["meter", "--model", "moore"], "'moore': give one or more of moore2016"),
    ],
)
def test_what_makes_no_sense_is_refused_in_one_sentence(run, arguments, said):
    done = run(*arguments)
    assert (done.status, done.out) == (2, "")
    assert said in done.lines[-1]
