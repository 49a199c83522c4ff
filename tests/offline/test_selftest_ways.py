"""The self-test plays its sounds in several ways, and finds what would be wrong in each of them.

`tests/soak/test_ways.py` plays all sounds in all ways.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import amt_stream
from amt_stream.core import formats
from amt_stream.dsp.stages import BS1770
from amt_stream.offline import selftest
from amt_stream.offline.selftest import WAYS
from amt_stream.offline.selftest.report import cells, failure, not_played, statement, summary_text
from amt_stream.offline.selftest.ways import Recorded

pytestmark = pytest.mark.usefixtures("one_thread")
PACKAGE = Path(amt_stream.__file__).parent

BOTH_EARS, AT_THE_ENDS, PASCAL = "63 Hz, 70 dB SPL", "30 Hz, 0 dBFS, mono", "1000 Hz, 1 Pa"
TOLD = {"moore2016": BOTH_EARS, "bs1770": AT_THE_ENDS, "spl": PASCAL}
"""Sounds that tell the defects: one has runs of samples at the ends of their range."""

PROGRAM = f"""
import torch
torch.set_num_threads(1)
from amt_stream.offline import selftest
failed = set()
for trial in selftest.trials({[*TOLD]}):
    if trial.sound.words in {[*TOLD.values()]}:
        results = trial.results(selftest.build, [*selftest.WAYS.values()])
        failed |= {{result.way for result in results if result.failed}}
