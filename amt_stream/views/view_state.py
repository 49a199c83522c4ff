"""What panes show of a measurement."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from amt_stream.dsp.contract import takes_pascal
from amt_stream.meters.accumulators.limit_state import STATES, UNKNOWN
from amt_stream.meters.catalog import entry_of
from amt_stream.meters.rows import FAULT_NAMES, header
from amt_stream.meters.rows.block import ALL
from amt_stream.meters.rows.limit_words import state_of
from amt_stream.meters.rows.track import is_off
from amt_stream.meters.state_signs import OF_HEALTH, rank_states
from amt_stream.views.settling_words import AFTER_GAP, AGAIN, SETTLING, old_words

if TYPE_CHECKING:
    from amt_stream.engine import Engine, Frames, Health
    from amt_stream.meters.frames import Event
    from amt_stream.sessions.outputs import FollowedReadings

RECENT_S = 1.0
"""Seconds for which a fault is shown beside the numbers."""

SAME_S = 0.25
"""Seconds between the end of a gap and that of the disturbance of a model, which ends a block later
at most."""

LATE_S = 1.0
"""Seconds without a row after which a limit is not judged by the last one any more."""


@dataclass(frozen=True)
class ViewState:
    """The newest readings of an engine, and whether they are reliable.

    readings: None for an engine that gives cells, as a spectrum does
    frames: the newest of each model by its name
    values: readings by name, instantaneous ones and statistics
    held: why the panes stand still, in words
    """

    engine: "Engine"
    readings: "FollowedReadings | None"
    frames: "Mapping[str, Frames]"
    values: Mapping[str, Any]
    measured_s: float
    held: Sequence[str] = ()

    @classmethod
    def at(cls, engine: "Engine", readings: "FollowedReadings | None") -> "ViewState | None":
        """The newest view; None until each model has a frame, as they decide on the panes."""
        newest = {name: history.latest for name, history in engine.histories.items()}
        frames = {name: latest for name, latest in newest.items() if latest is not None}
        if not frames or len(frames) < len(newest):
            return None
        row = {} if readings is None else readings.values
        if readings is not None and readings.late_s > LATE_S and _passes(engine):
            row = row | {limit.state: STATES[UNKNOWN] for limit in readings.limits}
        return cls(engine, readings, frames, row, readings.measured_s if readings else 0.0)

    @property
    def newest(self) -> "Frames":
        return next(iter(self.frames.values()))

    @property
    def events(self) -> "tuple[Event, ...]":
        return self.engine.events if self.readings is None else self.readings.events

    @cached_property
    def heard(self) -> "Frames | None":
        """The newest frames of a model that takes pascal: they have the input level.

        Of one that runs, if any does.
        """
        models = self.engine.models
        found = [f for name, f in self.frames.items() if takes_pascal(models[name])]
        return next((f for f in found if not is_off(f)[-1]), found[0] if found else None)

    def levels_of_ears(self, frames: "Frames") -> np.ndarray:
        """The input level left and right (ear, frame) of a model that may hear more channels."""
        heard = self.engine.heard
        rows = (0, 1) if heard is None else heard.ears_of(frames.model)
        return frames.level_db[[*rows]]

    @property
    def header(self) -> dict[str, Any]:
        engine, source = self.engine, describe_source(self.engine)
        if self.readings is None:
            return {"source": source}
        return header(self.readings.rows, describe_models(engine), engine.calibration, source)

    @property
    def specific_loudness(self) -> "np.ndarray | None":
        """Of both ears in the newest frames (ear, channel, frame), if a model gives it."""
        found = map(_specific, self.frames.values())
        return next((one for one in found if one is not None), None)

    def model_of(self, reading: str) -> str | None:
        readings = self.readings
        if readings is None:
            return None
        return next((model for model in readings.models if reading in readings.of(model)), None)

    def reading_status(self, model: str | None = None) -> "ReadingStatus":
        """Why readings of a model, by default the first one, are doubtful."""
        name = next(iter(self.frames)) if model is None else model
        if name not in self._statuses:
            self._statuses[name] = self._status_of(name)
        return self._statuses[name]

    def number_status(self, reading: str, model: str | None = None) -> "ReadingStatus":
        """Why one reading is doubtful; `model` is the one that it is of, if that is known."""
        of = self.model_of(reading) if model is None else model
        status = self.reading_status(of)
        if old := old_words(reading, self.values):
            status = replace(status, old=old)
        if self.readings is None:
            return status
        if not self._settling & {reading, ALL}:
            return replace(status, settling="")
        # A slower reading than those by which the model is settled.
        frames = self.frames.get(of or next(iter(self.frames)))
        return replace(status, settling=self._settling_after(frames) if frames else SETTLING)

    @cached_property
    def _settling(self) -> set[str]:
        """Names of the readings that are settling in the newest row, or `ALL`."""
        return set(self.values.get("settling_columns", ALL).split())

    def measured_by(self, model: str, statistic: str = "") -> tuple[float, float]:
        """Seconds that a statistic of a model covers, and in which the model was switched off.

        statistic: its name; without one, most statistics of the model
        """
        counted, own = {}, {}
        if self.readings is not None:
            counted = self.readings.counted_s.get(model, {})
            own = self.readings.measured_of.get(model, {})
        measured_s = own.get(statistic, counted.get("measured_s"))
        if measured_s is None:
            return self.measured_s, 0.0
        return measured_s, counted.get("off_s") or 0.0

    @cached_property
    def _statuses(self) -> "dict[str, ReadingStatus]":
        """Those found so far, as each pane asks for one."""
        return {}

    def _status_of(self, name: str) -> "ReadingStatus":
        frames = self.frames.get(name)
        if frames is None:
            return ReadingStatus(0, self.held)
        fault, since_s = 0, frames.end_s - RECENT_S
        if self.engine.histories[name].marked_s > since_s:
            recent = self.engine.recent(frames.model, since_s, frames.microphone)
            # Calm frames have no fault; calm ones may follow clipped sound at once.
            faults = [np.bitwise_or.reduce(one.fault) for one in recent if one.calm_s < 0]
            fault = int(np.bitwise_or.reduce(faults)) if faults else 0
        in_pascal = takes_pascal(self.engine.models[name])
        uncalibrated = in_pascal and not frames.calibrated
        settling = self._settling_after(frames) if frames.settling[-1] else ""
        return ReadingStatus(fault, self.held, uncalibrated, settling, bool(is_off(frames)[-1]))

    def _settling_after(self, frames: "Frames") -> str:
        """What the newest frame of a model is settling after, in words."""
        disturbed_s, fs = frames.end_s - float(frames.since_s[-1]), self.engine.source.fs
        if np.isinf(disturbed_s):
            return SETTLING
        gaps = (one.time_s + one.samples / fs for one in self.events if one.kind == "gap")
        return AFTER_GAP if any(abs(end_s - disturbed_s) < SAME_S for end_s in gaps) else AGAIN

    def states(self, course: str, frozen: bool, health: "Health") -> list[str]:
        """The states that hold now, of all models, as `rank_states` ranks them."""
        status = [self.reading_status(name) for name in self.frames]
        fault = int(np.bitwise_or.reduce([one.fault for one in status]))
        limits = () if self.readings is None else self.readings.limits
        red = [limit for limit in limits if state_of(limit, self.values) == "red"]
        return rank_states(
            course,
            frozen=frozen,
            health=[name for name in OF_HEALTH if getattr(health, name)],
            faults=[name for bit, name in FAULT_NAMES.items() if fault & bit],
            settling=any(bool(one.settling) for one in status),
            uncalibrated=any(one.uncalibrated for one in status),
            limits=["below limit" if limit.below else "over limit" for limit in red],
        )


def specific_in(engine: "Engine") -> "Frames | None":
    """The newest frames of the first model with specific loudness."""
    newest = (history.latest for history in engine.histories.values())
    return next((f for f in newest if f is not None and _specific(f) is not None), None)


def _specific(frames: "Frames") -> "np.ndarray | None":
    return getattr(frames.values, "specific_loudness", None)


def _passes(engine: "Engine") -> bool:
    """Whether sound continues without waiting for the models, so that some may be unmeasured."""
    return not engine.source.can_wait and engine.device_state == "running"


def describe_source(engine: "Engine") -> dict[str, Any]:
    source, heard = engine.source, engine.heard
    sound = {"name": source.name, "fs": source.fs, "duration_s": source.duration_s}
    sound |= {"sound": source.description.to_dict()}
    if heard is None:
        return sound | {"channels": [*range(1, source.channels + 1)]}
    return sound | {"channels": [*heard.channels], "layout": heard.layout.to_dict()}


def describe_models(engine: "Engine") -> list[dict[str, Any]]:
    found, heard = [], engine.heard
    for name, model in engine.models.items():
        entry, made = entry_of(model), model.arguments()
        keys = () if entry is None else entry.settings
        described = {"name": name, **{key: made[key] for key in keys if key in made}}
        if heard is not None and name in heard.places:
            described["channels"] = [*heard.channels_of(name)]
        found.append(described)
    return found


@dataclass(frozen=True)
class ReadingStatus:
    """Whether readings are reliable.

    fault: bits of `Fault` of the last second
    held: why the readings stand still
    settling: why they still remember earlier sound, in words; "" if they do not
    off: whether their model is switched off
    old: how old they are, in words, if nothing renewed them for long
    """

    fault: int = 0
    held: Sequence[str] = ()
    uncalibrated: bool = False
    settling: str = ""
    off: bool = False
    old: str = ""

    @property
    def grey(self) -> bool:
        """Whether numbers are not reliable."""
        return bool(self.settling or self.off or self.held or self.old)
