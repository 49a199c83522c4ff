"""The models against published values, each played through the chain that a meter has."""

from collections.abc import Iterator, Sequence
from typing import Any

from amt_stream.models import Glasberg2002, Moore2016, ZwickerTimeVarying
from amt_stream.selftest import bs1770, glasberg2002, moore2016, sound_level, zwicker
from amt_stream.selftest.check import Build, Result, Trial
from amt_stream.selftest.reading import Reading
from amt_stream.stages import BS1770, SoundLevel
from amt_stream.streaming import Stage

__all__ = ["MODELS", "Build", "Reading", "Result", "Trial", "build", "run", "trials"]

_HOMES: dict[str, tuple[type[Stage], Any]] = {
    "moore2016": (Moore2016, moore2016),
    "gm2002": (Glasberg2002, glasberg2002),
    "zwicker": (ZwickerTimeVarying, zwicker),
    "bs1770": (BS1770, bs1770),
    "spl": (SoundLevel, sound_level),
}
MODELS = tuple(_HOMES)
"""Names of the models that have checks."""


def build(name: str, **options: Any) -> Stage:
    """The model of that name."""
    return _HOMES[name][0](**options)


def trials(models: Sequence[str] = MODELS) -> list[Trial]:
    """All that is played to these models, in order. Raises ValueError for an unknown one."""
    unknown = [name for name in models if name not in MODELS]
    if unknown:
        raise ValueError(f"no model {unknown[0]!r} to test: give some of {', '.join(MODELS)}")
    return [trial for name in models for trial in _HOMES[name][1].CHECKS]


def run(models: Sequence[str] = MODELS, build: Build = build) -> Iterator[Result]:
    """Results of these models, one after another; `build` makes each that is tested.

    Frames are too small to share among threads: call `torch.set_num_threads(1)` before.
    """
    for trial in trials(models):
        yield from trial.results(build)
