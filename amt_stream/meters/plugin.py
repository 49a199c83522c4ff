"""What a meter of another package gives, as types: what its `Entry` names, and how that is called.

`docs/plugin.md` has the whole of it in words; `apps/plugin_template` is a package to copy.
"""

from collections.abc import Collection
from typing import Any, Protocol

from amt_stream.dsp.streaming import Stage
from amt_stream.meters.catalog import Entry
from amt_stream.meters.rows import Readings


class MakesModel(Protocol):
    """`Entry.model`: a class or function, called with keywords.

    fs: sampling rate of the sound in hertz
    known: everything in `Entry.arguments`; of `Entry.settings` what was chosen, each a word; of
        `Entry.takes` what is known: `channels`, int; `uncertainty_db`, float or None;
        `specific_loudness` and `excitation_db`, bool. All but `fs` need a default

    ValueError refuses a rate or a word; its text is shown to the user.
    """

    def __call__(self, fs: int, *args: Any, **known: Any) -> Stage: ...


class MakesReadings(Protocol):
    """`Entry.readings`: a class or function, called with the number of channels.

    channels: how many the sound has
    known: of `Entry.readings_take` what is known: `band`, bool; `model`, a `Stage`, or None where
        only the names of columns are asked for; `target_lufs`, float; `dual_mono`, bool. Each needs
        a default
    """

    def __call__(self, channels: int, /, *args: Any, **known: Any) -> Readings: ...


class MakesPane(Protocol):
    """`Entry.pane`: a class or function that makes an `amt_monitor.reading_pane.ReadingPane`.

    entry: of the model
    names: of the readings that the pane can show: columns and headlines
    """

    def __call__(self, entry: Entry, names: Collection[str], /) -> Any: ...
