"""Other readings beside the loudness: `--model moore2016,gm2002,zwicker,bs1770,spl`."""

import json
import math

import numpy as np
import pytest

from amt_stream.meters import catalog
from amt_stream.meters.calibration import Calibration
from amt_stream.meters.presets import Preset
from amt_stream.meters.rows import JoinedRows, Rows, readings_of
from amt_stream.offline.analysis import CheckedFile, analyze

ELSEWHERE = ("ecma", "daniel", "tonal", "impulses", "rating", "stipa", "partial")
METERS = tuple(name for name in catalog.models_side_by_side() if not name.startswith(ELSEWHERE))
"""Those of ECMA-418-2, of which each costs more than all others, are in `tests/meters`, and so are
`daniel_weber` and the rating level and STIPA, beside which rows come 10 times a second; `partial`
takes two sounds."""
ALL = ",".join(METERS)
MARKS = ["time_s", "utc", "sample", "fault", "settling", "settling_columns", "clipped_columns"]
MARKS += ["calibrated"]


def numbers(column):
    """A column of rows as numbers, NaN where a cell is empty."""
    return np.array([math.nan if v in ("", None) else float(v) for v in column])


def measured(path, names=METERS, step_ms=10):
    """Rows and summary of a file whose full scale is 100 dB SPL."""
    preset = Preset(tuple(names))
    recording = CheckedFile(path, models=preset.most_channels)
    models = preset.models(recording.fs, recording.heard.layouts(names))
    heard = {name: len(recording.heard.channels_of(name)) for name in names}
    readings = readings_of(names, heard, models=models)
    table = JoinedRows(readings, step_ms, recording.fs, duration_s=recording.duration_s)
    parts = [table(frames) for frames in analyze(recording, models, Calibration(100.0), tail=True)]
    rows = Rows.concatenated([*parts, table.rest(recording.duration_s)], table.names)
    return {name: rows[name] for name in rows.columns if name != "utc"}, table.summary()


def test_a_tone_reads_right_on_all_of_them(run, sound_file, tone):
    """1 kHz at 60 dB SPL in both channels, -40 dBFS: each by its own definition."""
    path = sound_file(tone(60.0, 3.5))
    done = run("analyze", path, "--model", ALL, "--full-scale-db", 100)
    assert done.status == 0, done.err
    rows = {name: numbers(done.rows[name]) for name in done.rows if name not in MARKS[3:]}
    usual = [c.name for one in readings_of(METERS, 2).values() for c in one.columns]
    assert sorted([*rows, *MARKS[3:]]) == sorted([*MARKS, *usual])
    np.testing.assert_allclose(rows["time_s"], np.arange(351) / 100)
    last = {name: column[-20] for name, column in rows.items()}
    assert last["stl_phon"] == pytest.approx(60.0, abs=0.1)
    assert last["gm2002_stl_sone"] == pytest.approx(4.096, rel=0.002)
    assert last["zwicker_n_sone"] == pytest.approx(4.018, rel=0.005)
    assert last["momentary_lufs"] == pytest.approx(-40.0, abs=0.05)
    assert last["short_term_lufs"] == pytest.approx(-40.0, abs=0.05)
    levels = ("laf_db", "lcf_db", "lzf_db", "laf_left_db", "laf_right_db", "lzf_1000hz_db")
    for name in levels:
        assert last[name] == pytest.approx(60.0, abs=0.02)
    assert np.argmin(np.isnan(rows["momentary_lufs"])) == 40
    assert np.argmin(np.isnan(rows["short_term_lufs"])) == 300
    assert [model["name"] for model in done.about["models"]] == list(METERS)


def test_a_summary_tells_of_the_whole_sound(run, sound_file, tone):
    x = tone(60.0, 6.0)
    x[:, 1] *= 10 ** (-10 / 20)
    done = run("analyze", sound_file(x), "--model", ALL, "--full-scale-db", 100, "--summary")
    summary = json.loads(done.out)
    expected = {
        "zwicker_nmax_sone": (4.018, 0.02),
        "zwicker_n5_sone": (4.018, 0.02),
        "zwicker_nmax_right_sone": (2.009, 0.02),
        "integrated_lufs": (-40 + 10 * np.log10(1.1 / 2), 0.05),
        "max_momentary_lufs": (-40 + 10 * np.log10(1.1 / 2), 0.05),
        "max_short_term_lufs": (-40 + 10 * np.log10(1.1 / 2), 0.05),
        "lra_lu": (0.0, 0.05),
        "true_peak_dbtp": (-40.0, 0.1),
        "laeq_db": (60.0, 0.02),
        "laeq_right_db": (50.0, 0.02),
        "lae_db": (60 + 10 * np.log10(6), 0.02),
        "lafmax_db": (60.0, 0.02),
        "l50_db": (60.0, 0.03),
    }
    for name, (value, tolerance) in expected.items():
        assert summary[name] == pytest.approx(value, abs=tolerance), name
    assert summary["calibrated"] is True


