"""Saving and restoring state as named numbers and arrays, so that a measurement can resume."""

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, Self

import numpy as np

from amt_stream.core.json_types import JsonDict

Value = np.ndarray | str | float | None
"""A value in a state: array, text, number, boolean or None."""

SavedState = dict[str, Value]


class Unfitting(ValueError):
    """A state does not fit the object, or is corrupt; the message names the value."""


class Resumable:
    """An object whose state can be saved and loaded into a new one with the same settings.

    kept: names of the attributes that make up the state: numbers, arrays, Resumable objects, and
        tuples, lists and dicts of these
    growing: those of them whose arrays may differ in length along one axis
    """

    kept: ClassVar[tuple[str, ...]] = ()
    growing: ClassVar[tuple[str, ...]] = ()

    def state_dict(self) -> SavedState:
        """A copy of the state by name; the members of a part are named "part/name"."""
        return {key: v for name in self.kept for key, v in _flat(name, getattr(self, name))}

    def load_state_dict(self, state: Mapping[str, object]) -> None:
        """Load `state` into an object that was just made.

        Raises Unfitting if the state is of an object with other settings; then this object is
        unusable.
        """
        left = dict(state)
        for name in self.kept:
            taken = _taken(name, getattr(self, name), left, name in self.growing)
            setattr(self, name, taken)
        if left:
            raise Unfitting(f"{type(self).__name__} has no state {min(left)!r}")

    def take_over(self, before: Self) -> None:
        """Continue from an object of the same class with other settings, which is no longer used.

        Parts are matched by name; what only this object has stays as it was made.
        """
        for name in self.kept:
            now, was = getattr(self, name), getattr(before, name)
            setattr(self, name, _continued(now, was, name in self.growing))

    def refuse_state(self, fits: bool, name: str) -> None:
        """Raise Unfitting for an attribute that was loaded with an impossible value."""
        if not fits:
            raise Unfitting(f"{type(self).__name__}: {name} cannot be {getattr(self, name)!r:.40}")


def state_under(state: Mapping[str, object], name: str) -> JsonDict:
    """The part of a state under `name`, without that prefix."""
    return {k[len(name) + 1 :]: v for k, v in state.items() if k.startswith(f"{name}/")}


def under(name: str, state: Mapping[str, Value]) -> SavedState:
    """A state with every name prefixed by `name`; the inverse of `state_under`."""
    return {f"{name}/{key}": value for key, value in state.items()}


def _flat(name: str, value: Any) -> Iterator[tuple[str, Value]]:
    if isinstance(value, Resumable):
        yield from under(name, value.state_dict()).items()
    elif isinstance(value, Mapping | tuple | list):
        for key, inner in _inner(value):
            yield from _flat(f"{name}/{key}", inner)
    elif isinstance(value, np.ndarray):
        yield name, value.copy()
    else:
        yield name, value.item() if isinstance(value, np.generic) else value


def _inner(value: Any) -> list[tuple[str, Any]]:
    """The members of a dict, tuple or list by name; the key None becomes ""."""
    if isinstance(value, Mapping):
        return [("" if key is None else str(key), one) for key, one in value.items()]
    return [(str(k), one) for k, one in enumerate(value)]


def _taken(name: str, now: object, left: JsonDict, grows: bool) -> Any:
    """The value of an attribute, now `now`, popped from `left`."""
    if isinstance(now, Resumable):
        part = state_under(left, name)
        for key in part:
            del left[f"{name}/{key}"]
        now.load_state_dict(part)
        return now
    if isinstance(now, Mapping | tuple | list):
        found = [_taken(f"{name}/{key}", one, left, grows) for key, one in _inner(now)]
        if isinstance(now, Mapping):
            return dict(zip(now, found, strict=True))
        return type(now)(*found) if hasattr(now, "_fields") else type(now)(found)
    if name not in left:
        raise Unfitting(f"the state {name!r} is missing")
    value = left.pop(name)
    if isinstance(now, np.ndarray):
        if not (isinstance(value, np.ndarray) and _alike(value, now, grows)):
            raise Unfitting(f"the state {name!r} is of another kind or shape")
        return value.copy()
    if not _may_be(value, now):
        raise Unfitting(f"the state {name!r} is {value!r:.40}")
    return value


def _continued(now: Any, was: Any, grows: bool) -> Any:
    """The value of an attribute that continues from `was`."""
    if isinstance(now, Resumable) or isinstance(was, Resumable):
        if type(now) is type(was):
            now.take_over(was)
        return now
    if isinstance(now, Mapping):
        return {k: _continued(v, was[k], grows) if k in was else v for k, v in now.items()}
    if isinstance(now, tuple | list):
        if len(now) != len(was):
            return now
        both = [_continued(*pair, grows) for pair in zip(now, was, strict=True)]
        return type(now)(*both) if hasattr(now, "_fields") else type(now)(both)
    if isinstance(now, np.ndarray):
        return was if _alike(was, now, grows) else now
    return was


def _alike(value: np.ndarray, now: np.ndarray, grows: bool) -> bool:
    if value.dtype.kind != now.dtype.kind or value.ndim != now.ndim:
        return False
    differing: int = sum(a != b for a, b in zip(value.shape, now.shape, strict=True))
    return differing <= grows


def _may_be(value: object, now: object) -> bool:
    """Whether `value` has the type of `now`; None stands for a number that is not known yet."""
    if now is None:
        return value is None or type(value) in (int, float)
    if isinstance(now, float):
        return type(value) in (int, float)
    return type(value) is type(now)
