"""Each source x condition x model, from a file and from a pipe: right, or one sentence."""

import re
from collections import defaultdict
from dataclasses import dataclass, field, replace

import numpy as np

from tests.as_it_comes.answers import Settings, by_analyze, by_pipe
from tests.as_it_comes.plain import Heard, tolerance
from tests.as_it_comes.sources import WAVE, Source

FS = 48000
READINGS = {
    "bs1770": ("integrated_lufs", "true_peak_dbtp", "sample_peak_dbfs"),
    "spl": ("laeq_db", "lafmax_db", "lcpeak_db"),
    "zwicker": ("zwicker_nmax_sone",),
    "moore2016": ("max_ltl_sone",),
}
OF_EARS = ("spl", "zwicker", "moore2016")
WAYS = {"file": by_analyze, "pipe": by_pipe}
ENDS = 0.02
OFFSET, TOLD = 0.02, 1e-3
LISTEN = FS // 2
AVERAGES, JOINT_DB = ("laeq_db", "integrated_lufs"), 0.15
"""Where MP3s are joined, programs leave out more or less of the padding between them."""


def swell(peak, hz=997.0, loud_s=0.55, seconds=0.75):
    """A tone (time,) that becomes 20 dB softer before its end, so that nothing is highest there."""
    time_s = np.arange(round(seconds * FS)) / FS
    corners = (0, ENDS, loud_s, loud_s + ENDS, seconds - ENDS, seconds)
    envelope = np.interp(time_s, corners, (0, 1, 1, 0.1, 0.1, 0))
    return peak * envelope * np.sin(2 * np.pi * hz * time_s)


def pair(peak):
    return np.stack([swell(peak), 0.5 * swell(peak)], axis=1)


def with_low_frequencies(positions):
    levels = {"L": 0.04, "R": 0.03, "C": 0.05, "Ls": 0.03, "Rs": 0.02}
    tones = [swell(levels.get(one, 0)) + swell(0.5 * (one == "LFE"), 60.0) for one in positions]
    return np.stack(tones, axis=1)


def muted():
    x = pair(0.1)
    x[round(0.25 * FS) : round(0.4 * FS)] = 0
    return x


CONDITIONS = {
    "full scale": lambda source: pair(1.0),
    "beyond full scale": lambda source: pair(2.0),
    "offset of 2 %": lambda source: pair(0.1) + OFFSET,
    "low-frequency channel": lambda source: with_low_frequencies(source.positions.split()),
    "mute": lambda source: muted(),
}


@dataclass
class Outcome:
    """Of one model in one cell: how far each reading is off, or the sentence of a refusal."""

    off: dict[str, float] = field(default_factory=dict)
    refusal: str = ""
    wrong: list[str] = field(default_factory=list)


class Right:
    """What readings of sounds are by plain calculations, each calculated once."""

    def __init__(self):
        self._known = {}

    def __call__(self, name, heard):
        key = name, heard.positions, np.float32(heard.x).tobytes()
        if hash(key) not in self._known:
            self._known[hash(key)] = getattr(heard, name)()
        return self._known[hash(key)]


def near_of(name):
    return max(tolerance(name).values())


def is_clipped(x, top):
    """Whether two samples of a channel in a row are at the same end of range."""
    if top is None:
        return False
    at_end = np.where(np.abs(x) >= top, np.sign(x), 0.0)
    return bool(((at_end[1:] == at_end[:-1]) & (at_end[1:] != 0)).any())


