"""Which channels of a sound are measured, what they are for, and which of them each model hears."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Self

from amt_stream.dsp.channel_layout import Layout, usual_layout


@dataclass(frozen=True)
class HeardChannels:
    """The channels of a sound that are measured, and which of them each model hears.

    channels: their numbers, counted from 1
    layout: their positions, in the same order
    places: of each model that hears only some of them: places in `channels`, counted from 0
    notes: what a person should know of this choice, a sentence each
    offered: the layout of all channels of the sound; None if nobody says it
    """

    channels: tuple[int, ...]
    layout: Layout
    places: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    offered: Layout | None = None

    @classmethod
    def all_of(cls, channels: Sequence[int]) -> Self:
        """All of these channels for every model, in their usual layout."""
        return cls(tuple(channels), usual_layout(len(channels)))

    def places_of(self, model: str) -> tuple[int, ...]:
        """The places of the channels that a model hears."""
        return self.places.get(model, tuple(range(len(self.channels))))

    def channels_of(self, model: str) -> tuple[int, ...]:
        """The numbers of the channels that a model hears."""
        return tuple(self.channels[place] for place in self.places_of(model))

    def ears_of(self, model: str) -> tuple[int, int]:
        """Rows of what a model hears that displays show as left and right."""
        count = len(self.places_of(model))
        known = self.layouts([model])[model].ears if count > 2 else None
        return (0, 1) if known is None else (known[0] - 1, known[1] - 1)

    def layouts(self, models: Iterable[str]) -> dict[str, Layout]:
        """The layout of the channels that each model hears."""
        return {
            model: self.layout.of([place + 1 for place in self.places_of(model)])
            for model in models
        }

    def numbered(self, channels: Sequence[int]) -> Self:
        """The same with other numbers, such as those of a device that delivers only some."""
        return replace(self, channels=tuple(channels))
