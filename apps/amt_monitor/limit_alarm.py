"""What calls for somebody when a limit is exceeded."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from amt_monitor.limit_text import state_of
from amt_stream.meters.limits import Limit


class LimitAlarm:
    """Calls `sound` when a limit turns red; once, until it was something else that is known."""

    def __init__(self, sound: Callable[[], object]) -> None:
        self._sound = sound
        self.begin_anew()

    def begin_anew(self) -> None:
        """Forget how limits stood: another measurement begins."""
        self._red: set[str] = set()

    def check(self, limits: Sequence[Limit], values: Mapping[str, Any], wanted: bool) -> None:
        """Take note of how limits stand; it is silent where no sound is wanted."""
        states = {limit.name: state_of(limit, values) for limit in limits}
        before = self._red
        still = {name for name, state in states.items() if state == "unknown" and name in before}
        self._red = {name for name, state in states.items() if state == "red"} | still
        if wanted and self._red - before:
            self._sound()
