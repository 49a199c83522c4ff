"""Starts and stops a source in its own thread, and holds early audio."""

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from amt_stream.engine.devices.portaudio import since_boot_s
from amt_stream.engine.sources import Block, Deliver, Source, as_block, as_lost
from amt_stream.engine.thread_check import runs_as, thread_checked
from amt_stream.meters.frames import Fault
from amt_stream.meters.source_description import InputGain

WAIT_S = 0.2
ROOM_S = 0.01
HALTED_S = 0.03
"""Longest usual delay of a block of a source in real time."""
HELD_BYTES = 2**27
"""Most memory for audio that waits for its models: 5 min of two channels at 48 kHz."""

BLOCK_BYTES = 400
"""Memory overhead of a block."""

log = logging.getLogger("amt_stream")


class Held(NamedTuple):
    """A block that waits, as delivered, and its arrival by `since_boot_s`."""

    block: Block
    lost: int
    flags: int
    came_at: float


Tell = Callable[[str, str], None]
Later = Callable[[Deliver, Tell], None]
"""Passes on what came between two blocks that wait: an event or a gain, or the end."""


def _nobody_takes(gain: InputGain, columns: range) -> None:
    """Default of `SourceRunner.take_gain`, without an engine."""


def arrival_of(source: Source) -> float:
    """When what a source delivers now came, by `since_boot_s` [audio-thread, model-thread]."""
    return since_boot_s() - source.held_back_s


