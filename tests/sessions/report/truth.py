"""What really happened in a random measurement, kept by the one who pushed its sound.

`untruths` compares a report with it: gaps with their causes, what averages cover, verdicts and
projections.
"""

import re
from dataclasses import dataclass, field

from amt_stream.core.words import counted
from amt_stream.engine import PushSource
from amt_stream.meters.frames import BUFFER, DEVICE, MISSING_WORDS, SILENT, Fault
from amt_stream.meters.source_description import InputGain
from amt_stream.sessions.report.content import limit_lines, readings
from amt_stream.sessions.report.coverage import coverage
from amt_stream.sessions.report.happened import fault_lines, happened
from amt_stream.sessions.report.page import report_page
from amt_stream.sessions.report.times import Clock, duration
from amt_stream.sessions.results.parts import PartsOfRows

FLAGS = {DEVICE: 0, SILENT: int(Fault.SILENT), BUFFER: int(Fault.OVERLOAD)}
EDGE_S = 0.021
"""A change takes effect at the next block of 20 ms; a frame has 10 ms."""

STEP_S = {"spl": EDGE_S, "bs1770": 0.1}
MEMORY_S = 0.15
"""What a model leaves out after a gap or another gain, as its filters remember it."""

FULL, HALF = InputGain((100.0,)), InputGain((50.0,))
Span = tuple[float, float]


class Microphone(PushSource):
    """Pushed sound of a device that loses some, is muted and turned."""

    def push_after(self, block, lost, cause):
        """Push a block before which samples are missing for a reason."""
        if cause == SILENT:
            self.tell("silent", f"{self.name} gives exact zeros: it is muted")
        self._deliver(block, lost, FLAGS[cause])
        if cause == SILENT:
            self.tell("back", f"{self.name} gives sound again")

    def turn(self, gain):
        self.tell_gain(gain, range(self.channels))


@dataclass
class Truth:
    """Spans in seconds of sound: gaps by cause, gain turned, second model off, clipped."""

    gaps: dict[str, list[Span]] = field(default_factory=lambda: {one: [] for one in FLAGS})
    turned: list[Span] = field(default_factory=list)
    off: list[Span] = field(default_factory=list)
    clipped: list[Span] = field(default_factory=list)
    calibrated: bool = True
    end_s: float = 0.0

    def begin(self, spans, at_s):
        spans.append((at_s, float("inf")))

    def end(self, spans, at_s):
        spans[-1] = spans[-1][0], at_s

    @property
    def missing(self) -> list[Span]:
        """What has no sound, or none that is calibrated."""
        found = [span for spans in self.gaps.values() for span in spans]
        return found + (self.turned if self.calibrated else [])


def length(spans, begin_s, end_s):
    """Seconds of these spans together between two times."""
    total, reached = 0.0, begin_s
    for a, b in sorted(spans):
        a, b = max(a, reached), min(b, end_s)
        if b > a:
            total, reached = total + b - a, b
    return total


def seconds_in(text):
    """The seconds of a text such as "4.5 s" or "1 min 3 s"."""
    found = re.findall(r"([\d.]+(?:e[+-]?\d+)?) (h|min|s)\b", text)
    return sum(float(number) * {"h": 3600, "min": 60, "s": 1}[unit] for number, unit in found)


def untruths(truth, results, events, paused, limits):
    """Sentences of a report that are not so.

    paused: spans of pauses
    """
    found = _gaps(truth, results)
    # A killed run ends with its last row.
    end_s = truth.end_s if results.summary else results.duration_s
    resets = [one.time_s for one in events if one.kind == "readings_reset"]
    undone = any(one.kind == "reset_undone" for one in events)
    begin_s = max(resets, default=0.0)
    if undone:
        return found  # what was counted then is of several spans
    if truth.turned and truth.turned[0][0] < EDGE_S:
        return found  # it depends on one frame whether uncalibrated sound counts
    whole_s = end_s - begin_s - length(paused, begin_s, end_s)
    parts = PartsOfRows(results)
    left_out = {"spl": truth.missing, "bs1770": [*_heard(truth), *truth.off]}
    for model, spans in left_out.items():
        measured_s = end_s - begin_s - length([*spans, *paused], begin_s, end_s)
        near = _near(results, model, [*spans, *paused], truth)
        told = coverage(parts, model)["measured_s"]
        if not measured_s - near[0] <= told <= measured_s + near[1]:
            found.append(f"{model} measured {told} s, truly {measured_s}")
        begins = len([*_heard(truth), *truth.turned])
        found += _averages(results, model, measured_s, whole_s, near, begins)
    near = _near(results, "spl", [*truth.missing, *paused], truth)
    return found + _verdicts(results, limits, truth.missing, paused, (begin_s, end_s), near[0])


