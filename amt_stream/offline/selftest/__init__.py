"""The models against published values, each played through the chain that a meter has."""

from collections.abc import Iterator, Sequence

from amt_stream.dsp.streaming import Stage
from amt_stream.meters import catalog
from amt_stream.offline.selftest.check import Build, Result, Trial
from amt_stream.offline.selftest.requirement import Requirement

__all__ = ["Build", "Requirement", "Result", "Trial", "build", "models", "run_checks", "trials"]


def models() -> tuple[str, ...]:
    """Names of the models that have checks."""
    return catalog.names(lambda entry: entry.checks is not None)


def build(name: str, **options: object) -> Stage:
    """The model of that name; `options` are arguments of its class."""
    entry = catalog.entry(name)
    model: Stage = entry.load("model")(**{**entry.arguments, **options})
    return model


def trials(names: Sequence[str] | None = None) -> list[Trial]:
    """All that is played to these models, or to all, in order.

    Raises CatalogError for one that there is not, or that has no checks.
    """
    entries = [catalog.entry(name) for name in (models() if names is None else names)]
    return [trial for entry in entries for trial in entry.load_checks().CHECKS]


def run_checks(names: Sequence[str] | None = None, build: Build = build) -> Iterator[Result]:
    """Results of these models, or of all, one after another; `build` makes each that is tested.

    Frames are too small to share among threads: call `torch.set_num_threads(1)` before.
    """
    for trial in trials(names):
        yield from trial.results(build)
