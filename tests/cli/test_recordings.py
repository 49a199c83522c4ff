"""The sound of a log carries the calibration of each channel to whatever reads it again."""

import json
from itertools import product
from math import log10

import numpy as np
import pytest
import soundfile

from amt_stream import Calibration, Correction, measure
from amt_stream.core.formats import WHOLE_COMMENT
from amt_stream.engine.sources import SourceError
from amt_stream.meters.frames import Chunk
from amt_stream.meters.presets import Preset
from amt_stream.meters.specification import RowSettings
from amt_stream.meters.table import Sound, Table
from amt_stream.sessions import SoundLog
from amt_stream.sessions.compare import compare
from amt_stream.sessions.events.memory import SampleSpan
from amt_stream.sessions.events.recording import write_recording

FS = 48000
SECONDS = 1.5


def tones(columns):
    """1 kHz in each column, each 1 dB less than the one before."""
    tone = np.sin(2000 * np.pi * np.arange(round(SECONDS * FS)) / FS)
    return (0.5 * tone[:, None] * 10 ** (-np.arange(columns) / 20)).astype(np.float32)


def level_db(column, full_scale_db):
    """Of the tone in a column (1, 2, ...)."""
    return full_scale_db + 20 * log10(0.5) - (column - 1)


# Channels that are measured, how many columns the source delivers, whether the channels were picked
# from them, and whether each is a microphone by itself.
CASES = {
    "one": ((1,), 1, False, False),
    "two": ((1, 2), 2, False, False),
    "third and seventh input": ((3, 7), 2, False, False),
    "swapped": ((2, 1), 2, True, False),
    "second and fifth of eight": ((2, 5), 8, True, False),
    "eight microphones": (tuple(range(1, 9)), 8, False, True),
}


@pytest.fixture
def recording(tmp_path):
    """Writes a recording; gives its path, and the level at full scale of each column measured."""

    def write(name, form, correction=None):
        channels, columns, picked, apart = CASES[name]
        calibrations = [
            Calibration(90.0 + 7 * k, "a test", correction=correction) for k in range(len(channels))
        ]
        rows = tuple((f"m{channel}", (channel,)) for channel in channels) if apart else ()
        sound = Sound(name, FS, channels, calibrations, None, microphones=rows, picked=picked)
        preset = Preset(("spl",))
        table = Table(
            preset, preset.models(FS, 1 if apart else len(channels)), sound, RowSettings(100)
        )
        by_number = picked or apart
        at = channels if by_number else range(1, len(channels) + 1)
        levels = dict(zip(at, [one.full_scale_db_spl for one in calibrations], strict=True))
        x = tones(columns)
        if form == "event":
            about = {"calibration": sound.calibration_of_columns}
            stretch = SampleSpan((Chunk(x, 0, 1.79e9),), 0, len(x), FS, columns)
            return write_recording(tmp_path, "event", stretch, about, None), levels
        with SoundLog(tmp_path / "log", table, fs=FS, channels=columns, sound=form) as log:
            log.sound(Chunk(x, 0, 1.79e9))
        (path,) = (tmp_path / "log").glob(f"*.{form}")
        return path, levels

    return write


FORMS = "flac", "wav", "event"
QUICK = {("two", "event"), ("second and fifth of eight", "wav"), *product(CASES, FORMS[:1])}
"""Each form and each case once; `make soak` has all pairs."""


@pytest.mark.cases(3)
@pytest.mark.parametrize(
    ("name", "form"),
    [
        pytest.param(*one, marks=[] if one in QUICK else pytest.mark.soak)
        for one in product(CASES, FORMS)
    ],
)
def test_each_reader_finds_the_levels(recording, said, name, form):
    path, full_scale_db = recording(name, form)
    columns = CASES[name][1]
    with soundfile.SoundFile(path) as file:
        told = {one["channel"]: one for one in json.loads(file.comment)["calibration"]}
        samples = file.read(always_2d=True)
    assert told.keys() == full_scale_db.keys()
    common = ("--model", "spl", "--columns", "lzeq_db,lzfmax_db")
    for column in range(1, columns + 1):
        there = column in full_scale_db
        expected = level_db(column, full_scale_db.get(column, 100.0))
        found = {}
        if there:
            rms = samples[FS // 2 : FS, column - 1].std()
            found["soundfile"] = told[column]["full_scale_db_spl"] + 20 * log10(rms * 2**0.5)
        status, out, err = said("analyze", path, "-c", column, "--summary", *common)
        assert (status, json.loads(out)["calibrated"]) == (0, there), err
        found["analyze"] = json.loads(out)["lzfmax_db"]
        how = ("--source", path, "-c", column, "--fast", "--format", "jsonl", *common)
        status, out, err = said("meter", *how)
        assert (status, "calibrated by its comment" in err) == (0, there), err
        found["meter"] = json.loads(out.splitlines()[-1])["summary"]["lzfmax_db"]
        m = measure(path, models="spl", channels=[column], columns=["lzfmax_db"])
        found["measure"] = m.summary["lzfmax_db"]
        assert m.header["calibration"][0]["calibrated"] is there
        assert found == pytest.approx(dict.fromkeys(found, expected), abs=0.01)


@pytest.mark.parametrize("form", ["flac", "wav", "event"])
def test_a_microphones_response_is_taken_off_again(recording, form):
    """One of 600 points, which is more than libsndfile reads of the comment of a WAV file."""
    flat = Correction(np.geomspace(20, 20000, 600), np.full(600, 3.0))
    path, full_scale_db = recording("two", form, flat)
    m = measure(path, models="spl", columns=["lzfmax_left_db", "lzfmax_right_db"])
    expected = [level_db(column, db) - 3.0 for column, db in full_scale_db.items()]
    found = [m.summary[f"lzfmax_{side}_db"] for side in ("left", "right")]
    assert found == pytest.approx(expected, abs=0.01)
    with soundfile.SoundFile(path) as file:
        each = json.loads(file.comment)["calibration"]
    assert {one["channel"]: one["full_scale_db_spl"] for one in each} == full_scale_db
    if form == "wav":  # as another program leaves it, without a chunk that it does not know
        path.write_bytes(path.read_bytes().replace(WHOLE_COMMENT, b"gone"))
        with pytest.raises(SourceError, match="its comment no longer has the calibration"):
            measure(path, models="spl")


def test_compare_takes_it(recording):
    path, _ = recording("two", "flac")
    found = compare(path, path, models=("spl",))
    assert all(one["calibrated"] for one in found.a.header["calibration"])


@pytest.mark.parametrize(
    "comment",
    ["no JSON", "{}", '{"calibration": [{"channel": 1}]}', '{"calibration": [1]}', "[" * 1999],
)
def test_a_recording_of_ours_that_no_longer_tells_it_is_an_error(said, tmp_path, comment):
    path = tmp_path / "edited.wav"
    with soundfile.SoundFile(path, "w", FS, 1, "FLOAT") as file:
        file.comment, file.software = comment, "amt_stream"
        file.write(tones(1))
    sentence = "edited.wav was recorded by amt_stream, but its comment no longer has the cal"
    for line in (
        ("analyze", path, "--model", "spl"),
        ("meter", "--fast", "--format", "csv", "--source", path),
    ):
        status, _, err = said(*line)
        assert (status, err.count(sentence), "Traceback" in err) == (1, 1, False), err
    status, out, _ = said("analyze", path, "--model", "spl", "--summary", "--full-scale-db", "100")
    assert (status, json.loads(out)["calibrated"]) == (0, True)
