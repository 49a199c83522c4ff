"""Degrades an engine step by step while it cannot keep up with its sound."""

import logging
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence

from amt_stream.core.safe_text import sentence
from amt_stream.engine.models.measurement import Measurement
from amt_stream.engine.models.ready_model import ReadyModel
from amt_stream.engine.models.slowness import Cause, Slowness
from amt_stream.engine.thread_check import thread_checked
from amt_stream.meters import catalog
from amt_stream.meters.frames import missing_words

LAG_S = 0.1
WAIT_S = 0.005
CALM_S = 10.0
SOON_S = 60.0
LONGEST_CALM_S = 600.0
LONG_BLOCK_MS = 50.0
WANTED_S = 1.0
"""Time between two looks at whether a model that is off is needed."""

PATIENCE_S = 1.0
FEWEST = 4
MOST_S = 0.25
KEEPS_UP = 1.05
CALM_SHARE = 0.85

log = logging.getLogger("amt_stream")


@thread_checked
class Rung(ABC):
    """A step of degradation that can be undone."""

    words = ""
    """What is missing while it is in effect."""
    failure = ""
    """Why it failed, in words; then nothing is missing."""

    @property
    def busy(self) -> bool:
        """Whether it is still being prepared."""
        return False

    @property
    def wanted(self) -> bool:
        """Whether what it omits is needed by now."""
        return False

    @abstractmethod
    def down(self) -> bool:
        """Degrade; False if there is nothing to degrade [model-thread]."""

    @abstractmethod
    def up(self) -> None:
        """Undo [model-thread]."""


class Exchanges(Rung):
    """Runs other forms of the same models, which continue from the present state."""

    def __init__(self, measurements: Sequence[Measurement]) -> None:
        self._measurements = measurements
        self._made: list[tuple[Measurement, ReadyModel, ReadyModel]] = []

    def _exchange(self, measurement: Measurement, before: ReadyModel, after: ReadyModel) -> None:
        self._made.append((measurement, before, after))
        measurement.exchange(before, after)

    def up(self) -> None:
        for measurement, before, after in self._made:
            measurement.exchange(after, before)
        self._made = []


class LessAccurate(Exchanges):
    """Uses less accurate models where the catalog has them, built in a separate thread."""

    _maker: threading.Thread | None = None

    @property
    def busy(self) -> bool:
        return self._maker is not None and self._maker.is_alive()

    def down(self) -> bool:
        forms = []
        for one in self._measurements:
            entry = catalog.entry_of(one.ready.model)
            settings = {} if entry is None else entry.cheaper_than(one.ready.model)
            if entry is not None and settings:
                forms.append((one, one.ready, entry.title, settings))
        if not forms:
            return False
        self.words = ", ".join(
            f"{title} with {word} {key}" for *_, title, of in forms for key, word in of.items()
        )

        def make() -> None:
            from amt_stream.dsp.functional.compiler.threads import work_alone

            work_alone()
            try:
                for one, before, _, settings in forms:
                    model = before.model.with_arguments(**settings).to(before.model.dtype)
                    after = before.of(model)
                    after.warm()
                    self._exchange(one, before, after)
            except Exception as error:
                log.exception("a cheaper form of a model could not be made")
                self.failure = f"{self.words} could not be made ({sentence(error)})"

        self._maker = threading.Thread(target=make, name="cheaper models", daemon=True)
        self._maker.start()
        return True

    def up(self) -> None:
        super().up()
        self._maker = None


class LongerBlocks(Exchanges):
    """Uses longer blocks, which reduce the overhead per call."""

    words = f"blocks of {LONG_BLOCK_MS:g} ms"

    def down(self) -> bool:
        for one in self._measurements:
            longer = one.ready.lasting(round(LONG_BLOCK_MS * 1e-3 * one.ready.clock.fs))
            if longer.block > one.ready.block:
                self._exchange(one, one.ready, longer)
        return bool(self._made)


