"""What each reading is called, and what it is, in words."""

import re
from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

from amt_stream.meters.accumulators.window import WINDOW


class Caption(NamedTuple):
    """A reading in words.

    words, symbol: "Loudness, long-term", "LTL"
    unit: as it is written
    sentence: what it is, its time constants, its standard; "" of a reading that nobody described
    counted: made of all that was counted, so that it needs the time beside it
    """

    words: str
    symbol: str
    unit: str
    sentence: str = ""
    counted: bool = False

    @property
    def spoken(self) -> str:
        """Its name where several stand together and nothing but a name is read."""
        return f"{self.words} ({self.symbol})" if self.symbol else self.words


UNITS = {
    "db": "dB",
    "lufs": "LUFS",
    "lu": "LU",
    "dbtp": "dBTP",
    "dbfs": "dBFS",
    "hz": "Hz",
    "percent": "%",
}
"""Units as names of readings end in them, where they are written otherwise."""

SIDE = "(?:_(?P<side>left|right))?"
OF = rf"(?:_(?P<window>{WINDOW}))?"
"""The window that a statistic is of."""

SCALES = {
    "sone": "In sone: twice the number sounds twice as loud.",
    "phon": "In phon: the level of a tone of 1 kHz that is as loud.",
}

LOUDNESS = {"sone": "Loudness", "phon": "Loudness level"}

TIMES = {
    "f": ("fast", "with a time constant of 125 ms (F)"),
    "s": ("slow", "with a time constant of 1 s (S)"),
    "i": ("impulse", "with 35 ms upwards and 1.5 s downwards (I)"),
}

MOORE = "Both ears together, by the method of ISO 532-3 (Moore et al. 2016, 2018)."
GM2002 = "Both ears together: Glasberg & Moore (2002) on the constants of ANSI S3.4-2007."
ZWICKER = "By the method of ISO 532-1 for sounds that vary in time."
DIN = "By the method of DIN 45692."
SPL = "IEC 61672-1."
PROGRAMME = "ITU-R BS.1770, EBU R 128."
THIRDS = "IEC 61260-1."

STL = "How loud the sound is at this moment: rises with {up}, falls with {down}."
LTL = "How loud the sound is as it is remembered: rises with {up}, falls with {down}."
EXCEEDED = "The value that was exceeded in {percent} % of the time."
HIGHEST = "The highest value of all that was counted."

FAMILIES = (
    ("", MOORE, ("22 ms", "30 ms"), ("99 ms", "0.75 s")),
    ("gm2002_", GM2002, ("22 ms", "50 ms"), ("99 ms", "2 s")),
)
"""Models of the Moore family: prefix, standard, times up and down of short- and long-term."""


class ReadingKind(NamedTuple):
    """Readings of one kind. Words, symbol and sentence have the groups of `pattern` in braces."""

    pattern: str
    words: str
    symbol: str
    sentence: str
    counted: bool = False


def _family(
    prefix: str, standard: str, stl: tuple[str, str], ltl: tuple[str, str]
) -> list[ReadingKind]:
    unit = "_(?P<unit>sone|phon)"
    kinds = []
    for name, words, what, (up, down) in (
        ("stl", "short-term", STL, stl),
        ("ltl", "long-term", LTL, ltl),
    ):
        about = f"{what.format(up=up, down=down)} {standard}"
        symbol, stem = name.upper(), prefix + name
        kinds += [
            ReadingKind(f"{stem}{unit}", f"{{loudness}}, {words}", symbol, about),
            ReadingKind(
                f"{prefix}max_{name}{unit}",
                f"Highest, {words}",
                f"{symbol} max",
                f"{HIGHEST} {about}",
                True,
            ),
            ReadingKind(
                rf"{stem}_n(?P<percent>\d\d?){OF}{unit}",
                "Exceeded {percent} % of time",
                f"{symbol} N{{percent}}",
                f"{EXCEEDED} {about}",
                True,
            ),
        ]
        for edge, bound in (("low", "lower bound"), ("high", "upper bound")):
            sentence = f"The {bound} that follows from the uncertainty of the level (k = 2)."
            pattern = f"{prefix}(?:max_)?{name}_{edge}{unit}"
            kinds.append(
                ReadingKind(
                    pattern, f"{words.capitalize()}, {bound}", symbol, f"{sentence} {about}"
                )
            )
    return kinds


def _kinds() -> Iterator[ReadingKind]:
    for family in FAMILIES:
        yield from _family(*family)
    yield from _ZWICKER
    yield from _PROGRAMME
    yield from _LEVELS
    yield from _THIRDS
    yield from _OCTAVES
    yield from _SPECTRUM