def _near(results, model, spans, truth):
    """How much less and how much more a model may have counted: whole frames, or whole rows.

    After a gap or another gain, it leaves out what its filters remember.
    """
    frame_s = STEP_S[model] if results.summary else max(STEP_S[model], results.step_s)
    edges_s = frame_s * (len(spans) + 1) + 1e-6
    # Rows of digital silence do not say whose model was off.
    off_s = length(truth.off, 0.0, results.duration_s) + 2 * results.step_s * len(truth.off)
    off_s = 0.0 if results.summary else off_s
    return edges_s + MEMORY_S * len([*_heard(truth), *truth.turned]) + off_s, edges_s


def _heard(truth):
    """What a model of the digital signal has no sound of; it needs no calibration."""
    return [span for spans in truth.gaps.values() for span in spans]


def _gaps(truth, results):
    """The page has the total of each cause, and marks where nothing was measured."""
    found, page = [], report_page(results)
    lost, measured = fault_lines(results)
    text = "; ".join(lost)
    end_s = results.duration_s
    for cause, spans in truth.gaps.items():
        if not spans:
            if MISSING_WORDS[cause] in text or (cause == SILENT and "silent" in text):
                found.append(f"{cause} is told: {text}")
            continue
        total = duration(sum(b - a for a, b in spans))
        many = counted(len(spans), "time")
        expected = f"{total} {MISSING_WORDS[cause]} ({many})"
        if cause == SILENT:
            expected = f"silent {many}, {total} in all"
        elif sum(len(truth.gaps[one]) for one in (DEVICE, BUFFER)) == 1:
            expected = f"gap 1 time, {total} in all: "
        if expected not in text:
            found.append(f"{expected!r} is not in {text!r}")
        if "Hatched, not measured" not in page:
            found.append("nothing is hatched")
    clipped = [span for span in truth.clipped if span[1] < end_s]
    if bool(clipped) and not any(one.startswith("clipped") for one in measured):
        found.append(f"no word of clipped sound: {measured}")
    lines, _ = happened(results, Clock(None))
    kinds = {"silent": truth.gaps[SILENT], "uncalibrated": truth.turned if truth.calibrated else []}
    for kind, spans in kinds.items():
        own = [span for span in spans if span[0] < end_s - EDGE_S]
        said = [words for _, words in lines if kind in words or "exact zeros" in words]
        if own and not said:
            found.append(f"{kind} is not among what happened: {lines}")
    return found


def _averages(results, model, measured_s, whole_s, near, begins):
    """A statistic of part of the time says of which.

    begins: how often the sound began again; until its level has settled, it is in no maximum
    """
    found = []
    for group in readings(results, 999).values():
        for one in group:
            column = results.columns.get(one.name)
            if column is None or column.model != model or not column.counted or column.bound_of:
                continue
            if measured_s < 0.99 * whole_s - near[1] and not one.covered:
                found.append(f"{one.name} covers {measured_s} of {whole_s} s and does not say so")
            told = seconds_in(one.covered.partition(" of ")[0])
            settles_s = begins * (column.counts_after_s or 0.0)
            least, most = measured_s - near[0] - settles_s, measured_s + near[1]
            if one.covered and not 0.99 * least <= told <= 1.01 * most:
                found.append(f"{one.name} is {one.covered}, truly {measured_s}")
    return found


def _verdicts(results, limits, missing, paused, within, near_s):
    """No limit is kept over time that was not measured, and no window projects it."""
    found, clock = [], Clock(None)
    begin_s, end_s = within
    for limit, line in zip(limits, limit_lines(results, clock), strict=True):
        whole_s = end_s - begin_s - length(paused, begin_s, end_s)
        not_paused = [span for span in missing if not _inside(span, paused)]
        lost_s = length(not_paused, begin_s, end_s)
        if line.verdict == "kept" and not limit.at_end and lost_s > 0.01 * whole_s + near_s:
            found.append(f"{limit.words} is kept, and {lost_s} of {whole_s} s were not measured")
    for group in readings(results, 999).values():
        for one in group:
            column = results.columns.get(one.name)
            if column is None or not column.window_s or column.model != "spl":
                continue
            since_s = max(0.0, end_s - column.window_s)
            lost = [*missing, *paused]
            heard_s = end_s - since_s - length(lost, since_s, end_s)
            if heard_s < 0.99 * column.window_s - near_s and not one.measured:
                found.append(f"{one.name}: {heard_s} s of its window were heard, and no word of it")
    return found


def _inside(span, paused):
    return any(a <= span[0] and span[1] <= b for a, b in paused)
