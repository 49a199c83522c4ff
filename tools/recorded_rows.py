"""Everything that the meters give of a made sound, for `same_rows.py`."""

import pickle
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from amt_stream.engine import Engine, Microphone, PushSource
from amt_stream.meters.audience import Audience
from amt_stream.meters.frames import Event, Frames
from amt_stream.meters.limits import Limit
from amt_stream.meters.presets import Preset
from amt_stream.meters.rows import Rows
from amt_stream.meters.source_description import DEVICE_CLIPS_AT
from amt_stream.meters.specification import RowSettings
from amt_stream.meters.table import Sound, Table
from tools.made_sounds import CALIBRATION, FS, Made

PUSH_S, WAIT_S = 0.25, 120.0
SETS = (
    ("moore2016", "gm2002", "zwicker", "bs1770", "spl"),
    ("third_octave", "octave", "spectrum", "daniel_weber"),
    ("zwicker", "ecma"),
    ("ecma_loudness", "ecma_roughness", "ecma_fluctuation"),
    ("ecma_tonality",),
    ("king2019",),
    ("dau1997",),
)
"""Models that are measured together; those of the first two hear all sounds."""

WINDOWS = ("2s", "10min")
ASKED = (
    *("lex_8h_db", "lex_8h_left_db", "dose_90_5_80_percent", "twa_90_5_80_db", "dose_85_3_percent"),
    *("laeq_2s_allowed_70_db", "laeq_2s_until_70_s", "laeq_10min_allowed_60_db"),
    *("laeq_10min_until_60_s", "lex_8h_until_50_s", "laeq_10s_audience_until_99p5_s"),
)
LIMITS = (
    Limit("laf_db", 75.0, amber=60.0, hysteresis=2.0, hold_s=0.5),
    Limit("laeq_2s_db", 70.0, ahead_s=5.0),
    Limit("momentary_lufs", -30.0, below=True),
    Limit("ltl_phon", 80.0),
    Limit("zwicker_n5_sone", 10.0, at_end=True),
    Limit("lzeq_1000hz_db", 60.0),
    Limit("ecma_roughness_asper", 0.2),
)


def all_columns(table: Table) -> tuple[str, ...]:
    """All names that these readings have, with windows and uncommon percentages."""
    found: dict[str, None] = {}
    for readings in table.rows.readings.values():
        if len(readings.cells) > 1:
            found |= dict.fromkeys(column.name for column in readings.offered)
            continue
        for name in (*(column.name for column in readings.offered), *ASKED):
            stem, _, unit = name.rpartition("_")
            base = re.sub(r"_(?:left|right|audience)", "", stem)
            after = stem[len(base) :] if stem.startswith(base) else ""
            uncommon = re.sub(r"\d\d$", "33", base)
            stems = [base, uncommon, *(f"{base}_{window}" for window in WINDOWS)]
            for one in dict.fromkeys([stem, *(f"{one}{after}" for one in stems)]):
                alike = f"{one}_{unit}", f"{one}_{unit}".replace("_audience", "")
                if all(map(readings.matching, alike)):
                    found[f"{one}_{unit}"] = None
    return tuple(found)


class Followed:
    """A sink that makes rows, as a session does; `end` says how long the sound is, if known."""

    hears_tail = True

    def __init__(self, make: Callable[[], Table], duration_s: float) -> None:
        self.make, self.duration_s = make, duration_s
        self.table = make()
        self.parts: list[Rows] = []
        self.intervals: list[Rows] = []
        self.header: Mapping[str, Any] = {}

    def __call__(self, frames: Frames) -> None:
        self.header = self.header or self.table.header()
        self.parts.append(self.table.rows(frames))
        self.intervals.append(self.table.rows.intervals_ended())

    def event(self, event: Event) -> None:
        """Take an event; a text may be one of the commands that are no engine's."""
        if event.text == "resume":
            state, self.table = self.table.rows.state_dict(), self.make()
            self.table.rows.load_state_dict(pickle.loads(pickle.dumps(state)))
        elif event.text == "limits" and self.table.rows.limits:
            first, *rest = self.table.rows.limits
            other = replace(first, threshold=50.0, amber=None)
            self.table.change_limits([other, *rest])
            self.table.event(replace(event, kind="limits"))
        self.table.event(event)

    def ended(self, end_s: float | None) -> None:
        """Take the end of the sound."""
        end_s = self.duration_s if end_s is None else end_s
        self.parts.append(self.table.rows.rest(end_s))
        self.intervals.append(self.table.rows.intervals_ended(end_s))

    def record(self) -> dict[str, Any]:
        """All cells by column, and header and summary."""
        record: dict[str, Any] = {}
        for what, parts in (("rows", self.parts), ("intervals", self.intervals)):
            rows = Rows.concatenated(parts, parts[0].columns)
            cells = {name: rows[name] for name in rows.columns}
            record[what] = cells
            for name, both in rows.range_of.items():
                cells[f"range of {name}"] = both
        return record | {"header": self.header, "summary": self.table.summary()}


