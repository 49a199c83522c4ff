"""Combines several sources into one, with their channels side by side."""

import math
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from amt_stream.core.safe_text import FORMULA, UNFIT
from amt_stream.dsp.channel_layout import usual_layout
from amt_stream.engine.inputs.ring import SampleRing
from amt_stream.engine.inputs.source_runner import SourceRunner
from amt_stream.engine.microphone.gaps import MISSING, SILENT
from amt_stream.engine.microphone.microphones import Microphone
from amt_stream.engine.sources import (
    Block,
    Deliver,
    Source,
    SourceError,
    as_block,
    as_lost,
    refuse_no_source,
)
from amt_stream.engine.thread_check import thread_checked
from amt_stream.meters.frames import Fault
from amt_stream.meters.source_description import InputGain, SourceDescription

POLL_S = 0.003
LONGEST_BLOCK_S = 0.1
LEAST_RING_S = 1.0
STALLED_S = 1.0
SLIP_S = 5.0
"""How long a source must lag before its clock counts as slower."""


def _combined(name: str, combine: Callable[[list[Any]], Any]) -> Any:
    """A property that combines those of all sources."""
    return property(lambda self: combine([getattr(source, name) for source in self.sources]))


@thread_checked
class Together(Source):
    """Several sources of one rate; the second's channels are numbered after the first's.

        mics = Together([MicrophoneSource("left"), MicrophoneSource("right")])
        with Engine(mics, Moore2016(fs=48000), microphones=mics.microphones) as engine:

    Live audio is passed on when all sources have delivered it, or `deadline_s` after the first has:
    late samples are replaced by MISSING and discarded on arrival. The sources begin together, when
    all have delivered or the deadline is over. A source that lags permanently, because its clock is
    slower, continues after a gap of its own: the fastest clock counts. Sources that can wait
    (`live=False`) are never missing before they end.

    microphones: one for each source of one or two channels, else one for each channel, by name

    Raises TypeError, ValueError or SourceError for sources that cannot be combined.
    """

    def __init__(self, sources: Sequence[Source], deadline_s: float = 0.25) -> None:
        if not isinstance(sources, Sequence) or not sources:
            raise TypeError(f"the sources are {sources!r}: give a sequence of them")
        for source in sources:
            refuse_no_source(source)
        if not 0.0 < deadline_s < math.inf:
            raise ValueError(f"deadline_s is {deadline_s}: give seconds, more than 0")
        first = sources[0]
        for other in sources[1:]:
            for name in ("fs", "live"):
                mine, its = getattr(first, name), getattr(other, name)
                if mine != its:
                    raise SourceError(
                        f"{first.name} has {name} = {mine} and {other.name} {name} = {its}: "
                        "sources used together must have the same"
                    )
        self.sources, self.deadline_s = tuple(sources), deadline_s
        self.fs, self.live = first.fs, first.live
        self.can_wait = all(source.can_wait for source in sources)
        self.channels = sum(source.channels for source in sources)
        self.name = " and ".join(dict.fromkeys(source.name for source in sources))
        known = [source.duration_s for source in sources if source.duration_s is not None]
        self.duration_s = max(known) if len(known) == len(sources) else None
        self.microphones = _microphones(self.sources)
        self.description = _description(self.sources)
        # What waits for room in it is late, which only its source knows.
        waits = self.live and self.can_wait
        ring_s = 2 * LONGEST_BLOCK_S if waits else max(LEAST_RING_S, 4 * deadline_s)
        self._members = [_Member(source, ring_s, self.can_wait) for source in sources]
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None
        self._deliver: Deliver | None = None

    def gain_of(self, column: int) -> InputGain | None:
        for source in self.sources:
            if column < source.channels:
                return source.gain_of(column)
            column -= source.channels
        return None

    def start(self, deliver: Deliver) -> None:
        if self._thread is not None:
            raise RuntimeError(f"the source {self.name} was started before: make a new one")
        self._thread = threading.Thread(
            target=self._run, args=(deliver,), name=self.name, daemon=True
        )
        try:
            first = 0
            for member in self._members:
                source = member.source
                source.tell = partial(self._tell_of, source.name)
                source.tell_gain = partial(self._tell_gain_from, first)
                first += source.channels
                source.start(partial(member.receive, self._stopping.is_set))
                member.started = True
        except BaseException:
            self._stop_sources()
            raise
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        self._stop_sources()
        thread = self._thread
        if thread is not None and thread.ident and thread is not threading.current_thread():
            thread.join()

    def _stop_sources(self) -> None:
        for member in self._members:
            if member.started:
                member.started = False
                member.source.stop()

    def _tell_of(self, name: str, kind: str, text: str) -> None:
        self.tell(kind, text if name in text else f"{name}: {text}")

    def _tell_gain_from(self, first: int, gain: InputGain, columns: range) -> None:
        self.tell_gain(gain, range(first + columns.start, first + columns.stop))

    def _run(self, deliver: Deliver) -> None:
        """Pass audio on until all sources have ended [audio-thread]."""
        deadline_s = None if self.can_wait else self.deadline_s
        joint = _Joint(self._members, self.fs, deadline_s, self.tell)
        while not self._stopping.is_set():
            ended = all(member.ended for member in self._members)  # read before the last check
            count = joint.due(time.monotonic())
            if count:
                deliver(joint.take(count))
            elif ended:
                break
            else:
                self._stopping.wait(POLL_S)
        if not self._stopping.is_set():
            errors = [member.source.error for member in self._members]
            if all(errors):
                self.error = errors[0]
            deliver(None)

    @property
    def note(self) -> str:  # type: ignore[override]
        notes = [(one.name, one.note) for one in self.sources if one.note]
        return "; ".join(text if name in text else f"{name}: {text}" for name, text in notes)

    silence_note = _combined("silence_note", lambda notes: next(filter(None, notes), ""))
    latency_s = _combined("latency_s", max)
    holds_s = _combined("holds_s", max)
    latency_growth_s = _combined("latency_growth_s", max)
    slack_s = _combined("slack_s", min)
    stall_s = _combined("stall_s", max)
    behind_s = _combined("behind_s", max)
    missing = _combined("missing", min)

    @property
    def overflows(self) -> int:  # type: ignore[override]
        return sum(one.source.overflows + one.ring.overflows for one in self._members)

    @property
    def state(self) -> str:  # type: ignore[override]
        """Running as long as any source is; lateness of the others is a gap, not a stall."""
        if self.can_wait:
            return ""
        found = {member.state for member in self._members}
        return found.pop() if len(found) == 1 else "running"


