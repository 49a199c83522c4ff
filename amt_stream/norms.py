"""Limits that others have set: of venues, of programmes, of places of work."""

import errno
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

from amt_stream.limits import Limit, limit_from_text, refuse_twice
from amt_stream.presets import PresetError, limits_in, presets_folder, tables_in

KEYS = ("description", "source", "limits")


def norms_folder() -> Path:
    """Where those are that come with the package."""
    return presets_folder() / "limits"


def shipped_norms() -> list[str]:
    """Names of the norms that come with the package."""
    return sorted(path.stem for path in norms_folder().glob("*.toml"))


def load_norm(name: str) -> tuple[Limit, ...]:
    """The limits of a norm by name, or those in a file of one's own, each with its source.

    Raises PresetError for one that is not there or not valid.
    """
    if name in shipped_norms():
        return read_norm(norms_folder() / f"{name}.toml")
    try:
        return read_norm(Path(name))
    except PresetError as error:
        if getattr(error.__cause__, "errno", None) not in (errno.ENOENT, errno.EISDIR):
            raise
    raise PresetError(
        f"there is no norm {name!r}: give {', '.join(shipped_norms())}, or the path of a TOML file"
    )


def read_norm(path: Path) -> tuple[Limit, ...]:
    """The limits in a TOML file of limits; strict, as presets are."""
    tables = tables_in(path)
    for key in tables:
        if key not in KEYS:
            raise PresetError(f"{path}: {key} is nothing of a norm: there are {', '.join(KEYS)}")
    source = tables.get("source", "")
    if not isinstance(source, str):
        raise PresetError(f"{path}: source is {source} and must be text in quotes")
    found = limits_in(path, tables.get("limits"))
    return tuple(replace(one, source=one.source or source) for one in found)


def limits_of(given: Iterable[Limit | str]) -> tuple[Limit, ...]:
    """Limits as they are asked for: themselves, in a line such as "laf_db>80", norms by name.

    Raises LimitError and PresetError for what is neither, and for two of one name.
    """
    found = tuple(_each([given] if isinstance(given, str) else given))
    refuse_twice(found)
    return found


def _each(given: Iterable[Limit | str]) -> Iterator[Limit]:
    for one in given:
        if isinstance(one, Limit):
            yield one
        elif set(one) & set("<>"):
            yield limit_from_text(one)
        else:
            yield from load_norm(one)