def test_the_meter_gives_what_analyze_gives_however_the_sound_comes(run, sound_file):
    rng = np.random.default_rng(1)
    x = (0.02 * rng.standard_normal((33000, 2))).astype(np.float32)
    path = sound_file(x, 44100)
    expected, _ = measured(path)
    wanted = ["--source", path, "--fast", "-b", 333, "--model", ALL, "--full-scale-db", 100]
    wanted += ["--step-ms", 10]
    done = run("meter", *wanted, "--format", "csv")
    assert done.status == 0, done.err
    assert set(done.rows) == {*expected, "utc"}
    for name, column in expected.items():
        if name not in MARKS[3:]:
            np.testing.assert_array_equal(numbers(done.rows[name]), column, err_msg=name)


@pytest.mark.quick
def test_each_reads_as_if_it_were_alone(sound_file):
    x = 0.02 * np.random.default_rng(2).standard_normal(24000)
    path = sound_file(x)
    together, summary = measured(path)
    columns = set()
    for name in METERS:
        alone, alone_summary = measured(path, (name,))
        columns |= alone.keys()
        for column in alone.keys() - {"settling", "settling_columns"}:
            np.testing.assert_array_equal(together[column], alone[column], err_msg=column)
        assert {k: summary[k] for k in alone_summary} == alone_summary
    assert together.keys() == columns


def test_a_pause_and_a_reset_leave_the_others_alone(sound_file):
    """And of the one that is reset, what it reads at the moment."""
    recording = CheckedFile(sound_file(0.02 * np.random.default_rng(3).standard_normal(60000)))
    models = Preset(METERS).models(recording.fs, 1)
    frames = list(analyze(recording, models, Calibration(100.0)))
    # A second is read at once: those of a model come together, and then those of the next.
    second = next(at for at, some in enumerate(frames) if some.time_s[0] > 1.0)

    def read(halfway):
        table, parts = JoinedRows(readings_of(METERS, 1), 10, recording.fs), []
        for at, some in enumerate(frames):
            if at == second:
                halfway(table.readings)
            parts.append(table(some))
        told = {name: one.summary() | one.counted_s() for name, one in table.readings.items()}
        return table, Rows.concatenated(parts, table.names), told

    table, untouched_rows, untouched = read(lambda readings: None)
    for touched in METERS:
        same = [
            column.name
            for column in table.columns
            if column.model != touched or column.statistic == "instantaneous"
        ]
        for halfway in (
            lambda readings: readings[touched].reset(),  # noqa: B023 (called in this turn)
            lambda readings: setattr(readings[touched], "paused", True),  # noqa: B023
        ):
            _, rows, told = read(halfway)
            for name in same:
                np.testing.assert_array_equal(rows[name], untouched_rows[name], err_msg=name)
            changed = told.pop(touched) != untouched[touched]
            assert changed == table.readings[touched].counts
            assert told == {name: v for name, v in untouched.items() if name != touched}


def test_a_programme_has_six_channels(run, sound_file, tone):
    x = np.repeat(tone(77.0, 1.0)[:, :1], 6, axis=1)
    _, summary = measured(sound_file(x), ("bs1770",))
    # L, R and C count once, LFE not at all, both surrounds 1.41 times.
    assert summary["integrated_lufs"] == pytest.approx(-26.0 + 10 * np.log10(5.82), abs=0.02)
    done = run("analyze", sound_file(x), "--model", "bs1770,spl")
    assert (done.status, len(done.lines)) == (1, 2)
    assert "has 6 channels: choose one (channels 1), or two as left and right" in done.err


def test_sharing_a_terminal(run, sound_file, tone):
    done = run(
        "meter", "--source", sound_file(tone(60.0, 1.2)), "--fast", "--terminal",
        "--model", "bs1770,spl", "--full-scale-db", 100,
    )  # fmt: skip
    last = done.out.splitlines()[-1]
    for words in ("M -40.0 LUFS", "I -40.0 LUFS", "LAF 60.0 dB", "LAeq 60.0 dB"):
        assert words in last


@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    [
        (["--model", "zwicker,stevens"], 2, "'zwicker,stevens': give one or more of moore2016"),
        (["--model", "spl,spl"], 2, "'spl,spl': give one or more of"),
        (["--model", "spl,king2019"], 2, "or one of king2019, dau1997"),
        (["--model", "spl", "--field", "free"], 2, "spl takes the sound as it is; leave it out"),
        (["--model", "spl", "--preset", "broadcast"], 2, "--preset broadcast is for the model"),
        (["--model", "spl,zwicker", "--field", "eardrum"], 1, "give free or diffuse"),
    ],
)
def test_what_does_not_go_together_is_refused(run, sound_file, tone, arguments, status, said):
    done = run("analyze", sound_file(tone(60.0, 0.1)), *arguments)
    assert (done.status, done.out) == (status, "")
    assert said in done.lines[-1]
