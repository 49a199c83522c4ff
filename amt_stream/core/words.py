"""Counts, frequencies and times in sentences."""

import math


def counted(count: int, one: str, several: str = "") -> str:
    """As "1 sample" or "2 samples".

    several: the plural, by default with an s
    """
    return f"{count} {one}" if count == 1 else f"{count} {several or one + 's'}"


def one_or_each(count: int, what: str, channels: int) -> str:
    """The refusal of as many things as are neither one for all channels nor one for each."""
    return f"{counted(count, what)} for {counted(channels, 'channel')}: give one, or one for each"


def times(count: int) -> str:
    return "once" if count == 1 else "never" if not count else f"{count} times"


def frequency_text(hz: float) -> str:
    """As "31.5 Hz" or "1 kHz"."""
    return f"{hz / 1000:g} kHz" if hz >= 1000 else f"{hz:g} Hz"


def rough_time(seconds: float) -> str:
    """As "40 s", "12 min" or "2.5 h"."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def elapsed_text(seconds: float) -> str:
    """As 00:12:34."""
    whole = int(seconds)
    return f"{whole // 3600:02d}:{whole // 60 % 60:02d}:{whole % 60:02d}"


def clock_text(seconds: float) -> str:
    """Elapsed time as "1:02:03", with tenths if there are any."""
    sign, seconds = "-" if seconds < -0.05 else "", abs(seconds)
    whole = math.floor(seconds + 1e-6)
    tenths = round(10 * (seconds - whole))
    if tenths == 10:
        whole, tenths = whole + 1, 0
    text = f"{sign}{whole // 3600}:{whole // 60 % 60:02d}:{whole % 60:02d}"
    return f"{text}.{tenths}" if tenths else text
