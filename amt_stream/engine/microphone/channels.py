"""The choice of the channels that models hear, in one place for all ways of use."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from numbers import Integral

from amt_stream.core.words import counted
from amt_stream.dsp.channel_layout import LFE, MOST_CHANNELS, Layout, as_layout, usual_layout
from amt_stream.engine.inputs.sound_file import SourceError
from amt_stream.meters.heard_channels import HeardChannels

EARS = 2
"""The most channels that a model hears, unless it says that it takes more."""

OF_EARS = {"": EARS}
"""The most channels of models that hear with two ears."""

Columns = slice | list[int]
"""Channels of a block: a slice, which copies nothing, wherever they are evenly spaced."""

CHOOSE = "choose one (channels 1), or two as left and right (channels 1,2)"


def heard_channels(
    name: str, offered: Layout, models: Mapping[str, int], chosen: Sequence[int] | None = None
) -> HeardChannels:
    """Which channels of a sound each model hears.

    Without a choice all channels are measured. A model that takes more than two hears all of these.
    Any other hears one as both ears, or two as left and right; of more, those for L and R, if the
    source or the user says which they are. Where nobody says what channels are for, those that are
    measured have the usual layout of their number.

    name: of the sound
    offered: the layout of all its channels
    models: the most channels that each model takes, by name
    chosen: numbers of channels, counted from 1

    Raises TypeError or SourceError for a choice that is not possible, and SourceError where one is
    necessary.
    """
    numbers = channel_numbers(chosen, offered.channels, name)
    known = offered if offered.said else None
    layout = usual_layout(len(numbers)) if known is None else known.of(numbers)
    few = [model for model, most in models.items() if most <= EARS]
    many = {model: most for model, most in models.items() if most > EARS}
    for model, most in many.items():
        if len(numbers) > most:
            raise SourceError(
                f"{name} has {counted(len(numbers), 'channel')}, and "
                f"{model or 'the model'} takes at most {most}: choose them (channels 1,2, ...)"
            )
    if chosen and len(numbers) > EARS and not many:
        raise SourceError(_choose_two(numbers, few))
    places, notes = tuple(range(len(numbers))), []
    if few:
        places = _ears(name, layout, numbers, few, bool(chosen))
    if few and len(numbers) > EARS:
        left, right = (f"{numbers[k]} ({layout.positions[k]})" for k in places)
        notes.append(
            f"{name} is {layout}: {_listed(few)} {'hears' if len(few) == 1 else 'hear'} channel "
            f"{left} as left and {right} as right"
        )
    if not many:
        ears = tuple(numbers[k] for k in places)
        layout = layout.of([k + 1 for k in places])
        return HeardChannels(ears, layout, {}, tuple(notes), known)
    if max(many.values()) == MOST_CHANNELS:
        notes += _of_programme(name, layout, bool(chosen))
    apart = {} if places == tuple(range(len(numbers))) else dict.fromkeys(few, places)
    return HeardChannels(tuple(numbers), layout, apart, tuple(notes), known)


def _ears(
    name: str, layout: Layout, numbers: Sequence[int], models: Sequence[str], chosen: bool
) -> tuple[int, ...]:
    """Places of the channels of two ears, or of one for both. Raises SourceError if unknown."""
    known = layout.ears if layout.said else None
    # One of two channels may be for low-frequency effects, which is no ear's.
    pair = len(numbers) <= EARS and (chosen or len(numbers) == 1 or LFE not in layout.positions)
    if pair and (chosen or known is None):
        return tuple(range(len(numbers)))
    if known is not None:
        left, right = known
        return left - 1, right - 1
    if chosen:
        raise SourceError(f"{_choose_two(numbers, models)}, or give the layout of {name}")
    if layout.said:
        raise SourceError(f"{name} is {layout}, without a left and a right channel: {CHOOSE}")
    raise SourceError(
        f"{name} has {counted(len(numbers), 'channel')}: {CHOOSE}, for {_listed(models)}, "
        "or give their layout"
    )


def _choose_two(numbers: Sequence[int], models: Sequence[str] = ()) -> str:
    """What to choose instead of these channels."""
    of_models = f", for {_listed(models)}" if models else ""
    listed = ", ".join(map(str, numbers))
    return f"channels {listed}: choose one, or two different ones as left and right{of_models}"


def _listed(models: Sequence[str]) -> str:
    return " and ".join(filter(None, models)) or "the model"


def _of_programme(name: str, layout: Layout, chosen: bool) -> list[str]:
    """What a person should know of the layout of a programme, at most one sentence."""
    if not layout.said and layout.channels > EARS and layout.name:
        which = "the chosen" if chosen else "its"
        return [
            f"{name} does not say what {which} {layout.channels} channels are for: they are taken "
            f"as {layout}, unless a layout is given"
        ]
    if chosen and any(layout.weights) and set(layout.weights) != {1.0}:
        weights = zip(layout.positions, layout.weights, strict=True)
        words = ", ".join(f"{position} {w:g}" for position, w in weights if w != 1)
        return [f"the chosen channels of {name} keep their weights in its loudness: {words}"]
    return []


def channel_numbers(chosen: Sequence[int] | None, offered: int, name: str) -> list[int]:
    """The chosen channel numbers (1, 2, ...), or all of them.

    Raises TypeError for what are no numbers, and SourceError for channels that there are not.
    """
    if chosen is not None and not (
        isinstance(chosen, Sequence) and all(isinstance(c, Integral) for c in chosen)
    ):
        raise TypeError(f"channels is {chosen!r}: give numbers in a sequence, as (1,) or (1, 2)")
    if not chosen:
        return [*range(1, offered + 1)]
    if len(set(chosen)) < len(chosen):
        raise SourceError(_choose_two(chosen))
    wrong = [c for c in chosen if not 1 <= c <= offered]
    if wrong:
        raise SourceError(f"{name} has no channel {wrong[0]}: it has {offered}, counted from 1")
    return [int(c) for c in chosen]


def refuse_more_than_two(chosen: Sequence[int], offered: int, name: str) -> None:
    """Raise as `channel_numbers`, and for more than two channels of one microphone."""
    numbers = channel_numbers(chosen, offered, name)
    if len(numbers) > EARS:
        raise SourceError(_choose_two(numbers))


def block_columns(numbers: Sequence[int]) -> Columns:
    """The columns of these channels, counted from 1, in a block (time, channel)."""
    first, last = numbers[0] - 1, numbers[-1] - 1
    step = numbers[1] - numbers[0] if len(numbers) > 1 else 1
    if [*numbers] != [first + 1 + step * k for k in range(len(numbers))]:
        return [number - 1 for number in numbers]
    after = last + (1 if step > 0 else -1)
    return slice(first, after if after >= 0 else None, step)


def number_of(columns: Columns, offered: int) -> int:
    """How many columns these are of a block with so many."""
    return len(columns if isinstance(columns, list) else range(offered)[columns])


def layout_said(
    offered: Layout,
    given: Layout | str | None,
    chosen: Sequence[int] | None = None,
    name: str = "the sound",
) -> Layout:
    """The layout of all channels of a sound, as far as the user says it.

    given: the layout of all channels, or of the `chosen` ones; None leaves it to the source

    Raises LayoutError for an unknown layout, and SourceError for one of another number of channels.
    """
    if given is None:
        return offered
    said = replace(as_layout(given), origin="user")
    if said.channels == offered.channels:
        return said
    numbers = channel_numbers(chosen, offered.channels, name)
    if said.channels == len(numbers):
        known = dict(zip(numbers, said.positions, strict=True))
        return Layout(tuple(known.get(k + 1, "") for k in range(offered.channels)), "user")
    of_these = f" of which {len(numbers)} chosen" if chosen else ""
    raise SourceError(
        f"the layout {said} has {said.channels} channels, and {name} has {offered.channels}"
        f"{of_these}: give the position of each"
    )
