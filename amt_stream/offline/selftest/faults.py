"""Faults inserted into a sound, and how an engine counts them."""

import contextlib
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from amt_stream.engine.engine import Engine
from amt_stream.engine.inputs.faults import FaultKind, FaultSource, Injection
from amt_stream.engine.sources import demo_source
from amt_stream.offline.selftest import build

FS = 48000
MODEL = "spl"
RATE_PPM = 1000.0
RATE_TOLERANCE_PPM = 100.0
WAIT_S = 60.0


class Case(NamedTuple):
    """Faults for one engine; with `paced`, in real time."""

    words: str
    faults: Sequence[Injection | tuple[FaultKind, float, float]] | None
    duration_s: float
    paced: bool = False
    seed: int = 0


class Compared(NamedTuple):
    """The injected and the counted value."""

    case: str
    what: str
    injected: str
    counted: str
    passed: bool


CASES = (
    Case("samples dropped", [("drop", 0.5, 0.01), ("drop", 1.0, 0.2), ("drop", 1.5, 1.2)], 3.0),
    Case("samples dropped at the end", [("drop", 0.9, 0.1)], 1.0),
    Case("no numbers", [("nan", 0.3, 0.01), ("nan", 0.7, 0.001)], 1.0),
    Case("clipping", [("clip", 0.3, 0.01), ("clip", 0.7, 0.001)], 1.0),
    Case("digital silence", [("silence", 1.0, 2.0)], 3.0),
    Case("unplugged for 0.7 s", [("unplug", 0.5, 0.7)], 2.0, paced=True),
    Case("stands still for 0.6 s", [("stall", 0.5, 0.6)], 2.0, paced=True),
    Case("late by 0.4 s", [("late", 0.5, 0.4)], 2.0, paced=True),
    Case("clock off by 1000 ppm", [Injection("rate", 0.0, 25.0, RATE_PPM)], 25.0, paced=True),
    *(Case(f"60 s at random, seed {seed}", None, 60.0, seed=seed) for seed in (1, 2, 3)),
)


def run_faults(cases: Sequence[Case] = CASES) -> Iterator[Compared]:
    """Run all cases at once, and yield their results in order."""
    with contextlib.ExitStack() as stack:
        engines = [stack.enter_context(_made(case)) for case in cases]
        for case, engine in zip(cases, engines, strict=True):
            ended = engine.wait(WAIT_S)
            yield Compared(case.words, "ended by itself", "True", str(ended), ended)
            yield from _compared(case, engine)


def _made(case: Case) -> Engine:
    sound = demo_source(FS, case.duration_s, paced=case.paced)
    return Engine(FaultSource(sound, case.faults, case.seed), build(MODEL, fs=FS))


def _compared(case: Case, engine: Engine) -> Iterator[Compared]:
    source, health = engine.source, engine.health
    assert isinstance(source, FaultSource)
    injected, channels = source.injected, source.channels
    kinds = [event.kind for event in engine.events]
    gaps = [(event.sample, event.samples) for event in engine.events if event.kind == "gap"]
    counts = {
        "samples in all": (round(case.duration_s * FS), health.samples + health.lost_samples),
        "samples missing": (injected.lost, health.lost_samples),
        "gaps, in their places": (len(injected.gaps), len(set(gaps) & set(injected.gaps))),
        "samples that are no numbers": (injected.nan * channels, health.non_finite),
        "samples at full scale": (injected.clip * channels, health.clipped),
        "times lost": (injected.unplug, kinds.count("lost")),
        "times back": (injected.unplug, kinds.count("back")),
        "times that it stood still": (injected.stall, kinds.count("stall")),
    }
    for what, (put_in, counted) in counts.items():
        if put_in or counted:
            yield Compared(case.words, what, str(put_in), str(counted), put_in == counted)
    if case.paced and injected.late:
        late = health.late_callbacks
        yield Compared(case.words, "late", str(injected.late), f"{late} blocks", late >= 1)
    if injected.silence and case.faults is not None:
        yield Compared(case.words, "silent at the end", "True", str(health.silent), health.silent)
    if any(fault.ppm for fault in source.faults):
        ppm = health.clock_ppm
        close = ppm is not None and abs(ppm - RATE_PPM) < RATE_TOLERANCE_PPM
        got = "not known" if ppm is None else f"{ppm:.0f}"
        yield Compared(case.words, "ppm of the clock", f"{RATE_PPM:.0f}", got, close)
