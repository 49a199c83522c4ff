"""Levels in the audience: those at the microphone and a correction, and named so everywhere."""

import re

import numpy as np
import pytest

from amt_stream import measure
from amt_stream.meters.audience import Audience, AudienceError, as_audience
from amt_stream.meters.limits import Limit
from amt_stream.meters.names import limit_in
from amt_stream.meters.norms import load_norm
from amt_stream.meters.presets import Preset, PresetError, read_preset
from amt_stream.meters.rows import NoSuchColumn
from amt_stream.meters.rows.captions import caption_of
from amt_stream.sessions.report import report_page
from amt_stream.sessions.results import Results

FS = 48000
GIVEN = {"models": "spl", "calibration": 110.0, "step_ms": 100}
LOUDER = Audience(4.2, 6.0, "measured 2026-11-28")


@pytest.fixture(scope="module")
def sound():
    rng = np.random.default_rng(11)
    level = np.repeat([0.02, 0.1, 0.05], 5 * FS)[:, None] * [1.0, 0.8]
    return (rng.standard_normal((15 * FS, 2)) * level).astype(np.float32)


def test_each_level_is_that_at_the_microphone_and_its_correction(sound):
    here = ["laf_db", "laeq_10s_db", "lceq_10s_db", "lcpeak_db", "lasmax_db", "lex_8h_db"]
    here += ["laeq_left_db", "lcfmin_db", "laieq_db"]
    far = [re.sub("((?:_left)?_db)$", r"_audience\1", name) for name in here]
    found = measure(sound, FS, columns=here + far, audience=LOUDER, **GIVEN)
    for near, there in zip(here, far, strict=True):
        more_db = 6.0 if near.startswith("lc") else 4.2
        np.testing.assert_allclose(found[there], found[near] + more_db, atol=2e-4)
        if near in found.summary and near != "laf_db":
            assert found.summary[there] - found.summary[near] == pytest.approx(more_db, abs=2e-4)
    assert {"lasmax_audience_db", "laeq_audience_left_db"} <= found.summary.keys()


def test_rows_header_and_captions_say_that_they_are_corrected(sound):
    found = measure(sound, FS, audience="4.2,6", **GIVEN)
    usual = {f"{name}_audience_db" for name in ("laf", "laeq", "lcpeak")}
    assert usual <= {*found.rows.columns}
    assert found.header["audience"] == {"a_db": 4.2, "c_db": 6.0, "origin": "given by the user"}
    assert found.summary["audience"] == found.header["audience"]
    notes = {c["name"]: c.get("note", "") for c in found.header["columns"]}
    assert notes["laeq_audience_db"] == "the level at the microphone +4.2 dB"
    assert notes["lcpeak_audience_db"] == "the level at the microphone +6 dB"
    caption = caption_of("laeq_15min_audience_db")
    assert (caption.words, caption.symbol) == (
        "Average level, in the audience, 15 min",
        "LAeq,15min audience",
    )
    plain = measure(sound, FS, **GIVEN)
    assert "audience" not in plain.header
    assert not any("audience" in name for name in plain.rows.columns)
    page = report_page(Results.of_measured(found, "night"))
    assert "levels in the audience are those at the microphone +4.2 dB (A), +6 dB (C)" in page
    assert "LAeq audience" in page


