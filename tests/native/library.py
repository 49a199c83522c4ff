"""A model that was exported to C, compiled by the C compiler and called without Python's torch."""

import ctypes
import shutil
import subprocess

import numpy as np

FLAGS = "-std=c11", "-O2", "-Wall", "-Wextra", "-Werror"


class Info(ctypes.Structure):
    """`amt_info`"""

    _fields_ = (
        ("size", ctypes.c_uint32),
        *((name, ctypes.c_char_p) for name in ("model", "version", "input_unit")),
        *(
            (name, ctypes.c_int32)
            for name in ("fs", "channels", "block", "columns", "frames_per_block")
        ),
        *((name, ctypes.c_double) for name in ("frame_s", "latency_s", "settle_s", "tail_s")),
        *((name, ctypes.c_uint64) for name in ("bytes", "state_bytes")),
    )


def compiled(folder, model, target, out, *options, main=None):
    """Compile the runtime with a model's object, and a program around it or a shared library."""
    sources = "amt.c", "amt_numba.c", f"{model}-{target}.o", *([main] if main else [])
    kind = () if main else ("-shared", "-fPIC")
    plan = f'-DAMT_PLAN="{model}_plan.h"'
    command = [shutil.which("cc"), *FLAGS, *kind, plan, *options, *sources, "-lm", "-o", str(out)]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return out


class Library:
    """The C functions of a model."""

    def __init__(self, path):
        self.c = ctypes.CDLL(str(path))
        self.c.amt_about.restype = ctypes.POINTER(Info)
        self.c.amt_create.restype = ctypes.c_void_p
        self.c.amt_invalid.restype = ctypes.c_uint64
        self.c.amt_invalid.argtypes = self.c.amt_reset.argtypes = [ctypes.c_void_p]
        self.c.amt_destroy.argtypes = [ctypes.c_void_p]
        self.c.amt_save.argtypes = [ctypes.c_void_p, ctypes.c_char_p]
        self.c.amt_load.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_uint64]
        self.c.amt_set_gain.argtypes = [ctypes.c_void_p, ctypes.c_float]
        self.c.amt_process.argtypes = [
            ctypes.c_void_p,
            ctypes.c_void_p,
            ctypes.c_int32,
            ctypes.c_void_p,
            ctypes.c_int32,
            ctypes.POINTER(ctypes.c_int32),
        ]
        self.about = self.c.amt_about().contents


class Instance:
    """An instance of a model."""

    def __init__(self, library):
        self.library, self.c, self.about = library, library.c, library.about
        self.at = self.c.amt_create(None)
        assert self.at

    def process(self, sound, room=None):
        """Frames (frame, column) of a sound (channel, time), and the samples that were taken."""
        n = sound.shape[1]
        rows = [np.ascontiguousarray(row, np.float32) for row in sound]
        each = (ctypes.c_void_p * len(rows))(*(row.ctypes.data for row in rows))
        most = (n // self.about.block + 1) * self.about.frames_per_block
        frames = np.full((most, self.about.columns), -1, np.float32)
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
