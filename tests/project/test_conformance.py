"""The page of conformance says what this version reads."""

import json
import re
from pathlib import Path

import pytest

from amt_stream.core.formats import WAYS
from amt_stream.offline import selftest
from tools import conformance

ROOT = Path(__file__).parents[2]
QUICK = ("zwicker", "octave")
"""Models whose readings are compared; `tests/offline/test_selftest.py` checks all of them."""


@pytest.fixture(scope="module")
def kept():
    return json.loads(conformance.NUMBERS.read_text(encoding="utf-8"))


def test_the_page_is_made_of_the_numbers(kept):
    assert conformance.PAGE.read_text(encoding="utf-8") == conformance.markdown(kept)


def test_every_requirement_of_the_self_test_is_in_it(kept):
    asked = [
        (trial.model, trial.words, one.what, one.expected, one.tolerance, one.source)
        for trial in selftest.trials()
        for one in trial.readings
    ]
    names = ("model", "sound", "reading", "expected", "tolerance", "source")
    written = [tuple(one[name] for name in names) for one in kept]
    assert written == asked, "run `make conformance`"


@pytest.mark.parametrize("text", ["README.md", "docs/accuracy.md", "docs/paper/paper.md"])
def test_texts_say_how_many_readings_there_are(kept, text):
    words = " ".join((ROOT / text).read_text(encoding="utf-8").split())
    assert re.findall(r"compares (\d+) readings", words) == [f"{len(kept)}"], text
    printed = sum(one["published"] for one in kept)
    assert {*re.findall(r"(\d+) (?:published values|of them printed)", words)} <= {f"{printed}"}


@pytest.mark.parametrize("text", ["README.md", "docs/accuracy.md"])
def test_texts_say_what_the_soak_test_measured_last(text):
    results = (ROOT / "tests" / "soak" / "RESULTS.md").read_text(encoding="utf-8")
    table = (ROOT / text).read_text(encoding="utf-8")
    (maxima,) = re.findall(r"maxima of .* default \| worst (\S+) phon", results)
    (printed,) = re.findall(r"printed in ISO 532-3:2023.* \| worst (\S+) phon", results)
    (sones,) = re.findall(r"\| 1 kHz, 40 dB SPL, free field.* \| (.+) sone", results)
    off = max(abs(float(sone) - 1) for sone in sones.split(", "))
    assert re.search(rf"\| 204 \| {float(maxima):.3f} phon", table)
    assert re.search(rf"printed in ISO 532-3:2023.* \| 9 \| {printed} phon", table)
    assert f"| 4 | {off:.4f} sone |" in table


def test_no_reading_is_out_of_tolerance(kept):
    assert max(one["share"] for one in kept) <= 1


@pytest.mark.cases(1)
@pytest.mark.parametrize("model", QUICK)
def test_this_version_reads_the_same(kept, model):
    """In one way; `tests/soak/test_ways.py` has all."""
    now = [conformance.as_numbers([one]) for one in selftest.run_checks([model])]
    for one, before in zip(now, (k for k in kept if k["model"] == model), strict=True):
        for way, got in one["got"].items():
            # Of another processor; `tests/soak/test_same_digits.py` bounds it.
            assert got == pytest.approx(before["got"][way], rel=5e-6, abs=1e-6)


def test_a_reading_was_played_in_every_way_or_says_why(kept):
    for one in kept:
        told = [*one["got"], *one["not_played"]]
        assert sorted(told) in (["direct"], sorted(WAYS)), one


def test_the_text_says_how_far_ways_are_apart(kept):
    words = " ".join((ROOT / "docs" / "accuracy.md").read_text(encoding="utf-8").split())
    ways = {way: text.split(", ") for way, text in conformance.way_rows(kept)}
    said = re.search(
        r"16 bits up to (\S+ %) or (\S+ LU), 44\.1 kHz up to (\S+ %) or (\S+ dB), both of noise, "
        r"a pipe or a device up to (\S+ %)",
        words,
    )
    assert said.group(1) in ways["pcm16"]
    assert said.group(2) in ways["pcm16"]
    assert said.group(3) in ways["cd"]
    assert said.group(4) in ways["cd"]
    assert said.group(5) in ways["device"]
    percent = [float(ways[way][0].removesuffix(" %")) for way in ("pipe", "device")]
    assert percent[0] <= percent[1]
