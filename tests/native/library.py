"""A model that was exported to C, compiled by the C compiler and called without Python's torch."""

import ctypes
import shutil
import subprocess

import numpy as np

from amt_stream.native.prebuilt import this_target

FS = 48000
HOST = this_target()
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
    return np.max(np.abs(frames - right) / np.maximum(np.abs(right), 0.01))


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
