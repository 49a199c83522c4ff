"""What the command makes of the uncertainty of a level: a band in rows, summaries and words."""

import json
from queue import SimpleQueue

import numpy as np
import pytest

from amt_stream.cli.command import build_parser
from amt_stream.cli.terminal.meter import HighestBand
from amt_stream.dsp.models import Moore2016
from amt_stream.dsp.scales import phon_to_sone, sone_to_phon
from amt_stream.engine import Engine, PushSource
from amt_stream.meters.calibration import Calibration
from amt_stream.meters.rows import band_texts
from amt_stream.meters.rows.models.loudness import EDGES
from tests.cli.conftest import Table

FS = 48000
METER = ("meter", "--fast", "--source")
BAND_COLUMNS = [f"{edge}_{unit}" for unit in ("sone", "phon") for edge in EDGES]
TYPED = ("--full-scale-db", 100, "--calibration-uncertainty", 0.6, "--microphone-uncertainty", 0.8)


def test_rows_have_the_band_and_the_header_says_of_what(printed, sound_file, tone):
    path = sound_file(tone(60.0, 0.7))
    table = Table(printed(*METER, path, "--format", "csv", "--step-ms", 300, *TYPED))
    for channel, told in enumerate(table.about["calibration"], 1):
        assert (told["channel"], told["full_scale_db_spl"]) == (channel, 100.0)
        assert (told["uncertainty_db"], told["uncertainty_k"]) == (1.0, 2)
        assert told["calibration_uncertainty_db"] == 0.6
        assert told["microphone_uncertainty_db"] == 0.8
    rows = table.rows
    assert list(rows)[7:15] == BAND_COLUMNS
    # The tone of 1 kHz: a phon for each decibel.
    for kind in ("stl", "ltl"):
        low, middle, high = (rows[f"{kind}{edge}_phon"][1:] for edge in ("_low", "", "_high"))
        np.testing.assert_allclose(middle - low, 1.0, atol=0.1)
        np.testing.assert_allclose(high - middle, 1.0, atol=0.1)
        np.testing.assert_allclose(sone_to_phon(rows[f"{kind}_low_sone"][1:]), low, atol=1e-4)


def test_analyze_tells_the_same_and_a_summary_of_it(run, sound_file, tone):
    path = sound_file(tone(60.0, 0.7))
    done = run("analyze", path, "--summary", *TYPED)
    told = json.loads(done.out)
    assert {one["uncertainty_db"] for one in told["calibration"]} == {1.0}
    low, high = told["max_ltl_low_phon"], told["max_ltl_high_phon"]
    assert told["max_ltl_phon"] - low == pytest.approx(1.0, abs=0.1)
    assert high - told["max_ltl_phon"] == pytest.approx(1.0, abs=0.1)


def test_beside_other_models_too(printed, sound_file, tone):
    wanted = ("--model", "moore2016,bs1770", "--format", "csv", "--step-ms", 100)
    rows = Table(printed(*METER, sound_file(tone(60.0, 0.3)), *wanted, *TYPED)).rows
    assert set(BAND_COLUMNS) < set(rows)
    assert rows["stl_low_phon"][2] < rows["stl_phon"][2] - 0.8 < rows["stl_high_phon"][2] - 1.6


def test_the_highest_band_is_restored_when_two_resets_are_undone_together():
    source, band, frames = PushSource(FS, 2, live=False), HighestBand(), SimpleQueue()
    model = Moore2016(FS, uncertainty_db=1.0)
    engine = Engine(source, model, [frames.put], calibration=Calibration(100.0))

    def heard(amplitude, until_s):
        """The band after a second of a tone."""
        source.push(np.repeat(amplitude * np.sin(np.arange(FS) * 0.13)[:, None], 2, axis=1))
        while frames.get(timeout=60).end_s < until_s - 0.05:
            pass
        band.take(engine, paused=False)
        return tuple(band.values.values())

    with engine, source:
        assert heard(0.1, 1.0)[0] > 0
        loud = heard(0.0, 2.0)
        engine.reset_readings()
        quiet = heard(0.0, 3.0)
        engine.reset_readings()
        assert heard(0.0, 4.0) < quiet < loud
        engine.undo_reset()
        assert heard(0.0, 5.0) == loud


@pytest.mark.parametrize("sound", ["file", "demo"])
def test_a_level_of_unknown_or_no_doubt_has_no_band(printed, sound_file, tone, sound):
    known = ["demo"] if sound == "demo" else [sound_file(tone(60.0, 0.1)), "--full-scale-db", 100]
    table = Table(printed(*METER, *known, "--format", "csv", "--duration", 0.1))
    assert not any("low" in name for name in table.rows)
    assert {one["uncertainty_db"] for one in table.about["calibration"]} == {None}


def test_a_terminal_tells_it_beside_the_numbers(printed, sound_file, tone):
    last = printed(*METER, sound_file(tone(40.0, 1.2)), "--terminal", *TYPED).splitlines()[-1]
    ltl = last[last.index("LTL") : last.index("STL")]
    assert " sone +- 8 % " in ltl
    assert " 40.0 +- 1.0 phon" in ltl
    assert last.count("+-") == 6


@pytest.mark.parametrize(
    ("phon", "half", "percent", "wide"),
    [(40.0, 1.0, "8 %", "1.0"), (60.0, 0.1, "0.7 %", "0.1"), (20.0, 2.0, "27 %", "2.0")],
)
def test_the_larger_side_is_told(phon, half, percent, wide):
    sone, low, high = (float(phon_to_sone(v)) for v in (phon, phon - half, phon + half))
    assert band_texts(sone, low, high) == (percent, wide)
    assert band_texts(sone, sone, high)[1] == band_texts(sone, low, sone)[1] == wide


@pytest.mark.parametrize("sone", [0.0, 1e-6, float(phon_to_sone(120.0)) * 1.1])
def test_where_the_table_has_no_phon_no_band_is_told(sone):
    assert band_texts(sone, 0.9 * sone, 1.1 * sone) == ("", "")


@pytest.mark.parametrize("value", ["-0.5", "20.5", "nan", "inf", "loud"])
@pytest.mark.parametrize("option", ["--calibration-uncertainty", "--microphone-uncertainty"])
def test_what_is_no_uncertainty_is_refused(capsys, option, value):
    with pytest.raises(SystemExit) as refused:
        build_parser().parse_args(["meter", f"{option}={value}"])
    assert refused.value.code == 2
    said = capsys.readouterr().err.splitlines()[-1]
    assert f"argument {option}: '{value}' is not a number from 0 to 20 dB" in said


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        (["--calibration-uncertainty", 1], "an uncertainty needs a calibration"),
        (
            ["--full-scale-db", 100, "--microphone-uncertainty", 1],
            "that of the calibration, which is unknown: give both",
        ),
    ],
)
def test_an_uncertainty_of_nothing_is_refused(run, sound_file, tone, typed, said):
    done = run("analyze", sound_file(tone(60.0, 0.1)), *typed)
    assert (done.status, done.out, len(done.lines)) == (2, "", 1)
    assert said in done.err
