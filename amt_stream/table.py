"""The rows of one sound, with their header and their summary: of a file, of an array, or live."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any, Self

from amt_stream import catalog, rows
from amt_stream.calibration import Calibration, one_each
from amt_stream.clock import Interval, zone_text
from amt_stream.frames import Event
from amt_stream.presets import Preset

if TYPE_CHECKING:
    from amt_stream.analysis import Recording
    from amt_stream.streaming import Stage


@dataclass(frozen=True)
class Sound:
    """What is measured: its name, rate in hertz, channels, counted from 1, and calibration.

    `more` is what else a header tells of it, `rows` the names and channels of several that are
    heard each by itself. `picked` says that the source delivers other channels too. `kept_s` is how
    much of the sound somebody keeps in memory. `began_utc_s` is when the first sample was, of a
    recording of which somebody knows it.
    """

    name: str
    fs: int
    channels: tuple[int, ...]
    calibration: Sequence[Calibration]
    duration_s: float | None
    more: Mapping[str, Any] = field(default_factory=dict)
    rows: tuple[tuple[str, tuple[int, ...]], ...] = ()
    kept_s: float = 0.0
    picked: bool = False
    began_utc_s: float = math.nan

    @property
    def calibration_of_columns(self) -> list[dict[str, Any]]:
        """The calibration of the source's columns, counted from 1, as a recording of it tells it.

        Of a column that is not measured nothing is known.
        """
        count = len(self.channels)
        columns = self.channels if self.picked or self.rows else range(1, count + 1)
        each = one_each(self.calibration, count)
        return [{"channel": n, **asdict(one)} for n, one in zip(columns, each, strict=True)]

    @classmethod
    def of_recording(
        cls,
        recording: "Recording",
        calibration: Sequence[Calibration],
        began_utc_s: float = math.nan,
    ) -> Self:
        """A whole sound, of which is told how many samples were read as 0."""
        return cls(
            recording.name,
            recording.fs,
            recording.channels,
            calibration,
            recording.duration_s,
            {"replaced_samples": recording.replaced}
            | ({"cut_off": True} if recording.cut_off else {}),
            began_utc_s=began_utc_s,
        )

    @property
    def told(self) -> dict[str, Any]:
        """As a header tells it."""
        return {
            "name": self.name,
            "fs": self.fs,
            "channels": list(self.channels),
            "duration_s": None if self.duration_s is None else round(self.duration_s, 6),
            **({"rows": {name: [*own] for name, own in self.rows}} if self.rows else {}),
            **self.more,
        }


class Table:
    """The rows of a preset's models, with their header and their summary.

    columns: names or patterns, with commas between; by default what is usual for each model. Those
        of the preset's limits and events come besides
    from_s, to_s: the part of the sound that rows and statistics cover
    interval: of a table of intervals beside the rows (`rows.intervals_ended`)
    options: what the readings of some models take, as `target_lufs` of bs1770; None and False ask
        for nothing

    Raises ValueError for a column that there is not, and for an option that no model takes.
    """

    def __init__(
        self,
        preset: Preset,
        models: "Mapping[str, Stage]",
        sound: Sound,
        step_ms: int,
        *,
        columns: str | Sequence[str] | None = None,
        from_s: float | None = None,
        to_s: float | None = None,
        interval: Interval | None = None,
        **options: Any,
    ) -> None:
        self.sound = sound
        self._preset, self._running = preset, models
        self._asked: dict[str, Any] = {
            "step_ms": step_ms,
            "columns": columns,
            "from_s": from_s,
            "to_s": to_s,
        }
        self._asked |= options
        if interval is not None:
            self._asked["interval"] = {"s": interval.seconds, "zone": zone_text(interval.zone)}
        self._options = options
        self.triggers = preset.triggers
        """What begins an event of sound in these rows."""
        self._models = _described(preset, options)

        is_file = sound.duration_s is not None and math.isnan(sound.began_utc_s)

        def joined(channels: int, row: str = "") -> rows.JoinedRows:
            readings = _readings(preset, models, channels, options)
            besides = rows.columns_of(preset.limits)
            besides += [one.column for one in self.triggers if not one.is_alarm]
            if columns is not None or besides:
                rows.choose(readings, columns, besides)
            intervals = None
            if interval is not None:
                own = [] if columns is None else [c for r in readings.values() for c in r.columns]
                again = _readings(preset, models, channels, options)
                intervals = rows.Intervals(again, interval, own, row, elapsed=is_file)
            made = rows.JoinedRows(
                readings,
                step_ms,
                sound.fs,
                from_s=0.0 if from_s is None else from_s,
                to_s=math.inf if to_s is None else to_s,
                duration_s=sound.duration_s,
                row=row,
                limits=preset.limits,
                intervals=intervals,
            )
            if math.isfinite(sound.began_utc_s):
                made.start_ms = round(1000 * sound.began_utc_s)
            return made

        self.rows: rows.AnyRows
        if sound.rows:
            self.rows = rows.RowsOfEach({name: joined(len(own), name) for name, own in sound.rows})
        else:
            self.rows = joined(len(sound.channels))
        for trigger in self.triggers:
            if trigger.is_alarm:
                if not self.rows.limits:
                    raise ValueError("an event of limits needs one: there are none")
                continue
            if trigger.column not in self.rows.names or self.rows.gives_cells:
                raise ValueError(f"{trigger.words}: there is no such column in these rows")

    @property
    def settings(self) -> dict[str, Any]:
        """All that makes these rows of a sound, as data for JSON.

        `preset` as a file of settings would have it, `rows` the arguments of this class,
        `calibration` what is known of each, one for all channels or one for each.
        """
        columns = self._asked["columns"]
        asked = self._asked | {"columns": list(columns) if isinstance(columns, tuple) else columns}
        return {
            "preset": self._preset.tables,
            "rows": asked,
            "calibration": [asdict(one) for one in self.sound.calibration],
        }

    @property
    def ears(self) -> int:
        """How many channels a model hears."""
        return max((len(own) for _, own in self.sound.rows), default=len(self.sound.channels))

    def calibrate(self, calibration: Calibration, row: str | None = None) -> None:
        """Tell of another level from here on, of all channels or of those of one row.

        Each channel keeps its correction.

        Raises ValueError for a row that there is not.
        """
        sound = self.sound
        rows = dict(sound.rows)
        if row is not None and row not in rows:
            raise ValueError(f"no row is called {row!r}: there are {', '.join(rows) or 'none'}")
        of_row = sound.channels if row is None else rows[row]
        each = [*sound.calibration]
        if len(each) == 1 and not set(of_row).issuperset(sound.channels):
            each *= len(sound.channels)
        now = [
            calibration.with_correction(one.correction) if channel in of_row else one
            for channel, one in zip(sound.channels, each, strict=False)  # one may be of all
        ]
        self.sound = replace(sound, calibration=now)

    def swap(self, settings: Mapping[str, str], models: "Mapping[str, Stage]") -> None:
        """Tell of other settings of some of the models from here on: of these, by name."""
        self._preset = self._preset.with_settings(settings)
        self._running = {**self._running, **models}
        self._models = _described(self._preset, self._options)

    def models_with(self, settings: Mapping[str, str]) -> "dict[str, Stage]":
        """New ones by name of those models that have one of these settings, otherwise as before.

        Raises PresetError for a setting that there is not.
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
        """Tells what happens in rows in their order: limits change, sounds begin and end."""
        limits = rows.LimitEvents(self.rows.limits)
        spot = rows.Spotter(self.triggers, self.rows.step_ms / 1000, self.sound.fs)

        def events(some: rows.Rows) -> list[Event]:
            found = [*limits(some), *(one.event(self.sound.fs) for one in spot(some))]
            return sorted(found, key=lambda event: event.sample)

        return events

    def header(self, **more: Any) -> dict[str, Any]:
        """What goes before the rows, as data for JSON."""
        from amt_stream.engine.place import in_words

        given = self._models, self.sound.calibration, self.sound.told
        devices = dict.fromkeys(in_words(model.device) for model in self._running.values())
        more |= {"kept_sound_s": self.sound.kept_s} if self.sound.kept_s else {}
        more |= {"events": [one.to_dict() for one in self.triggers]} if self.triggers else {}
        intervals = self.rows.intervals
        more |= {} if intervals is None else {"interval": intervals.described}
        return rows.header(self.rows, *given, compute=", ".join(devices), **more)

    def summary(self) -> dict[str, Any]:
        """What is told of the whole sound, as data for JSON."""
        return rows.summary(self.rows, self._models, self.sound.calibration, self.sound.told)


def _described(preset: Preset, options: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Of each model its name, its settings and the options of its readings."""
    found = preset.described
    for entry, told in zip(preset.entries, found, strict=False):  # a chain has no entry
        told |= {k: v for k, v in options.items() if k in entry.readings_take and v is not None}
    return found


def _readings(
    preset: Preset, models: "Mapping[str, Stage]", channels: int, options: Mapping[str, Any]
) -> dict[str, rows.Readings]:
    # 0 LUFS is a target, though it equals False.
    asked = {k: v for k, v in options.items() if v is not None and v is not False}
    taken = {name for entry in preset.entries for name in entry.readings_take}
    for name in asked.keys() - taken:
        takers = [one.name for one in catalog.entries().values() if name in one.readings_take]
        raise ValueError(
            f"{name} is for {', '.join(takers)}, and the model is {preset.where}: leave it out"
        )
    if preset.stages:
        return {name: rows.cell_readings(name, one, channels) for name, one in models.items()}
    banded = preset.uncertainty_db is not None
    return rows.readings_of(preset.names, channels, banded, models, **asked)
