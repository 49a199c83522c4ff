"""The grammar of names: what a name says, and the name that is written of that."""

import pytest

from amt_stream.meters import catalog, level_names
from amt_stream.meters.audience import Audience
from amt_stream.meters.names import NameForm
from amt_stream.meters.rows import readings_of, widest_readings

MODELS = catalog.models_side_by_side()


@pytest.mark.parametrize("model", MODELS)
def test_every_column_is_found_by_its_name(model):
    (readings,) = widest_readings([model]).values()
    for column in readings.offered:
        (found,) = readings.matching(column.name)
        assert found == column
        assert readings.named(column.name) in (column, None)


def test_names_of_levels_are_read_and_written():
    (readings,) = readings_of(["spl"], 2, audience=Audience(3.0, -1.0)).values()
    names = [column.name for column in readings.offered]
    names += [
        "laeq_15min_left_db",
        "l33_10min_right_db",
        "las90_8h_db",
        "dose_90_5_80_left_percent",
    ]
    names += ["laeq_15min_audience_allowed_99p5_left_db", "lex_8h_until_80_s", "lex_8h_audience_db"]
    for name in names:
        one = level_names.read_level(name)
        assert one.with_parts() == name
        column = readings.named(name)
        assert (column.name, column.kind, column.side) == (name, one.kind, one.part("side"))
        assert column.place == one.part("place")


@pytest.fixture(scope="module")
def all_readings():
    return readings_of(MODELS, 2, audience=Audience(3.0, -1.0)).values()


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("lcf_db", ("now", "lcf", "C", 0, "", "", "")),
        ("lafmax_left_db", ("max", "laf", "A", 0, "left", "", "")),
        ("lzeq_10min_db", ("eq", "lzeq", "Z", 0, "", "10min", "")),
        ("l90_db", ("exceeded", "laf", "A", 90, "", "", "")),
        ("lcs5_8h_right_db", ("exceeded", "lcs", "C", 5, "right", "8h", "")),
        ("lcpeak_audience_db", ("peak", "lcpeak", "C", 0, "", "", "audience")),
        ("laieq_minus_laeq_db", ("difference", "difference", "", 0, "", "", "")),
        ("zwicker_n5_10min_left_phon", ("exceeded", "n", "", 5, "left", "10min", "")),
        ("ecma_tonality_mean_tu", ("mean", "ecma_tonality", "", 0, "", "", "")),
        ("max_ltl_phon", ("max", "ltl", "", 0, "", "", "")),
        ("gm2002_stl_sone", ("now", "stl", "", 0, "", "", "")),
        ("sharpness_aures_s50_acum", ("exceeded", "sharpness_aures", "", 50, "", "", "")),
        ("lzsmax_31_5hz_db", ("max", "lzs", "", 0, "", "", "")),
        ("octave_lzeq_1000hz_1h_db", ("eq", "lzeq", "", 0, "", "1h", "")),
        ("spectrum_max_left_hz", ("max", "line", "", 0, "left", "", "")),
    ],
)
def test_what_a_column_says(all_readings, name, said):
    column, *_ = (c for one in all_readings for c in one.matching(name))
    fields = ("kind", "of", "weighting", "percent", "side", "window", "place")
    assert tuple(getattr(column, field) for field in fields) == said


@pytest.mark.parametrize(
    "name",
    [
        *("laf_10min_db", "lzf_audience_db", "l90_audience_db", "lce_db", "laeq_10min", "laeq"),
        *("dose_90_7_percent", "dose_90_5_db", "laeq_15min_until_80_db", "laeq_until_80_s"),
    ],
)
def test_what_is_no_name_of_a_level(name):
    assert level_names.read_level(name) is None


def test_a_form():
    form = NameForm("x_{what}{percent}{window}{side}_{unit}", what=["a", "ab"], unit=["m", "s"])
    parts = {"what": "ab", "percent": "5", "window": "", "side": "left", "unit": "s"}
    assert form.read("x_ab5_left_s") == parts
    assert form.write(**parts) == "x_ab5_left_s"
    assert form.read("x_ab500_left_s") is None