class OneFewer(Rung):
    """Switches off the most expensive model that may be, the last of equals: it gives NaN.

    The last model that runs stays on.

    running: the models that run; shared with the other rungs
    needed: returns the names of models that must not be switched off at present
    """

    def __init__(
        self, running: list[Measurement], needed: Callable[[], Collection[str]] = tuple
    ) -> None:
        self._running, self._needed = running, needed
        self._resting: Measurement | None = None

    def down(self) -> bool:
        needed = self._needed()
        free = [one for one in reversed(self._running) if one.name not in needed]
        if not free or len(self._running) == 1:
            return False
        one = max(free, key=lambda running: running.cost_s)
        self._running.remove(one)
        one.commands.put(one.switch_off)
        entry = catalog.entry_of(one.ready.model)
        self._resting, self.words = one, f"{one.name if entry is None else entry.title} off"
        return True

    def up(self) -> None:
        assert self._resting is not None
        self._resting.commands.put(self._resting.switch_on)
        self._running.append(self._resting)
        self._resting = None

    @property
    def wanted(self) -> bool:
        return self._resting is not None and self._resting.name in self._needed()


class Pace:
    """Judges the processing speed from the cost of each block.

    Processing is too slow if PATIENCE_S of continuous work processed less than KEEPS_UP times as
    much audio. So a burst that is processed faster than real time is no overload, and a single slow
    block, as when the process was suspended, counts at most MOST_S.
    """

    def __init__(self) -> None:
        self._busy_s = self._audio_s = 0.0
        self._blocks = 0
        self._calm_since: float | None = None
        self._second = (0.0, 0.0)

    def add(self, now: float, busy_s: float, audio_s: float) -> bool:
        """Count a processed block; True if the pace is too slow."""
        began, busy = self._second
        if now - began >= 1.0:
            if self._calm_since is None or busy > CALM_SHARE * (now - began):
                self._calm_since = now
            began, busy = now, 0.0
        self._second = began, busy + busy_s
        self._busy_s += min(busy_s, max(MOST_S, audio_s))
        self._audio_s += audio_s
        self._blocks += 1
        if self._busy_s < PATIENCE_S or self._blocks < FEWEST:
            return False
        slow = self._audio_s < KEEPS_UP * self._busy_s
        self.rest()
        if slow:
            self._calm_since = now
        return slow

    def rest(self) -> None:
        """Nothing waits to be processed."""
        self._busy_s = self._audio_s = 0.0
        self._blocks = 0

    def restart(self, now: float) -> None:
        """Start over after a change."""
        self.rest()
        self._calm_since, self._second = now, (now, 0.0)

    @property
    def calm_s(self) -> float:
        """For how long each complete second has had time to spare."""
        return 0.0 if self._calm_since is None else self._second[0] - self._calm_since


