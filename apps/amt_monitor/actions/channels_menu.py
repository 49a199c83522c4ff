"""The menu that says which channels of the input are heard, and what they are for."""

from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING

from pyqtgraph.Qt import QtGui, QtWidgets

from amt_monitor.base.widgets import add_choice
from amt_stream.dsp.channel_layout import LAYOUTS, layout_named
from amt_stream.engine import StdinSource
from amt_stream.views.measurement_control import Channels, MeasurementControl

if TYPE_CHECKING:
    from amt_stream.engine import Engine

MOST = 8
"""Channels that are listed; the option --channels takes any."""


class ChannelsMenu(QtWidgets.QMenu):
    """Two channels for the two ears, or one for both; or the layout of more.

    choose: called with the channels, None for those that the input was opened with, and with the
        name of a layout, or None
    """

    def __init__(
        self, measurement: MeasurementControl, choose: Callable[[Channels, str | None], object]
    ) -> None:
        super().__init__("C&hannels", objectName="channels")
        self._measurement, self._choose = measurement, choose
        self.aboutToShow.connect(self.fill)

    def fill(self) -> None:
        self.clear()
        engine = self._measurement.engine
        if engine is None or (why := _fixed(engine)):
            self.addAction("nothing is measured" if engine is None else why).setEnabled(False)
            return
        group, now = QtGui.QActionGroup(self), self._measurement.running_request
        for channels in (None, *_choices(_offered(engine))):
            words, name = channels_words(channels), "_".join(map(str, channels or ("usual",)))
            chosen = channels == now.channels and now.layout is None
            choose = partial(self._choose, channels, None)
            group.addAction(add_choice(self, words, chosen, choose, f"channels_{name}"))
        if layouts := _layouts(engine):
            self.addSeparator()
        for name in layouts:
            words, choose = str(layout_named(name)), partial(self._choose, None, name)
            group.addAction(add_choice(self, words, name == now.layout, choose, f"layout_{name}"))


def channels_words(channels: Sequence[int] | None) -> str:
    """In words: "3 for both ears"."""
    if channels is None:
        return "As usual"
    if len(channels) == 1:
        return f"{channels[0]} for both ears"
    return f"{channels[0]} left, {channels[1]} right"


def _choices(offered: int) -> list[tuple[int, ...]]:
    numbers = range(1, min(offered, MOST) + 1)
    return [
        *((one, other) for one, other in pairwise(numbers) if one % 2),
        *((k,) for k in numbers),
    ]


def _layouts(engine: "Engine") -> list[str]:
    """Layouts of more than two channels: of all of a sound, or of the first ones of a device."""
    offered, is_device = _offered(engine), hasattr(engine.source, "device")
    counts = range(3, offered + 1) if is_device else [offered] * (offered > 2)
    return [name for name, of in LAYOUTS.items() if len(of.split()) in counts]


def _offered(engine: "Engine") -> int:
    """The number of channels of the device, or of the sound."""
    device = getattr(engine.source, "device", None)
    return engine.source.channels if device is None else int(device.channels)


def _fixed(engine: "Engine") -> str:
    """Why the channels cannot be chosen; "" where they can."""
    if isinstance(engine.source, StdinSource):
        return "standard input has the channels that it was started with"
    if engine.microphone_names:
        return "several microphones are measured separately"
    return ""
