"""Progress of a batch of sounds, and the time left."""

import sys
import time
from collections.abc import Sequence

from amt_stream.cli.ending import ending
from amt_stream.cli.messages import say
from amt_stream.core.safe_text import plain
from amt_stream.core.words import counted, rough_time

BEAT_S = 60.0
"""Time between lines if standard error is not a terminal."""


class Progress:
    """A progress bar on a terminal, otherwise lines of text; both on standard error.

    names: names of the sounds
    sizes: their sizes in bytes, from which the time left is estimated
    beat_s: seconds between lines; without it, a bar on a terminal
    """

    def __init__(
        self, names: Sequence[str], sizes: Sequence[int], beat_s: float | None = None
    ) -> None:
        from tqdm import tqdm

        self._beat_s = BEAT_S if beat_s is None else beat_s
        self._names, self._sizes = names, [max(1, size) for size in sizes]
        self._total = sum(self._sizes)
        self._parts: dict[int, float] = {}
        self._done = 0
        self._bytes = 0.0
        self._began = self._reported = time.monotonic()
        self._bar = tqdm(
            total=self._total,
            bar_format="{desc}: {percentage:3.0f}%|{bar}| {remaining} left",
            desc=self._words,
            leave=False,
            disable=beat_s is not None or not sys.stderr.isatty(),
        )
        self._undo = ending.undoing(self._bar.close)

    def __enter__(self) -> "Progress":
        self._undo.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self._undo.__exit__(None, None, None)
        self._bar.close()

    def update(self, place: int, part: float) -> None:
        """Set the share of one sound that is done, 0 to 1."""
        more = (part - self._parts.get(place, 0.0)) * self._sizes[place]
        self._parts[place] = part
        self._bytes += more
        self._bar.update(more)
        now = time.monotonic()
        if self._bar.disable and now - self._reported >= self._beat_s:
            self._reported = now
            say(f"{self._words}: {self._bytes / self._total:.0%}, {self._left(now)} left")

    def done(self, place: int) -> None:
        """Count a sound as done or failed."""
        self._done += 1
        self.update(place, 1.0)
        self._bar.set_description_str(self._words, refresh=False)

    @property
    def _words(self) -> str:
        if len(self._names) == 1:
            return plain(self._names[0])
        return f"{self._done} of {counted(len(self._names), 'sound')}"

    def _left(self, now: float) -> str:
        seconds = (now - self._began) * (self._total / self._bytes - 1.0) if self._bytes else 0.0
        return rough_time(seconds)
