"""Tells exact zeros, as a muted device gives them, from sound."""

from collections.abc import Callable

import numpy as np

from amt_stream.engine.sources import Block, Deliver
from amt_stream.meters.frames import Fault

LONGEST_S = 0.5
"""Exact zeros of all channels that last longer are no sound."""

SPLIT_S = 0.001
"""Zeros at the end of a block that are shorter are passed on with it: quiet sound has them too."""


class ZeroGate:
    """Passes on a device's sound, and counts exact zeros that last as missing.

    Zeros of all channels are held back. If sound returns within LONGEST_S, they are passed on as
    the sound that they are. Otherwise they and all further ones count as missing before the next
    sound, which carries Fault.SILENT.

    deliver: as of a `Source`
    fell_silent: called when the zeros have lasted too long
    sounds_again: called with the missing seconds when sound is back, before it is passed on
    dead: called with the channels, counted from 0, that give exact zeros beside others' sound,
        when there is one more of them

    All methods belong to the thread that captures; others may read the attributes.
    """

    def __init__(
        self,
        fs: int,
        channels: int,
        deliver: Deliver,
        fell_silent: Callable[[], None],
        sounds_again: Callable[[float], None],
        dead: Callable[[list[int]], None],
    ) -> None:
        self.silent = False
        self.missing = 0
        """Samples that count as missing before the next sound."""
        self.held_back_s = 0.0
        """For how long what is delivered now was held back."""
        self._fs, self._longest, self._split = fs, round(LONGEST_S * fs), round(SPLIT_S * fs)
        self._deliver = deliver
        self._fell_silent, self._sounds_again, self._dead = fell_silent, sounds_again, dead
        self._held = self._flags = self._run = 0
        self._zeros_of = np.zeros(channels, np.int64)

    @property
    def holds_s(self) -> float:
        """Seconds of zeros that it holds back at present."""
        return self._held / self._fs

    def take(self, block: Block, lost: int = 0, flags: int = 0) -> None:
        """Take a block, before which `lost` samples are missing."""
        if not len(block):
            self._lose(block, lost, flags)
            return
        there = np.flatnonzero(block.any(axis=1))
        if not len(there):
            self._hold(len(block), lost, flags)
            return
        begin, end = int(there[0]), int(there[-1]) + 1
        if not self._run:
            begin = 0
        elif begin:
            self._hold(begin, lost, flags)
            lost = 0
        tail = len(block) - end
        if tail < self._split:
            end, tail = len(block), 0
        self._pass(block[begin:end], lost, flags)
        if tail:
            self._hold(tail, 0, flags)

    def _lose(self, nothing: Block, lost: int, flags: int) -> None:
        """Samples are missing, with a cause of their own in `flags`."""
        self.interrupt()
        before, self.missing = self.missing, 0
        if before:
            self._deliver(nothing, before, Fault.SILENT if self.silent else 0)
        self._deliver(nothing, lost, flags)

    def interrupt(self, lost: int = 0) -> None:
        """Samples are missing: zeros held back before them are not known to be sound."""
        self.missing += self._held + lost
        self._held = 0

    def _hold(self, zeros: int, lost: int, flags: int) -> None:
        if lost:
            self.interrupt(lost)
        self._held += zeros
        self._run += zeros
        self._flags |= flags
        if self._run > self._longest:
            self.interrupt()
            if not self.silent:
                self.silent = True
                self._fell_silent()

    def _pass(self, sound: Block, lost: int, flags: int) -> None:
        if self._run or self.missing:
            if lost:
                self.interrupt()
            lost, self.missing = lost + self.missing, 0
            if self.silent:
                self.silent = False
                self._sounds_again(lost / self._fs)
                flags |= Fault.SILENT
            if self._held:
                zeros = np.zeros((self._held, sound.shape[1]), np.float32)
                self.held_back_s = len(sound) / self._fs
                self._deliver(zeros, lost, self._flags)
                self.held_back_s, lost = 0.0, 0
            self._held = self._flags = self._run = 0
        if sound.shape[1] > 1:
            self._look_for_dead(sound)
        self._deliver(sound, lost, flags)

    def _look_for_dead(self, sound: Block) -> None:
        before = self._zeros_of > self._longest
        self._zeros_of = np.where(sound.any(axis=0), 0, self._zeros_of + len(sound))
        dead = self._zeros_of > self._longest
        if (dead > before).any():
            self._dead(np.flatnonzero(dead).tolist())
