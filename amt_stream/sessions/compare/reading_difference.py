"""The difference of a reading of two measurements."""

from dataclasses import dataclass

from amt_stream.core.json_types import JsonDict
from amt_stream.meters.rows.column import FULL_SCALE, UNCERTAIN
from amt_stream.meters.rows.words import SIGNS, with_sign


@dataclass(frozen=True)
class Difference:
    """The difference `b` - `a` of a reading, and its uncertainty (k = 2).

    uncertainty: in `unit`; None if unknown
    times: b / a of the same loudness in sone, if there is one
    repeatability: part of the uncertainty due to the spread of parts; None if it is not included,
        as for a maximum or too few parts. Readings of full scale describe the programme itself and
        have none
    signs: before `a` and `b` where they include clipped sound, or ""
    """

    name: str
    symbol: str
    words: str
    unit: str
    a: float
    b: float
    uncertainty: float | None
    times: float | None = None
    repeatability: float | None = None
    signs: tuple[str, str] = ("", "")

    @property
    def difference(self) -> float:
        return self.b - self.a

    @property
    def open_by(self) -> str:
        """The side that is clipped and may have been the louder one, "A" or "B"; or ""."""
        quieter = "A" if self.difference > 0 else "B"
        of_quieter, of_louder = self.signs if quieter == "A" else self.signs[::-1]
        if of_quieter:
            return quieter
        is_close = self.uncertainty is not None and abs(self.difference) <= self.uncertainty
        return {"A": "B", "B": "A"}[quieter] if of_louder and is_close else ""

    @property
    def sure(self) -> bool | None:
        """Whether the difference exceeds its uncertainty; None if that is unknown."""
        unknown = self.uncertainty is None or self.open_by
        return None if unknown else abs(self.difference) > (self.uncertainty or 0.0)

    def numbers(self, digits: int = 1) -> tuple[str, str, str]:
        """A, B and B - A as text, the first two with so many digits."""
        sides = zip((self.a, self.b), self.signs, strict=True)
        a, b = (with_sign(f"{one:.{digits}f}", sign) for one, sign in sides)
        unsure = SIGNS[UNCERTAIN] if any(self.signs) else ""
        return a, b, with_sign(f"{self.difference:+.2f}", unsure)

    @property
    def repeats(self) -> bool:
        """Whether the uncertainty includes repeatability, or there is none to include."""
        return self.unit in FULL_SCALE or self.repeatability is not None

    @property
    def verdict(self) -> str:
        """Which one is louder, as text; "" if unknown or if the reading is not a loudness."""
        if self.unit not in ("dB", "phon", "LUFS"):
            return ""
        if self.open_by:
            return f"which one is louder is not known: {self.open_by} is clipped"
        if self.sure is None:
            return ""
        if not self.sure:
            return "no significant difference"
        louder = f"{'B' if self.difference > 0 else 'A'} is louder"
        if not self.repeats:
            return f"{louder} here, repeatability unknown"
        return louder if self.times is None else f"{louder}: B has {self.times:.2f} times the sone"

    def to_dict(self) -> JsonDict:
        keys = ("name", "unit", "a", "b", "difference", "uncertainty", "repeatability", "sure")
        return {key: getattr(self, key) for key in (*keys, "times")}
