"""Inputs that record what the computer plays, where the sound system offers them."""

import re
import sys

_KNOWN = re.compile(r"\[loopback\]$|^monitor of |^(stereo mix|what u hear|blackhole|loopback)\b")


def is_played(name: str, host_api: str) -> bool:
    """Whether an input is known by its name to record playback.

    WASAPI marks its own; the others are common drivers and virtual devices.
    """
    return host_api != "ALSA" and _KNOWN.search(name.casefold()) is not None


def no_playback() -> str:
    """Why playback cannot be recorded, and what helps on this system."""
    if sys.platform == "darwin":
        help = "macOS has none built in: install a virtual device such as BlackHole"
    elif sys.platform == "win32":
        help = (
            "this PortAudio lists no loopback devices: switch on Stereo Mix, install a virtual "
            "cable, or give sounddevice a newer PortAudio"
        )
    else:
        help = "it needs PulseAudio or PipeWire, pactl, and ALSA's plugin for them"
    return f"there is no input that records what the computer plays; {help}"
