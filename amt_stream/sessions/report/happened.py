"""What happened to the sound, as text: faults and events, each kind with its total."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from amt_stream.core.clock import SAME_S
from amt_stream.core.safe_text import brief, sentence
from amt_stream.core.words import counted
from amt_stream.meters import catalog
from amt_stream.meters.frames import (
    CAUSES,
    IMPULSE_COUNTING,
    MISSING_WORDS,
    OUTPUT,
    SILENT,
    STALLED,
    Event,
    Fault,
)
from amt_stream.meters.rows.column import AT_LEAST
from amt_stream.meters.rows.words import FAULT_NAMES, FAULT_WORDS, SIGNS
from amt_stream.meters.state_signs import AWAY
from amt_stream.sessions.report.coverage import coverage, of_summary
from amt_stream.sessions.report.times import Clock, duration
from amt_stream.sessions.results import EXCLUDED, GAPS, UNCALIBRATED_SOUND, Results
from amt_stream.sessions.results.parts import PartsOfRows

MOST_MARKS, MOST_CAUSES, MOST_TEXTS = 6, 2, 2
"""Largest number of marks, of reasons of slowness, and of sentences of one kind of event."""

SHOWN_AS = {FAULT_NAMES[bit]: word for bit, word in FAULT_WORDS.items()}
SHOWN_AS[UNCALIBRATED_SOUND] = "uncalibrated, left out of all readings"
SHOWN_AS[EXCLUDED] = "excluded from this report"
GAP, QUIET, OFF, SLOW, LATE, CLIP = (
    FAULT_NAMES[bit]
    for bit in (Fault.GAP, Fault.SILENT, Fault.OFF, Fault.OVERLOAD, Fault.STALL, Fault.CLIP)
)

MEASURED = SLOW, CLIP
"""Faults in which the sound is measured all the same: an amber line, and no hatching."""

ENDS = {
    "lost": "back",
    "silent": "back",
    "overload": "recovered",
    "paused": "continued",
    "uncalibrated": "calibrated",
}
"""Kinds of events that end another kind."""

SOON_S = 0.5
"""Largest delay of a gap after the event that a microphone is back."""

OF_FAULT = {"overload": SLOW, "clip": CLIP}
"""Kinds of events that tell the beginning of a fault."""

NAMES = {
    "lost": "microphone lost",
    "silent": "microphone silent",
    "back": "microphone back",
    "dead_channel": "channel silent",
    "gain": "gain turned",
    "clip": "clipped",
    "offset": "offset removed",
    "uncalibrated": "uncalibrated",
    "calibrated": "calibrated",
    "overload": "processing did not keep up",
    "recovered": "processing kept up again",
    "swapped": "model changed",
    "limits": "limits changed",
    "filters_reset": "filters reset",
    "readings_reset": "readings reset",
    "reset_undone": "reset undone",
    "paused": "paused",
    "continued": "continued",
    "impulse_left_out": "impulse left out",
    "impulse_counted": "impulse counted again",
    "clock": "clock set",
    "restored": "continued an earlier run",
}
"""Kinds of events in a report, in words."""


def hatched(results: Results, models: Sequence[str]) -> list[tuple[float, float, str]]:
    """Begin, end and word of each time in which these models did not measure."""
    parts, found = PartsOfRows(results), list[tuple[float, float, str]]()
    for one in results.stretches:
        if one.fault not in (*MEASURED, OFF):
            found.append((one.begin_s, one.end_s, SHOWN_AS[one.fault].partition(",")[0]))
    for begin_s, end_s in dict.fromkeys(
        span for name in models for span in parts.spans.off_of(name)
    ):
        found.append((begin_s, end_s, SHOWN_AS[OFF]))
    return sorted(found)


def doubtful(results: Results) -> list[tuple[float, float]]:
    """Begin and end of each time that was measured, but clipped or on a slow computer."""
    return [(one.begin_s, one.end_s) for one in results.stretches if one.fault in MEASURED]


def fault_lines(results: Results) -> tuple[list[str], list[str]]:
    """A sentence for each kind of fault, with its total duration, the longest first.

    First of sound that was not measured, then of sound that was measured with a fault.
    """
    kinds = [_Kind(results, word) for word in SHOWN_AS]
    there = [one for one in kinds if one.count]
    there.sort(key=lambda one: -one.seconds)
    missed_s = of_summary(results, "missing", f"{OUTPUT}_s") or 0.0
    missed = [f"{duration(missed_s)} {MISSING_WORDS[OUTPUT]}"] if missed_s > 0 else []
    lost = [one.words for one in there if one.word not in MEASURED]
    return [*lost, *missed], [one.words for one in there if one.word in MEASURED]


class _Kind:
    """A kind of fault: how often it was there, for how long, and why."""

    def __init__(self, results: Results, word: str) -> None:
        self.word, self._results = word, results
        own = [one for one in results.stretches if one.fault == word]
        self.count, self.seconds = len(own), sum(one.end_s - one.begin_s for one in own)
        self._text = next((one.text for one in own if one.text), "")
        # Events have it to the sample; several gaps may lie in one row, or in rows side by side.
        gaps = [one for one in _gaps(results) if (one.cause == SILENT) == (word == QUIET)]
        self._gaps = gaps if word in (GAP, QUIET) else []
        if self._gaps:
            self.count, fs = len(gaps), results.header["source"]["fs"]
            self.seconds = sum(one.samples for one in gaps) / fs

    @property
    def words(self) -> str:
        """As "gap 3 times, 12 s in all: 8 s lost by the device or the sound server (2 times)"."""
        why = self._why or brief(self._text)
        times = counted(self.count, "time")
        because = f": {why}" if why else ""
        return f"{SHOWN_AS[self.word]} {times}, {duration(self.seconds)} in all{because}"

    @property
    def _why(self) -> str:
        """What happened, with the total of each cause; "" if only an event says so."""
        results = self._results
        if self.word == GAP and (self.count > 1 or not self._text):
            return self._by_cause()
        if self.word == OFF:
            return _off_words(results)
        if self.word == SLOW:
            return _why_slow(results)
        if self.word == LATE:
            seconds = of_summary(results, "missing", f"{STALLED}_s") or 0.0
            return f"{duration(seconds)} {MISSING_WORDS[STALLED]}" if seconds else ""
        if self.word == CLIP:
            return f"{SIGNS[AT_LEAST].strip()} stands before readings that are at least so high"
        return ""

    def _by_cause(self) -> str:
        """The total of each cause, the longest first."""
        fs, results = self._results.header["source"]["fs"], self._results
        found = {}
        for cause in CAUSES:
            own = [one for one in self._gaps if one.cause == cause]
            seconds = sum(one.samples for one in own) / fs
            many = f" ({counted(len(own), 'time')})"
            if not self._gaps and cause != SILENT:  # as in a file of rows, without events
                seconds, many = of_summary(results, "missing", f"{cause}_s") or 0.0, ""
            if seconds > 0:
                found[f"{duration(seconds)} {MISSING_WORDS[cause]}{many}"] = seconds
        return ", ".join(sorted(found, key=lambda words: -found[words]))


def _gaps(results: Results) -> list[Event]:
    """Gaps whose length and cause are in the log."""
    return [e for e in results.events if e.kind == GAPS[0] and e.samples and e.cause in CAUSES]


def _lost_s(results: Results, begin_s: float, end_s: float) -> float:
    """Duration of the gaps that begin from one event to another, or soon after it.

    The event that a microphone is back may come before the gap that it ends.
    """
    lasts = (e.samples for e in _gaps(results) if begin_s - SAME_S <= e.time_s <= end_s + SOON_S)
    return sum(lasts, 0.0) / float(results.header["source"]["fs"])


def _off_words(results: Results) -> str:
    """The models that were switched off, each with its total."""
    parts, found = PartsOfRows(results), []
    for model in results.header["models"]:
        entry, off_s = catalog.entries().get(model["name"]), coverage(parts, model["name"])["off_s"]
        if off_s > 0:
            found.append(f"{entry.title if entry else model['name']} {duration(off_s)}")
    return ", ".join(found)


def _why_slow(results: Results) -> str:
    """The most frequent reasons why processing could not keep up."""
    causes = Counter(e.cause for e in results.events if e.kind == "overload" and e.cause)
    named = [f"because {sentence(cause)}" for cause, _ in causes.most_common(MOST_CAUSES)]
    return "; ".join(named)


@dataclass
class _Happening:
    """Events of one kind: the first and the last, what they say, and for how long it was so."""

    kind: str
    events: list[Event]
    seconds: float = 0.0

    @property
    def texts(self) -> list[str]:
        """What the events say, each sentence once."""
        return [*dict.fromkeys(brief(one.text) for one in self.events if one.text)]

    def when(self, clock: Clock) -> str:
        """The time of the first, and of the last."""
        first, last = (clock.moment(self.events[at].time_s) for at in (0, -1))
        return first if first == last else f"{first} to {last}"

    def words(self, results: Results) -> str:
        """All of them in one sentence, with the total."""
        count, said = len(self.events), self.texts
        if self.kind == "overload":
            off = _off_words(results)
            count = _Kind(results, SLOW).count or count
            said = [*filter(None, (_why_slow(results), f"switched off: {off}" if off else ""))]
        total = f", {duration(self.seconds)} in all" if self.seconds > 0 else ""
        if count == 1 and said and self.kind in IMPULSE_COUNTING:  # a person's reason
            return f"{NAMES[self.kind]}: {said[0]}"
        if count == 1 and self.kind != "overload":
            return f"{said[0] if said else NAMES[self.kind]}{total}"
        if len(said) > MOST_TEXTS:
            said = [f"first: {said[0]}", f"last: {said[-1]}"]
        return "; ".join([f"{NAMES[self.kind]} {counted(count, 'time')}{total}", *said])


def happened(results: Results, clock: Clock) -> tuple[list[tuple[str, str]], int]:
    """Marks, numbered as in the history, and events, with times; and how many marks are left out.

    Events of one kind are one line with their total; what took longest comes first.
    """
    marks = [
        (f"{number}  {clock.moment(one.time_s)}", sentence(one.text) or "mark")
        for number, one in enumerate(results.marks, 1)
    ]
    kinds = sorted(_happenings(results), key=lambda one: (-one.seconds, -len(one.events)))
    lines = [*marks[:MOST_MARKS], *((one.when(clock), one.words(results)) for one in kinds)]
    return lines, max(0, len(marks) - MOST_MARKS)


def _happenings(results: Results) -> list[_Happening]:
    """The events by kind; those that end another kind only give its length."""
    happenings: dict[str, _Happening] = {}
    since: dict[str, float] = {}
    for one in results.events:
        if one.kind not in NAMES:
            continue
        ended = [kind for kind in since if ENDS[kind] == one.kind]
        for kind in ended:
            begin_s = since.pop(kind)
            away_s = _lost_s(results, begin_s, one.time_s) if kind in AWAY else 0.0
            happenings[kind].seconds += max(away_s, one.time_s - begin_s)
        if one.kind in ENDS:
            since.setdefault(one.kind, one.time_s)
        if not ended:
            happenings.setdefault(one.kind, _Happening(one.kind, [])).events.append(one)
    for kind, begin_s in since.items():
        happenings[kind].seconds += max(0.0, results.duration_s - begin_s)
    for kind, word in OF_FAULT.items():  # which rows have better
        if kind in happenings:
            happenings[kind].seconds = _Kind(results, word).seconds
    return [*happenings.values()]
