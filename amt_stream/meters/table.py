"""The rows of one sound with header and summary: of a file, of an array, or live."""

import math
import time
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import asdict, dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, Protocol

from amt_stream.core.clock import Interval, local_zone, zone_name, zone_text
from amt_stream.core.json_types import JsonDict, JsonMap
from amt_stream.dsp.channel_layout import Layout, usual_layout
from amt_stream.meters import catalog, rows
from amt_stream.meters.calibration import Calibration, one_each
from amt_stream.meters.frames import LIMITS, Event
from amt_stream.meters.heard_channels import HeardChannels
from amt_stream.meters.limits import Limit
from amt_stream.meters.presets import Preset
from amt_stream.meters.source_description import SourceDescription
from amt_stream.meters.specification import RowSettings

if TYPE_CHECKING:
    from amt_stream.dsp.streaming import Stage


class Described(Protocol):
    """A source or a recording, which learns more of its sound until its end."""

    @property
    def description(self) -> SourceDescription: ...


@dataclass(frozen=True)
class Sound:
    """The measured sound: name, rate in hertz, channels (counted from 1) and calibration.

    `source` is where it comes from, and knows more of it. `more` has further fields for headers;
    `microphones` are the names and channels of several microphones. `picked` says that the source
    delivers other channels too. `kept_s` is the sound held in memory in seconds. `began_utc_s` is
    the Unix time of the first sample of a recording, if known. `heard` says what the channels are
    for and which model hears which; by default all models hear all, in their usual layout.
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
    source: Described | None = None
    heard: HeardChannels | None = None

    @property
    def hearing(self) -> HeardChannels:
        """What its channels are for, and which model hears which."""
        heard = HeardChannels.all_of(self.channels) if self.heard is None else self.heard
        return heard.numbered(self.channels)

    def layouts(self, models: Sequence[str]) -> dict[str, Layout]:
        """The layout that each model hears; of several microphones, that of the widest."""
        own = [len(channels) for _, channels in self.microphones]
        if own:
            return dict.fromkeys(models, usual_layout(max(own)))
        return self.hearing.layouts(models)

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
    def notes_of_columns(self) -> JsonDict:
        """What recordings say of the source's columns: calibrations, and the layout if known."""
        layout = None if self.microphones else self.hearing.offered
        known = {} if layout is None else {"layout": layout.to_dict()}
        return {"calibration": self.calibration_of_columns, **known}

    @property
    def description(self) -> JsonDict:
        """Data for headers."""
        microphones = {name: [*own] for name, own in self.microphones}
        layout = {} if microphones else {"layout": self.hearing.layout.to_dict()}
        return {
            "name": self.name,
            "fs": self.fs,
            "channels": list(self.channels),
            **layout,
            "duration_s": None if self.duration_s is None else round(self.duration_s, 6),
            **({"microphones": microphones} if microphones else {}),
            **({} if self.source is None else {"sound": self.source.description.to_dict()}),
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


def is_given(option: object) -> bool:
    """Whether an option of readings is given; 0 LUFS is a target, though it equals False."""
    return option is not None and option is not False


def refuse_untaken(
    asked: RowSettings, preset: Preset, word: Callable[[str], str] = lambda name: name
) -> None:
    """Raise ValueError for an option of readings that no model of the preset takes.

    word: gives the name of an option for the error
    """
    taken = {name for entry in preset.entries for name in entry.readings_take}
    for name in READINGS_TAKE:
        if not is_given(getattr(asked, name)) or name in taken:
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
        self._sound = sound
        # Why the calibration of a microphone does not hold, by its name; never changed in place,
        # because tables are copied.
        self._doubts: dict[str, str] = {}
        audience = {} if preset.audience is None else {"audience": preset.audience.to_dict()}
        self._more: JsonMap = {**(more or {}), **audience}
        self._preset, self._running = preset, models
        step_ms = preset.row_step_ms if asked.step_ms is None else asked.step_ms
        self._asked = replace(asked, step_ms=step_ms)
        interval = None
        if asked.interval is not None:
            interval = Interval(asked.interval, asked.zone or local_zone())
        refuse_untaken(asked, preset)
        self._options = {name: getattr(asked, name) for name in READINGS_TAKE}
        self.triggers = preset.triggers
        """The triggers of sound events in these rows."""
        self._models = self._described()

        # A file has no time of day unless it is known when it began.
        self._is_file = sound.duration_s is not None and math.isnan(sound.began_utc_s)
        began_utc_s = time.time() if math.isnan(sound.began_utc_s) else sound.began_utc_s
        self._zone = None if self._is_file else zone_name(asked.zone, began_utc_s)
        self.rows = self._made(interval)
        # A preset with other limits, its rows, which wait for an event, and those before.
        self._next: tuple[Preset, rows.JoinedRows, rows.JoinedRows] | None = None

    def change_limits(self, limits: Sequence[Limit]) -> None:
        """Prepare other limits, which replace the present ones at the next event "limits".

        Limits that stay go on. A new one judges from then on; its value includes the sound before
        as far as that is known (`JoinedRows.take_over`).

        Raises ValueError for a column that no running model has, and for several microphones.
        """
        now, before = copy(self), self.rows
        now._preset = replace(self._preset, limits=tuple(limits))
        after = now._made()
        if not (isinstance(after, rows.JoinedRows) and isinstance(before, rows.JoinedRows)):
            raise ValueError("limits of several microphones cannot change: measure again")
        self._next = now._preset, after, before

    def _made(self, interval: Interval | None = None) -> rows.AnyRows:
        """New rows of the preset's models; with intervals if these are given."""
        sound, names = self._sound, self._preset.names
        made: rows.AnyRows
        if sound.microphones:
            each = [(name, dict.fromkeys(names, len(own))) for name, own in sound.microphones]
            made = rows.RowsOfEach({name: self._joined(own, interval, name) for name, own in each})
        else:
            hearing = sound.hearing
            made = self._joined({name: len(hearing.places_of(name)) for name in names}, interval)
        for trigger in self.triggers:
            if trigger.is_alarm:
                if not made.limits:
                    raise ValueError("an event of limits needs limits: there are none")
                continue
            if trigger.limit.column not in made.names or made.gives_cells:
                raise ValueError(f"{trigger.words}: there is no such column in these rows")
        return made

    def _joined(
        self, channels: Mapping[str, int], interval: Interval | None, microphone: str = ""
    ) -> rows.JoinedRows:
        preset, asked, sound = self._preset, self._asked, self._sound
        columns, given = asked.columns, (preset, self._running, channels, self._options)
        readings = _readings(*given)
        besides = rows.columns_of(preset.limits)
        watched = [one.limit.column for one in self.triggers if not one.is_alarm]
        besides += [*watched, *preset.more_columns]
        if columns is not None or besides:
            rows.choose(readings, columns, besides)
        intervals = None
        if interval is not None:
            own = [] if columns is None else [c for r in readings.values() for c in r.columns]
            again = _readings(*given)
            intervals = rows.Intervals(again, interval, own, microphone, elapsed=self._is_file)
        made = rows.JoinedRows(
            readings,
            preset.row_step_ms if asked.step_ms is None else asked.step_ms,
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

    @property
    def sound(self) -> Sound:
        """The measured sound with the calibration that holds now."""
        sound = self._sound
        for microphone, why in self._doubts.items():
            calibration = [
                replace(one, calibrated=False, source=why) if mine and one.calibrated else one
                for one, mine in self._of_microphone(sound, microphone)
            ]
            sound = replace(sound, calibration=calibration)
        return sound

    def event(self, event: Event) -> None:
        """Handle an event as `rows` do; headers follow whether the calibration holds."""
        if event.kind == "uncalibrated":
            self._doubts = {**self._doubts, event.microphone: event.text}
        elif event.kind == "calibrated":
            self._doubts = {k: v for k, v in self._doubts.items() if k != event.microphone}
        elif event.kind == LIMITS and self._next is not None:
            self._preset, now, before = self._next
            self._next = None
            now.take_over(before)
            self.rows = now
        self.rows.event(event)

    @property
    def settings(self) -> JsonDict:
        """All settings of these rows as data for JSON.

        `preset` as in a file, `rows` the settings of rows, and `calibration` one for all channels
        or one for each.
        """
        return {
            "preset": self._preset.tables,
            "rows": as_data(self._asked),
            "calibration": [asdict(one) for one in self._sound.calibration],
        }

    def _described(self) -> list[JsonDict]:
        """Name, settings and options of readings of each model, and its channels if only some."""
        found, places = self._preset.described, self.sound.hearing.places
        # A chain has no entry.
        for entry, settings in zip(self._preset.entries, found, strict=False):
            taken = {k: v for k, v in self._options.items() if k in entry.readings_take}
            settings |= {k: v for k, v in taken.items() if v is not None}
            if entry.name in places:
                settings["channels"] = list(self.sound.hearing.channels_of(entry.name))
        return found

    def calibrate(self, calibration: Calibration, microphone: str | None = None) -> None:
        """Change the level from now on, of all channels or of those of one microphone.

        Each channel keeps its correction. Raises ValueError for an unknown microphone.
        """
        sound = self._sound
        if microphone is not None and microphone not in dict(sound.microphones):
            there = ", ".join(dict(sound.microphones)) or "none"
            raise ValueError(f"no microphone is called {microphone!r}: there are {there}")
        now = [
            calibration.with_correction(one.correction) if mine else one
            for one, mine in self._of_microphone(sound, microphone or "")
        ]
        self._sound = replace(sound, calibration=now)

    @staticmethod
    def _of_microphone(sound: Sound, microphone: str) -> list[tuple[Calibration, bool]]:
        """Each calibration, and whether it is of this microphone; "" is every one."""
        own = dict(sound.microphones).get(microphone, sound.channels)
        each = [*sound.calibration]
        if len(each) == 1 and not set(own).issuperset(sound.channels):
            each *= len(sound.channels)
        # One may be for all.
        return [(one, channel in own) for channel, one in zip(sound.channels, each, strict=False)]

    def swap(self, settings: Mapping[str, str], models: "Mapping[str, Stage]") -> None:
        """Change settings of some models, given by name, from now on."""
        self._preset = self._preset.with_settings(settings)
        self._running = {**self._running, **models}
        self._models = self._described()

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
            limits.limits = self.rows.limits
            found = [*limits(some), *(one.event(self.sound.fs) for one in spot(some))]
            return sorted(found, key=lambda event: event.sample)

        return events

    def header(self, **more: Any) -> JsonDict:
        """The header of the rows as data for JSON."""
        from amt_stream.dsp.compute_device import device_words

        given = self._models, self.sound.calibration, self.sound.description
        devices = dict.fromkeys(
            getattr(model, "compute", "") or device_words(str(model.device))
            for model in self._running.values()
        )
        more |= {"kept_sound_s": self.sound.kept_s} if self.sound.kept_s else {}
        more |= {"events": [one.to_dict() for one in self.triggers]} if self.triggers else {}
        intervals = self.rows.intervals
        more |= {} if intervals is None else {"interval": intervals.described}
        more |= {} if self._zone is None else {"zone": self._zone}
        more |= {"compute": ", ".join(devices), **self._more}
        return rows.header(self.rows, *given, **more)

    def summary(self) -> JsonDict:
        """The summary of the whole sound as data for JSON."""
        # While a calibration does not hold, nothing is counted.
        given = self._models, self._sound.calibration, self._sound.description
        return rows.summary(self.rows, *given, **self._more)


def _readings(
    preset: Preset,
    models: "Mapping[str, Stage]",
    channels: Mapping[str, int],
    options: Mapping[str, object],
) -> dict[str, rows.Readings]:
    asked = {k: v for k, v in options.items() if is_given(v)} | {"audience": preset.audience}
    if preset.stages:
        return {n: rows.cell_readings(n, one, channels[n]) for n, one in models.items()}
    banded = preset.uncertainty_db is not None
    return rows.readings_of(preset.names, channels, banded, models, **asked)
