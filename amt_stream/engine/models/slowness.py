"""Why the models do not keep up: what the time of their thread is spent on."""

import threading
import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from amt_stream.core import processor_time
from amt_stream.engine.thread_check import thread_checked

LOOK_S = 1.0
"""Time between two looks."""
ENOUGH_S = 0.7
"""Least time over which a cause is judged."""

KEEPS_UP = 0.95
"""Processor seconds per second of sound from which the models' own cost is the cause."""
MAIN_SHARE = 0.4
"""Share of the time away from the processor that makes something its cause."""
STOLEN_SHARE = 0.15
"""Share of the computer's time that a hypervisor takes, from which that is the cause."""

OWN_COST = "the models are too expensive for this computer"
BUSY = "other programs keep the processor busy"
LIMITED = "the system limits the processor time of this program"
STOLEN = "the host of this virtual machine leaves it too little processor time"
STOPPED = "this program is stopped from outside"
OTHER_PARTS = "other parts of this program, such as its window, take the time"


class Cause(NamedTuple):
    """Why the models do not keep up, in words that follow "because", and figures; "" if unknown."""

    words: str = ""
    figures: str = ""

    def __str__(self) -> str:
        return f"{self.words} ({self.figures})" if self.words else ""


class Spent(NamedTuple):
    """Seconds, of a time or since the start; None where the system does not tell.

    cpu, waited: of the thread that runs the models: on a processor, and ready without one
    idle: it waited for sound
    audio: of the sound processed
    process: processor time of all threads of this program
    halted: the source's own thread stood still
    others: the longest that another thread was ready without a processor
    throttled: how often a limit of processor time has stopped this program
    stolen: processor time that a hypervisor gave to others
    """

    wall: float
    cpu: float
    idle: float
    audio: float
    process: float
    halted: float
    waited: float | None = None
    others: float = 0.0
    throttled: int | None = None
    stolen: float | None = None

    @property
    def unexplained(self) -> float:
        """The thread neither ran, nor was ready to, nor waited for sound."""
        return max(0.0, self.wall - self.cpu - self.idle - (self.waited or 0.0))

    @property
    def for_others(self) -> float:
        """It waited for a thread of this program that was ready without a processor."""
        return min(self.unexplained, self.others)

    @property
    def stopped(self) -> float:
        """Nothing of this program ran, though the system had a processor for it."""
        still = min(self.unexplained - self.for_others, self.halted)
        return max(0.0, still - (self.process - self.cpu))

    @property
    def inside(self) -> float:
        """It waited for other threads of this program, which ran."""
        rest = self.unexplained - self.for_others - self.stopped
        return max(0.0, min(rest, self.process - self.cpu))


class Shares(NamedTuple):
    """Of the last second, as shares of it; None where the system does not tell.

    used, waited: the thread that runs the models was on a processor, or ready without one
    stopped: this program stood still, as after SIGSTOP
    stolen: processor time of the whole computer that a hypervisor gave to others
    """

    used: float | None = None
    waited: float | None = None
    stopped: float | None = None
    stolen: float | None = None


class _Look(NamedTuple):
    """Totals since the start, and the time that each thread has waited."""

    spent: Spent
    waited: Mapping[int, float]

    def since(self, before: "_Look") -> Spent:
        """The difference; None where one of both is unknown."""
        others = [at - before.waited.get(one, at) for one, at in self.waited.items()]
        spent = Spent(*map(_difference, self.spent, before.spent))
        return spent._replace(others=max(others, default=0.0))


def _difference(now: Any, before: Any) -> Any:
    return None if now is None or before is None else now - before