@thread_checked
class Ladder:
    """Steps down while the pace is too slow, and up again after a calm period.

    If a step down soon follows a step up, the next calm period is twice as long.

    rungs: names from RUNGS, in order of use
    needed: returns the names of the models that must not be switched off at present
    tell: called with "overload" or "recovered", a sentence, and `cause` in words [model-thread]
    slowness: tells why the pace is too slow
    missing_s: returns the seconds of sound that are missing so far, by cause
    waits: whether the source waits, so that sound is late instead of dropped
    """

    def __init__(
        self,
        rungs: Sequence[str],
        measurements: Sequence[Measurement],
        *,
        needed: Callable[[], Collection[str]],
        tell: Callable[..., None],
        slowness: Slowness,
        missing_s: Callable[[], Mapping[str, float]],
        waits: bool,
    ) -> None:
        running = [*measurements]
        made: dict[str, list[Rung]] = {
            "accuracy": [LessAccurate(measurements)],
            "blocks": [LongerBlocks(measurements)],
            "models": [OneFewer(running, needed) for _ in measurements],
        }
        self.active = self.exhausted = False
        self.slowness = slowness
        self.cause = Cause()
        """Why the pace was too slow at last; of no use while not `active`."""
        self._tell, self._missing_s, self._waits = tell, missing_s, waits
        self._pace = Pace()
        self._left = [rung for name in rungs for rung in made[name]]
        self._down: list[Rung] = []
        self._calm_s = CALM_S
        self._rose_at = -SOON_S
        self._wanted_at = 0.0
        self._missing_before: Mapping[str, float] = {}

    @property
    def note(self) -> str:
        """Why, and what is omitted at present, in words [any-thread]."""
        if not self.active:
            return ""
        parts = [rung.words for rung in tuple(self._down)]
        if self.exhausted:
            parts.append("it plays more slowly" if self._waits else "parts of it are dropped")
        down = ", ".join(parts)
        because = f", because {self.cause}" if self.cause.words else ""
        return f"processing cannot keep up with the sound{because}" + (f": {down}" if down else "")

    def rest(self) -> None:
        """Nothing waits to be processed [model-thread]."""
        self._pace.rest()

    def worked(self, now: float, busy_s: float, audio_s: float, lag_s: float) -> None:
        """A block took `busy_s`, and `lag_s` of audio waits after it [model-thread]."""
        lags = lag_s > LAG_S
        self.slowness.worked(audio_s, lags)
        slow = self._pace.add(now, busy_s, audio_s) and lags
        if self._down and now >= self._wanted_at:
            self._wanted_at = now + WANTED_S
            self._give_back()
        if any(rung.busy for rung in self._down):
            return
        for rung in [rung for rung in self._down if rung.failure]:
            self._give_up(rung)
        if slow:
            self._step_down(now)
        elif self.active and self._pace.calm_s >= self._calm_s:
            self._step_up(now)

    def end(self, until: float) -> None:
        """Wait for a model being built: never kill a thread inside torch [model-thread]."""
        while any(rung.busy for rung in self._down) and time.monotonic() < until:
            time.sleep(WAIT_S)

    def _step_down(self, now: float) -> None:
        if now - self._rose_at < SOON_S:
            self._calm_s = min(2 * self._calm_s, LONGEST_CALM_S)
        self._rose_at = -SOON_S
        self._pace.restart(now)
        known = self.active and bool(self.cause.words)
        cause = self.slowness.cause()
        self.cause = cause if cause.words or not known else self.cause
        if not self.active:
            self._missing_before = self._missing_s()
        # A step that finds nothing now may find something later.
        rung = next((rung for rung in self._left if rung.down()), None)
        if rung is not None:
            self._left.remove(rung)
            self._down.append(rung)
            self.active, self.exhausted = True, False
            self._tell_overload()
        elif not self.exhausted or (self.cause.words and not known):
            self.active = self.exhausted = True
            self._tell_overload("nothing more can be omitted")

    def _tell_overload(self, more: str = "") -> None:
        self._tell("overload", "; ".join(filter(None, (self.note, more))), cause=self.cause.words)

    def _give_up(self, rung: Rung) -> None:
        """Skip a step that failed, for good."""
        self._down.remove(rung)
        rung.up()
        self._tell_overload(rung.failure)

    def _give_back(self) -> None:
        """Undo a step whose model is needed by now."""
        for rung in [rung for rung in self._down if rung.wanted]:
            self._down.remove(rung)
            rung.up()
            self._left.append(rung)
            words = rung.words.removesuffix(" off")
            self._tell_overload(f"{words} is on again, as it is needed now")

    def _step_up(self, now: float) -> None:
        self.exhausted = False
        self._pace.restart(now)
        if self._down:
            rung = self._down.pop()
            rung.up()
            self._left.insert(0, rung)
            self._rose_at = now
        self.active = bool(self._down)
        self._tell("recovered", self.note or self._farewell())

    def _farewell(self) -> str:
        """The end of an overload, and what is missing of its time."""
        before = self._missing_before
        lost = missing_words(
            {one: s - before.get(one, 0.0) for one, s in self._missing_s().items()}
        )
        words = "processing keeps up with the sound again"
        return f"{words}; missing meanwhile: {lost}" if lost else words
