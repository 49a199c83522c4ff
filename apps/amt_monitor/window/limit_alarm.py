"""Reports limits outside the panes: by a sound, and by the icon in the tray."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from amt_monitor.window.tray_icon import TrayIcon
from amt_stream.meters.limits import Limit
from amt_stream.meters.rows.limit_words import (
    forecast_words,
    state_of,
    state_words,
    value_words,
    worst,
)
from amt_stream.meters.rows.limited import ends_in
from amt_stream.views.measurement_control import MeasurementControl


class LimitAlarm:
    """Calls `sound` when a limit turns red, and before, when it is about to be exceeded.

    Once each, until its state is another that is known.
    """

    def __init__(self, sound: Callable[[], object]) -> None:
        self._sound = sound
        self.restart()

    def restart(self) -> None:
        self._red: set[str] = set()
        self._soon: set[str] = set()

    def check(self, limits: Sequence[Limit], values: Mapping[str, Any], wanted: bool) -> None:
        """Compare the states with the previous ones; without `wanted`, only remember them."""
        states = {limit.name: state_of(limit, values) for limit in limits}
        before = self._red
        still = {name for name, state in states.items() if state == "unknown" and name in before}
        self._red = {name for name, state in states.items() if state == "red"} | still
        warned = self._soon
        self._soon = {one.name for one in limits if ends_in(one, values) is not None}
        # One that is amber all along was told when it was first about to be exceeded.
        self._soon |= {name for name in warned if states.get(name) == "amber"}
        if wanted and (self._red - before or self._soon - warned - before):
            self._sound()


class LimitNotifier:
    """Follows the limits of the measurement, also while the window is hidden or frozen."""

    def __init__(self, tray: TrayIcon, sound: Callable[[], object]) -> None:
        self.tray, self.alarm = tray, LimitAlarm(sound)
        self._begun = 0

    def show_state(
        self, measurement: MeasurementControl, held: Sequence[str], title: str, sound: bool
    ) -> None:
        """Sound the alarm where `sound` is wanted, and show the worst limit in the tray."""
        readings = measurement.readings
        limits = () if readings is None else readings.limits
        values = {} if readings is None else readings.row or {}
        if self._begun != measurement.begun:
            self._begun = measurement.begun
            self.alarm.restart()
        if measurement.measuring:
            self.alarm.check(limits, values, sound)
        of = worst(limits, values, held)
        words = [title]
        if of is not None:
            words += [state_words(of, values, held), value_words(of, values, held)]
            words.append(forecast_words(of, values, held))
        state = "" if of is None else state_of(of, values, held)
        self.tray.tell(state, "\n".join(filter(None, words)))
