"""The impulses of a measurement as the page lists them."""

from amt_stream.core.json_types import JsonDict, JsonMap
from amt_stream.core.words import elapsed_text
from amt_stream.meters.accumulators.rating import impulse_adjustment
from amt_stream.meters.frames import IMPULSE_COUNTING, LEFT_OUT

MOST = 16
"""Impulses that are listed: the newest."""

SAME_S = 0.01


class HeardImpulses:
    """Follows rows and events of one microphone."""

    def __init__(self) -> None:
        self._impulses: list[JsonDict] = []

    def take_row(self, row: JsonMap) -> None:
        """Add the impulse that a row has first."""
        began_s, prominence = row.get("impulse_s"), row.get("impulse_p")
        if began_s is None or prominence is None:
            return
        if not self._impulses or began_s > self._impulses[0]["time_s"]:
            one = {"time_s": began_s, "words": _words(row), "counts": True, "why": ""}
            self._impulses = [one, *self._impulses[: MOST - 1]]

    def take_event(self, event: JsonMap) -> None:
        """Take that one is left out, or counts again."""
        for one in self._impulses if event["kind"] in IMPULSE_COUNTING else ():
            if abs(one["time_s"] - event["time_s"]) < SAME_S:
                one.update(counts=event["kind"] != LEFT_OUT, why=event["text"])

    @property
    def shown(self) -> list[JsonDict]:
        """The newest first: when each began, in words, whether it counts, and why not."""
        return [dict(one) for one in self._impulses]


def _words(row: JsonMap) -> str:
    numbers = {"LD": ("impulse_ld_db", " dB"), "OR": ("impulse_or_db_s", " dB/s")}
    parts = [
        f"{symbol} {row[name]:.1f}{unit}"
        for symbol, (name, unit) in numbers.items()
        if row.get(name) is not None
    ]
    p = row["impulse_p"]
    parts += [f"P {p:.1f}", f"K_I {impulse_adjustment(p):.1f} dB"]
    return f"{elapsed_text(row['impulse_s'])}  {', '.join(parts)}"
