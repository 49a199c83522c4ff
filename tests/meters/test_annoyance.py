"""Psychoacoustic annoyance: its formulas, and where a summary has it."""

from pathlib import Path

import numpy as np
import pytest

from amt_monitor.panes.reading_pane import pane_of
from amt_stream import measure
from amt_stream.engine import Engine, Noise, SignalSource, Tone
from amt_stream.meters import catalog
from amt_stream.meters.annoyance import annoyances, inputs_of, psychoacoustic_annoyance
from amt_stream.meters.calibration import Calibration
from amt_stream.meters.rows import JoinedRows, NoSuchColumn, Rows, choose, readings_of, seven_digits
from amt_stream.meters.rows.captions import caption_of
from amt_stream.sessions.outputs import FollowedReadings

SUMMARY = {
    "zwicker_n5_sone": 8.0,
    "sharpness_s5_acum": 2.0,
    "ecma_roughness_r5_asper": 0.5,
    "ecma_fluctuation_f5_vacil": 0.25,
}


def test_values_by_hand():
    """N5 = 8 sone, S = 2 acum, R = 0.5 asper, F = 0.25 vacil, K = 0.1 tu: each line worked out."""
    sharp = (0.25 * 0.25 * 1.2552725) ** 2
    modulated = (2.18 / 2.2973967 * 0.4) ** 2
    expected = {
        "zwicker": 8 * (1 + (sharp + modulated) ** 0.5),
        "di": 8 * (1 + (sharp + modulated + (6.41 / 2.9485384 * 0.1) ** 2) ** 0.5),
        "more": 8
        * (
            1
            + (
                -0.16
                + 11.48 * sharp
                + 0.84 * modulated
                + 1.25 * ((1 - 0.0982736) * (1 - 0.5775271)) ** 2
            )
            ** 0.5
        ),
    }
    for form, value in expected.items():
        got = psychoacoustic_annoyance(8.0, 2.0, 0.5, 0.25, 0.1, form)
        assert float(got) == pytest.approx(value, rel=1e-6), form


def test_a_dull_steady_sound_is_as_annoying_as_it_is_loud():
    n5 = np.array([0.0, 1.0, 20.0])
    for form in ("zwicker", "more", "di"):
        np.testing.assert_array_equal(psychoacoustic_annoyance(n5, 1.75, 0, 0, 0, form), n5)


def test_another_form_is_refused():
    with pytest.raises(ValueError, match="form is 'fastl': give zwicker, more, di"):
        psychoacoustic_annoyance(1.0, 1.0, 0.0, 0.0, form="fastl")


def test_a_summary_has_the_forms_whose_readings_it_has():
    assert annoyances({"zwicker_n5_sone": 8.0}) == {}
    assert [*annoyances(SUMMARY)] == ["annoyance_zwicker"]
    both = SUMMARY | {"ecma_tonality_t5_tu": None}
    assert annoyances(both)["annoyance_zwicker"] == pytest.approx(11.1007, abs=1e-4)
    assert annoyances(both)["annoyance_di"] is None


def test_readings_have_it_where_models_have_all_that_it_takes():
    readings = readings_of(["zwicker", "ecma"], 2)
    usual = [column.name for column in readings["zwicker"].columns]
    assert set(usual) >= {
        "sharpness_s5_acum",
        "annoyance_zwicker",
        "annoyance_more",
        "annoyance_di",
    }
    choose(readings, ["annoyance_zwicker_left"])
    chosen = {column.name for one in readings.values() for column in one.columns}
    assert chosen == {"annoyance_zwicker_left", *inputs_of("annoyance_zwicker_left").values()}
    few = readings_of(["zwicker", "ecma_roughness"], 1)
    assert not any(column.needs for column in few["zwicker"].columns)
    with pytest.raises(NoSuchColumn, match="needs ecma_fluctuation_f5_vacil: add a model that has"):
        choose(few, ["annoyance_di"])
    with pytest.raises(NoSuchColumn, match="no column is called 'annoyance_zwicker_left'"):
        choose(few, ["annoyance_zwicker_left"])