@thread_checked
class SourceRunner:
    """Starts and stops a source, both in one thread.

    So a device, read or sound server that hangs delays the caller only as long as it chooses to
    wait, and resources are closed in the thread that opened them. A started source is always
    stopped, whenever `end` is called.

    Audio before `pass_to` or `held` is stored: a live source can start before its models are
    loaded, which takes seconds, or half a minute if they must be compiled.
    """

    def __init__(self, source: Source) -> None:
        self.source = source
        self.began_at: float | None = None
        self.began_utc = 0.0
        self.threads: set[threading.Thread] = set()
        self.error: BaseException | None = None
        self.samples = 0
        """Number of stored samples."""
        self.halted_s = 0.0
        """Seconds that the source's thread stood still between two blocks."""
        self._left_at: float | None = None
        self._started, self._end_wanted = threading.Event(), threading.Event()
        self._over = threading.Event()
        self._lock = threading.Lock()
        self._queueing = threading.Lock()
        self.take_gain: Callable[[InputGain, range], None] = _nobody_takes
        """Called with the gain of the input of some columns."""
        self._stored: deque[Held | Later] = deque()
        self._bytes = 0
        self._left_out = 0
        self._failure: Exception | None = None
        self._deliver: Deliver | None = None
        self._tell: Tell | None = None
        # A daemon, so that a source that hangs does not block the program's exit.
        self._thread = threading.Thread(
            target=self._run, name=f"start and stop of {source.name}", daemon=True
        )

    @property
    def has_begun(self) -> bool:
        """Whether the source was asked to start."""
        return self._thread.ident is not None

    def begin(self) -> None:
        """Start the source, if it was not started yet, without waiting [any-thread]."""
        with self._lock:
            if not (self.has_begun or self._end_wanted.is_set()):
                self.source.tell, self.source.tell_gain = self._report, self._report_gain
                self._thread.start()

    def start(self, given_up: Callable[[], bool]) -> None:
        """Start the source and raise its errors; stop waiting once `given_up()`."""
        self.begin()
        if not self.has_begun:
            return
        # In short turns, because on Windows the keyboard cannot interrupt an endless wait.
        while not (self._started.wait(WAIT_S) or given_up()):
            pass
        if self.error is not None:
            raise self.error

    def pass_to(self, deliver: Deliver, tell: Tell) -> None:
        """Pass audio and events on directly from now on [before start, model-thread]."""
        self._deliver, self._tell = deliver, tell

    def held(self, deliver: Deliver, tell: Tell) -> Iterator[Held]:
        """Yield stored blocks and those that come meanwhile; then switch to `pass_to`.

        Raises the error of an invalid block.
        """
        while (one := self._next(deliver, tell)) is not None:
            if isinstance(one, Held):
                yield one
            else:
                one(deliver, tell)

    def end(self) -> None:
        """Stop the source, or never start it, without waiting [any-thread]."""
        with self._lock:
            self._end_wanted.set()

    def join(self, timeout: float) -> bool:
        """Wait until the source has stopped; True if it has, or never started [any-thread]."""
        if not self.has_begun:
            return True
        if threading.current_thread() in (self._thread, *self.threads):
            return True  # called from a thread that this would wait for
        if self._over.wait(max(0.0, timeout)):
            self._thread.join()
        return self._over.is_set()

    def _run(self) -> None:
        others = set(threading.enumerate())
        try:
            self.began_utc, self.began_at = time.time(), time.monotonic()
            self.source.start(self._take)
        except BaseException as error:
            self.error = error
        self.threads = set(threading.enumerate()) - others
        self._started.set()
        self._end_wanted.wait()
        try:
            self.source.stop()
        except BaseException:
            log.exception("the source %s failed when it was stopped", self.source.name)
        finally:
            self._over.set()

    @runs_as("audio-thread")
    def _take(self, block: Block | None, lost: int = 0, flags: int = 0) -> None:
        """Pass a block on, or store it [audio-thread]."""
        came_at = time.monotonic()
        self._pass_on(block, lost, flags)
        if self._left_at is not None and block is not None:
            halted_s = came_at - self._left_at - len(block) / self.source.fs
            self.halted_s += halted_s if halted_s > HALTED_S else 0.0
        self._left_at = time.monotonic()

    def _pass_on(self, block: Block | None, lost: int, flags: int) -> None:
        if self._deliver is None:
            self._wait_for_room()
            with self._queueing:
                if self._deliver is None:
                    self._store(block, lost, flags)
                    return
        self._deliver(block, lost, flags)

    def _wait_for_room(self) -> None:
        """Have a source that can wait do so while too much is stored."""
        while self.source.can_wait and self._bytes > HELD_BYTES // 2 and self._deliver is None:
            if self._end_wanted.wait(ROOM_S):
                return

    def _store(self, block: Block | None, lost: int, flags: int) -> None:
        try:
            lost = self._left_out + as_lost(lost)
            if block is not None:
                block = as_block(block, self.source.channels).copy()
        except (TypeError, ValueError) as error:
            self._failure = error
            raise
        flags |= Fault.OVERLOAD if self._left_out else 0
        self._left_out = 0
        if block is None:
            self._stored.append(lambda deliver, tell: deliver(None, lost, flags))
        elif self._bytes + block.nbytes + BLOCK_BYTES > HELD_BYTES:
            self._left_out = lost + len(block)
        else:
            self._stored.append(Held(block, lost, flags, arrival_of(self.source)))
            self._bytes += block.nbytes + BLOCK_BYTES
            self.samples += len(block)

    def _report(self, kind: str, text: str) -> None:
        """Pass an event on, or store it [any-thread]."""
        with self._queueing:
            if self._tell is None:
                self._stored.append(lambda deliver, tell: tell(kind, text))
                return
        self._tell(kind, text)

    def _report_gain(self, gain: InputGain, columns: range) -> None:
        """Pass a gain on, or store it [any-thread]."""
        with self._queueing:
            if self._tell is None:
                self._stored.append(lambda deliver, tell: self.take_gain(gain, columns))
                return
        self.take_gain(gain, columns)

    def _next(self, deliver: Deliver, tell: Tell) -> Held | Later | None:
        """The next stored item; None, after switching to `pass_to`, if there is none."""
        with self._queueing:
            if self._stored:
                one = self._stored.popleft()
                if isinstance(one, Held):
                    self._bytes -= one.block.nbytes + BLOCK_BYTES
                    self.samples -= len(one.block)
                return one
            if self._failure is not None:
                raise self._failure
            if self._left_out:
                missing, self._left_out = self._left_out, 0
                nothing = np.zeros((0, self.source.channels), np.float32)
                return Held(nothing, missing, Fault.OVERLOAD, since_boot_s())
            self.pass_to(deliver, tell)
            return None