@thread_checked
class Slowness:
    """Watches what the time of the models' thread is spent on, once a second.

    halted_s: seconds that the source's thread has stood still so far
    processors: number of the computer's processors
    on_cpu: whether the models run on the CPU: the time on another device is their own cost

    shares: of the last second [any-thread]
    throttled: how often a limit of processor time has stopped this program since the first look;
        None if unknown [any-thread]
    stopped_s: seconds in which this program stood still so far; 0 if unknown [any-thread]
    idle_s: seconds without sound to process, counted by the thread that runs the models
    """

    def __init__(
        self, halted_s: Callable[[], float], processors: int = 1, on_cpu: bool = True
    ) -> None:
        self.shares = Shares()
        self.throttled: int | None = None
        self.idle_s = self.stopped_s = 0.0
        self._halted_s, self._processors, self._on_cpu = halted_s, processors, on_cpu
        self._audio_s = 0.0
        self._first_throttled: int | None = None
        self._looks: list[_Look] = []
        self._next_at = 0.0

    def worked(self, audio_s: float, lags: bool) -> None:
        """Count processed sound, and look if it is time [model-thread].

        lags: whether sound waits for the models; only then all other threads are looked at
        """
        self._audio_s += audio_s
        if time.monotonic() >= self._next_at:
            self._look(lags)

    def cause(self) -> Cause:
        """Why the models do not keep up at present [model-thread]."""
        self._look(True)
        return cause_of(self._spent, self._processors, self._on_cpu)

    def _look(self, lags: bool) -> None:
        now = self._now(lags)
        self._next_at = now.spent.wall + LOOK_S
        if self._looks:
            last = now.since(self._looks[-1])
            self.stopped_s += last.stopped if last.waited is not None else 0.0
        # The first one is the latest that is old enough.
        old = [one for one in self._looks if now.spent.wall - one.spent.wall >= ENOUGH_S]
        self._looks = [*self._looks[max(0, len(old) - 1) :], now]
        spent, throttled = self._spent, now.spent.throttled
        if spent.wall > 0:
            self.shares = shares_of(spent, self._processors)
        if throttled is not None:
            first = self._first_throttled
            self._first_throttled = first = throttled if first is None else first
            self.throttled = throttled - first

    @property
    def _spent(self) -> Spent:
        """What came from the first to the last look."""
        return self._looks[-1].since(self._looks[0])

    def _now(self, lags: bool) -> _Look:
        thread = threading.get_native_id()
        waited = processor_time.all_waited_s() if lags else {}
        throttled = processor_time.throttled()
        spent = Spent(
            time.monotonic(),
            time.thread_time(),
            self.idle_s,
            self._audio_s,
            time.process_time(),
            self._halted_s(),
            waited.pop(thread, None) if lags else processor_time.waited_s(thread),
            throttled=None if throttled is None else throttled.times,
            stolen=processor_time.stolen_s(),
        )
        return _Look(spent, waited)


def shares_of(spent: Spent, processors: int) -> Shares:
    """What shares of a time these are."""
    known = spent.waited is not None
    return Shares(
        spent.cpu / spent.wall,
        spent.waited / spent.wall if spent.waited is not None else None,
        spent.stopped / spent.wall if known else None,
        None if spent.stolen is None else spent.stolen / (spent.wall * processors),
    )


def cause_of(spent: Spent, processors: int = 1, on_cpu: bool = True) -> Cause:
    """The main cause of a time in which the models did not keep up."""
    own_s = spent.cpu if on_cpu else spent.cpu + spent.unexplained
    needs = own_s / spent.audio if spent.audio > 0 else 0.0
    if needs >= KEEPS_UP:
        return Cause(OWN_COST, f"{needs:.1f} s of work for each second of sound")
    away_s = spent.wall - own_s - spent.idle
    if spent.waited is None or away_s <= 0:
        return Cause()
    parts = {
        BUSY: spent.waited + spent.for_others,
        STOPPED: spent.stopped if on_cpu else 0.0,
        OTHER_PARTS: spent.inside if on_cpu else 0.0,
    }
    words = max(parts, key=parts.__getitem__)
    if parts[words] < MAIN_SHARE * away_s:
        return Cause()
    if words == STOPPED:
        return Cause(words, f"{_percent(spent.stopped / spent.wall)} of the time")
    figures = f"{_percent(needs)} of a core needed, {_percent(spent.cpu / spent.wall)} available"
    return Cause(_why_busy(spent, processors) if words == BUSY else words, figures)


def _why_busy(spent: Spent, processors: int) -> str:
    if spent.throttled:
        return LIMITED
    if spent.stolen is not None and spent.stolen > STOLEN_SHARE * spent.wall * processors:
        return STOLEN
    return BUSY


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"
