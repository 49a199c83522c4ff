"""Checks of the models against published values, through the processing of a meter."""

from collections.abc import Iterator, Sequence

from amt_stream.dsp.streaming import Stage
from amt_stream.meters import catalog
from amt_stream.offline.selftest.check import Build, Result, Trial
from amt_stream.offline.selftest.requirement import Requirement
from amt_stream.offline.selftest.ways import WAYS, Way

__all__ = [
    "WAYS",
    "Build",
    "Requirement",
    "Result",
    "Trial",
    "Way",
    "build",
    "models",
    "run_checks",
    "trials",
]


def models() -> tuple[str, ...]:
    """Names of the models that have checks."""
    return catalog.names(lambda entry: entry.checks is not None)


def build(name: str, **options: object) -> Stage:
    """Make the model of this name; `options` are arguments of its class."""
    entry = catalog.entry(name)
    model: Stage = entry.load("model")(**{**entry.arguments, **options})
    return model


def trials(names: Sequence[str] | None = None) -> list[Trial]:
    """All trials of these models, or of all models, in order.

    Raises CatalogError for an unknown model, or one without checks.
    """
    entries = [catalog.entry(name) for name in (models() if names is None else names)]
    return [trial for entry in entries for trial in entry.load_checks().CHECKS]


def run_checks(
    names: Sequence[str] | None = None, build: Build = build, ways: Sequence[Way] = ()
) -> Iterator[Result]:
    """Yield the results of these models, or of all models; `build` makes the models.

    ways: ways in which the sounds are played, by default the usual one of each

    Frames are too small to share among threads: call `torch.set_num_threads(1)` before.
    """
    for trial in trials(names):
        yield from trial.results(build, ways)
