"""The time that each statistic covers, which after gaps is not the same for all of a model."""

import json
from importlib import resources

import jsonschema
import numpy as np
import pytest

from amt_stream.cli.terminal.number_panes import covered_words
from amt_stream.meters.calibration import Calibration
from amt_stream.meters.frames import Event
from amt_stream.meters.rows import header, summary
from amt_stream.sessions.outputs import LatestReadings
from amt_stream.sessions.report.content import readings
from amt_stream.sessions.results import Results
from amt_stream.views.view_state import ViewState
from tests.meters.threadless import FS, Meters

MODELS = ["spl", "moore2016", "ecma"]
EACH_S, GAP_S, PARTS = 3.0, 0.1, 4
LENGTH_S = PARTS * EACH_S
SCHEMA = json.loads(resources.files("amt_stream.dsp.data").joinpath("rows.schema.json").read_text())


def covered_s(settle_s: float) -> float:
    """All of the first part, and of each later one what comes after gap and settling."""
    return EACH_S + (PARTS - 1) * max(0.0, EACH_S - GAP_S - settle_s)


def broken(models, names=None) -> Meters:
    """Noise with a gap every 3 s."""
    meters = Meters(models, 100, names, 100.0)
    rng = np.random.default_rng(2)
    for part in range(PARTS):
        lost = round(GAP_S * FS) if part else 0
        count = round(EACH_S * FS) - lost
        meters.take(rng.standard_normal(count).astype(np.float32) * 0.01, lost)
    return meters


@pytest.fixture(scope="module")
def table():
    return broken(MODELS).table


@pytest.mark.cases(2)
@pytest.mark.parametrize(
    ("model", "name", "settle_s"),
    [
        ("spl", "lafmax_db", 2.1),
        ("spl", "l50_db", 2.1),
        ("spl", "lasmax_db", 16.1),
        ("spl", "laimax_db", 18.0),
        ("moore2016", "max_stl_phon", 0.4),
    ],
)
def test_each_says_its_own(table, model, name, settle_s):
    # Windows reach before a gap, too.
    assert table.counted.measured_of()[model][name] == pytest.approx(covered_s(settle_s), abs=0.3)


def test_each_metric_of_a_model_of_several_says_its_own(table):
    found, of_loudness_s = (
        table.counted.measured_of()["ecma"],
        table.counted.counted_s()["ecma"]["measured_s"],
    )
    assert found["ecma_fluctuation_max_vacil"] < of_loudness_s
    assert not any(name.startswith("ecma_loudness") for name in found)


def test_those_of_the_time_of_their_model_are_left_out(table):
    found, models = table.counted.measured_of(), table.counted.counted_s()
    for model, name, settle_s in (
        ("spl", "laeq_db", 0.12),
        ("spl", "lcpeak_db", 0.12),
        ("moore2016", "max_ltl_phon", 7.5),
        ("moore2016", "ltl_n5_phon", 7.5),
    ):
        assert name not in found[model]
        assert models[model]["measured_s"] == pytest.approx(covered_s(settle_s), abs=0.3)


def test_without_a_gap_all_are_the_same():
    meters = Meters(["spl", "moore2016"], 100, None, 100.0)
    meters.take(np.random.default_rng(2).standard_normal(FS).astype(np.float32) * 0.01)
    assert not meters.table.counted.measured_of()
    statistics = told(meters.table, summary)["statistics"]
    assert not any("measured_of" in one for one in statistics.values())


def test_a_summary_and_a_display_have_it(table):
    written, found = told(table, summary), table.counted.measured_of()
    jsonschema.validate({"summary": written}, SCHEMA)
    assert written["statistics"]["spl"]["measured_of"] == pytest.approx(found["spl"], rel=1e-6)
    latest = LatestReadings(table)
    latest.sum_up()
    assert latest.measured_of == found


def told(table, make):
    """Its header or summary."""
    source = {"name": "noise", "fs": FS, "channels": [1], "duration_s": None}
    models = [{"name": name} for name in table.readings]
    return make(table, models, [Calibration(100.0, source="test")], source)


@pytest.mark.parametrize("whole", [True, False])
def test_a_report_says_it_with_and_without_a_summary(whole):
    meters = broken(["spl"])
    rows, ended = meters.rows, told(meters.table, summary) if whole else {}
    results = Results("noise", told(meters.table, header), rows, rows[-1], ended)
    every = [one for group in readings(results, 1000).values() for one in group]
    covered = {one.name: float(one.covered.split()[1]) for one in every if one.covered}
    for name, settle_s in (("lafmax_db", 2.1), ("l50_db", 2.1)):
        assert covered[name] == pytest.approx(covered_s(settle_s), abs=0.15)
    assert covered["laeq_db"] == pytest.approx(covered_s(0.12), abs=0.5)


def test_the_terminal_says_the_range(table):
    latest = LatestReadings(table)
    latest.sum_up()
    view = ViewState(None, latest, {}, {}, LENGTH_S)
    assert covered_words(view, "spl", ["laf_db", "lafmax_db", "laeq_db"]) == "5 to 11 of 12 s"
    assert covered_words(view, "spl", ["lafmax_db"]) == "5 of 12 s"


def test_pause_reset_and_a_saved_state_hold_for_it_too():
    meters, again = broken(["spl"]), Meters(["spl"], 100, None, 100.0)
    again.table.load_state_dict(meters.table.state_dict())
    before = meters.table.counted.measured_of()
    assert again.table.counted.measured_of() == before
    meters.table.event(Event("paused", 0, LENGTH_S, 0.0))
    meters.take(np.ones(FS, np.float32) * 0.01)
    assert meters.table.counted.measured_of() == before
    meters.table.event(Event("readings_reset", 0, LENGTH_S + 1.0, 0.0))
    assert not meters.table.counted.measured_of()


def loud_after_a_gap() -> Meters:
    """3 s of noise, and 3 s that are 20 dB louder, right after a gap."""
    meters = Meters(["spl", "moore2016"], 100, None, 100.0)
    rng = np.random.default_rng(4)
    for level, lost in ((0.01, 0), (0.1, round(GAP_S * FS))):
        meters.take(level * rng.standard_normal(3 * FS).astype(np.float32), lost)
    return meters


def test_a_report_says_what_was_above_a_maximum_and_does_not_count():
    meters = loud_after_a_gap()
    rows = meters.rows
    ended = told(meters.table, summary)
    results = Results("noise", told(meters.table, header), rows, rows[-1], ended)
    every = [one for group in readings(results, 1000).values() for one in group]
    covered = {one.name: one.covered for one in every}
    assert rows["ltl_phon"].max() > ended["max_ltl_phon"] + 10
    highest = f"{rows['ltl_phon'].max():.1f}"
    assert f"; up to {highest} phon for " in covered["max_ltl_phon"]
    assert covered["max_ltl_phon"].endswith("not counted: settling after a gap")
    assert "not counted" not in covered["laeq_db"]
