"""What a stage declares about itself as a model, and the rules for these attributes."""

import math
from collections.abc import Callable
from numbers import Real
from typing import Any, Literal, NamedTuple

InputUnit = Literal["pascal", "full scale"]


class Rule(NamedTuple):
    """The values that an attribute may have: in words, and as a predicate."""

    words: str
    allows: Callable[[Any], bool]


def _number(value: object) -> bool:
    # bool is a subclass of int.
    return type(value) is not bool and isinstance(value, Real) and math.isfinite(value)


def _truth(value: object) -> bool:
    return isinstance(value, bool)


RULES: dict[str, Rule] = {
    "fs": Rule(
        "a sampling rate in hertz above 0, or None for any",
        lambda value: value is None or (_number(value) and value > 0),
    ),
    "input_unit": Rule(
        '"pascal", "full scale", or None where the unit does not matter',
        lambda value: value is None or value in ("pascal", "full scale"),
    ),
    "channels": Rule(
        "a whole number of channels above 0, or None for any",
        lambda value: value is None or (_number(value) and value == int(value) > 0),
    ),
    "per_channel": Rule("True or False", _truth),
    "settle_s": Rule("seconds, 0 or more", lambda value: _number(value) and value >= 0),
    "memory_s": Rule("seconds, 0 or more", lambda value: _number(value) and value >= 0),
    "tail_s": Rule("seconds, 0 or more", lambda value: _number(value) and value >= 0),
    "frames_stand_for_end": Rule("True or False", _truth),
}
"""The contract of a model; `Stage` documents each attribute and gives its default."""


def hertz(owner: str, fs: Any) -> Any:
    """The sampling rate `fs`; raises ValueError, naming `owner`, unless it is a number above 0."""
    if not (_number(fs) and fs > 0):
        raise ValueError(f"{owner}: fs is {fs!r}: give a rate above 0 Hz")
    return fs


def whole_hertz(owner: str, fs: Any, least: int = 1) -> int:
    """The sampling rate `fs`; raises ValueError unless it is an integer, `least` or more."""
    if not (_number(fs) and fs == int(fs) and fs >= least):
        raise ValueError(f"{owner}: fs is {fs!r}: give whole hertz, {least} or more")
    return int(fs)


def refuse(owner: str, name: str, value: object) -> None:
    """Raise ValueError for an invalid value of an attribute of the contract."""
    if (rule := RULES.get(name)) is not None and not rule.allows(value):
        raise ValueError(f"{owner}: {name} is {value!r}: give {rule.words}")


def refuse_class(kind: type) -> None:
    """Raise as `refuse` does for the attributes in a class body."""
    for name, value in vars(kind).items():
        # A property has a value only on an instance: `check_contract` checks it.
        if not isinstance(value, property):
            refuse(kind.__name__, name, value)


def check_contract(model: Any) -> None:
    """Raise ValueError if an attribute of the contract is invalid, computed ones included."""
    owner = type(model).__name__
    for name in RULES:
        refuse(owner, name, getattr(model, name))
    if model.per_channel and model.channels is not None:
        raise ValueError(
            f"{owner}: per_channel is True and channels is {model.channels}: set only one of them"
        )


def rows_of(model: Any, count: int) -> int:
    """The number of channels that a model runs on for `count` channels of a source.

    The number it was built for; otherwise all of them if it declares `per_channel` or takes full
    scale; otherwise two ears.
    """
    if model.channels is not None:
        return int(model.channels)
    return count if model.per_channel or not takes_pascal(model) else 2


def takes_pascal(model: Any) -> bool:
    """Whether a model takes pascal (also if it declares no unit) rather than full scale."""
    return model.input_unit != "full scale"
