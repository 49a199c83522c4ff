"""Windows in the names of readings: `15min` of `laeq_15min_db`."""

import re

SECONDS = {"s": 1.0, "min": 60.0, "h": 3600.0}
LONGEST_S = 24 * 3600.0
WINDOW = r"\d+(?:s|min|h)"
"""A window in the pattern of a name."""


def window_s(text: str) -> float:
    """Length in seconds of a window such as `30s`, `15min` or `8h`.

    Raises ValueError for another text, and for a window outside 1 s to 24 h.
    """
    found = re.fullmatch(r"(\d+)(s|min|h)", text)
    if found is None:
        raise ValueError(f"the window {text!r} has no length: write it as 30s, 15min or 8h")
    seconds = int(found[1]) * SECONDS[found[2]]
    if not 1.0 <= seconds <= LONGEST_S:
        raise ValueError(f"a window of {text}: give 1s to {LONGEST_S / 3600:.0f}h")
    return seconds
