"""What docs/rows.md says of columns is what the rows have."""

import json
import re
from importlib import resources
from pathlib import Path

import pytest

from amt_stream.meters import catalog
from amt_stream.meters.rows import Readings

PAGE = (Path(__file__).parents[2] / "docs" / "rows.md").read_text(encoding="utf-8")
PERCENTILE = re.compile(r"(?:^|_)[lnstrf](\d\d?)(?:_|$)")
OF_LEVEL = re.compile(r"l[acz][fsi]\d\d?_db")
"""Percentiles of another level than A-weighted F, of which the page has one."""
SIDE = re.compile("_(left|right)")


def readings(name: str, channels: int = 1) -> Readings:
    return catalog.entry(name).make_readings(channels, band=True, target_lufs=-23.0)


def table(name: str) -> str:
    """The columns of one channel as Markdown; of percentiles those that are usual."""
    one = readings(name)
    usual = {column.name for column in one.columns}
    percents = {m[1] for m in map(PERCENTILE.search, usual) if m}
    lines = ["| column | unit | what it is | statistic | by default |", "|---|---|---|---|---|"]
    for column in one.offered:
        percent = PERCENTILE.search(column.name)
        if OF_LEVEL.fullmatch(column.name) and column.name != "lcs90_db":
            continue
        if percent is None or percent[1] in percents:
            quantity = column.quantity.removesuffix(", re -23 LUFS")
            mark = "yes " if column.name in usual else ""
            cells = f"`{column.name}`", column.unit, quantity, column.statistic
            lines.append(f"| {' | '.join(cells)} | {mark}|")
    return "\n".join(lines)


ECMA = ("ecma_loudness", "ecma_tonality", "ecma_roughness", "ecma_fluctuation")


IN_OTHER_WORDS = {"gm2002", "ecma", "third_octave", "octave"}
"""Models with the columns of others, or of each band."""


@pytest.mark.parametrize("name", sorted({*catalog.models_side_by_side()} - IN_OTHER_WORDS))
def test_the_columns_are_those_of_the_rows(name):
    assert table(name) in PAGE, f"the table of {name} has to be\n\n{table(name)}"


def test_the_columns_of_a_band_are_those_of_the_rows():
    one = readings("third_octave")
    usual = {column.name for column in one.columns}
    of_band = [column for column in one.offered if "_1000hz_" in column.name]
    named = one.named("lzeq_1000hz_1s_db")
    for column in [*of_band, named]:
        quantity = column.quantity.removesuffix(" in the third octave of 1000 Hz")
        mark = "yes " if column.name in usual else ""
        line = f"| `{column.name}` | dB | {quantity} | {column.statistic} | {mark}|"
        assert line in PAGE
    assert len(one.offered) == 36 * len(of_band)
    assert usual == {f"lzf_{c.name.split('_', 1)[1]}" for c in one.offered if "lzf_" in c.name}


def test_gm2002_has_those_of_moore2016_with_a_prefix():
    plain = [c.name for c in catalog.entry("moore2016").make_readings(1).offered]
    prefixed = [column.name for column in readings("gm2002").offered]
    assert prefixed == [f"gm2002_{name}" for name in plain]


@pytest.mark.parametrize("name", ["zwicker", *ECMA, "daniel_weber", "spl"])
def test_each_of_two_channels_has_every_column(name):
    mono, stereo = readings(name), readings(name, 2)
    sides = [c.name for c in stereo.offered if SIDE.search(c.name)]
    assert len(sides) == 2 * len(mono.offered)
    assert {SIDE.sub("", side) for side in sides} == {c.name for c in mono.offered}
    usual = [column.name for column in stereo.columns if SIDE.search(column.name)]
    assert usual
    assert all(f"`{column}`" in PAGE for column in usual)


def test_outputs_are_those_of_the_models():
    told = re.findall(r"^\| `(\w+)` \| (\w+) \| (\S+) \| ([\w, ]+) \|$", PAGE, re.MULTILINE)
    entries = catalog.entries().values()
    there = {(e.name, n, o.unit, ", ".join(o.axes)) for e in entries for n, o in e.outputs.items()}
    assert {(model, name, unit, axes) for name, model, unit, axes in told} == there


def test_windows_roll_as_it_says():
    (line,) = re.findall(r"any number of s, min or h.*?\. Equivalent", PAGE, re.DOTALL)
    named = re.findall(r"`(\w+)`", line)
    own = set(catalog.models_side_by_side()) - {"ecma"}  # which has those of the other four
    offered = [readings(name) for name in own]
    assert len(named) >= 5
    for name in named:
        assert [one.named(name) for one in offered].count(None) == len(offered) - 1, name


def test_every_key_of_the_schema_is_told():
    text = resources.files("amt_stream.dsp.data").joinpath("rows.schema.json").read_text("utf-8")
    schema = json.loads(text)
    for part in ("header", "row"):
        for key in schema["$defs"][part]["properties"]:
            assert f"`{key}`" in PAGE


def test_statistics_cover_what_it_says():
    pattern = r"^(\| `(\w+)` \| (none|[^|]* s) \|.*\| ([\d.]+) s \|)$"
    found = re.findall(pattern, PAGE, re.MULTILINE)
    told = sorted(name for _, name, *_ in found)
    assert told == sorted(catalog.models_side_by_side()), "rows of `What statistics cover`"
    for line, name, rise, settle_s in found:
        told = {float(v) for v in re.findall(r"([\d.]+) s", rise)}
        assert set(readings(name).rise_s.values()) == told
        started = {float(v) for v in re.findall(r"leaves out the first ([\d.]+) s", line)}
        assert readings(name).coverage()["from_s"] == max(started, default=0.0)
        model = catalog.entry(name).build(48000, channels=2)
        assert model.settle_s == pytest.approx(float(settle_s), rel=0.01)