def tables(names: tuple[str, ...], made: Made, models: Any) -> Iterator[tuple[str, Followed]]:
    """The rows that are made of one sound."""
    duration_s = len(made.samples) / FS
    channels = tuple(range(1, made.samples.shape[1] + 1))
    each = tuple((f"m{n}", (n,)) for n in channels) if made.microphones > 1 else ()
    sound = Sound("made", FS, channels, (made.calibration,), None, microphones=each)
    known = replace(sound, duration_s=duration_s)
    usual = Preset(names)
    audience = Audience(4.2, 6.0) if "spl" in names else None
    wide = replace(usual, audience=audience, uncertainty_db=1.0)
    target: dict[str, Any] = {"target_lufs": -23.0} if "bs1770" in names else {}
    target |= {"dual_mono": True} if target and (len(channels) == 1 or each) else {}
    offered = Table(wide, models, sound, RowSettings(step_ms=100, **target))
    given = all_columns(offered)
    limits = tuple(one for one in LIMITS if one.column in given and not each)
    limited = replace(usual, limits=limits)
    forms = {
        "all": lambda: Table(wide, models, sound, RowSettings(100, given, **target)),
        "usual": lambda: Table(limited, models, sound, RowSettings(10)),
        "part": lambda: Table(usual, models, known, RowSettings(100, from_s=0.5, to_s=4.0)),
        "whole": lambda: Table(usual, models, known, RowSettings(250)),
    }
    if not any(one in names for one in ("king2019", "dau1997", "spectrum")):
        asked = RowSettings(100, given, interval=1)
        forms["intervals"] = lambda: Table(usual, models, known, replace(asked, columns=plain))
        plain = all_columns(Table(usual, models, sound, RowSettings(step_ms=100)))
    for form, make in forms.items():
        yield form, Followed(make, duration_s)


def record_of(names: tuple[str, ...], made: Made) -> dict[str, Any]:
    """Everything that a sound gives, by the form of rows."""
    channels = made.samples.shape[1]
    models = Preset(names, uncertainty_db=1.0).models(FS, channels // made.microphones)
    sinks = dict(tables(names, made, models))
    if "usual" in sinks:
        sinks["usual"].table.rows.give_ranges()
    source = PushSource(FS, channels, "made", live=False)
    source.description = replace(source.description, clips_at=DEVICE_CLIPS_AT)
    each = [Microphone((n + 1,), f"m{n + 1}") for n in range(channels)]
    engine = Engine(
        source,
        models,
        [*sinks.values()],
        calibration=made.calibration,
        microphones=each if made.microphones > 1 else None,
        run_in="callback",  # `push` returns when the models have heard the sound: commands wait
        sink_slack_s=60.0,
    )
    commands = {
        "pause": engine.pause,
        "unpause": engine.unpause,
        "reset": engine.reset_readings,
        "undo": engine.undo_reset,
        "filters": engine.reset_filters,
        "calibrate": lambda: engine.calibrate(CALIBRATION),
        "resume": lambda: engine.tell("mark", "resume"),
        "limits": lambda: engine.tell("mark", "limits"),
    }
    with engine:
        at = lost = 0
        for time_s, what in (*sorted(made.events), (len(made.samples) / FS, "")):
            while at < (until := round(time_s * FS)):
                piece = made.samples[at : min(until, at + round(PUSH_S * FS))]
                source.push(piece.astype(np.float32), lost)
                at, lost = at + len(piece), 0
            if what.startswith("lose "):
                lost = int(what.removeprefix("lose "))
            elif what:
                commands[what]()
        source.close()
        if not engine.wait(WAIT_S):
            raise RuntimeError("the engine does not end")
    if engine.health.sink_errors:
        raise RuntimeError(engine.health.note)
    return {form: sink.record() for form, sink in sinks.items()}
