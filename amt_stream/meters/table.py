"""The rows of one sound with header and summary: of a file, of an array, or live."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any

from amt_stream.core.clock import Interval, local_zone, zone_text
from amt_stream.core.json_types import JsonDict, JsonMap
from amt_stream.meters import catalog, rows
from amt_stream.meters.calibration import Calibration, one_each
from amt_stream.meters.frames import Event
from amt_stream.meters.presets import Preset
from amt_stream.meters.specification import RowSettings

if TYPE_CHECKING:
    from amt_stream.dsp.streaming import Stage


@dataclass(frozen=True)
class Sound:
    """The measured sound: name, rate in hertz, channels (counted from 1) and calibration.

    `more` has further fields for headers; `microphones` are the names and channels of several
    microphones. `picked` says that the source delivers other channels too. `kept_s` is the sound
    held in memory in seconds. `began_utc_s` is the Unix time of the first sample of a recording, if
    known.
    """

    name: str
    fs: int
    channels: tuple[int, ...]
    calibration: Sequence[Calibration]
    duration_s: float | None
    more: JsonMap = field(default_factory=dict)
    microphones: tuple[tuple[str, tuple[int, ...]], ...] = ()
    kept_s: float = 0.0
    picked: bool = False
    began_utc_s: float = math.nan

    @property
    def calibration_of_columns(self) -> list[JsonDict]:
        """Calibrations of the source's columns, counted from 1, for recordings.

        Columns that are not measured are left out.
        """
        count = len(self.channels)
        columns = self.channels if self.picked or self.microphones else range(1, count + 1)
        each = one_each(self.calibration, count)
        return [{"channel": n, **asdict(one)} for n, one in zip(columns, each, strict=True)]

    @property
    def description(self) -> JsonDict:
        """Data for headers."""
        microphones = {name: [*own] for name, own in self.microphones}
        return {
            "name": self.name,
            "fs": self.fs,
            "channels": list(self.channels),
            "duration_s": None if self.duration_s is None else round(self.duration_s, 6),
            **({"microphones": microphones} if microphones else {}),
            **self.more,
        }


READINGS_TAKE = ("target_lufs", "dual_mono")
"""Options of the readings of some models, by the name of the setting."""


def as_data(asked: RowSettings) -> JsonDict:
    """Settings of rows as data for JSON."""
    data = {one.name: getattr(asked, one.name) for one in fields(RowSettings)}
    data["columns"] = list(asked.columns) if isinstance(asked.columns, tuple) else asked.columns
    zone, interval = data.pop("zone"), data.pop("interval")
    if interval is not None:
        data["interval"] = {"s": interval, "zone": zone_text(zone or local_zone())}
    return data


def from_data(data: JsonMap) -> RowSettings:
    """Settings of rows from `as_data`, without intervals."""
    return RowSettings(**{key: value for key, value in data.items() if key != "interval"})


def refuse_untaken(
    asked: RowSettings, preset: Preset, word: Callable[[str], str] = lambda name: name
) -> None:
    """Raise ValueError for an option of readings that no model of the preset takes.

    word: gives the name of an option for the error
    """
    taken = {name for entry in preset.entries for name in entry.readings_take}
    for name in READINGS_TAKE:
        value = getattr(asked, name)
        # 0 LUFS is a target, though it equals False.
        if value is None or value is False or name in taken:
            continue
        takers = [one.name for one in catalog.entries().values() if name in one.readings_take]
        raise ValueError(
            f"{word(name)} is for {', '.join(takers)}, and the model is {preset.where}: "
            "leave it out"
        )


class Table:
    """The rows of a preset's models, with header and summary.

    asked: settings of rows; columns of the preset's limits and events are added, and the default
        step is that of files
    more: further fields of header and summary

    Raises ValueError for an unknown column, and for an option that no model takes.
    """

    def __init__(
        self,
        preset: Preset,
        models: "Mapping[str, Stage]",
        sound: Sound,
        asked: RowSettings,
        more: JsonMap | None = None,
    ) -> None:
        self.sound = sound
        self._more = more or {}
        self._preset, self._running = preset, models
        step_ms = preset.row_step_ms if asked.step_ms is None else asked.step_ms
        self._asked = replace(asked, step_ms=step_ms)
        interval = None
        if asked.interval is not None:
            interval = Interval(asked.interval, asked.zone or local_zone())
        columns = asked.columns
        refuse_untaken(asked, preset)
        self._options = options = {name: getattr(asked, name) for name in READINGS_TAKE}
        self.triggers = preset.triggers
        """The triggers of sound events in these rows."""
        self._models = _described(preset, options)

        is_file = sound.duration_s is not None and math.isnan(sound.began_utc_s)

        def joined(channels: int, microphone: str = "") -> rows.JoinedRows:
            readings = _readings(preset, models, channels, options)
            besides = rows.columns_of(preset.limits)
            watched = [one.column for one in self.triggers if not one.is_alarm]
            besides += watched
            if columns is not None or besides:
                rows.choose(readings, columns, besides)
            intervals = None
            if interval is not None:
                own = [] if columns is None else [c for r in readings.values() for c in r.columns]
                again = _readings(preset, models, channels, options)
                intervals = rows.Intervals(again, interval, own, microphone, elapsed=is_file)
            made = rows.JoinedRows(
                readings,
                step_ms,
                sound.fs,
                from_s=0.0 if asked.from_s is None else asked.from_s,
                to_s=math.inf if asked.to_s is None else asked.to_s,
                duration_s=sound.duration_s,
                microphone=microphone,
                limits=preset.limits,
                intervals=intervals,
                asked=watched if columns is None else None,
            )
            if math.isfinite(sound.began_utc_s):
                made.start_ms = round(1000 * sound.began_utc_s)
            return made

        self.rows: rows.AnyRows
        if sound.microphones:
            self.rows = rows.RowsOfEach(
                {name: joined(len(own), name) for name, own in sound.microphones}
            )
        else:
            self.rows = joined(len(sound.channels))
        for trigger in self.triggers:
            if trigger.is_alarm:
                if not self.rows.limits:
                    raise ValueError("an event of limits needs limits: there are none")
                continue
            if trigger.column not in self.rows.names or self.rows.gives_cells:
                raise ValueError(f"{trigger.words}: there is no such column in these rows")

    @property
    def settings(self) -> JsonDict:
        """All settings of these rows as data for JSON.

        `preset` as in a file, `rows` the settings of rows, and `calibration` one for all channels
        or one for each.
        """
        return {
            "preset": self._preset.tables,
            "rows": as_data(self._asked),
            "calibration": [asdict(one) for one in self.sound.calibration],
        }

    @property
    def ears(self) -> int:
        """Number of channels of a model."""
        return max(
            (len(own) for _, own in self.sound.microphones), default=len(self.sound.channels)
        )

    def calibrate(self, calibration: Calibration, microphone: str | None = None) -> None:
        """Change the level from now on, of all channels or of those of one microphone.

        Each channel keeps its correction. Raises ValueError for an unknown microphone.
        """
        sound = self.sound
        known = dict(sound.microphones)
        if microphone is not None and microphone not in known:
            there = ", ".join(known) or "none"
            raise ValueError(f"no microphone is called {microphone!r}: there are {there}")
        own = sound.channels if microphone is None else known[microphone]
        each = [*sound.calibration]
        if len(each) == 1 and not set(own).issuperset(sound.channels):
            each *= len(sound.channels)
        now = [
            calibration.with_correction(one.correction) if channel in own else one
            for channel, one in zip(sound.channels, each, strict=False)  # one may be for all
        ]
        self.sound = replace(sound, calibration=now)

    def swap(self, settings: Mapping[str, str], models: "Mapping[str, Stage]") -> None:
        """Change settings of some models, given by name, from now on."""
        self._preset = self._preset.with_settings(settings)
        self._running = {**self._running, **models}
        self._models = _described(self._preset, self._options)

    def models_with(self, settings: Mapping[str, str]) -> "dict[str, Stage]":
        """Make new models, by name, for those that have one of these settings.

        Raises PresetError for an unknown setting.
        """
        self._preset.with_settings(settings)
        of_each = {
            entry.name: {key: word for key, word in settings.items() if key in entry.settings}
            for entry in self._preset.entries
        }
        return {
            name: self._running[name].with_arguments(**own) for name, own in of_each.items() if own
        }

    def events_of_rows(self) -> Callable[[rows.Rows], list[Event]]:
        """A function for the events in rows, in order: changes of limits, and sound events."""
        limits = rows.LimitEvents(self.rows.limits)
        spot = rows.Spotter(self.triggers, self.rows.step_ms / 1000, self.sound.fs)

        def events(some: rows.Rows) -> list[Event]:
            found = [*limits(some), *(one.event(self.sound.fs) for one in spot(some))]
            return sorted(found, key=lambda event: event.sample)

        return events

    def header(self, **more: Any) -> JsonDict:
        """The header of the rows as data for JSON."""
        from amt_stream.dsp.compute_device import device_words

        given = self._models, self.sound.calibration, self.sound.description
        devices = dict.fromkeys(device_words(model.device) for model in self._running.values())
        more |= {"kept_sound_s": self.sound.kept_s} if self.sound.kept_s else {}
        more |= {"events": [one.to_dict() for one in self.triggers]} if self.triggers else {}
        intervals = self.rows.intervals
        more |= {} if intervals is None else {"interval": intervals.described}
        more |= {"compute": ", ".join(devices), **self._more}
        return rows.header(self.rows, *given, **more)

    def summary(self) -> JsonDict:
        """The summary of the whole sound as data for JSON."""
        given = self._models, self.sound.calibration, self.sound.description
        return rows.summary(self.rows, *given, **self._more)


def _described(preset: Preset, options: Mapping[str, object]) -> list[JsonDict]:
    """Name, settings and options of readings of each model."""
    found = preset.described
    for entry, settings in zip(preset.entries, found, strict=False):  # a chain has no entry
        settings |= {k: v for k, v in options.items() if k in entry.readings_take and v is not None}
    return found


def _readings(
    preset: Preset, models: "Mapping[str, Stage]", channels: int, options: Mapping[str, object]
) -> dict[str, rows.Readings]:
    # 0 LUFS is a target, though it equals False.
    asked = {k: v for k, v in options.items() if v is not None and v is not False}
    if preset.stages:
        return {name: rows.cell_readings(name, one, channels) for name, one in models.items()}
    banded = preset.uncertainty_db is not None
    return rows.readings_of(preset.names, channels, banded, models, **asked)