def runner_of(source: Source | Sequence[Source] | SourceRunner) -> SourceRunner:
    """The runner of a source, or of several together. Raises as `Source` and `Together`."""
    if isinstance(source, SourceRunner):
        return source
    if isinstance(source, Sequence) and not isinstance(source, str):  # type: ignore[unreachable]
        source = Together(source)
    refuse_no_source(source)
    return SourceRunner(source)


@thread_checked
class _Member:
    """One of the sources, with its buffered samples and its debt.

    waits: whether it waits for room, as all of them can
    """

    def __init__(self, source: Source, ring_s: float, waits: bool = False) -> None:
        self._waits = waits
        self.source, self.ring = source, SampleRing(source.fs, source.channels, ring_s)
        self.started = self.ended = self.begun = False
        self.came_at = math.inf
        """When the last block came."""
        self.debt = 0
        """Samples that were passed on as missing before they came."""
        self.least_behind, self.position_then = math.inf, 0
        self._taken = self._lost = 0
        self._fill = MISSING
        self._nothing = np.zeros((0, source.channels), np.float32)
        self._dropped = np.zeros((1024, source.channels), np.float32)

    def receive(
        self, is_over: Callable[[], bool], block: Block | None, lost: int = 0, flags: int = 0
    ) -> None:
        """Take a block from the source [audio-thread]."""
        if block is None:
            self.ring.write(self._nothing, as_lost(lost), flags & Fault.SILENT)
            self.ended = True
            return
        block, lost = as_block(block, self.source.channels), as_lost(lost)
        flags &= Fault.SILENT
        if not self._waits:
            self.came_at = time.monotonic()
            self.ring.write(block, lost, flags)
            return
        self.ring.write_waiting(block, lost, flags, is_over)

    @property
    def state(self) -> str:
        """The source's state, or what the clock suggests."""
        late = time.monotonic() - self.came_at > STALLED_S
        return self.source.state or ("stalled" if late else "running")

    @property
    def is_waited_for(self) -> bool:
        """Whether the others wait for it, up to the deadline."""
        return self.begun and not self.ended and self.source.state not in ("lost", "silent")

    @property
    def ready(self) -> int:
        """Samples that can be passed on, including lost ones; negative while in debt."""
        return self.ring.position - self._taken - self.debt

    def take(self, out: Block) -> None:
        """Fill `out` with the next samples, MISSING or SILENT where they are lost or late."""
        self.drop(0)
        at = 0
        while at < len(out) and (count := self._next(out[at:])):
            at += count
        out[at:] = _mark(self.source.state == "silent")
        self.debt += len(out) - at

    def drop(self, count: int) -> None:
        """Discard the next `count` samples, and those in debt."""
        self.debt += count
        while self.debt > 0 and (count := self._next(self._dropped[: self.debt])):
            self.debt -= count

    def align(self, ready: int) -> None:
        """Adjust the number of samples that are ready."""
        if self.ready > ready:
            self.drop(self.ready - ready)
        else:
            self.slip(ready - self.ready)

    def slip(self, count: int) -> None:
        """Count `count` samples that will never come as lost."""
        owed = min(count, max(0, self.debt))
        self.debt -= owed
        self._lost += count - owed
        self._taken -= count - owed

    def _next(self, out: Block) -> int:
        if not self._lost:
            read = self.ring.read(self._nothing)
            self._lost, self._fill = read.lost, _mark(read.flags & Fault.SILENT)
        count = min(self._lost, len(out))
        if count:
            out[:count] = self._fill
            self._lost -= count
        else:
            count = self.ring.read(out).copied
        self._taken += count
        return count


