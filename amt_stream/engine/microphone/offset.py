"""The constant offset of a converter's samples, which is no sound."""

import math
from collections.abc import Callable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from amt_stream.engine.microphone.gaps import is_missing
from amt_stream.engine.sources import LARGEST_SAMPLE, Block

FOLLOW_HZ = 0.25
"""What is slower than this is removed: 0.001 dB at 20 Hz."""

FORGOTTEN_S = 45.0
"""After so much sound no bit of what the slow mean began with is left."""

LISTEN_S, LEAST_S = 0.5, 0.1
"""Sound from which the first offset is estimated: so much, and at least so much."""

WINDOWS = 5
"""Windows of this sound, each of which overlaps the next by half."""

SURE, ALIKE = 5.0, 3.0
"""Standard errors by which an offset differs from chance; deviations within which means agree."""

WORTH_TELLING = 1e-3
"""Offset, as a fraction of full scale, from which on people are told."""


def follow_of(fs: float) -> float:
    """The weight of a sample in the slow mean."""
    return -math.expm1(-2 * math.pi * FOLLOW_HZ / fs)


def offset_of(sound: NDArray[np.float32], fs: float) -> NDArray[np.float64]:
    """The offset (channel,) of the first sound (time, channel); 0 if sound could be the reason.

    It is a mean over all, which tones hardly move; or, if that differs from them, the median of
    means over parts, which a single pulse does not move. It counts if it is larger than chance
    makes it, as the scatter of the parts tells.
    """
    sound = sound[: math.ceil(LISTEN_S * fs)]
    count, channels = sound.shape
    if count < LEAST_S * fs:
        return np.zeros(channels)
    part = 2 * (count // (WINDOWS + 1))
    starts = range(0, (WINDOWS - 1) * part // 2 + 1, part // 2)
    parts = np.stack([_mean(sound[at : at + part]) for at in starts])
    mean, median = _mean(sound), np.median(parts, axis=0)
    usual = np.median(np.abs(parts - median), axis=0)
    offset: NDArray[np.float64] = np.where(np.abs(mean - median) <= ALIKE * usual, mean, median)
    # Half-overlapping windows are about half as many independent ones.
    by_chance = parts.std(axis=0, ddof=1) / math.sqrt((WINDOWS + 1) / 2)
    return np.where(np.abs(offset) > SURE * by_chance, offset, 0.0)


def _mean(sound: NDArray[np.float32]) -> NDArray[np.float64]:
    """The mean (channel,) of sound (time, channel), weighted with a Hann window."""
    window = np.hanning(len(sound) + 2)[1:-1]
    mean: NDArray[np.float64] = window @ sound / window.sum()
    return mean


def offset_words(offset: Sequence[float]) -> str:
    """A large offset, as "2 % of full scale in channel 1"; "" for a small one.

    Without the channels if it is the same in all of several. NaN is that of a channel that is not
    measured.
    """
    large = [n for n, one in enumerate(offset) if abs(one) >= WORTH_TELLING]
    of_each = [f"{100 * offset[n]:.2g} % of full scale" for n in large]
    if len(large) == len(offset) > 1 and len(set(of_each)) == 1:
        return of_each[0]
    return ", ".join(f"{one} in channel {n + 1}" for one, n in zip(of_each, large, strict=True))


class FirstSound:
    """Holds the first half second of sound back until its offset is known.

    It begins with the first sample that is not 0; zeros before it, as of a microphone that warms
    up, go on at once.

    found: called with the offset (channel,) before that sound goes on
    """

    def __init__(self, fs: int, found: Callable[[NDArray[np.float64]], None]) -> None:
        self.over = False
        self._fs, self._found = fs, found
        self._held: list[tuple[Block, int, int]] = []

    def take(self, block: Block, lost: int, flags: int) -> Iterator[tuple[Block, int, int]]:
        """Take a block, the samples missing before it and its faults; yield what goes on."""
        if self._held and lost:
            yield from self.rest()
        if self.over:
            yield block, lost, flags
            return
        if not self._held and (begin := begin_of(block)):
            yield block[:begin], lost, flags
            block, lost, flags = block[begin:], 0, 0
        if len(block):
            self._held.append((block.copy(), lost, flags))
        if sum(len(one) for one, _, _ in self._held) >= LISTEN_S * self._fs:
            yield from self.rest()

    def rest(self) -> Iterator[tuple[Block, int, int]]:
        """Yield what is held; nothing is held from here on."""
        held, self._held, self.over = self._held, [], True
        if held:
            sound = np.concatenate([block for block, _, _ in held])
            self._found(offset_of(valid_sound(sound), self._fs))
        yield from held


class KnownOffset:
    """The offset that is removed from a whole sound, as a measurement follows it.

    begin: the first sample that is not 0 in any channel; None before it came
    first: the offset (channel,) from there on

    `hear` takes the sound in order, and then `end`; after it `before` tells the offset anywhere.
    """

    def __init__(self, fs: int, channels: int) -> None:
        self.begin: int | None = None
        self.first = np.zeros(channels)
        self._fs, self._samples = fs, 0
        self._waiting: list[Block] | None = []

    def hear(self, block: Block, chosen: Block) -> None:
        """Take the next block of all channels, and of those that are measured."""
        if self._waiting is None:
            return
        skipped = begin_of(block) if self.begin is None else 0
        self._samples += skipped
        if skipped == len(block):
            return
        if self.begin is None:
            self.begin = self._samples
        self._waiting.append(valid_sound(chosen[skipped:]).copy())
        if sum(map(len, self._waiting)) >= LISTEN_S * self._fs:
            self.end()

    def end(self) -> None:
        """Estimate the first offset, if there was too little sound for that before."""
        waiting, self._waiting = self._waiting, None
        if waiting:
            self.first = offset_of(np.concatenate(waiting), self._fs)

    def go_on(self, sound: Block, offset: NDArray[np.float64]) -> None:
        """Update an offset by sound (time, channel) in which invalid samples are 0."""
        from amt_stream.dsp.functional.input_gate import without_offset  # imports numba: slow

        without_offset(sound, offset, follow_of(self._fs), np.empty(sound.T.shape, np.float32))

    def before(self, sample: int) -> tuple[int, NDArray[np.float64]]:
        """A place up to a sample from which `go_on` finds the offset at it, and what to begin with.

        Whatever it begins with is forgotten on the way.
        """
        if self.begin is None or sample < self.begin:
            return sample, np.zeros_like(self.first)
        return max(self.begin, sample - math.ceil(FORGOTTEN_S * self._fs)), self.first.copy()


def begin_of(block: Block) -> int:
    """The first sample of a block (time, channel) that is not 0, or its length."""
    there = block.any(axis=1)
    return int(there.argmax()) if there.any() else len(block)


def all_valid(block: Block) -> bool:
    """Whether all samples of a block are valid; NaN compares as false."""
    return not block.size or bool(block.min() >= -LARGEST_SAMPLE and block.max() <= LARGEST_SAMPLE)


def valid_sound(block: Block) -> Block:
    """A block in which invalid and missing samples are 0; the same one if there are none."""
    if all_valid(block):
        return block
    valid = (np.abs(block) <= LARGEST_SAMPLE) & ~is_missing(block)[:, None]
    return np.where(valid, block, np.float32(0.0))
