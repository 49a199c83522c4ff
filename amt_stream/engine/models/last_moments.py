"""The last half second of a sound, to tell whether it was steady when it ended."""

from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from amt_stream.core.saved_state import Resumable, SavedState

MOMENTS = 50
"""Number of 10 ms moments: within half a second every model is within 1 % of a steady reading."""

ALIKE = 10.0
"""Power ratio of 10 dB."""

KEPT, PATTERN = 5, 0.5
"""Moments of sound that are stored, and of its end that is looked for in the rest of them."""


class LastMoments(Resumable):
    """Power of the last half second in moments of 10 ms, aligned to the sample count.

    rows: number of listeners, each with its own
    """

    kept: ClassVar[tuple[str, ...]] = ("_energy", "_samples", "_last")
    growing: ClassVar[tuple[str, ...]] = ("_energy", "_samples", "_last")

    def __init__(self, rows: int, ears: int, fs: int) -> None:
        self._length = max(1, fs // 100)
        self._last: NDArray[np.float32] = np.zeros((rows, ears, 0), np.float32)
        self._energy: NDArray[np.float64] = np.zeros((rows, 0))
        self._samples: NDArray[np.int64] = np.zeros(0, np.int64)
        # The newest sound, not summed yet, and the position after it.
        self._newest = np.zeros((rows, ears, 2 * (MOMENTS + 2) * self._length), np.float32)
        self._count = self._end = 0

    def change(self, ears: int) -> None:
        """Change the number of ears: one channel counts as one ear or as both."""
        if ears != self._last.shape[1]:
            self._sum_up()
            self._last, self._newest = (
                np.repeat(x[:, :1], ears, axis=1) for x in (self._last, self._newest)
            )

    def state_dict(self) -> SavedState:
        self._sum_up()
        return super().state_dict()

    def hear(self, x: NDArray[np.float32], position: int) -> None:
        """Take sound (row, ear, time) from the sample `position` on."""
        size, room = x.shape[-1], self._newest.shape[-1]
        if position != self._end or size > room // 2:
            self._sum_up()
        elif self._count + size > room:
            # Only the last moments are needed.
            self._newest[..., : room // 2] = self._newest[
                ..., self._count - room // 2 : self._count
            ]
            self._count = room // 2
        self._end = position + size
        if size > room // 2:
            self._take(x, position)
            return
        self._newest[..., self._count : self._count + size] = x
        self._count += size

    def _sum_up(self) -> None:
        """Process the newest sound."""
        count, self._count = self._count, 0
        if count:
            self._take(self._newest[..., :count], self._end - count)

    def _take(self, x: NDArray[np.float32], position: int) -> None:
        self._last = np.append(self._last, x, axis=-1)[..., -KEPT * self._length :]
        first = -position % self._length
        starts = [*([0] if first else []), *range(first, x.shape[-1], self._length)]
        power = np.einsum("ret,ret->rt", x, x, dtype=np.float64) / x.shape[1]
        energy = np.add.reduceat(power, starts, axis=1)
        samples = np.diff([*starts, x.shape[-1]])
        if first and len(self._samples):
            energy[:, 0] += self._energy[:, -1]
            samples[0] += self._samples[-1]
            self._energy, self._samples = self._energy[:, :-1], self._samples[:-1]
        # Two more than needed, because the last moment may be partial.
        self._energy = np.append(self._energy, energy, axis=1)[:, -MOMENTS - 2 :]
        self._samples = np.append(self._samples, samples)[-MOMENTS - 2 :]

    def going_on(self, samples: int) -> NDArray[np.float32]:
        """A continuation by `samples` samples (row, ear, time): what followed where it was alike.

        The sound before its last 10 ms is searched for the end, and repeated from there on. So a
        tone from 22 Hz on continues without a step or a bend, which high frequencies would pass on.
        """
        self._sum_up()
        size = self._last.shape[-1]
        pattern = min(round(PATTERN * self._length), size)
        ends = np.lib.stride_tricks.sliding_window_view(self._last, pattern, axis=-1)
        earlier = ends[..., : max(1, ends.shape[2] - self._length), :]
        unlike = np.square(earlier - ends[..., -1:, :]).sum((1, 3))
        period = size - pattern - unlike.argmin(1)  # of each row
        ahead = np.arange(samples) % np.maximum(period, 1)[:, None] - period[:, None]
        return np.take_along_axis(self._last, (size + ahead)[:, None, :], axis=-1)

    def steady(self, row: int) -> bool:
        """Whether all moments were about as loud as the last."""
        self._sum_up()
        if len(self._samples) < MOMENTS + 2:
            return False
        energy, samples = self._energy[row], self._samples
        last = energy[-2:].sum() / samples[-2:].sum()
        before = energy[:-2] / samples[:-2]
        return bool(last > 0 and (before >= last / ALIKE).all() and (before <= last * ALIKE).all())
