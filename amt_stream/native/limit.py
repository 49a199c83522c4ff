"""Limits of columns of a model that runs as machine code."""

import ctypes
import math
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from amt_stream.meters.accumulators.limit_state import RULES, STATE, STATES
from amt_stream.meters.limits import EXCEEDED, KEPT, NOT_KNOWN, Limit, LimitError
from amt_stream.native.library import Library

CLIPPED, UNCALIBRATED, UNHEARD = 1, 2, 4
"""What is known of the sound of a value, as amt.h has it."""


class AmtLimit(ctypes.Structure):
    """`amt_limit`"""

    _fields_ = (("rules", ctypes.c_double * RULES), ("state", ctypes.c_double * (STATE + 1)))


class AmtRules(ctypes.Structure):
    """`amt_rules`"""

    _fields_ = (
        *((name, ctypes.c_double) for name in ("threshold", "amber", "hysteresis", "hold_s")),
        *((name, ctypes.c_int32) for name in ("below", "at_end")),
    )


class AmtResult(ctypes.Structure):
    """`amt_result`"""

    _fields_ = (
        *((name, ctypes.c_int32) for name in ("state", "verdict")),
        ("times", ctypes.c_int64),
        *((name, ctypes.c_double) for name in ("worst", "worst_s", "counted_s", "unjudged_s")),
    )


class NativeLimit:
    """A limit of a column, judged frame by frame as the rows of an engine judge it.

    Made by `NativeModel.limit`.

    invalid: gives the number of invalid samples so far
    """

    def __init__(self, library: Library, limit: Limit, invalid: Callable[[], int]) -> None:
        info = library.info
        places = [
            place
            for place, one in enumerate(info.columns)
            if limit.column in names_in_rows(info.model, one.name, one.unit)
        ]
        if not places:
            raise LimitError(f"{limit.words}: {info.model} has no column {limit.column}")
        if limit.ahead_s:
            raise LimitError(f"{limit.words}: ahead_s needs a forecast, which no frame has")
        self.limit = limit
        self._c, (self._place,), self._at = library.c, places, AmtLimit()
        self._invalid, self._before = invalid, invalid()
        numbers = limit.threshold, math.nan if limit.amber is None else limit.amber
        rules = AmtRules(*numbers, limit.hysteresis, limit.hold_s, limit.below, limit.at_end)
        self._c.amt_limit_begin(ctypes.byref(self._at), self._place, ctypes.byref(rules))

    def __call__(
        self,
        frames: npt.NDArray[np.float32],
        clipped: bool = False,
        calibrated: bool = True,
        heard: bool = True,
    ) -> list[str]:
        """The state at each of the next frames (frame, column).

        clipped, calibrated, heard: whether their sound was clipped, what a sample is in pascal is
            known, and all sound before them was heard; invalid samples since the frames before
            are not heard
        """
        if len(frames):
            before, self._before = self._before, self._invalid()
            heard = heard and self._before <= before
        known = CLIPPED * clipped | UNCALIBRATED * (not calibrated) | UNHEARD * (not heard)
        take, at = self._c.amt_limit_take, ctypes.byref(self._at)
        return [STATES[take(at, value, known)] for value in frames[:, self._place].tolist()]

    @property
    def state(self) -> str:
        """The state at the last frame; "unknown" before the first one."""
        return STATES[self._result.state]

    @property
    def verdict(self) -> str:
        """ "kept", "exceeded" or "not known"."""
        return (KEPT, EXCEEDED, NOT_KNOWN)[self._result.verdict]

    @property
    def times(self) -> int:
        """How often it turned red."""
        return int(self._result.times)

    @property
    def worst(self) -> float | None:
        """The worst value; None without one."""
        worst = float(self._result.worst)
        return None if math.isnan(worst) else worst

    @property
    def _result(self) -> AmtResult:
        found = AmtResult()
        self._c.amt_limit_result(ctypes.byref(self._at), ctypes.byref(found))
        return found


def names_in_rows(model: str, name: str, unit: str) -> tuple[str, str]:
    """Names that limits have for a column; the rows of an engine have one of them."""
    ending = f"_{unit.lower()}"
    whole = name if name.endswith(ending) else name + ending
    return whole, f"{model}_{whole}"
