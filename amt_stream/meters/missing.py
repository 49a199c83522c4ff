"""Why sound is missing from a measurement, and for how long, in words."""

from collections.abc import Mapping

from amt_stream.meters.frames import Fault

DEVICE, BUFFER, SILENT, INTERRUPTED = "device", "buffer", "silent", "interrupted"
"""Causes of a gap, as in `Event.cause`."""
CAUSES = DEVICE, BUFFER, SILENT, INTERRUPTED
STALLED, OUTPUT = "stalled", "output"

WORDS = {
    DEVICE: "lost by the device or the sound server",
    BUFFER: "dropped by this program, whose buffer was full",
    SILENT: "without sound from the device",
    INTERRUPTED: "while this program did not run",
    STALLED: "delayed, and not counted",
    OUTPUT: "missed by this output, which was too slow",
}
"""What happened to the sound, by cause."""

SHOWN_S = 0.0005


def cause_of_gap(fault: int) -> str:
    """The cause of a gap from its bits of `Fault`."""
    if fault & Fault.SILENT:
        return SILENT
    return BUFFER if fault & Fault.OVERLOAD else DEVICE


def missing_words(seconds: Mapping[str, float]) -> str:
    """The time for each cause in words; "" if nothing is missing.

    seconds: by cause, a key of WORDS
    """
    lost = {cause: s for cause, s in seconds.items() if s > SHOWN_S}
    return ", ".join(f"{s:.{2 if s < 10 else 1}f} s {WORDS[cause]}" for cause, s in lost.items())
