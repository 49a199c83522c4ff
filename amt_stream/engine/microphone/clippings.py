"""Tells when the sound begins to be clipped."""

import math
from collections.abc import Callable

from amt_stream.engine.models.running_models import RunningModels

REST_S = 10.0
"""Seconds without clipped sound after which clipping is reported again."""


class Clippings:
    """Watches for clipped sound, and tells once that it begins, for as long as it goes on.

    name, fs: of the source
    tell: called with the kind of the event, a sentence, and the name of one of several microphones

    All methods belong to the model thread.
    """

    def __init__(
        self, models: RunningModels, name: str, fs: int, tell: Callable[[str, str, str], None]
    ) -> None:
        self._models, self._name, self._tell = models, name, tell
        self._rest, self._last_at = round(REST_S * fs), dict[str, float]()
        self._before = self._counts

    @property
    def _counts(self) -> dict[str, int]:
        """Clipped samples of each microphone so far, in all models."""
        found = dict.fromkeys(self._models.names or ("",), 0)
        for model in self._models:
            for listener in model.listeners:
                found[listener.name] += listener.ends.count
        return found

    def look(self) -> None:
        """Tell what is new since the last call."""
        counts, at = self._counts, self._models.position
        if counts == self._before:
            return
        for name, count in counts.items():
            if count == self._before[name]:
                continue
            if at - self._last_at.get(name, -math.inf) > self._rest:
                text = f"{name or self._name} is clipped: the sound may have been louder"
                self._tell("clip", text, name)
            self._last_at[name] = at
        self._before = counts
