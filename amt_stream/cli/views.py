"""How models are seen: for each view its terminal, and what keeps its readings."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple, TextIO

from amt_stream.cli.loudness_terminal import LoudnessTerminal
from amt_stream.cli.modulation_terminal import LatestFrame, ModulationTerminal
from amt_stream.cli.readings_terminal import ReadingsTerminal
from amt_stream.cli.terminal import TerminalMeter
from amt_stream.meters.catalog import View as ViewName

if TYPE_CHECKING:
    from amt_stream.engine.engine import Engine
    from amt_stream.meters.frames import Frames
    from amt_stream.sessions.outputs import LatestReadings

Sink = Callable[["Frames"], None]


class View(NamedTuple):
    """One of them.

    sink: makes what keeps the newest readings until so many seconds of sound, out of a function
        that makes a `LatestReadings`; or gives None where the engine's history is enough
    terminal: makes the terminal of an engine and its sink
    reads: whether there are readings in rows
    """

    sink: Callable[[Callable[[], "LatestReadings"], float], Sink | None]
    terminal: Callable[["Engine", TextIO, Any], TerminalMeter[Any]]
    reads: bool = True


VIEWS: dict[ViewName, View] = {
    "loudness": View(
        lambda latest, end_s: None,
        lambda engine, stream, sink: LoudnessTerminal(engine, stream),
    ),
    "modulation": View(
        lambda latest, end_s: LatestFrame(end_s),
        ModulationTerminal,
        reads=False,
    ),
    "readings": View(
        lambda latest, end_s: latest(),
        ReadingsTerminal,
    ),
}