print(*sorted(failed))
"""

LOST = "(Fault.GAP | Fault.NON_FINITE"
EARS = "for one in now[: ready.rows]]"
DEFECTS = {
    "clipped sound does not count, and beyond 1 all is clipped": (
        ("meters/rows/readings.py", LOST, LOST.replace("GAP", "CLIP")),
        ("engine/readers/encodings.py", "return self.highest\n", "return self.highest or 0.9999\n"),
    ),
    "the mean that is removed is not slow": (
        ("engine/microphone/offset.py", "FOLLOW_HZ = 0.25", "FOLLOW_HZ = 10.0"),
    ),
    "an offset is removed that is not there": (
        (
            "engine/microphone/offset.py",
            "SURE * by_chance, offset, 0.0)",
            "SURE * by_chance, offset, 0.01)",
        ),
    ),
    "each ear has the calibration of the other": (
        ("engine/microphone/microphone_input.py", EARS, EARS.replace("]]", "][::-1]]")),
    ),
}


def the_trial(model, words):
    return next(trial for trial in selftest.trials([model]) if trial.sound.words == words)


def quick(model, way):
    """A full-scale sine of bs1770, and the shortest sound of another model that is played so."""
    if model == "bs1770":
        return the_trial(model, "997 Hz, 0 dBFS, mono")
    played = [t for t in selftest.trials([model]) if t.directly is None and way not in t.exceptions]
    return min(played, key=lambda trial: trial.sound.duration)


@pytest.mark.cases(12)
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("model", [name for name in selftest.models() if name != "ecma"])
def test_each_model_passes_in_each_way(model, way):
    """But for `ecma`, which is of the models before it: `test_selftest.py` plays it."""
    results = list(quick(model, way).results(selftest.build, [WAYS[way]]))
    assert {result.way for result in results} == {way}
    for result in results:
        assert result.passed, result


@pytest.fixture(scope="module")
def copy(tmp_path_factory):
    """The package in a folder of its own, with what is compiled of it."""
    folder = tmp_path_factory.mktemp("copy")
    shutil.copytree(PACKAGE, folder / "amt_stream")
    return folder


def ways_that_fail(copy):
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        cwd=copy,
        env={**os.environ, "PYTHONPATH": str(copy)},
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


@pytest.mark.cases(1)
@pytest.mark.parametrize("changes", DEFECTS.values(), ids=DEFECTS)
def test_a_defect_is_found_in_each_way(copy, changes):
    sources = {}
    for file, piece, changed in changes:
        path = copy / "amt_stream" / file
        sources[path] = path.read_text(encoding="utf-8")
        assert sources[path].count(piece) == 1, piece
        path.write_text(sources[path].replace(piece, changed), encoding="utf-8")
    try:
        assert ways_that_fail(copy) == sorted(WAYS)
    finally:
        for path, source in sources.items():
            path.write_text(source, encoding="utf-8")


def test_without_a_defect_each_way_passes():
    for model, words in TOLD.items():
        results = list(the_trial(model, words).results(selftest.build, [*WAYS.values()]))
        assert {result.way for result in results} == set(WAYS)
        assert all(result.passed for result in results), results


def test_the_names_of_ways_are_those_of_the_command():
    assert list(WAYS) == list(formats.WAYS)


def test_what_is_not_played_in_a_way_says_why():
    trial = the_trial("spectrum", "1002 Hz, 1 Pa")
    usual, cd = (list(trial.results(selftest.build, some)) for some in ((), (WAYS["cd"],)))
    assert {(result.way, result.passed) for result in usual} == {("pcm16", True)}
    assert {(result.passed, result.failed) for result in cd} == {(False, False)}
    for one, other in zip(usual, cd, strict=True):
        ways = ["pcm16", "cd", "pipe"]
        told = cells({"pcm16": one, "cd": other}, ways)
        assert told[0] == "pass"
        assert told[4:7] == (f"{one.got:<11.6g}", "not played", "-")
        assert cells({"cd": other}, ways)[0] == "none"
    both = [*usual, *cd]
    assert list(not_played(both)) == [
        "not played as cd: spectrum, 1002 Hz, 1 Pa (48 kHz): "
        "the frequencies of the bins are those of 48 kHz"
    ]
    assert summary_text(both).startswith("2 of 2 passed, 2 not played, worst deviation ")
    assert "verified against 2 published values (" in statement(both)
    assert summary_text(cd) == "0 of 0 passed, 2 not played"
    assert "not verified" in statement(cd)


def test_a_way_that_fails_is_named():
    """A row shows what each way gave, and fails if one does."""
    good, *_ = the_trial("spectrum", "1002 Hz, 1 Pa").results(selftest.build)
    off = good._replace(way="pipe", got=95.0)
    broken = good._replace(way="device", got=float("nan"), problem="OSError: no device")
    told = cells({one.way: one for one in (good, off, broken)}, ["pcm16", "pipe", "device"])
    assert told[0] == "FAIL"
    assert told[5:8] == ("95         ", "error", "+nan     dB")
    sound = "failed: spectrum, 1002 Hz, 1 Pa (48 kHz): level in its bin"
    assert failure(off) == f"{sound} (pipe): 95 dB"
    assert failure(broken) == f"{sound} (device): OSError: no device"


def test_the_usual_way_is_another_where_16_bits_are_too_coarse():
    assert the_trial("bs1770", "-69, -71 dBFS, 2 s each").usual is WAYS["float"]
    assert {trial.usual.name for trial in selftest.trials()} == {"pcm16", "float"}


def test_each_exception_is_of_a_way_and_has_a_reason():
    for trial in selftest.trials():
        assert set(trial.exceptions) < set(WAYS), trial.words
        assert all(trial.exceptions.values()), trial.words
        assert not (trial.exceptions and trial.directly), trial.words


def test_a_value_that_is_read_in_several_ways_counts_once():
    two = [WAYS["float"], WAYS["cd"]]
    results = list(the_trial("moore2016", BOTH_EARS).results(selftest.build, two))
    assert {result.sound for result in results} == {f"{BOTH_EARS} (32 kHz, linear)"}
    assert "0 published values and 1 independently calculated ones" in statement(results)


@pytest.mark.parametrize("way", ["pcm16", "cd", "pipe", "device"])
def test_sound_beyond_full_scale_is_refused_as_integers(way):
    """It would be clipped."""
    loud = Recorded(np.full((4410, 1), 1.5), 44100)
    with pytest.raises(ValueError, match=r"a peak of 1\.5 times full scale does not fit in \d\d b"):
        list(WAYS[way].frames("bs1770", BS1770(44100, "mono"), loud))