_ZWICKER = (
    ReadingKind(
        f"zwicker_n{SIDE}_(?P<unit>sone|phon)",
        "{loudness}",
        "N",
        f"How loud the sound is at this moment: low-passes of 3.5 ms and 70 ms. {ZWICKER}",
    ),
    ReadingKind(
        f"zwicker_nmax{SIDE}_(?P<unit>sone|phon)",
        "Highest loudness",
        "Nmax",
        f"{HIGHEST} {ZWICKER}",
        True,
    ),
    ReadingKind(
        rf"zwicker_n(?P<percent>\d\d?){OF}{SIDE}_(?P<unit>sone|phon)",
        "Exceeded {percent} % of time",
        "N{percent}",
        f"{EXCEEDED} {ZWICKER}",
        True,
    ),
    ReadingKind(
        f"sharpness(?P<after>_aures|_bismarck)?{SIDE}_acum",
        "Sharpness",
        "S",
        f"How much of the sound is high; narrow noise at 1 kHz has 1 acum. {DIN}",
    ),
    ReadingKind(
        f"sharpness(?P<after>_aures|_bismarck)?_mean{SIDE}_acum",
        "Average sharpness",
        "S mean",
        f"The mean of all that was counted. {DIN}",
        True,
    ),
    ReadingKind(
        f"sharpness(?P<after>_aures|_bismarck)?_max{SIDE}_acum",
        "Highest sharpness",
        "Smax",
        f"{HIGHEST} {DIN}",
        True,
    ),
    ReadingKind(
        rf"sharpness(?P<after>_aures|_bismarck)?_s(?P<percent>\d\d?){OF}{SIDE}_acum",
        "Sharpness exceeded {percent} % of time",
        "S{percent}",
        f"{EXCEEDED} {DIN}",
        True,
    ),
)

_PROGRAMME = (
    ReadingKind(
        "momentary_lu(?:fs)?",
        "Momentary",
        "M",
        f"Loudness of the last 0.4 s. {PROGRAMME}",
    ),
    ReadingKind(
        "short_term_lu(?:fs)?", "Short-term", "S", f"Loudness of the last 3 s. {PROGRAMME}"
    ),
    ReadingKind(
        "integrated_lu(?:fs)?",
        "Integrated",
        "I",
        "Loudness of all that was counted, without what is below -70 LUFS or 10 LU below the rest. "
        + PROGRAMME,
        True,
    ),
    ReadingKind(
        "lra_lu",
        "Loudness range",
        "LRA",
        "From the soft to the loud parts: 10 to 95 % of short-term loudness, gated. EBU Tech 3342.",
        True,
    ),
    ReadingKind(
        "max_momentary_lu(?:fs)?",
        "Highest momentary",
        "M max",
        f"{HIGHEST} Loudness of 0.4 s. {PROGRAMME}",
        True,
    ),
    ReadingKind(
        "max_short_term_lu(?:fs)?",
        "Highest short-term",
        "S max",
        f"{HIGHEST} Loudness of 3 s. {PROGRAMME}",
        True,
    ),
    ReadingKind(
        "true_peak_dbtp",
        "True peak",
        "TP",
        "The highest peak, also between samples; of all channels the highest. Programmes stay "
        f"below -1 dBTP. {PROGRAMME}",
        True,
    ),
    ReadingKind(
        "sample_peak_dbfs",
        "Sample peak",
        "SP",
        "The largest sample, full scale being 0 dB; of all channels the largest.",
        True,
    ),
)

