"""Measuring a session again from its sound, its settings and its gaps."""

import hashlib
import math
import threading
from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path

from amt_stream import __version__
from amt_stream.core.json_types import JsonDict, JsonMap
from amt_stream.core.safe_text import brief, sentence
from amt_stream.dsp.channel_layout import Layout, usual_layout
from amt_stream.engine.engine import Engine
from amt_stream.engine.microphone.channels import heard_channels
from amt_stream.engine.microphone.microphones import named_microphones
from amt_stream.engine.sources import Deliver, Source, SourceError
from amt_stream.meters.calibration import Calibration, uncertainty_of
from amt_stream.meters.frames import IMPULSE_COUNTING, LIMITS, Chunk, Event, Frames
from amt_stream.meters.limits import Limit, limit_of
from amt_stream.meters.presets import preset_of
from amt_stream.meters.rows import JoinedRows, Rows
from amt_stream.meters.source_description import SourceDescription
from amt_stream.meters.table import Sound, Table, from_data
from amt_stream.sessions.chain import canonical
from amt_stream.sessions.files import SessionError
from amt_stream.sessions.headers import headers_of
from amt_stream.sessions.reading import Session

WAIT_S = 0.2

CLOCK = "utc"
"""The column that does not depend on the sound."""

UNMADE = LookupError, TypeError, AttributeError, ValueError, OverflowError, SourceError
"""Errors of making an engine from an edited description."""

VALUES = (str, int, float, type(None))
MOST = (1 << 63) - 1
"""Types of the values of rows."""

CHANGES = (
    *("overload", "recovered", "swapped", "calibrated", "uncalibrated", "filters_reset"),
    *("paused", "continued", "readings_reset", *IMPULSE_COUNTING),
)
"""Kinds of events that changed the measurement, besides LIMITS."""


@dataclass
class Replayed:
    """The result of a replay.

    run: run of the session
    rows: number of rows compared
    absent: number of rows between them that the log lacks
    differs: sentence about the first different row; "" if all are identical
    notes: further sentences, such as why not all could be measured again
    logged, again: SHA-256 of the compared rows, as logged and as measured again
    """

    run: int
    rows: int
    absent: int
    differs: str
    notes: tuple[str, ...]
    logged: str
    again: str

    @property
    def same(self) -> bool:
        return self.rows > 0 and not self.differs


def replay_session(path: str | Path, run: int | None = None) -> Replayed:
    """Measure a run of a session again, by default the last, and compare all its rows.

    Runs that it continues are included. Nothing is written.

    Raises SessionError if there is no sound, or if it is not a session.
    """
    session = Session(path)
    run = max(session.runs) if run is None else run
    if run not in session.runs:
        runs = ", ".join(map(str, session.runs))
        raise SessionError(f"{session.path} has no run {run}: there are {runs}")
    sound = _RecordedSound(session, run)
    with closing(session.rows(run)) as logged:
        comparison = _Comparison(_whole(logged, session.path))
        for rows in _measured(session, run, sound):
            comparison.add(rows)
    return comparison.result(run, tuple(sound.notes))


class _RecordedSound:
    """The recorded sound of a run and of the runs that it continues.

    notes: why it ends before the run
    first_run: the first of these runs
    changes: events after which other limits judged

    Raises SessionError for limits that cannot be read.
    """

    def __init__(self, session: Session, run: int) -> None:
        self.notes: list[str] = []
        self._session, self._run = session, run
        runs, end = [run], math.inf
        self.changes = deque(self._changes_of(run, end))
        while (restored := session.descriptions[runs[0]].get("restored")) is not None:
            before, end = self._came_from(runs[0], restored)
            runs.insert(0, before)
            self.changes.extendleft(reversed(self._changes_of(before, end)))
        self.first_run = runs[0]
        headers = [one for r in runs for one in headers_of(session, r)] if self.changes else []
        try:
            self._limits = [(at, [*map(limit_of, h.get("limits", ()))]) for at, h in headers]
        except UNMADE as error:
            raise SessionError(f"{session.path} has invalid limits: {sentence(error)}") from error

    def _changes_of(self, run: int, end: float) -> list[Event]:
        events = self._session.events(run)
        return [one for one in events if one.kind == LIMITS and one.sample < end]

    def limits_after(self, sample: int) -> Sequence[Limit]:
        """The limits of the first row after a sample."""
        return next((limits for at, limits in self._limits if at > sample), [])

    def cut_at_changes(self) -> Iterator[Chunk | Event]:
        """Yield the sound, and each change of limits at its sample."""
        for chunk in self:
            while self.changes and self.changes[0].sample <= chunk.sample - chunk.lost:
                yield self.changes.popleft()
            while self.changes and self.changes[0].sample < chunk.sample + len(chunk):
                first, chunk = _halves(chunk, self.changes[0].sample - chunk.sample)
                yield first
                yield self.changes.popleft()
            yield chunk

    def __iter__(self) -> Iterator[Chunk]:
        position = 0
        for chunk in self._until(self._run, math.inf):
            begin = chunk.sample - chunk.lost
            if chunk.missed or begin != position:
                self.notes.append(f"sound is missing in the recording from sample {position} on")
                return
            yield chunk
            position = chunk.sample + len(chunk)

    def _until(self, run: int, end: float) -> Iterator[Chunk]:
        """Yield the chunks that begin before sample `end`."""
        restored = self._session.descriptions[run].get("restored")
        if restored is not None:
            before, sample = self._came_from(run, restored)
            yield from self._until(before, min(end, sample))
        changes = [one for one in self._session.events(run) if one.kind in CHANGES]
        changed = next((one for one in changes if one.sample < end), None)
        if changed is not None:
            end = changed.sample
        for chunk in self._session.sound(run):
            if chunk.sample - chunk.lost >= end:
                break
            over = chunk.sample + len(chunk) - end
            whole = over <= 0
            yield chunk if whole else replace(chunk, samples=chunk.samples[: -int(over)])
        if changed is not None:
            self.notes.append(
                f"only the sound before sample {changed.sample} is measured again: "
                f"{changed.kind}, {changed.text}"
            )

    def _came_from(self, run: int, data: object) -> tuple[int, int]:
        """The run that this one continues, and from which sample."""
        found = [data.get(name) for name in ("run", "sample")] if isinstance(data, dict) else []
        before, sample = found if len(found) == 2 else (0, 0)
        if not (isinstance(before, int) and isinstance(sample, int) and 0 < before < run):
            raise SessionError(f"{self._session.path}: run {run} continues no earlier run")
        if before not in self._session.runs:
            raise SessionError(f"{self._session.path}: run {before} is missing")
        return before, sample


