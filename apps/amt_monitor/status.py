"""The status line in words."""

from typing import TYPE_CHECKING

from amt_stream.calibration import in_words
from amt_stream.contract import takes_pascal
from amt_stream.events import keeper_in
from amt_stream.plain import plain

if TYPE_CHECKING:
    from amt_stream.engine import Engine


def status_text(engine: "Engine", state: str) -> str:
    """Input, calibration, sound that is kept, a GPU and health in one line.

    No calibration where none is needed.
    """
    source, health = engine.source, engine.health
    pascal = any(map(takes_pascal, engine.models.values()))
    keeper = keeper_in(engine.sinks)
    calibration = [in_words(engine.calibration)] if pascal else []
    words = (
        f"{source.name}, {source.fs} Hz: {state}",
        *calibration,
        *([] if keeper is None else [keeper.words]),
        *([] if engine.device == "cpu" else [f"on {engine.device}"]),
        f"load {100 * health.load:.0f} %",
        f"latency {1000 * health.latency_s:.0f} ms",
        f"overruns {health.overruns}",
        f"lost samples {health.lost_samples}",
        f"clipped {health.clipped}, not a number {health.non_finite}, late {health.late_callbacks}",
    )
    return plain("   |   ".join(words))
