"""Results as text: rows, summaries and the verification report."""

import platform
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.metadata import version

from amt_stream import __version__
from amt_stream.core.words import counted
from amt_stream.offline.selftest.check import Result, Trial

COLUMNS = ("", "model", "sound: reading", "expected", "got", "deviation", "tolerance", "source")


def cells(result: Result) -> tuple[str, ...]:
    """The cells of a result under `COLUMNS`."""
    reading, of = result.reading, result.reading.deviates_in
    return (
        "pass" if result.passed else "FAIL",
        result.model,
        f"{result.sound}: {reading.what}",
        f"{reading.expected:g} {reading.unit}",
        # The widest such number.
        f"{result.got:<11.6g}" if not result.problem else result.problem,
        f"{result.deviation:<+8.2g} {of}",
        f"{reading.tolerance:g} {of}",
        reading.source,
    )


def row(values: Sequence[str], widths: Sequence[int]) -> str:
    """A line of columns; the last one is not padded."""
    padded = (f"{value:<{width}}" for value, width in zip(values, widths, strict=True))
    return "  ".join(padded).rstrip()


def column_widths(trials: Sequence[Trial]) -> list[int]:
    """Widths of columns, as far as known before the checks; 0 for the last."""
    known: list[tuple[str, ...]] = [COLUMNS]
    for trial in trials:
        for reading in trial.readings:
            known.append(cells(Result(trial.model, trial.words, reading, reading.expected)))
    columns = list(zip(*known, strict=True))[:-1]
    return [*(max(map(len, column)) for column in columns), 0]


def _worst(results: Sequence[Result]) -> str:
    """The largest deviation in each unit: "2.5 %, 0.08 phon"."""
    largest: dict[str, float] = {}
    for result in results:
        unit = result.reading.deviates_in
        # NaN is worse than any deviation.
        off = abs(result.deviation) if result.got == result.got else float("inf")
        largest[unit] = max(off, largest.get(unit, 0.0))
    return ", ".join(f"{off:.2g} {unit}" for unit, off in largest.items())


def summary_text(results: Sequence[Result]) -> str:
    """The number of passed checks, and the worst deviation."""
    passed = sum(result.passed for result in results)
    return f"{passed} of {len(results)} passed, worst deviation {_worst(results)}"


def by_model(results: Sequence[Result]) -> dict[str, list[Result]]:
    models: dict[str, list[Result]] = {}
    for result in results:
        models.setdefault(result.model, []).append(result)
    return models


def statement(results: Sequence[Result]) -> str:
    """A statement about the models after these results."""
    printed = [result for result in results if result.reading.published]
    others = len(results) - len(printed)
    failed = [result for result in results if not result.passed]
    if failed:
        checks = counted(len(results), "check")
        return f"{len(failed)} of {checks} failed: these models are not verified."
    values = counted(len(printed), "published value")
    verified = f"verified against {values} (worst deviation {_worst(printed)})"
    also = f" and {others} independently calculated ones" if others else ""
    return (
        f"Implemented from published descriptions of the standards, {verified}{also}, not "
        "certified; the microphone is yours to calibrate."
    )


def markdown(results: Sequence[Result]) -> str:
    """The verification report."""
    now = datetime.now(UTC).replace(microsecond=0).isoformat()
    programs = ", ".join(f"{name} {version(name)}" for name in ("torch", "numpy", "numba"))
    lines = [
        "# Verification of amt_stream",
        "",
        f"- version: {__version__}",
        f"- date: {now}",
        f"- machine: {platform.platform()}, {platform.processor() or platform.machine()}",
        f"- Python {platform.python_version()}, {programs}",
        "",
        statement(results),
        "",
        *(f"- {model}: {summary_text(of)}" for model, of in by_model(results).items()),
        f"- in all: {summary_text(results)}",
        "",
        "| " + " | ".join(name or "result" for name in COLUMNS) + " |",
        "|" + "---|" * len(COLUMNS),
        *("| " + " | ".join(v.replace("|", "\\|") for v in cells(r)) + " |" for r in results),
    ]
    return "\n".join(lines) + "\n"
