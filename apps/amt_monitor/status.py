"""The status line in words."""

from typing import TYPE_CHECKING

from amt_stream.calibration import in_words

if TYPE_CHECKING:
    from amt_stream.engine import Engine


def status_text(engine: "Engine", state: str) -> str:
    """Device, calibration and health in one line."""
    source, health = engine.source, engine.health
    return "   |   ".join(
        (
            f"{source.name}, {source.fs} Hz: {state}",
            in_words(engine.calibration),
            f"load {100 * health.load:.0f} %",
            f"latency {1000 * health.latency_s:.0f} ms",
            f"overruns {health.overruns}",
            f"lost samples {health.lost_samples}",
            f"clipped {health.clipped}, not a number {health.non_finite}, "
            f"late {health.late_callbacks}",
        )
    )
