"""The status line in words."""

from typing import TYPE_CHECKING

from amt_stream.engine import Fault

if TYPE_CHECKING:
    from amt_stream.engine import Frames, Health, Source

FAULT_WORDS = {bit: str(bit.name).lower().replace("_", " ") for bit in Fault}


def fault_words(fault: int) -> list[str]:
    """The faults of a frame, in words."""
    return [word for bit, word in FAULT_WORDS.items() if fault & bit]


def status_text(source: "Source", health: "Health", frames: "Frames | None", state: str) -> str:
    """Device, calibration and health in one line."""
    if frames is None:
        calibration = "no reading yet"
    else:
        calibration = "calibrated" if frames.calibrated else "UNCALIBRATED"
    return "   |   ".join(
        (
            f"{source.name}, {source.fs} Hz: {state}",
            calibration,
            f"load {100 * health.load:.0f} %",
            f"latency {1000 * health.latency_s:.0f} ms",
            f"overruns {health.overruns}",
            f"lost samples {health.lost_samples}",
            f"clipped {health.clipped}, not a number {health.non_finite}, "
            f"late {health.late_callbacks}",
        )
    )
