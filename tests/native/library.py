"""A model that was exported to C, compiled by the C compiler and called without Python's torch."""

import ctypes
import shutil
import subprocess

import numpy as np

from amt_stream.core.built_ahead import this_target
from amt_stream.meters.accumulators.percentiles import PERCENTS
from amt_stream.native.build import Request, build_library

FS = 48000
HOST = this_target()
OTHER, DAMAGED = -2, -3
PHON = [f"n{percent}_phon" for percent in PERCENTS]
SONE = [f"n{percent}" for percent in PERCENTS]
ZWICKER = ["n", "n_phon", "nmax", "nmax_phon", *PHON, *SONE]
"""Columns of Zwicker's model for one channel."""
FLAGS = "-std=c11", "-O2", "-Wall", "-Wextra", "-Werror"


def compiled(folder, model, target, out, *options, main=None):
    """Compile the runtime with a model's object, and a program around it or a shared library."""
    sources = "amt.c", "amt_numba.c", f"{model}-{target}.o", *([main] if main else [])
    kind = () if main else ("-shared", "-fPIC")
    plan = f'-DAMT_PLAN="{model}_plan.h"'
    command = [shutil.which("cc"), *FLAGS, *kind, plan, *options, *sources, "-lm", "-o", str(out)]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return out


def worst(frames, right):
    """The largest difference in proportion, or of 0.01 for frames below it."""
    assert frames.shape == right.shape
    known = ~np.isnan(right)
    np.testing.assert_array_equal(np.isnan(frames), ~known)
    frames, right = frames[known], right[known]
    return np.max(np.abs(frames - right) / np.maximum(np.abs(right), 0.01))


def columns_of(outputs, count):
    """The first columns (frame, column) of a model's output."""
    lines = [line for x in outputs if x is not None for line in x.reshape(-1, x.shape[-1]).numpy()]
    return np.stack(lines[:count], axis=1)


def exported(folder, model, channels, target):
    """Write the files of a model into a folder, and give them."""
    files = build_library(Request(model, FS, channels, 0.01, (target,)))
    for name, content in files.items():
        (folder / name).write_bytes(content)
    return files


def units_of(names):
    """What a library says of columns of loudness."""
    return [{"name": n, "unit": "phon" if n.endswith("_phon") else "sone"} for n in names]


class Instance:
    """An instance of a model."""

    def __init__(self, library):
        self.library, self.c, self.about = library, library.c, library.info
        self.at = self.c.amt_create(None)
        assert self.at

    def process(self, sound, room=None):
        """Frames (frame, column) of a sound (channel, time), and the samples that were taken."""
        n = sound.shape[1]
        rows = [np.ascontiguousarray(row, np.float32) for row in sound]
        each = (ctypes.c_void_p * len(rows))(*(row.ctypes.data for row in rows))
        most = (n // self.about.block + 1) * self.about.frames_per_block
        frames = np.full((most, len(self.about.columns)), -1, np.float32)
        used = ctypes.c_int32()
        room = most if room is None else room
        where = frames.ctypes.data
        given = self.c.amt_process(self.at, each, n, where, room, ctypes.byref(used))
        assert given >= 0, given
        return frames[:given], used.value

    def whole(self, sound, step):
        """Frames of a sound that comes `step` samples at a time."""
        starts = range(0, sound.shape[1], step)
        return np.concatenate([self.process(sound[:, k : k + step])[0] for k in starts])

    def save(self):
        to = ctypes.create_string_buffer(self.about.state_bytes)
        self.c.amt_save(self.at, to)
        return to.raw

    def load(self, state):
        return self.c.amt_load(self.at, state, len(state))


def goes_on(library, sound, at):
    """Check that another instance goes on from a state that was saved after so many samples."""
    first, second = Instance(library), Instance(library)
    before = first.whole(sound[:, :at], 777)
    assert second.load(first.save()) == 0
    after = second.whole(sound[:, at:], 777)
    whole = Instance(library).whole(sound, sound.shape[1])
    np.testing.assert_array_equal(np.concatenate([before, after]), whole)


def recovers(library):
    """Check that an instance is finite during and after the largest samples that it takes."""
    one = Instance(library)
    sound = np.full((one.about.channels, FS), 0.02, np.float32) * np.sin(np.arange(FS) / 8)
    before = one.whole(sound, FS)[-1]
    sound[:, :: FS // 4] = 1e12
    frames = one.whole(sound, FS)
    known = np.isfinite(before)
    assert not np.isnan(frames[:, known]).any()
    assert np.isfinite(one.whole(sound[:, 1 : FS // 4], FS)[:, :2]).all()
    assert one.c.amt_invalid(one.at) == 0


def refuses_damage(library, sound, times):
    """Check that an instance refuses its own state with a bit changed, or of another length."""
    one = Instance(library)
    one.process(sound[:, :5001])
    state = one.save()
    assert one.load(state[:-1]) == one.load(state + b"\0") == one.load(b"") == DAMAGED
    random = np.random.default_rng(5)
    for place in random.integers(len(state), size=times):
        wrong = bytearray(state)
        wrong[place] ^= 1 << random.integers(8)
        assert one.load(bytes(wrong)) in (DAMAGED, OTHER)
    assert one.save() == state
