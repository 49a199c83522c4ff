"""Fault injection: a source that spoils another source's sound and counts what it did."""

import math
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import pairwise
from typing import Any, Literal, NamedTuple, get_args

import numpy as np

from amt_stream.engine.devices.zero_gate import ZeroGate
from amt_stream.engine.sources import Block, Deliver, Source, as_block, refuse_no_source
from amt_stream.engine.thread_check import thread_checked
from amt_stream.meters.calibration import Calibration
from amt_stream.meters.frames import Fault
from amt_stream.meters.source_description import DEVICE_CLIPS_AT, SourceDescription

FaultKind = Literal["drop", "late", "rate", "nan", "clip", "silence", "mute", "unplug", "stall"]
KINDS: tuple[FaultKind, ...] = get_args(FaultKind)

MISSING = ("drop", "unplug")
RANDOM_EVERY_S = 1.0
RANDOM_S = 3600.0
LONG_SHARE = 0.05
"""Share of random faults that are longer than a second."""

_LOST, _STILL = "was lost: it was unplugged", "stands still"
_MUTED = "gives exact zeros: it is muted"


class Injection(NamedTuple):
    """A fault at a place in the sound.

    kind: "drop": these samples are missing, and the source reports how many
          "late": delivery halts for that long, and then all comes at once
          "rate": the device's clock is off by `ppm` for that long; negative is slow
          "nan": the samples are NaN
          "clip": the samples are at the same end of full scale
          "silence": the samples are exact zeros
          "mute": the same from a device, which is silent then: what lasts over 0.5 s is missing
          "unplug": the device is lost and comes back; the sound meanwhile is missing
          "stall": delivery halts and the source reports it; then all comes, marked STALL
    at_s, for_s: begin and duration in seconds of sound
    """

    kind: FaultKind
    at_s: float
    for_s: float
    ppm: float = 0.0


@dataclass
class Injected:
    """What a `FaultSource` has done so far; counted in samples unless stated otherwise.

    lost: missing samples, without those that the source itself lost, and silent ones
    gaps: place and length of each loss, as in `Event.sample` and `Event.samples`
    nan, clip, silence, mute: spoiled samples, each counted once, by its final value
    late, unplug, stall: number of occurrences
    """

    lost: int = 0
    gaps: list[tuple[int, int]] = field(default_factory=list)
    nan: int = 0
    clip: int = 0
    silence: int = 0
    mute: int = 0
    late: int = 0
    unplug: int = 0
    stall: int = 0


def random_faults(
    seed: int,
    duration_s: float,
    every_s: float = RANDOM_EVERY_S,
    kinds: Sequence[FaultKind] = ("drop", "late", "nan", "clip", "silence", "unplug", "stall"),
) -> list[Injection]:
    """Random faults, on average one every `every_s`; equal arguments give equal faults.

    They last from a fraction of a millisecond to half a second, occasionally 1 to 2 s.
    """
    rng = np.random.default_rng(seed)
    faults: list[Injection] = []
    at_s = float(rng.exponential(every_s))
    while at_s < duration_s:
        for_s = 1.0 + rng.random() if rng.random() < LONG_SHARE else 10.0 ** rng.uniform(-3.5, -0.3)
        faults.append(Injection(kinds[int(rng.integers(len(kinds)))], at_s, float(for_s)))
        at_s += float(for_s + rng.exponential(every_s))
    return faults


def _of_its_source(name: str) -> Any:
    """A property with the value that the spoiled source has."""
    return property(lambda self: getattr(self.source, name))


