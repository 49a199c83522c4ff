"""Every norm that ships, on a made sound 0.2 dB below each of its limits and 0.2 dB above."""

import re

import numpy as np
import pytest

from amt_stream.dsp.stages import SoundLevelOutput
from amt_stream.meters.accumulators.dose import Dose
from amt_stream.meters.frames import Frames
from amt_stream.meters.level_names import read_level
from amt_stream.meters.norms import load_norm, norms_folder, shipped_norms
from amt_stream.meters.presets import PresetError, load_preset
from amt_stream.meters.rows import JoinedRows, choose, columns_of, readings_of
from amt_stream.offline.measure import measure

PROGRAMME = ("_lufs", "_dbtp")
LONG = ("nissg_laeq_60min_93", "nissg_laeq_60min_96")
"""As another one, with another value: in `make soak`."""

LIMITS = [
    pytest.param(one, id=one.name, marks=[pytest.mark.soak] if one.name in LONG else [])
    for norm in shipped_norms()
    for one in load_norm(norm)
]
OF_PROGRAMME = [one for one in LIMITS if one.values[0].column.endswith(PROGRAMME)]
OF_SPL = [one for one in LIMITS if one not in OF_PROGRAMME]


ABOVE = {
    "who-venues": {"laeq_15min_db": 100},
    "din-15905-5": {"laeq_30min_db": 99, "lcpeak_db": 135},
    "france-venues": {"laeq_15min_db": 102, "lceq_15min_db": 118},
    "france-children": {"laeq_15min_db": 94, "lceq_15min_db": 104},
    "v-nissg-93": {"laeq_60min_db": 93, "lafmax_db": 125},
    "v-nissg-96": {"laeq_60min_db": 96, "lafmax_db": 125},
    "v-nissg-100": {"laeq_60min_db": 100, "lafmax_db": 125},
    "workplace-80": {"lex_8h_db": 80, "lcpeak_db": 135},
    "workplace-85": {"lex_8h_db": 85, "lcpeak_db": 137},
    "workplace-87": {"lex_8h_db": 87, "lcpeak_db": 140},
    "niosh-98-126": {"dose_85_3_80_percent": 100, "lcpeak_db": 140},
    "osha-action": {"dose_90_5_80_percent": 50},
    "osha-permissible": {"dose_90_5_90_percent": 100, "lasmax_db": 115},
    "ebu-r128": {"integrated_lufs": -22.8, "true_peak_dbtp": -1},
    "ebu-r128-live": {"integrated_lufs": -22, "true_peak_dbtp": -1},
}
BELOW = {"ebu-r128": {"integrated_lufs": -23.2}, "ebu-r128-live": {"integrated_lufs": -24}}
"""The values of each, as its source has them."""


@pytest.mark.parametrize(("below", "wanted"), [(False, ABOVE), (True, BELOW)])
def test_what_is_asked_of_venues_programmes_and_work(below, wanted):
    found = {
        norm: {one.column: one.threshold for one in load_norm(norm) if one.below is below}
        for norm in shipped_norms()
    }
    assert {norm: values for norm, values in found.items() if values} == wanted


@pytest.mark.parametrize("norm", shipped_norms())
def test_each_names_its_source_and_what_it_is(norm):
    limits = load_norm(norm)
    assert all(len(limit.source) > 5 for limit in limits)
    assert len({limit.name for limit in limits}) == len(limits)
    text = (norms_folder() / f"{norm}.toml").read_text()
    (description,) = re.findall(r'^description = "(.+)"$', text, re.MULTILINE)
    for limit in limits:
        assert f"{abs(limit.threshold):g}" in description or limit.at_end


def made(limit, more_db):
    """Seconds of a steady sound of which the column reads that much more than the limit, and dB."""
    stem = limit.column.rpartition("_")[0]
    if found := re.fullmatch(r"l[ac]eq_(\d+)min", stem):
        return 60 * int(found[1]) + 1, limit.threshold + more_db
    if stem == "lex_8h":  # in six minutes what is for eight hours
        return 360, limit.threshold + more_db + 10 * np.log10(80)
    if stem.startswith("dose"):
        dose = Dose.of(read_level(limit.column))
        times = 80 * limit.threshold / 100
        return 360, dose.criterion_db + dose.exchange_db * np.log2(times) + more_db
    if stem == "lcpeak":
        return 10, limit.threshold + more_db - 10 * np.log10(2)
    assert stem in ("lafmax", "lasmax")
    return 10, limit.threshold + more_db