@pytest.mark.parametrize("level_db", [90.0, 96.5])
def test_a_limit_and_its_forecasts_are_of_the_audience(level_db):
    """A steady sound that is 94 dB at the microphone is 98.2 dB in the audience."""
    limit = Limit("laeq_10s_db", level_db, ahead_s=5.0)
    tone = np.sqrt(2) * 10 ** (94 / 20) * 2e-5 * np.sin(2 * np.pi * 1000 * np.arange(8 * FS) / FS)
    given = GIVEN | {"calibration": "pascal"}
    far = measure(tone, FS, limits=[limit], audience=Audience(4.2, 4.2), **given)
    near = measure(tone, FS, limits=[Limit("laeq_10s_db", level_db - 4.2, ahead_s=5.0)], **given)
    name = f"{level_db:g}".replace(".", "p")
    less = f"{level_db - 4.2:g}".replace(".", "p")
    until = far[f"laeq_10s_audience_until_{name}_s"], near[f"laeq_10s_until_{less}_s"]
    np.testing.assert_array_equal(*until)
    assert np.isfinite(until[0]).any()
    allowed = far[f"laeq_10s_audience_allowed_{name}_db"], near[f"laeq_10s_allowed_{less}_db"]
    np.testing.assert_allclose(allowed[0], allowed[1] + 4.2, atol=1e-4)
    states = [
        found.rows[one["name"]]
        for found in (far, near)
        for one in found.header["columns"]
        if limit_in(one["name"])
    ]
    assert states[0].tolist() == states[1].tolist()
    assert "amber" in states[0]
    assert far.header["limits"][0]["column"] == "laeq_10s_audience_db"


def test_norms_of_levels_are_of_the_audience_and_keep_their_names():
    norm = load_norm("din-15905-5")
    preset = Preset(("spl",), limits=tuple(norm), audience=LOUDER)
    assert [one.column for one in preset.limits] == ["laeq_30min_audience_db", "lcpeak_audience_db"]
    assert [one.name for one in preset.limits] == [one.name for one in norm]
    assert [LOUDER.limit(one) for one in preset.limits] == [*preset.limits], "once"
    left = LOUDER.limit(Limit("laeq_15min_left_db", 100.0))
    assert (left.column, left.name) == (
        "laeq_15min_audience_left_db",
        "laeq_15min_audience_left_100",
    )
    for column in ("ltl_phon", "lzpeak_db", "l10_db", "dose_85_3_80_percent", "lceq_minus_laeq_db"):
        assert LOUDER.limit(Limit(column, 10.0)) == Limit(column, 10.0)


def test_a_preset_stores_it(tmp_path):
    preset = Preset(("spl",), audience=LOUDER, limits=(Limit("laeq_15min_db", 100.0),))
    from amt_stream.core.settings import write_tables

    write_tables(tmp_path / "hall.toml", preset.tables)
    again = read_preset(tmp_path / "hall.toml")
    assert (again.audience, again.limits) == (LOUDER, preset.limits)
    assert preset.with_names(("spl", "moore2016")).audience == LOUDER
    assert preset.with_names(("moore2016",)).audience is None


def test_it_is_measured_once():
    assert Audience.measured((95.04, 101.0), (99.31, 106.98), "2026-11-28") == Audience(
        4.3, 6.0, "measured 2026-11-28"
    )


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("loud", "'loud' is no correction"),
        ("4,5,6", "is no correction"),
        ("nan", "is no correction"),
        ("41", "the correction a_db is 41.0: give a number from -40 to 40 dB"),
        ({"a_db": 4.2}, "is no correction: give a_db and c_db"),
        ({"a_db": 4.2, "c_db": "6"}, "the correction c_db is '?6'?: give a number"),
    ],
)
def test_what_is_no_correction_is_refused(given, said):
    with pytest.raises(AudienceError, match=said):
        as_audience(given)


def test_it_needs_sound_levels_and_a_column_of_the_audience_needs_it(sound):
    with pytest.raises(
        PresetError, match="audience is a correction of spl, and the model is zwicker"
    ):
        Preset(("zwicker",), audience=LOUDER)
    with pytest.raises(NoSuchColumn, match="without a correction to the audience"):
        measure(sound, FS, columns="laeq_audience_db", **GIVEN)
    with pytest.raises(NoSuchColumn, match="without a correction to the audience: give --audience"):
        measure(sound, FS, limits="laeq_15min_audience_db>100", **GIVEN)
    for column in ("l10_audience_db", "lzeq_audience_db", "dose_85_3_80_audience_percent"):
        with pytest.raises(NoSuchColumn):
            measure(sound, FS, columns=column, audience=LOUDER, **GIVEN)