def _halves(chunk: Chunk, at: int) -> tuple[Chunk, Chunk]:
    first = replace(chunk, samples=chunk.samples[:at])
    return first, replace(
        chunk, samples=chunk.samples[at:], sample=chunk.sample + at, lost=0, flags=0, missed=0
    )


class _Recorded(Source):
    """The source of an engine whose models are called directly."""

    live = False
    deliver: Deliver

    def __init__(self, name: str, fs: int, channels: int) -> None:
        self.name, self.fs, self.channels = name, fs, channels

    def start(self, deliver: Deliver) -> None:
        self.deliver = deliver

    def stop(self) -> None:
        """Do nothing: it delivers no sound itself."""


class _Maker:
    """A sink that makes rows.

    limits_after: returns the limits of the first row after a sample
    """

    hears_tail = True

    def __init__(self, table: Table, limits_after: Callable[[int], Sequence[Limit]]) -> None:
        self.rows: deque[Rows] = deque()
        self.changed = threading.Event()
        self._limits_after = limits_after
        self.table = table

    def __call__(self, frames: Frames) -> None:
        self.rows.append(self.table.rows(frames))

    def event(self, event: Event) -> None:
        if event.kind != LIMITS:
            return
        if isinstance(self.table.rows, JoinedRows):
            self.table.change_limits(self._limits_after(self.table.rows.last_sample))
            self.table.event(event)
        self.changed.set()

    def ended(self, end_s: float | None) -> None:
        self.rows.append(self.table.rows.rest(end_s))


def _measured(session: Session, run: int, sound: _RecordedSound) -> Iterator[Rows]:
    """Yield all rows of the sound; then `sound.notes` has what else differs."""
    first = next(iter(sound), None)
    if first is None:
        raise SessionError(_why_none(session, run, sound.notes))
    sound.notes.clear()
    try:
        engine, source, maker = _made(session, run, sound, first)
    except UNMADE as error:
        raise SessionError(
            f"{session.path} does not say how run {run} was measured ({sentence(error)})"
        ) from error
    with engine:
        for one in sound.cut_at_changes():
            if isinstance(one, Chunk):
                source.deliver(one.samples, one.lost, one.flags)
            else:
                engine.announce(one.kind, one.text)
                while not (maker.changed.wait(WAIT_S) or engine.health.sink_errors or engine.error):
                    pass
                maker.changed.clear()
            while maker.rows:
                yield maker.rows.popleft()
        source.deliver(None)
        if not engine.wait() or engine.health.sink_errors:
            raise engine.error or RuntimeError(f"run {run} of {session.path} did not end")
    yield from maker.rows
    sound.notes.extend(_differences(session.descriptions[run], maker.table.header()))


def _why_none(session: Session, run: int, notes: list[str]) -> str:
    """Why no sound can be measured."""
    if next(session.sound(run), None) is None:
        return f"{session.path} has no sound of run {run}: it was not recorded"
    return f"run {run} of {session.path} cannot be measured again: {'; '.join(notes)}"


