"""Readings as text, equal on all displays."""

from amt_stream.dsp.scales import phon_to_sone, sone_to_phon
from amt_stream.meters.frames import Fault

FAULT_NAMES = {bit: str(bit.name).lower() for bit in Fault}
"""Words of faults in rows."""

FAULT_WORDS = {bit: name.replace("_", " ") for bit, name in FAULT_NAMES.items()}
"""Words of faults on screens: "overload" would mean clipping to a sound engineer."""
FAULT_WORDS[Fault.OVERLOAD] = "too slow"

HIGHEST_PHON = 120.0

SMALLEST_SONE = 5e-4
"""Smaller values are shown as zero."""


def fault_words(fault: int) -> list[str]:
    """The faults of a frame as words."""
    return [word for bit, word in FAULT_WORDS.items() if fault & bit]


def reading_text(name: str, value: float | None) -> str:
    """A reading as text, by its column: three digits of sone, tenths of other units."""
    if value is None:
        return "---"
    if not name.endswith("_sone"):
        return f"{value:.1f}"
    return "0" if abs(value) < SMALLEST_SONE else f"{value:.3g}"


def phon_text(sone: float) -> str:
    """Loudness level of `sone`; the standard's table ends at 120 phon."""
    if sone > phon_to_sone(HIGHEST_PHON):
        return f">{HIGHEST_PHON:.0f}"
    return f"{sone_to_phon(sone):.1f}"


def band_texts(sone: float, low: float, high: float) -> tuple[str, str]:
    """The larger distance of `low` and `high` from `sone`, in percent and in phon.

    Empty if the standard's table has no phon for `sone`.
    """
    phon = sone_to_phon(sone)
    if not 0.0 < phon < HIGHEST_PHON:
        return "", ""
    percent = 100.0 * max(high / sone - 1.0, 1.0 - low / sone)
    wide = max(sone_to_phon(high) - phon, phon - sone_to_phon(low))
    return f"{percent:.{0 if percent >= 0.95 else 1}f} %", f"{wide:.1f}"
