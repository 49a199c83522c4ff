"""The functions of a model's shared library, through ctypes."""

import ctypes
from dataclasses import dataclass
from pathlib import Path

from amt_stream.core.errors import Refusal

_POINTER, _INT, _BYTES = ctypes.c_void_p, ctypes.c_int32, ctypes.c_uint64

_FUNCTIONS: dict[str, tuple[type | None, tuple[type, ...]]] = {
    "about": (_POINTER, ()),
    "columns": (_POINTER, ()),
    "create": (_POINTER, (_POINTER,)),
    "destroy": (None, (_POINTER,)),
    "reset": (None, (_POINTER,)),
    "set_gain": (None, (_POINTER, ctypes.c_float)),
    "process": (_INT, (_POINTER, _POINTER, _INT, _POINTER, _INT, ctypes.POINTER(_INT))),
    "invalid": (_BYTES, (_POINTER,)),
    "outputs": (_POINTER, (_POINTER,)),
    "state": (_POINTER, (_POINTER,)),
    "save": (None, (_POINTER, ctypes.c_char_p)),
    "load": (_INT, (_POINTER, ctypes.c_char_p, _BYTES)),
    "limit_begin": (_INT, (_POINTER, _INT, _POINTER)),
    "limit_take": (_INT, (_POINTER, ctypes.c_float, _INT)),
    "limit_result": (None, (_POINTER, _POINTER)),
}
"""What each returns and takes, as amt.h declares it."""


class FailedModel(Refusal, RuntimeError):
    """A model whose calculation failed."""


class _AmtInfo(ctypes.Structure):
    """`amt_info`"""

    _fields_ = (
        ("size", ctypes.c_uint32),
        *((name, ctypes.c_char_p) for name in ("model", "version", "input_unit")),
        *((name, _INT) for name in ("fs", "channels", "block", "columns", "frames_per_block")),
        *((name, ctypes.c_double) for name in ("frame_s", "latency_s", "settle_s", "tail_s")),
        *((name, _BYTES) for name in ("bytes", "state_bytes")),
    )


class _AmtColumn(ctypes.Structure):
    """`amt_column`"""

    _fields_ = tuple((name, ctypes.c_char_p) for name in ("name", "unit"))


@dataclass(frozen=True)
class NativeColumn:
    """A number of each frame."""

    name: str
    unit: str


@dataclass(frozen=True)
class NativeInfo:
    """What a compiled model is.

    model, version: its name in the catalog, and the amt_stream that made it
    input_unit: "pascal" or "full scale", of samples times the gain
    fs, channels: of the sound
    block: samples of a channel that are calculated together; they give `frames_per_block` frames
    columns: the numbers of a frame
    frame_s: seconds from a frame to the next; frame n stands for the time
        n * frame_s - latency_s
    settle_s: seconds until the start from silence no longer matters
    tail_s: seconds after the end of a sound, until no column rises any more
    state_bytes: length of a saved state
    """

    model: str
    version: str
    input_unit: str
    fs: int
    channels: int
    block: int
    frames_per_block: int
    columns: tuple[NativeColumn, ...]
    frame_s: float
    latency_s: float
    settle_s: float
    tail_s: float
    state_bytes: int


class Library:
    """A shared library of a model: `c` has its functions, such as `c.amt_process` [any-thread]."""

    def __init__(self, path: Path) -> None:
        self.c = ctypes.CDLL(str(path))
        for name, (returned, taken) in _FUNCTIONS.items():
            function = getattr(self.c, f"amt_{name}")
            function.restype, function.argtypes = returned, taken
        info = _AmtInfo.from_address(self.c.amt_about())
        columns = (_AmtColumn * info.columns).from_address(self.c.amt_columns())
        texts = {name: getattr(info, name).decode() for name in ("model", "version", "input_unit")}
        numbers = {name: getattr(info, name) for name in NativeInfo.__annotations__.keys() - texts}
        numbers["columns"] = tuple(
            NativeColumn(one.name.decode(), one.unit.decode()) for one in columns
        )
        self.info = NativeInfo(**texts, **numbers)
