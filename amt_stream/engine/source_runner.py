"""A source, started and stopped where nobody waits for it, and heard from its first sample on."""

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

WAIT_S = 0.2
HELD_BYTES = 2**27
"""The most memory of sound that waits for its models: 5 min of two channels at 48 kHz."""

BLOCK_BYTES = 400
"""What a block takes besides its samples, however few they are."""

log = logging.getLogger("amt_stream")


class Held(NamedTuple):
    """A block that waits, as the source delivered it, and when that was by `since_boot_s`."""

    block: Block
    lost: int
    flags: int
    came_at: float


class Ended(NamedTuple):
    """The source has ended, so many samples after its last block."""

    lost: int
    flags: int


class SourceReport(NamedTuple):
    """What the source has told between two blocks that wait."""

    kind: str
    text: str


@thread_checked
class SourceRunner:
    """Starts a source and stops it, both in one thread that belongs to it.

    So a device, a read or a sound server that hangs holds up nobody for longer than he wants to
    wait, and what must be closed from where it was opened is. A source that is started is stopped,
    whenever that is asked for.

    What comes before `pass_to` or `held` is kept: a live source can be started before its models
    are made, which takes seconds, and half a minute where they are compiled first.
    """

    def __init__(self, source: Source) -> None:
        self.source = source
        self.began_at: float | None = None
        self.began_utc = 0.0
        self.threads: set[threading.Thread] = set()
        self.error: BaseException | None = None
        self.samples = 0
        """Those that are kept just now."""
        self._started, self._wanted_no_more = threading.Event(), threading.Event()
        self._over = threading.Event()
        self._lock = threading.Lock()
        self._queueing = threading.Lock()
        self._kept: deque[Held | Ended | SourceReport] = deque()
        self._bytes = 0
        self._left_out = 0
        self._failure: Exception | None = None
        self._deliver: Deliver | None = None
        self._tell: Callable[[str, str], None] | None = None
        # A daemon: a source that hangs must not keep the program when it ends.
        self._thread = threading.Thread(
            target=self._run, name=f"start and stop of {source.name}", daemon=True
        )

    @property
    def has_begun(self) -> bool:
        """Whether the source has been asked for sound."""
        return self._thread.ident is not None

    def begin(self) -> None:
        """Have the source started, if it is not yet; waits for nothing [any-thread]."""
        with self._lock:
            if not (self.has_begun or self._wanted_no_more.is_set()):
                self.source.tell = self._told
                self._thread.start()

    def start(self, given_up: Callable[[], bool]) -> None:
        """Start the source, and raise what it raises; wait no longer once `given_up`."""
        self.begin()
        if not self.has_begun:
            return
        # In short turns: on Windows a wait without end cannot be interrupted from the keyboard.
        while not (self._started.wait(WAIT_S) or given_up()):
            pass
        if self.error is not None:
            raise self.error

    def pass_to(self, deliver: Deliver, tell: Callable[[str, str], None]) -> None:
        """Hand on what comes from here on at once [before start, model-thread]."""
        self._deliver, self._tell = deliver, tell

    def held(self, deliver: Deliver, tell: Callable[[str, str], None]) -> Iterator[Held]:
        """What came so far, and what comes while that is worked off; then it is as `pass_to`.

        Raises what the source was told of a block that was none.
        """
        while (one := self._next(deliver, tell)) is not None:
            if isinstance(one, SourceReport):
                tell(*one)
            elif isinstance(one, Ended):
                deliver(None, *one)
            else:
                yield one

    def end(self) -> None:
        """Have the source stopped, or never started; waits for neither [any-thread]."""
        with self._lock:
            self._wanted_no_more.set()

    def join(self, timeout: float) -> bool:
        """Whether the source has stopped by then, as far as it was started [any-thread]."""
        if not self.has_begun:
            return True
        if threading.current_thread() in (self._thread, *self.threads):
            return True  # it waits for this one
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
        self._wanted_no_more.wait()
        try:
            self.source.stop()
        except BaseException:
            log.exception("the source %s failed when it was stopped", self.source.name)
        finally:
            self._over.set()

    @runs_as("audio-thread")
    def _take(self, block: Block | None, lost: int = 0, flags: int = 0) -> None:
        """[audio-thread]"""
        if self._deliver is None:
            with self._queueing:
                if self._deliver is None:
                    self._keep(block, lost, flags)
                    return
        self._deliver(block, lost, flags)

    def _keep(self, block: Block | None, lost: int, flags: int) -> None:
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
            self._kept.append(Ended(lost, flags))
        elif self._bytes + block.nbytes + BLOCK_BYTES > HELD_BYTES:
            self._left_out = lost + len(block)
        else:
            self._kept.append(Held(block, lost, flags, since_boot_s()))
            self._bytes += block.nbytes + BLOCK_BYTES
            self.samples += len(block)

    def _told(self, kind: str, text: str) -> None:
        """[any-thread]"""
        with self._queueing:
            if self._tell is None:
                self._kept.append(SourceReport(kind, text))
                return
        self._tell(kind, text)

    def _next(
        self, deliver: Deliver, tell: Callable[[str, str], None]
    ) -> Held | Ended | SourceReport | None:
        """The next that is kept; None, and nothing is kept any more, where there is none."""
        with self._queueing:
            if self._kept:
                one = self._kept.popleft()
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