_LEVELS = (
    ReadingKind(
        f"l(?P<weight>[acz])(?P<time>[fsi]){SIDE}_db",
        "Level{weighted}, {timed}",
        "L{WEIGHT}{TIME}",
        f"Sound level, {{WEIGHT}}-weighted, {{smoothed}}. {SPL}",
    ),
    ReadingKind(
        f"l(?P<weight>[acz])(?P<time>[fsi])max{SIDE}_db",
        "Highest level{weighted}, {timed}",
        "L{WEIGHT}{TIME}max",
        f"{HIGHEST} Sound level, {{WEIGHT}}-weighted, {{smoothed}}. {SPL}",
        True,
    ),
    ReadingKind(
        f"l(?P<weight>[acz])(?P<time>[fsi])min{SIDE}_db",
        "Lowest level{weighted}, {timed}",
        "L{WEIGHT}{TIME}min",
        "The lowest value of all that was counted. Sound level, {WEIGHT}-weighted, {smoothed}. "
        + SPL,
        True,
    ),
    ReadingKind(
        f"l(?P<weight>[acz])eq{OF}{SIDE}_db",
        "Average level{weighted}",
        "L{WEIGHT}eq",
        "The steady level with the same energy (equivalent continuous sound level), "
        f"{{WEIGHT}}-weighted. {SPL}",
        True,
    ),
    ReadingKind(
        f"l(?P<weight>[acz])e{SIDE}_db",
        "Sound exposure level{weighted}",
        "L{WEIGHT}E",
        "The level of one second with the energy of all that was counted, {WEIGHT}-weighted. "
        + SPL,
        True,
    ),
    ReadingKind(
        f"l(?P<weight>[acz])peak{SIDE}_db",
        "Peak level{weighted}",
        "L{WEIGHT}peak",
        f"The highest instantaneous sound pressure, {{WEIGHT}}-weighted, as a level. {SPL}",
        True,
    ),
    ReadingKind(
        rf"l(?P<percent>\d\d?){OF}{SIDE}_db",
        "Exceeded {percent} % of time",
        "LAF{percent}",
        f"{EXCEEDED} Sound level, A-weighted, with a time constant of 125 ms (F). {SPL}",
        True,
    ),
    ReadingKind(
        rf"l(?P<weight>[acz])(?P<time>[fsi])(?P<percent>\d\d?){OF}{SIDE}_db",
        "Exceeded {percent} % of time{weighted}, {timed}",
        "L{WEIGHT}{TIME}{percent}",
        f"{EXCEEDED} Sound level, {{WEIGHT}}-weighted, {{smoothed}}. {SPL}",
        True,
    ),
    ReadingKind(
        f"l(?P<weight>[acz])ieq{SIDE}_db",
        "Average level{weighted}, impulse",
        "L{WEIGHT}Ieq",
        "The mean power of the sound level I as a level, {WEIGHT}-weighted, with 35 ms upwards and "
        f"1.5 s downwards (I). {SPL}",
        True,
    ),
    ReadingKind(
        f"laft(?P<seconds>[35])eq{SIDE}_db",
        "Average of the highest in {seconds} s",
        "LAFT{seconds}",
        "The mean power of the highest level in each {seconds} s as a level (DIN 45641). Sound "
        f"level, A-weighted, with a time constant of 125 ms (F). {SPL}",
        True,
    ),
    ReadingKind(
        f"lceq_minus_laeq{SIDE}_db",
        "Average levels, C less A",
        "LCeq - LAeq",
        "How much low-frequency sound there is: the difference of two equivalent levels.",
        True,
    ),
    ReadingKind(
        f"laieq_minus_laeq{SIDE}_db",
        "Average levels, impulse less A",
        "LAIeq - LAeq",
        "How impulsive the sound is: the difference of two equivalent levels.",
        True,
    ),
    ReadingKind(
        f"laft(?P<seconds>[35])eq_minus_laeq{SIDE}_db",
        "Highest in {seconds} s less average",
        "LAFT{seconds} - LAeq",
        "How impulsive the sound is: the difference of the average of the highest levels in each "
        "{seconds} s and of the equivalent level.",
        True,
    ),
    ReadingKind(
        f"lex_8h{SIDE}_db",
        "Noise exposure, 8 hours",
        "LEX,8h",
        "The exposure of all that was counted, as if it were spread over a working day of 8 hours.",
        True,
    ),
    ReadingKind(
        rf"(?P<of>l[acz]eq_{WINDOW}|lex_8h)_allowed_(?P<limit>\d+(?:p\d+)?){SIDE}_db",
        "Still allowed",
        "",
        "The highest steady level that keeps {OF} within {limited} dB from now on.",
    ),
    ReadingKind(
        rf"(?P<of>l[acz]eq_{WINDOW}|lex_8h)_until_(?P<limit>\d+(?:p\d+)?){SIDE}_s",
        "Time to the limit",
        "",
        "How long until {OF} is above {limited} dB if the level of the last 10 s goes on.",
    ),
    ReadingKind(
        rf"dose(?:_\w+?)?{SIDE}_percent",
        "Noise dose",
        "dose",
        "The share of a working day's allowed noise that all that was counted makes.",
        True,
    ),
    ReadingKind(
        rf"twa(?:_\w+?)?{SIDE}_db",
        "Average of 8 hours",
        "TWA",
        "The steady level of eight hours that makes the same noise dose.",
        True,
    ),
)

