"""Sound with three bursts in it, heard by a real engine."""

import json

import numpy as np
import pytest
import soundfile

from amt_stream.engine import Engine, PushSource
from amt_stream.meters.calibration import Calibration
from amt_stream.meters.presets import Preset
from amt_stream.meters.specification import RowSettings
from amt_stream.meters.table import Sound, Table
from amt_stream.meters.triggers import trigger_from_text
from amt_stream.sessions.events import SoundKeeper

FS = 48000
FULL_SCALE_DB = 100.0
LOUD = Calibration(FULL_SCALE_DB, source="test", calibration_uncertainty_db=0.2)
BURSTS = ((6.0, 7.0), (9.5, 10.0), (14.0, 17.5))
"""Seconds in which a tone of 94 dB sounds."""


def bursts(seconds=20.0, channels=2):
    """Noise of some 40 dB, and a tone of 1 kHz and 94 dB in the first channel."""
    rng = np.random.default_rng(7)
    t = np.arange(round(seconds * FS)) / FS
    x = rng.normal(0, 0.0007, (len(t), channels))
    tone = 10 ** ((94 - FULL_SCALE_DB) / 20) * np.sin(2000 * np.pi * t)
    for begin, end in BURSTS:
        x[:, 0] += tone * ((t >= begin) & (t < end))
    return x.astype(np.float32)


@pytest.fixture
def heard(tmp_path):
    """A keeper that heard a sound, and what it told: files, and events of the rows."""

    def hear(x, *events, lost=(), step_ms=10, close=True, **more):
        """lost: of the block at which so many samples are missing before it, how many"""
        preset = Preset(("spl",), triggers=tuple(map(trigger_from_text, events)))
        models = preset.models(FS, 2)
        sound = Sound("bursts", FS, (1, 2), [LOUD], None, kept_s=60.0)

        def table():
            return Table(preset, models, sound, RowSettings(step_ms, columns="laf_db"))

        keeper = SoundKeeper(tmp_path / "sounds", table(), fs=FS, channels=2, **more)
        told = []
        keeper.tell = told.append
        source = PushSource(FS, 2, live=False, calibration=LOUD)
        with Engine(source, models, [keeper]) as engine, source:
            missing = dict(lost)
            for number, at in enumerate(range(0, len(x), 480)):
                source.push(x[at : at + 480], lost=missing.get(number, 0))
            source.close()
            assert engine.wait(60)
        assert not close or keeper.close(20)
        return keeper, told

    return hear


def in_24_bits(x):
    return np.rint(x.astype(np.float64) * 2**23).astype(np.int32)


def read(path):
    """What a file holds: its samples as whole numbers, and what it says of itself."""
    samples, fs = soundfile.read(path, dtype="int32", always_2d=True)
    assert fs == FS
    with soundfile.SoundFile(path) as file:
        assert file.subtype == "PCM_24"
        return samples >> 8, json.loads(file.comment)