def _mark(silent: int) -> np.float32:
    return SILENT if silent else MISSING


class _Joint:
    """Decides when samples are due, and assembles them.

    deadline_s: None if all sources can wait
    """

    def __init__(
        self,
        members: Sequence[_Member],
        fs: int,
        deadline_s: float | None,
        tell: Callable[[str, str], None],
    ) -> None:
        self._members, self._fs, self._deadline_s, self._tell = members, fs, deadline_s, tell
        self._longest = round(LONGEST_BLOCK_S * fs)
        self._given = 0
        # When the leading source had come how far.
        self._came: deque[tuple[float, int]] = deque()
        self._overdue = 0
        self._began = deadline_s is None
        self._first_at = self._slip_at = math.inf

    def due(self, now: float) -> int:
        """How many samples to pass on now."""
        ready = [one.ready for one in self._members]
        there = [r for r, one in zip(ready, self._members, strict=True) if not one.ended]
        most, least = max(0, *ready), min(there, default=max(ready))
        if self._deadline_s is None:
            return min(max(0, least), self._longest)
        if not self._began and not self._begin(now, most, self._deadline_s):
            return 0
        most = self._late_ones_begin()
        if not self._came or self._came[-1][1] < self._given + most:
            self._came.append((now, self._given + most))
        # What a source holds back may still be sound.
        held_s = max(one.source.holds_s for one in self._members)
        while self._came and self._came[0][0] <= now - self._deadline_s - held_s:
            self._overdue = self._came.popleft()[1]
        self._follow_clocks(now, most)
        together = min((one.ready for one in self._members if one.is_waited_for), default=most)
        return min(max(together, self._overdue - self._given, 0), self._longest)

    def take(self, count: int) -> Block:
        """The next samples of all sources, side by side."""
        block = np.empty((count, sum(one.source.channels for one in self._members)), np.float32)
        at = 0
        for one in self._members:
            channels = one.source.channels
            part = np.empty((count, channels), np.float32)
            one.take(part)
            block[:, at : at + channels] = part
            at += channels
        self._given += count
        return block

    def _begin(self, now: float, most: int, deadline_s: float) -> bool:
        """Whether all have begun or exceeded the deadline; earlier samples are discarded."""
        if most and self._first_at == math.inf:
            self._first_at = now
        begun = [one for one in self._members if one.ready > 0]
        if len(begun) < len(self._members) and now < self._first_at + deadline_s:
            return False
        together = min(one.ready for one in begun)
        for one in begun:
            one.begun = True
            one.align(together)
        self._began, self._slip_at = True, now + SLIP_S
        return True

    def _late_ones_begin(self) -> int:
        """Align sources that begin late with the leading one; returns how far that is."""
        most = max(0, *(one.ready for one in self._members if one.begun))
        for one in self._members:
            if not one.begun and one.ring.position:
                one.begun = True
                one.align(most)
        return most

    def _follow_clocks(self, now: float, most: int) -> None:
        """Slip a source that delivered but lagged all the time: its clock is slower."""
        assert self._deadline_s is not None
        for one in self._members:
            one.least_behind = min(one.least_behind, most - one.ready)
        if now < self._slip_at:
            return
        self._slip_at = now + SLIP_S
        for one in self._members:
            behind, one.least_behind = one.least_behind, math.inf
            came, one.position_then = one.ring.position - one.position_then, one.ring.position
            there = one.begun and came > 0.5 * SLIP_S * self._fs
            if there and behind > 0.5 * self._deadline_s * self._fs:
                one.slip(int(behind))
                self._tell(
                    "clock",
                    f"{one.source.name} is {behind / self._fs:.3f} s behind the others "
                    "permanently: it continues after a gap",
                )


def _microphones(sources: Sequence[Source]) -> tuple[Microphone, ...]:
    """A microphone for each source, or for each of its channels if it has more than two."""
    given: list[tuple[str, tuple[int, ...], Source]] = []
    plain = str.maketrans(dict.fromkeys(UNFIT, " "))
    at = 1
    for source in sources:
        end = at + source.channels
        name = " ".join(source.name.translate(plain).split()).lstrip(f" {FORMULA}")
        if source.channels <= 2:
            given.append((name, tuple(range(at, end)), source))
        else:
            given += [(f"{name} {c - at + 1}", (c,), source) for c in range(at, end)]
        at = end
    counts, seen = Counter(name for name, _, _ in given), Counter[str]()
    microphones = []
    for name, channels, source in given:
        seen[name] += 1
        own = name if counts[name] == 1 else f"{name} ({seen[name]})"
        microphones.append(Microphone(channels, own, source.calibration))
    return tuple(microphones)


def _description(sources: Sequence[Source]) -> SourceDescription:
    """What is known of all sources together; gains are those of each (`Source.gain_of`)."""
    each = [source.description for source in sources]
    return SourceDescription(
        each[0].kind,
        usual_layout(sum(source.channels for source in sources)),
        each[0].encoding,
        has_offset=any(one.has_offset for one in each),
    ).with_ends_of([(source.description, source.channels) for source in sources])