def sound_levels(level_db, seconds, start_s=0):
    n = seconds * 100
    power = np.full(n, 4e-10 * 10 ** (level_db / 10), np.float32)
    timed = np.tile(power, (9, 1))[None]
    weighted = np.tile(power, (3, 1))[None]
    values = SoundLevelOutput(weighted, timed, timed, timed, weighted, np.sqrt(2 * weighted))
    number = 100 * start_s + np.arange(1, n + 1)
    return Frames(
        time_s=number / 100,
        sample=number * 480,
        utc=number / 100,
        values=values,
        fault=np.zeros(n, np.uint8),
        settling=np.zeros(n, bool),
        since_s=np.full(n, np.inf),
        level_db=np.zeros((2, n), np.float32),
        calibrated=True,
        model="spl",
    )


@pytest.mark.cases(3)
@pytest.mark.parametrize("limit", OF_SPL)
def test_a_sound_below_and_above_a_limit(limit):
    for more_db in (-0.2, 0.2):
        readings = readings_of(["spl"], 1)
        choose(readings, [], columns_of([limit]))
        table = JoinedRows(readings, 1000, 48000, limits=[limit])
        seconds, level_db = made(limit, more_db)
        for start_s in range(0, seconds, 600):
            rows = table(sound_levels(level_db, min(600, seconds - start_s), start_s))
        (stood,) = table.stood()
        assert stood.exceeded is (more_db > 0)
        below = "green" if limit.amber is None else "amber"
        assert rows[limit.state][-1] == ("red" if more_db > 0 else below)
        if limit.column.endswith("_db"):
            assert rows[limit.column][-1] == pytest.approx(limit.threshold + more_db, abs=0.01)


@pytest.mark.parametrize("limit", OF_PROGRAMME)
def test_a_programme_below_and_above_a_limit(limit):
    """A tone of 997 Hz in both channels reads its peak in dBFS as loudness in LUFS (BS.1770)."""
    for more_db in (-0.2, 0.2):
        tone = np.sin(2 * np.pi * 997 * np.arange(5 * 48000) / 48000)
        peak_db = limit.threshold + more_db
        x = np.repeat(10 ** (peak_db / 20) * tone[:, None], 2, axis=1)
        m = measure(x, 48000, "bs1770", limits=[limit])
        (stood,) = m.summary["limits"]
        assert m.summary[limit.column] == pytest.approx(peak_db, abs=0.02)
        assert stood["exceeded"] is (more_db * limit.sign > 0)


def test_a_norm_that_is_not_there(tmp_path):
    listed = ", ".join(shipped_norms()[:2])
    with pytest.raises(PresetError, match=f"there is no norm 'loud': give {listed}"):
        load_norm("loud")
    path = tmp_path / "mine.toml"
    for text, said in (
        ("", "limits is None and must be one or more tables"),
        ("[model]\n", "model is not a key of a norm: there are description, source, limits"),
        ("source = 3\n", "source is 3 and must be text in quotes"),
        ('[[limits]]\ncolumn = "laf_db"\n', "limits 1: a limit needs a column, and either"),
    ):
        path.write_text(text)
        with pytest.raises(PresetError, match=said):
            load_norm(str(path))
    path.write_text('source = "us"\n[[limits]]\ncolumn = "laf_db"\nabove = 80\n')
    (limit,) = load_norm(str(path))
    assert (limit.name, limit.source) == ("laf_80", "us")


def test_the_page_names_every_norm():
    page = (norms_folder().parents[1] / "docs" / "rows.md").read_text(encoding="utf-8")
    table = page.partition("### Norms")[2].partition("\n## ")[0]
    assert sorted(re.findall(r"`([\w-]+)`", table)) == sorted(["--limit", *shipped_norms()])


def test_a_preset_names_norms(tmp_path):
    mine = tmp_path / "mine.toml"
    mine.write_text('limits = ["din-15905-5", "laf_db>85"]\n[model]\nname = "spl"\n')
    found = load_preset(str(mine)).limits
    assert [one.name for one in found] == ["din_laeq_30min", "din_lcpeak", "laf_85"]
    assert found[0] == load_norm("din-15905-5")[0]
    for text, said in (("loud", "limits 1: there is no norm 'loud'"), ("laf_db>", "limits 1: ")):
        mine.write_text(f'limits = ["{text}"]\n[model]\nname = "spl"\n')
        with pytest.raises(PresetError, match=said):
            load_preset(str(mine))