@thread_checked
class FaultSource(Source):
    """Another source with injected faults, for tests and demonstrations.

        source = FaultSource(demo_source(), [Injection("unplug", 2.0, 0.5), ("nan", 4.0, 0.1)])

    `injected` counts what was done, for comparison with `Engine.health` and `Engine.events`. The
    sample count includes missing samples, as in an engine. With a source that is not live, "late"
    and "rate" take no time; a live one does not wait for the engine, even if it could.

    faults: what happens, in any order, as `Injection` or a tuple of its fields; by default
        `random_faults(seed)` for the duration of the sound, at most an hour

    Raises ValueError for an invalid fault.
    """

    def __init__(
        self,
        source: Source,
        faults: Sequence[Injection | tuple[FaultKind, float, float]] | None = None,
        seed: int = 0,
    ) -> None:
        refuse_no_source(source)
        if faults is None:
            faults = random_faults(seed, min(source.duration_s or RANDOM_S, RANDOM_S))
        self.faults = [Injection(*fault) for fault in faults]
        for fault in self.faults:
            _refuse(fault)
        self.source = source
        self.fs, self.channels, self.live = source.fs, source.channels, source.live
        self.name, self.seekable = f"{source.name} with faults", source.seekable
        self.duration_s, self.silence_note = source.duration_s, source.silence_note
        self.calibration: Calibration | None = source.calibration
        self.description = source.description
        self.injected = Injected()
        self._near: list[tuple[int, int, int]] = []
        self._ahead = sorted(
            (
                start := round(fault.at_s * self.fs),
                max(start + 1, round((fault.at_s + fault.for_s) * self.fs)),
                n,
            )
            for n, fault in enumerate(self.faults)
        )
        self._ahead.reverse()
        self._begun: set[int] = set()
        self._position = self._pending = self._own = self._flags = 0
        self._away = self._still = False
        self._delay_s = sum(max(0.0, f.ppm) * 1e-6 * f.for_s for f in self.faults)
        self._paced = self.live and any(fault.kind == "rate" for fault in self.faults)
        self._clock: float | None = None
        self._stopping = threading.Event()
        self._deliver: Deliver = _nobody
        self._gate: ZeroGate | None = None

    @property
    def description(self) -> SourceDescription:
        """What the source knows of its sound; injected samples at full scale are clipped."""
        return replace(self.source.description, clips_at=DEVICE_CLIPS_AT)

    @description.setter
    def description(self, given: SourceDescription) -> None:
        self.source.description = given

    def know_offset(self, offset: Sequence[float]) -> None:
        self.source.know_offset(offset)

    def start(self, deliver: Deliver) -> None:
        # As of a device: what was late comes at once, and nothing waits for the engine.
        self.source.can_wait = self.can_wait
        self.source.run_in, self.source.tell = self.run_in, self.tell
        self.source.tell_gain = self.tell_gain
        self._deliver = deliver
        if any(fault.kind == "mute" for fault in self.faults):
            tell = partial(self.tell, "silent", f"{self.name} {_MUTED}")
            self._gate = ZeroGate(self.fs, self.channels, deliver, tell, self._come_back, _unheard)
        self.source.start(self._take)

    def stop(self) -> None:
        self._stopping.set()
        self.source.stop()

    def seek(self, sample: int) -> None:
        self.source.seek(sample)
        self._position = sample

    @property
    def state(self) -> str:  # type: ignore[override]
        own = "lost" if self._away else "stalled" if self._still else ""
        return own or ("silent" if self._is_silent else self.source.state)

    @property
    def note(self) -> str:  # type: ignore[override]
        own = _LOST if self._away else _STILL if self._still else ""
        own = own or (_MUTED if self._is_silent else "")
        return f"{self.name} {own}" if own else self.source.note

    @property
    def missing(self) -> int:  # type: ignore[override]
        return 0 if self._gate is None else self._gate.missing

    @property
    def _is_silent(self) -> bool:
        return self._gate is not None and self._gate.silent

    error = _of_its_source("error")
    latency_s = _of_its_source("latency_s")
    latency_growth_s = _of_its_source("latency_growth_s")
    slack_s = _of_its_source("slack_s")
    stall_s = _of_its_source("stall_s")
    overflows = _of_its_source("overflows")

    def _take(self, block: Block | None, lost: int = 0, flags: int = 0) -> None:
        """Spoil a block and pass it on [audio-thread]."""
        self._position += lost
        self._pending += lost
        if block is None:
            self._pass_on(None, self._flags | flags)
            return
        block = as_block(block, self.channels)
        self._flags |= flags
        for start, stop in self._pieces(len(block)):
            if self._stopping.is_set():
                return
            self._piece(block[start:stop])

    def _pieces(self, samples: int) -> Iterator[tuple[int, int]]:
        """The block, cut where a fault begins or ends."""
        first, last = self._position, self._position + samples
        self._near = [span for span in self._near if span[1] > first]
        while self._ahead and self._ahead[-1][0] < last:
            self._near.append(self._ahead.pop())
        edges = {edge for start, stop, _ in self._near for edge in (start, stop)}
        cuts = [first, *sorted(edge for edge in edges if first < edge < last), last]
        for start, stop in pairwise(cuts):
            yield start - first, stop - first

    def _piece(self, block: Block) -> None:
        """Process a piece with the same faults throughout."""
        active = []
        for start, stop, n in self._near:
            if start <= self._position < stop:
                active.append(self.faults[n].kind)
                if n not in self._begun:
                    self._begun.add(n)
                    self._begin(self.faults[n])
                self._delay_s -= self.faults[n].ppm * 1e-6 * len(block) / self.fs
        if self._away and "unplug" not in active:
            self._away = False
            self._come_back()
        if any(kind in active for kind in MISSING):
            self._position += len(block)
            self._pending += len(block)
            self._own += len(block)
            self.injected.lost += len(block)
            return
        block = self._spoiled(block, active)
        if self._paced:
            self._wait_until_due()
        self._pass_on(block, self._flags)
        self._position += len(block)
        self._flags = 0

    def _come_back(self, after_s: float = 0.0) -> None:
        self.tell("back", f"{self.name} is back")

    def _begin(self, fault: Injection) -> None:
        if fault.kind == "unplug":
            self.injected.unplug += 1
            if not self._away:
                self._away = True
                self.tell("lost", f"{self.name} {_LOST}")
        elif fault.kind == "late":
            self.injected.late += 1
            self._halt(fault.for_s)
        elif fault.kind == "stall":
            self.injected.stall += 1
            self._still = True
            self.tell("stall", f"{self.name} {_STILL}")
            self._halt(fault.for_s)
            self._still = False
            self._flags |= Fault.STALL

    def _halt(self, seconds: float) -> None:
        if self.live:
            self._stopping.wait(seconds)

    def _spoiled(self, block: Block, kinds: Sequence[str]) -> Block:
        if "nan" in kinds:
            self.injected.nan += len(block)
            return np.full_like(block, math.nan)
        if "clip" in kinds:
            self.injected.clip += len(block)
            return np.ones_like(block)
        for kind in ("silence", "mute"):
            if kind in kinds:
                setattr(self.injected, kind, getattr(self.injected, kind) + len(block))
                return np.zeros_like(block)
        return block

    def _wait_until_due(self) -> None:
        """Wait until the piece is due by the simulated clock."""
        now, at_s = time.monotonic(), self._position / self.fs
        if self._clock is None:
            self._clock = now - at_s
        self._stopping.wait(max(0.0, self._clock + at_s + self._delay_s - now))

    def _pass_on(self, block: Block | None, flags: int) -> None:
        if self._own:
            self.injected.gaps.append((self._position - self._pending, self._pending))
        lost, self._pending, self._own = self._pending, 0, 0
        if self._gate is None:
            self._deliver(block, lost, flags)
        elif block is not None:
            self._gate.take(block, lost, flags)
        else:
            silent = Fault.SILENT if self._gate.silent else 0
            self._deliver(None, lost + self._gate.missing, flags | silent)


def _nobody(block: Block | None, lost: int = 0, flags: int = 0) -> None:
    """Placeholder before the start."""


def _unheard(dead: list[int]) -> None:
    """A channel without sound is no fault here."""


def _refuse(fault: Injection) -> None:
    if fault.kind not in KINDS:
        raise ValueError(f"a fault is {fault.kind!r}: give one of {', '.join(KINDS)}")
    for name, value in (("at_s", fault.at_s), ("for_s", fault.for_s)):
        if not 0.0 <= value < math.inf:
            raise ValueError(f"{name} of {fault.kind} is {value}: give seconds, 0 or more")
    if (fault.kind == "rate") != bool(fault.ppm):
        raise ValueError(f"ppm of {fault.kind} is {fault.ppm}: give it with rate only")
    if not -1e6 < fault.ppm < 1e6:
        raise ValueError(f"ppm of rate is {fault.ppm}: give less than a million")
