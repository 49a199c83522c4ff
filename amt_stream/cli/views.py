"""The terminal meters of the models' views."""

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
    """A view.

    sink: function that makes the sink of the newest readings, from a function that makes
        `LatestReadings` and the end of the measurement in seconds; it returns None if the engine's
        history is enough
    terminal: function that makes the terminal meter of an engine and that sink
    reads: whether the view has readings in rows
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
