"""Why readings are uncalibrated, in words."""

from typing import TYPE_CHECKING

from amt_monitor.base.message_bar import begun
from amt_stream.core.errors import Refusal
from amt_stream.core.safe_text import plain
from amt_stream.meters.calibration import calibrations_of

if TYPE_CHECKING:
    from amt_stream.engine import Engine, Health

ONLY_CHANGES = "Only changes of levels are valid, and limits are not judged."


def uncalibrated_words(engine: "Engine", health: "Health") -> tuple[str, str]:
    """The words of the badge, and a sentence that says which calibration is missing."""
    if health.uncalibrated:
        return "uncalibrated", f"{begun(plain(health.uncalibrated))}. {ONLY_CHANGES}"
    name, missing, channels = plain(engine.source.name), [], 0
    if identities := getattr(getattr(engine.source, "device", None), "kept_by", ()):
        channels = engine.source.channels
        try:
            known = calibrations_of(identities, range(1, channels + 1))
        except Refusal as refusal:
            return "uncalibrated", plain(refusal)
        missing = [channel for channel, one in enumerate(known, 1) if not one.calibrated]
    if not missing or len(missing) == channels:
        return "uncalibrated", f"{name} has no calibration. {ONLY_CHANGES}"
    one = f"channel {missing[0]}"
    why = f"{one.capitalize()} of {name} has no calibration, so readings of all channels have none."
    return f"{one} uncalibrated", f"{why} {ONLY_CHANGES}"
