"""What a stage says of itself to whoever runs it as a model, and the rules for saying it."""

import difflib
import math
from collections.abc import Callable
from functools import lru_cache
from numbers import Real
from typing import Any, Literal, NamedTuple

InputUnit = Literal["pascal", "full scale"]


class Rule(NamedTuple):
    """What an attribute may be: in words, and as a test."""

    words: str
    allows: Callable[[Any], bool]


def _number(value: object) -> bool:
    # Python takes true for 1.
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
    "forget_s": Rule("seconds, 0 or more", lambda value: _number(value) and value >= 0),
    "tail_s": Rule("seconds, 0 or more", lambda value: _number(value) and value >= 0),
    "frames_stand_for_end": Rule("True or False", _truth),
}
"""The contract of a model; `Stage` explains each and gives it a default."""

NAMES = (
    *RULES,
    *("block_size", "ratio", "latency", "time_dim", "out_time_dim", "keeps_double"),
    *("fixed_axes", "shape_remedy"),
)
"""All that a stage says of itself."""

_NEAR = 0.85

_APART = ("n_channels", "channel", "ratios", "latency_s", "settled", "forget")
"""Names near a declared one that mean something else: how many bands there are, which one it is."""


@lru_cache(maxsize=4096)
def meant(name: str) -> str | None:
    """The declared attribute that somebody who wrote `name` meant; None where it is no slip."""
    if name in (*NAMES, *_APART) or name.startswith("_"):
        return None
    # settle_seconds, settling_time: too far from settle_s to count as near.
    if name.startswith("settl"):
        return "settle_s"
    return next(iter(difflib.get_close_matches(name, NAMES, 1, _NEAR)), None)


def hertz(owner: str, fs: Any) -> Any:
    """The sampling rate `fs`; raises ValueError, naming `owner`, where it is no number above 0."""
    if not (_number(fs) and fs > 0):
        raise ValueError(f"{owner}: fs is {fs!r}: give a rate above 0 Hz")
    return fs


def whole_hertz(owner: str, fs: Any, least: int = 1) -> int:
    """The sampling rate `fs`; raises ValueError where it is not whole, or below `least`."""
    if not (_number(fs) and fs == int(fs) and fs >= least):
        raise ValueError(f"{owner}: fs is {fs!r}: give whole hertz, {least} or more")
    return int(fs)


def refuse(owner: str, name: str, value: object) -> None:
    """Raise for an attribute that `owner` cannot have.

    AttributeError for a name that is a slip of a declared one, which nobody would read; ValueError
    for a value that a declared one must not have.
    """
    if (rule := RULES.get(name)) is not None:
        if not rule.allows(value):
            raise ValueError(f"{owner}: {name} is {value!r}: give {rule.words}")
    elif (near := meant(name)) is not None:
        raise AttributeError(
            f"{owner}: {name} = {value!r} is read by nobody: did you mean {near}? Else choose a "
            "name that is less like it"
        )


def refuse_class(kind: type) -> None:
    """Raise as `refuse` does for what a class declares in its body; its methods are its own."""
    for name, value in vars(kind).items():
        computed = isinstance(value, property)
        method = callable(value) or isinstance(value, (classmethod, staticmethod))
        # What a property gives is known of an instance alone: `check_contract` looks at it.
        if computed if name in RULES else method:
            continue
        refuse(kind.__name__, name, value)


def check_contract(model: Any) -> None:
    """Raise ValueError where an attribute of the contract, computed ones too, breaks its rule."""
    owner = type(model).__name__
    for name in RULES:
        refuse(owner, name, getattr(model, name))
    if model.per_channel and model.channels is not None:
        raise ValueError(
            f"{owner}: per_channel is True and channels is {model.channels}: say one of them, any "
            "number of channels or just so many"
        )


def rows_of(model: Any, heard: int) -> int:
    """How many rows a model runs on that is to hear so many channels of a source.

    Those it was built for; or as many, of a model that says `per_channel` or takes fractions of
    full scale; or both ears.
    """
    if model.channels is not None:
        return int(model.channels)
    return heard if model.per_channel or not takes_pascal(model) else 2


def takes_pascal(model: Any) -> bool:
    """Whether a model is fed pascal, as one is that says no unit; else fractions of full scale."""
    return model.input_unit != "full scale"