@pytest.fixture(scope="module")
def live():
    """What a display has of noise that comes and goes, measured as it is live, to its end."""
    noise = Noise("pink", level_db=65, duration=0.7, period=1.0)
    names = ("zwicker", "ecma")
    models = {name: catalog.entry(name).build(48000) for name in names}
    readings = FollowedReadings(JoinedRows(readings_of(names, 1), 100, 48000))
    source = SignalSource([noise, Tone(2000.0, level_db=50)], 48000, 2.35, paced=False)
    with Engine(source, models, [readings], channels=[1]) as engine:
        engine.wait()
    return readings


def test_it_ends_live_as_the_summary_has_it(live):
    told = {"name": "made", "fs": 48000, "channels": [1], "duration_s": None}
    summary = live.summary([], [Calibration(100.0)], told)
    for name in ("annoyance_zwicker", "annoyance_more", "annoyance_di"):
        assert seven_digits(live.totals[name]) == summary[name] > summary["zwicker_n5_sone"]
        assert live.of("zwicker")[name] == live.row[name]


def test_a_row_has_that_of_its_own_percentiles(live):
    rows = Rows.concatenated(live.take(), live.rows.names)
    for form in ("zwicker", "more", "di"):
        name = f"annoyance_{form}"
        given = {key: rows[one] for key, one in inputs_of(name).items()}
        expected = psychoacoustic_annoyance(**given, form=form)
        known = np.isfinite(rows[name])
        np.testing.assert_array_equal(known, rows["time_s"] >= 0.8)
        np.testing.assert_allclose(rows[name][known], expected[known], rtol=2e-6)
        assert np.ptp(rows[name][known]) > 0.1
    settling = [name in text.split() for text in rows["settling_columns"]]
    assert settling[10]
    assert not settling[-1]


def test_a_file_ends_with_that_of_the_summary_and_intervals_have_it_too():
    x = 0.05 * np.random.default_rng(0).standard_normal(57600)
    measured = measure(
        x, 48000, "zwicker,ecma", calibration="pascal", columns="annoyance_zwicker", interval=1
    )
    assert measured["annoyance_zwicker"][-1] == measured.summary["annoyance_zwicker"]
    first = measured.intervals["annoyance_zwicker"][0]
    assert first == pytest.approx(measured.summary["annoyance_zwicker"], rel=0.05)
    assert "annoyance_zwicker_left" not in measured.summary


def test_captions_name_the_forms():
    words = [caption_of(f"annoyance_{form}").listed for form in ("zwicker", "more", "di_left")]
    assert words == [
        "Annoyance, Zwicker/Widmann (PA Zwicker)",
        "Annoyance, More 2010 (PA More)",
        "Annoyance, Di 2016, left (PA Di L)",
    ]


def test_the_page_of_rows_says_what_it_is_made_of():
    page = (Path(__file__).parents[2] / "docs" / "rows.md").read_text(encoding="utf-8")
    for name in ("annoyance_zwicker", "annoyance_more", "annoyance_di"):
        (line,) = (one for one in page.splitlines() if one.startswith(f"| `{name}`"))
        line = line.replace("these", " ".join(inputs_of("annoyance_zwicker").values()))
        assert all(need in line for need in inputs_of(name).values())


def test_the_pane_of_zwicker_has_it_before_other_statistics(qtbot):
    names = ["zwicker_n_sone", "zwicker_n5_phon", "sharpness_s5_acum", "annoyance_zwicker"]
    pane = pane_of("zwicker", names)
    qtbot.addWidget(pane)
    shown = [cell.name for cell, _ in pane.numbers]
    assert shown.index("annoyance_zwicker") < shown.index("zwicker_n5_phon")