_BAND = r"_(?P<band>\d+(?:_\d+)?)hz"
_THIRD = f"Level of the third octave at {{hertz}}, {{smoothed}}. {THIRDS}"

_THIRDS = (
    ReadingKind(
        f"lz(?P<time>[fs]){_BAND}{SIDE}_db", "{hertz}, {timed}", "LZ{TIME} {hertz}", _THIRD
    ),
    ReadingKind(
        f"lz(?P<time>[fs])max{_BAND}{SIDE}_db",
        "{hertz}, highest, {timed}",
        "LZ{TIME}max {hertz}",
        f"{HIGHEST} {_THIRD}",
        True,
    ),
    ReadingKind(
        f"lzeq{_BAND}{OF}{SIDE}_db",
        "{hertz}, average",
        "LZeq {hertz}",
        f"The steady level with the same energy, of the third octave at {{hertz}}. {THIRDS}",
        True,
    ),
)

_OCTAVES = tuple(
    kind._replace(
        pattern=f"octave_{kind.pattern}",
        words=f"Octave {kind.words}",
        sentence=kind.sentence.replace("third octave", "octave"),
    )
    for kind in _THIRDS
)

_LINE = (
    "The strongest line of the spectrum from 20 Hz to 20 kHz, between the bins of a Fourier "
    "transform too: Hann window of 0.2 s, with a time constant of 125 ms (F)."
)

_SPECTRUM = (
    ReadingKind(f"spectrum_peak{SIDE}_(?:hz|db)", "Strongest line", "", _LINE),
    ReadingKind(
        f"spectrum_max{SIDE}_(?:hz|db)", "Strongest line so far", "", f"{HIGHEST} {_LINE}", True
    ),
)

KINDS = tuple((re.compile(kind.pattern), kind) for kind in _kinds())


@cache
def caption_of(name: str) -> Caption:
    """The reading of that name; one that nobody described is called as its name tells."""
    stem, _, unit = name.rpartition("_")
    unit = UNITS.get(unit, unit)
    for pattern, kind in KINDS:
        if (found := pattern.fullmatch(name)) is not None:
            return _filled(kind, found, unit)
    plain = stem.replace("_", " ")
    return Caption(plain[:1].upper() + plain[1:], "", unit)


def _filled(kind: ReadingKind, found: "re.Match[str]", unit: str) -> Caption:
    parts = {key: value or "" for key, value in found.groupdict().items()}
    given = parts | _in_words(parts, unit)
    words, symbol = (text.format_map(given) for text in (kind.words, kind.symbol))
    sentence = kind.sentence.format_map(given)
    if after := given.get("after"):
        words += f" {after}"
        sentence = sentence.replace(DIN, f"By the weighting of {after}.")
    if window := given.get("window"):
        words, symbol = f"{words}, {window}", f"{symbol},{parts['window']}"
        sentence += f" Of the last {window}."
    if side := given.get("side"):
        words, symbol = f"{words}, {side}", symbol and f"{symbol} {side[0].upper()}"
        sentence += f" Of the {side} channel."
    if scale := SCALES.get(unit):
        sentence += f" {scale}"
    if unit == "LU" and "lra" not in found.string:
        sentence += " Relative to the target."
    # What rolls counts no more than its window.
    return Caption(words, symbol, unit, sentence, kind.counted and not given.get("window"))


def _in_words(parts: dict[str, str], unit: str) -> dict[str, str]:
    """What stands in braces and is no group as it is."""
    weight, time = parts.get("weight", ""), parts.get("time", "f")
    timed, smoothed = TIMES[time]
    band = float(parts.get("band", "0").replace("_", "."))
    of, limit = parts.get("of", ""), parts.get("limit", "")
    return {
        "loudness": LOUDNESS.get(unit, ""),
        "weighted": "" if weight in ("", "a") else f" {weight.upper()}",
        "WEIGHT": weight.upper(),
        "TIME": time.upper(),
        "timed": timed,
        "smoothed": smoothed,
        "hertz": f"{band / 1000:g} kHz" if band >= 1000 else f"{band:g} Hz",
        "window": re.sub(r"(\d+)", r"\1 ", parts.get("window", "")),
        "after": {"_aures": "Aures", "_bismarck": "von Bismarck"}.get(parts.get("after", ""), ""),
        "OF": of.replace("_", ",").replace("lex", "LEX").replace("la", "LA").replace("lc", "LC"),
        "limited": limit.replace("p", "."),
    }
