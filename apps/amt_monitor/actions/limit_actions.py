"""Commands for what judges the readings: limits, the audience, presets."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyqtgraph.Qt import QtCore

from amt_monitor.actions.measurement_actions import ANEW, MeasurementActions
from amt_monitor.actions.presets_menu import PRESET
from amt_stream.core.errors import Refusal
from amt_stream.core.settings import presets_folder
from amt_stream.engine.run_state import EngineEnded
from amt_stream.meters.audience import NO_AUDIENCE, Audience, as_audience
from amt_stream.meters.limits import Limit, limit_of
from amt_stream.meters.rows import columns_of
from amt_stream.views.measurement_control import MeasurementRequest

if TYPE_CHECKING:
    from amt_stream.engine import Engine
    from amt_stream.meters.presets import Preset

AUDIENCE = "audience"
"""The settings' key for the correction to the audience."""

ChangeLimits = Callable[["Engine", tuple[Limit, ...]], str]
"""Lets other limits judge a running engine; returns why they cannot, or ""."""


class LimitActions(QtCore.QObject):
    """Runs them on the measurement of `controls` [main-thread].

    change_limits: None where other limits begin a new measurement
    preset: returns the preset of the measurement, or None
    """

    def __init__(
        self,
        controls: MeasurementActions,
        change_limits: ChangeLimits | None,
        preset: "Callable[[], Preset | None]",
    ) -> None:
        super().__init__(controls)
        self._controls, self._measurement = controls, controls.measurement
        self._change_limits, self._preset = change_limits, preset

    def begin_first(self) -> None:
        """Begin with the preset and the limits of the last start, unless options say others."""
        request = MeasurementRequest(remembered=frozenset(("preset", "limits", AUDIENCE)))
        found = self._controls.settings.get("limits", None)
        try:
            if path := self._controls.settings.get(PRESET, ""):
                from amt_stream.meters.presets import read_preset

                request = replace(request, preset=read_preset(Path(path)))
            if (audience := as_audience(self._controls.settings.get(AUDIENCE, None))) is not None:
                request = replace(request, audience=audience)
            if isinstance(found, list):
                request = replace(request, limits=tuple(map(limit_of, found)))
        except (Refusal, TypeError) as refusal:
            self._controls.message.emit(str(refusal))
        self._controls.begin(request)

    def choose_limits(self) -> None:
        """Add, change and remove limits, which judge from now on, and after the next start."""
        from amt_monitor.dialogs.limits_dialog import LimitsDialog

        readings = self._measurement.readings
        limits = () if readings is None else readings.limits
        names = [] if readings is None else [column.name for column in readings.rows.columns]

        dialog = LimitsDialog(limits, names, self._controls.front())
        dialog.setAttribute(QtCore.Qt.WidgetAttribute.WA_DeleteOnClose)
        dialog.chosen.connect(self._judge)
        dialog.open()

    def _judge(self, limits: tuple[Limit, ...]) -> None:
        """Let other limits judge the running measurement; where they cannot, ask for a new one."""
        engine = self._measurement.engine
        why_not = "They begin with a new measurement."
        if engine is not None and self._measurement.measuring and self._change_limits is not None:
            try:
                why_not = self._change_limits(engine, limits)
            except EngineEnded:
                pass  # just now, so they begin with a new one
            except (Refusal, ValueError) as refusal:
                self._controls.message.emit(str(refusal))
                return
        if why_not:
            measure = partial(self._measure_with, limits)
            self._controls.unless_lost("Measure with other limits?", "Begin", measure, why=why_not)
        else:
            self._keep_limits(limits)
            self._measurement.have_limits(limits)
            self._controls.changed.emit()

    def _keep_limits(self, limits: tuple[Limit, ...]) -> None:
        self._controls.settings.put(limits=[one.to_dict() for one in limits])
        if limits:
            self._controls.made.emit()

    def _measure_with(self, limits: tuple[Limit, ...]) -> None:
        self._keep_limits(limits)
        self._measurement.have_limits(limits)
        self._controls.begin(replace(self._measurement.request, **ANEW))

    def choose_audience(self) -> None:
        """Ask for the correction to the audience; measure anew with it, now and later."""
        from amt_monitor.dialogs.audience_dialog import AudienceDialog

        preset = self._preset()
        present = None if preset is None else preset.audience
        dialog = AudienceDialog(present, self._running, self._controls.front())
        dialog.setAttribute(QtCore.Qt.WidgetAttribute.WA_DeleteOnClose)

        def measure(audience: Audience | None) -> None:
            kept = None if audience is None else audience.to_dict()
            self._controls.settings.put(**{AUDIENCE: kept})
            request = self._measurement.request
            of_now: Any = {"remembered": request.remembered - {AUDIENCE}, **ANEW}
            self._controls.begin(replace(request, audience=audience or NO_AUDIENCE, **of_now))

        dialog.chosen.connect(
            lambda audience: self._controls.unless_lost(
                "Measure with this correction?", "Begin", partial(measure, audience)
            )
        )
        dialog.open()

    def _running(self) -> "Engine | None":
        return self._measurement.engine if self._measurement.measuring else None

    def choose_venue(self) -> None:
        """Measure with the preset of a venue, and with the present limits if one has forecasts."""
        readings = self._measurement.readings
        limits = () if readings is None else readings.limits
        ahead = any(len(columns_of([one])) > 1 for one in limits)
        self.choose_preset(presets_folder() / "venue.toml", limits if ahead else None)

    def choose_preset(self, path: Path, limits: tuple[Limit, ...] | None = None) -> None:
        """Measure with a preset, now and after the next start.

        limits: in place of its own
        """
        from amt_stream.meters.presets import read_preset

        try:
            preset = read_preset(path)
        except Refusal as refusal:
            self._controls.message.emit(str(refusal))
            return

        def measure() -> None:
            kept = None if limits is None else [one.to_dict() for one in limits]
            self._controls.settings.put(**{PRESET: str(path), "limits": kept})
            request = self._measurement.request
            if preset.audience is not None:  # that of the preset counts from now on
                self._controls.settings.put(**{AUDIENCE: None})
                request = replace(request, audience=None)
            own: Any = {"models": None, "settings": {}, "limits": limits}
            kept_on = request.remembered & {AUDIENCE}
            self._controls.begin(replace(request, preset=preset, remembered=kept_on, **own, **ANEW))

        self._controls.unless_lost(f"Measure with the preset {path.stem}?", "Begin", measure)