def outcomes(source: Source, condition: str, right: Right, folder):
    """(way, model, Outcome) of a source under a condition."""
    content, x = source.made(CONDITIONS[condition](source))
    path = folder / "sound"
    path.write_bytes(content)
    several = x.shape[1] > 2
    positions = "L R" if not several else source.positions if source.encoding else WAVE
    digital = Heard(x, positions=positions)
    offset = np.average(x[:LISTEN], axis=0, weights=np.hanning(LISTEN))
    ears = replace(digital, x=x - np.where(np.abs(offset) > TOLD, offset, 0))
    refuses = several and not source.says_layout
    for way, measured in WAYS.items():
        if refuses:
            answer = measured(path, Settings("bs1770", None))
            refusal = measured(path, Settings(",".join(OF_EARS)))
        else:
            answer = refusal = measured(path, Settings(",".join(READINGS)))
        wrong = problems(answer, source, condition, x, offset)
        for model, names in READINGS.items():
            outcome = Outcome(wrong=wrong if model == "bs1770" else [])
            if refuses and model in OF_EARS:
                outcome.refusal = refusal.words
                if refusal.status == 0 or refusal.summary or not sentence(refusal.words):
                    outcome.wrong.append(f"is not refused in a sentence: {refusal}")
            else:
                heard = digital if model == "bs1770" else ears
                for name in names:
                    known = right(name, heard)
                    read = answer.summary.get(name)
                    outcome.off[name] = off = (
                        np.inf
                        if read is None
                        else read / known - 1
                        if name.endswith("sone")
                        else read - known
                    )
                    near = JOINT_DB if source.has_joint and name in AVERAGES else near_of(name)
                    if not abs(off) <= near:
                        outcome.wrong.append(f"{name} is {read}, and should be {known:.5g}")
            yield way, model, outcome


def sentence(words):
    """One that says what to do."""
    *_, last = words.strip().splitlines()
    return re.fullmatch(r"amt-stream: (/.*|standard input) has .*, or give their layout", last)


def problems(answer, source, condition, x, offset):
    """What is wrong with the status and with what is said beside the readings."""
    if not answer.summary:
        return [f"status {answer.status}: {answer.words}"]
    expected = {
        "is clipped": is_clipped(x, source.top),
        "has an offset of": np.abs(offset).max() > TOLD,
    }
    if source.encoding:
        expected["its header says"] = source.length in ("too short", "too long")
    if source.length == "joined" and "without" not in source.container:
        expected["in a row|there are"] = True
    if source.container.startswith(("MP3", "Ogg")):
        del expected["has an offset of"]  # encoders take most of it away, but not at once
    found = {words: bool(re.search(words, answer.words)) for words in expected}
    wrong = [
        f"says {'' if there else 'not '}'{words}': {answer.words}"
        for words, there in found.items()
        if there != bool(expected[words])
    ]
    if (answer.clipped_s > 0) != expected["is clipped"]:
        wrong.append(f"clipped_s is {answer.clipped_s}")
    if answer.status != (source.length == "too long"):
        wrong.append(f"status {answer.status}: {answer.words}")
    return wrong


def run(table, condition, sources, folder):
    """Measure sources under a condition, and write into the table how they are read."""
    right = Right()
    for source in sources:
        if condition == "low-frequency channel" and not source.has_six_channels:
            continue
        for way, model, outcome in outcomes(source, condition, right, folder):
            table.add(source, condition, way, model, outcome)


class Table:
    """Counts of cells and the largest deviations, by condition and model."""

    def __init__(self):
        self.count = self.refused = 0
        self.wrong = []
        self._rows = defaultdict(lambda: [0, 0, defaultdict(float)])

    def add(self, source, condition, way, model, outcome):
        row = self._rows[condition, model]
        row[0] += 1
        row[1] += bool(outcome.refusal)
        self.count += 1
        self.refused += bool(outcome.refusal)
        for name, off in outcome.off.items():
            row[2][name] = max(row[2][name], abs(off))
        self.wrong += [f"{source}; {condition}; {way}; {model}: {why}" for why in outcome.wrong]

    @property
    def largest(self):
        """The largest deviations of all levels in dB, and of all loudness in percent."""
        of_all = {"dB": 0.0, "%": 0.0}
        for _, _, off in self._rows.values():
            for name, one in off.items():
                unit, scale = ("%", 100) if name.endswith("sone") else ("dB", 1)
                of_all[unit] = max(of_all[unit], scale * one)
        return f"levels within {of_all['dB']:.3f} dB, loudness within {of_all['%']:.2f} %"

    def __str__(self):
        lines = [
            "| condition | model | cells | refused in a sentence | largest deviation |",
            "|---|---|---|---|---|",
        ]
        for (condition, model), (count, refused, off) in self._rows.items():
            largest = ", ".join(
                f"`{name}` {100 * one:.2f} %" if name.endswith("sone") else f"`{name}` {one:.3f}"
                for name, one in off.items()
            )
            lines.append(f"| {condition} | `{model}` | {count} | {refused} | {largest} |")
        return "\n".join([*lines, f"{self.count} cells, {len(self.wrong)} wrong"])
