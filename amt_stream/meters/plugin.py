"""Types of the objects that an `Entry` of another package names.

`docs/plugin.md` describes them; `apps/plugin_template` is a package to copy.
"""

from collections.abc import Collection
from typing import Any, Protocol

from amt_stream.dsp.streaming import Stage
from amt_stream.meters.catalog import Entry
from amt_stream.meters.rows import Readings


class MakesModel(Protocol):
    """`Entry.model`: a class or function, called with keywords.

    fs: sampling rate of the sound in hertz
    known: all of `Entry.arguments`; the chosen values of `Entry.settings`; and those of
        `Entry.takes` that are known: `channels`, int; `layout`, a `Layout`; `uncertainty_db`,
        float or None; `specific_loudness` and `excitation_db`, bool. All but `fs` need a default

    It may raise ValueError for a rate or a setting; the user sees its text.
    """

    def __call__(self, fs: int, *args: Any, **known: Any) -> Stage: ...


class MakesReadings(Protocol):
    """`Entry.readings`: a class or function, called with the number of channels.

    channels: number of channels of the sound
    known: arguments of `Entry.readings_take` that are known: `band`, bool; `model`, a `Stage`, or
        None if only the names of columns are needed; `target_lufs`, float; `dual_mono`, bool. Each
        needs a default
    """

    def __call__(self, channels: int, /, *args: Any, **known: Any) -> Readings: ...


class MakesPane(Protocol):
    """`Entry.pane`: a class or function that makes an `amt_monitor.panes.reading_pane.ReadingPane`.

    entry: entry of the model
    names: names of the readings that the pane can show: columns and headlines
    """

    def __call__(self, entry: Entry, names: Collection[str], /) -> Any: ...