def _made(
    session: Session, run: int, sound_of: _RecordedSound, first: Chunk
) -> tuple[Engine, _Recorded, _Maker]:
    """Make an engine and rows from a description."""
    path, description = session.path, session.descriptions[run]
    described, settings = description["header"]["source"], description["engine"]
    heard = tuple(described["channels"])
    calibration = [Calibration.from_dict(one) for one in description["calibration"]]
    preset = preset_of(description["preset"], path)
    preset = replace(preset, uncertainty_db=uncertainty_of(calibration))
    named = tuple((str(name), tuple(own)) for name, own in described.get("microphones", {}).items())
    name, duration_s = str(described["name"]), described["duration_s"]
    picked, delivered = description["source"]["picked"], first.samples.shape[1]
    source = _Recorded(name, described["fs"], delivered)
    layout = usual_layout(delivered)
    if "layout" in description["source"]:
        layout = Layout.from_dict(description["source"]["layout"])
    known = SourceDescription.from_dict(described.get("sound", {}), delivered)
    source.description, most = known.with_layout(layout), preset.most_channels
    sound = Sound(
        name,
        described["fs"],
        heard,
        calibration,
        duration_s,
        microphones=named,
        picked=picked is not None,
        heard=None if named else heard_channels(name, layout, most, picked),
    )
    if background := described.get("background"):
        raise SessionError(
            f"{path} was measured over {background}, of which it has no copy: it cannot be "
            "measured again"
        )
    models = preset.models(sound.fs, sound.layouts(preset.names))
    begun = preset_of(session.descriptions[sound_of.first_run]["preset"], path)
    preset = replace(preset, limits=begun.limits)
    table = Table(preset, models, sound, from_data(description["rows"]))
    if sound_of.changes and isinstance(table.rows, JoinedRows):
        table.rows.remember()
    maker = _Maker(table, sound_of.limits_after)
    engine = Engine(
        source,
        models,
        [maker],
        microphones=named_microphones(named, heard, calibration) if named else None,
        calibration=None if named else calibration,
        channels=picked,
        block_ms=settings["block_ms"],
        device=preset.compute,
        run_in="callback",
    )
    return engine, source, maker


def _differences(description: JsonMap, header: JsonDict) -> Iterator[str]:
    """What differs from the original measurement despite equal settings."""
    versions = description.get("versions")
    was = versions.get("amt_stream") if isinstance(versions, dict) else None
    if was != __version__:
        yield f"it was measured with amt_stream {was!r:.40}, and this is {__version__}"
    here = header["compute"]
    there = description["header"].get("compute", here)
    if there != here:
        yield f"it was measured on {there!r:.60}, and this is {here}: last digits may differ"


def _whole(rows: Iterator[JsonDict], path: Path) -> Iterator[JsonDict]:
    """Yield rows, checked for the comparison. Raises SessionError for an invalid one."""
    for number, row in enumerate(rows, 1):
        for name, value in row.items():
            kinds = (int, float) if name in ("sample", "time_s") else VALUES
            if not isinstance(value, kinds) or (isinstance(value, int) and abs(value) > MOST):
                raise SessionError(
                    f"{path} has an invalid row: {name} is {brief(repr(value))} in row {number}"
                )
        if "sample" not in row:
            raise SessionError(f"{path} has an invalid row: row {number} has no sample")
        yield row


class _Comparison:
    """Comparison of logged rows with those measured again, in the same order."""

    def __init__(self, logged: Iterator[JsonDict]) -> None:
        self._logged = logged
        self._next = next(logged, None)
        self._rows = self._absent = self._between = 0
        self._differs = ""
        self._digests = hashlib.sha256(), hashlib.sha256()

    def add(self, rows: Rows) -> None:
        """Compare rows with those of the log, in order."""
        for again in rows:
            was = self._next
            if was is None:
                return
            if again["sample"] < was["sample"]:
                self._between += self._rows > 0
                continue
            self._next = next(self._logged, None)
            self._absent, self._between = self._absent + self._between, 0
            self._rows += 1
            # A column that is younger than the log is not in it.
            found = [_comparable(row, _names(was, again)) for row in (was, again)]
            for digest, row in zip(self._digests, found, strict=True):
                digest.update(canonical(row).encode())
            if found[0] != found[1] and not self._differs:
                self._differs = _difference(*found)

    def result(self, run: int, notes: tuple[str, ...]) -> Replayed:
        logged, again = (digest.hexdigest() for digest in self._digests)
        return Replayed(run, self._rows, self._absent, self._differs, notes, logged, again)


def _names(was: Mapping[str, object], again: Collection[str]) -> Collection[str]:
    """The columns of a logged row, without those that other rows of its table have."""
    return {name for name, value in was.items() if value is not None or name in again}


def _comparable(row: Mapping[str, object], names: Collection[str]) -> JsonDict:
    """These columns of a row without its clock, with numbers in one form."""
    return {
        name: float(value) if isinstance(value, int | float) else value
        for name, value in row.items()
        if name != CLOCK and name in names
    }


def _difference(was: Mapping[str, object], now: Mapping[str, object]) -> str:
    every = dict.fromkeys([*was, *now])
    name = next(n for n in every if n not in was or n not in now or was[n] != now[n])
    where = f"the row at {was.get('time_s')} s, sample {was.get('sample', 0):.0f}"
    return f"{where}: {name} was {was.get(name)!r:.40} and is {now.get(name)!r:.40}"
