"""The greatest of curves that were drawn: of the last seconds, and of all."""

import numpy as np
from numpy.typing import NDArray

HOLD_S, SLOTS = 2.0, 8


class Held:
    """Of what it is shown; what was not drawn is not in it.

    Times are those of the sound: one that jumps back begins anew.
    """

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Forget all."""
        self.greatest: NDArray[np.float64] | None = None
        self._slots: list[tuple[int, NDArray[np.float64]]] = []

    def show(self, time_s: float, curves: NDArray[np.float64]) -> None:
        """Take in curves of one shape, at a time."""
        slot = int(time_s / HOLD_S * SLOTS)
        if self.greatest is None or self.greatest.shape != curves.shape:
            self.clear()
            self.greatest = curves
        self.greatest = np.maximum(self.greatest, curves)
        if self._slots and slot < self._slots[-1][0]:
            self._slots.clear()
        if self._slots and self._slots[-1][0] == slot:
            self._slots[-1] = slot, np.maximum(self._slots[-1][1], curves)
        else:
            self._slots.append((slot, curves))
        while self._slots[0][0] <= slot - SLOTS:
            self._slots.pop(0)

    @property
    def held(self) -> NDArray[np.float64]:
        """The greatest of the last two seconds."""
        return np.maximum.reduce([curves for _, curves in self._slots])
