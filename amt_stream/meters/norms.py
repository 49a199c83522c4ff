"""Norms: sets of limits by name, and limits from files and texts."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from amt_stream.core.safe_text import brief
from amt_stream.core.settings import PresetError, load_named, names_in, presets_folder, tables_in
from amt_stream.core.values import LimitTables
from amt_stream.meters.limits import Limit, LimitError, limit_from_text, limit_of, refuse_twice

KEYS = ("description", "source", "limits")


def norms_folder() -> Path:
    return presets_folder() / "limits"


def shipped_norms() -> list[str]:
    return names_in(norms_folder())


def load_norm(name: str) -> tuple[Limit, ...]:
    """Load the limits of a shipped norm by name, or of a file, each with its source.

    Raises PresetError if there is no such norm, or it is invalid.
    """
    return load_named(name, "norm", norms_folder(), read_norm)


def read_norm(path: Path) -> tuple[Limit, ...]:
    """Read the limits in a TOML file, as strictly as a preset."""
    tables = tables_in(path)
    for key in tables:
        if key not in KEYS:
            listed = ", ".join(KEYS)
            raise PresetError(f"{path}: {brief(key)} is not a key of a norm: there are {listed}")
    source = tables.get("source", "")
    if not isinstance(source, str):
        raise PresetError(f"{path}: source is {brief(source)} and must be text in quotes")
    found = limits_in(path, tables.get("limits"), LimitTables(names=False))
    return tuple(replace(one, source=one.source or source) for one in found)


def limits_in(path: Path, given: Any, rule: LimitTables) -> tuple[Limit, ...]:
    """The limits of a file. Raises PresetError for invalid ones."""
    if not rule.allows(given):
        raise PresetError(f"{path}: limits is {brief(given)} and must be {rule}")
    found: list[Limit] = []
    for number, one in enumerate(given, 1):
        try:
            found += limits_of(one) if isinstance(one, str) else [limit_of(one)]
        except (LimitError, PresetError) as refusal:
            raise PresetError(f"{path}: limits {number}: {refusal}") from refusal
    return tuple(found)


def limits_of(given: Any) -> tuple[Limit, ...]:
    """Make limits from `Limit`s, texts such as "laf_db>80", and names of norms.

    A single one needs no list. Raises LimitError and PresetError for anything else, and for two
    with the same name.
    """
    several = isinstance(given, Iterable) and not isinstance(given, str)
    found = tuple(_each(given if several else [given]))
    refuse_twice(found)
    return found


def _each(given: Iterable[object]) -> Iterator[Limit]:
    for one in given:
        if isinstance(one, Limit):
            yield one
        elif not isinstance(one, str):
            raise LimitError(
                f"{brief(repr(one))} is not a limit: give a Limit, the name of a norm, or text "
                "such as 'laeq_15min_db>100'"
            )
        elif set(one) & set("<>"):
            yield limit_from_text(one)
        else:
            yield from load_norm(one)
