"""Columns of sound levels: what each name means, in words."""

from dataclasses import replace
from functools import lru_cache

from amt_stream.meters.accumulators import sound_level
from amt_stream.meters.accumulators.dose import Dose
from amt_stream.meters.accumulators.meter import FRAME_S
from amt_stream.meters.level_names import AHEAD, LevelName, read_level
from amt_stream.meters.rows.column import (
    EXCEEDED,
    HIGHEST,
    RENEWED,
    TIMES,
    Column,
    Meaning,
    counting,
    rising,
)
from amt_stream.meters.rows.readings import higher

FORECAST = {
    "allowed": "highest steady level that keeps {of} within {limit} dB from now on",
    "until": "time until {of} is above {limit} dB if the level of the last 10 s goes on",
}
AHEAD_RENEWED = "renewed every second of sound, held between"
AHEAD_WORDS = {
    "allowed": (
        "Still allowed",
        "The highest steady level that keeps {of} within {limit} dB from now on.",
    ),
    "until": (
        "Time to the limit",
        "How long until {of} is above {limit} dB if the level of the last 10 s goes on.",
    ),
}
OF_DAY = "The exposure of all that was counted, as if it were spread over a working day of 8 hours."
DOSED = {
    "dose": (
        "noise dose",
        "Noise dose",
        "dose",
        "The share of a working day's allowed noise that all that was counted makes.",
    ),
    "twa": (
        "time-weighted average of eight hours",
        "Average of 8 hours",
        "TWA",
        "The steady level of eight hours that makes the same noise dose.",
    ),
}
SPL = "IEC 61672-1."
IMPULSIVE = "How impulsive the sound is: the difference of "
DIFFERENCE_WORDS = {
    "c": (
        "LCeq",
        "Average levels, C less A",
        "How much low-frequency sound there is: the difference of two equivalent levels.",
    ),
    "ai": ("LAIeq", "Average levels, impulse less A", f"{IMPULSIVE}two equivalent levels."),
} | {
    f"aft{seconds}": (
        f"LAFT{seconds}",
        f"Highest in {seconds} s less average",
        f"{IMPULSIVE}the average of the highest levels in each {seconds} s and of the "
        "equivalent level.",
    )
    for seconds in sound_level.INTERVALS_S
}
"""Symbol of what is compared with LAeq, label and sentence."""

WORDS = {
    "eq": (
        "equivalent continuous {} sound pressure level",
        "equivalent",
        "Average level{}",
        "eq",
        "The steady level with the same energy (equivalent continuous sound level), {}.",
    ),
    "ieq": (
        "{} sound level, impulse (I)",
        "equivalent",
        "Average level{}, impulse",
        "Ieq",
        f"The mean power of the sound level I as a level, {{}}, {TIMES['i'][1]}.",
    ),
    "e": (
        "{} sound exposure level",
        "exposure",
        "Sound exposure level{}",
        "E",
        "The level of one second with the energy of all that was counted, {}.",
    ),
    "peak": (
        "{} peak sound pressure level",
        "maximum",
        "Peak level{}",
        "peak",
        "The highest instantaneous sound pressure, {}, as a level.",
    ),
}
"""Quantity, statistic, label, symbol and sentence of what has no time weighting of its own."""

EXTREMES = {
    "now": ("instantaneous", "Level", ""),
    "max": ("maximum", "Highest level", f"{HIGHEST} "),
    "min": ("minimum", "Lowest level", "The lowest value of all that was counted. "),
}
TIMED = {"f": "fast (F)", "s": "slow (S)", "i": "impulse (I)"}
IN_AUDIENCE = (
    " In the audience: the level at the microphone and the correction for the way from there."
)


@lru_cache(maxsize=2048)
def level_column(name: str, channels: int) -> Column:
    """The column of a sound level, without the correction to the audience."""
    one = read_level(name)
    assert one is not None
    kind, side, window = one.kind, one.part("side"), one.part("window")
    unit = {"dose": "percent", "until": "s"}.get(kind, "dB")
    meaning = _meaning(one)
    if one.part("place"):
        meaning = meaning._replace(
            quantity=f"{meaning.quantity}, in the audience",
            label=f"{meaning.label}, in the audience",
            about=f"{meaning.about}{IN_AUDIENCE}",
        )
    column = meaning.column(name, unit, "spl", side, window, higher(channels))
    if one.part("place") and column.symbol:
        column = replace(column, symbol=f"{column.symbol} audience")
    percent = int(one.part("percent") or 0)
    column = replace(column, of=_of(one), kind=kind, percent=percent, place=one.part("place"))
    if kind in AHEAD:
        return counting(column, sound_level.MEMORY_S, one.level_ahead.part("window"))
    if kind != "difference":
        column = replace(column, weighting=one.weighting.upper())
    if kind == "now":
        rise_s = float(sound_level.RISE_S[sound_level.LEVELS.index(one.timed)])
        return rising(replace(column, settle_s=_forgotten_s(one.timed)), rise_s)
    if kind in ("exceeded", "min"):
        # Percentiles of all levels as those of LAF.
        rises = sound_level.LEVELS[0] if kind == "exceeded" else one.timed
        column = rising(column, float(sound_level.RISE_S[sound_level.LEVELS.index(rises)]))
    settle_s = _forgotten_s(one.timed) if one.timed else sound_level.MEMORY_S
    return counting(column, settle_s, window)


def _of(one: LevelName) -> str:
    """Key of the quantity, as in `Column.of`."""
    if one.kind in ("now", "max", "min", "exceeded"):
        return one.timed
    return f"l{one.weighting}{one.kind}" if one.kind in ("eq", "ieq", "e", "peak") else one.kind


def _forgotten_s(level: str) -> float:
    return round(float(sound_level.FORGOTTEN[sound_level.LEVELS.index(level)]) * FRAME_S, 2)


def _meaning(one: LevelName) -> Meaning:
    kind = one.kind
    if kind in AHEAD:
        return _forecast(one)
    if kind == "day":
        quantity = "noise exposure level of eight hours (LEX,8h)"
        return Meaning(quantity, "exposure", "Noise exposure, 8 hours", "LEX,8h", OF_DAY)
    if kind in DOSED:
        dose = Dose.of(one)
        above = f", threshold {dose.threshold_db:g} dB" if dose.threshold_db else ""
        quantity, *words = DOSED[kind]
        rules = f"criterion {dose.criterion_db:g} dB, exchange {dose.exchange_db:g} dB{above}"
        return Meaning(f"{quantity}, {rules}", "exposure", *words)
    if kind == "difference":
        compared, label, about = DIFFERENCE_WORDS[one.part("compared")]
        quantity = f"{compared} less LAeq, a difference of levels"
        return Meaning(quantity, "difference", label, f"{compared} - LAeq", about)
    if kind == "intervals":
        seconds = one.part("seconds")
        quantity = f"LAFT{seconds}: the highest A-weighted level F in each {seconds} s"
        about = (
            f"The mean power of the highest level in each {seconds} s as a level (DIN 45641). "
            f"{_smoothed('laf')}"
        )
        label = f"Average of the highest in {seconds} s"
        return Meaning(quantity, "equivalent", label, f"LAFT{seconds}", about)
    weighting = one.weighting.upper()
    weighted, after = f"{weighting}-weighted", "" if weighting == "A" else f" {weighting}"
    if kind in WORDS:
        quantity, statistic, label, symbol, about = WORDS[kind]
        quantity, about = quantity.format(weighted), f"{about.format(weighted)} {SPL}"
        return Meaning(quantity, statistic, label.format(after), f"L{weighting}{symbol}", about)
    level = one.timed
    quantity = f"{weighted} sound level, {TIMED[level[2]]}"
    time, about = TIMES[level[2]][0], _smoothed(level)
    if kind == "exceeded":
        percent = one.part("percent")
        after = f"{after}, {time}" if one.part("level") else ""
        label = f"Exceeded {percent} % of time{after}"
        statistic = f"exceeded {int(percent)} % of the time"
        about = f"{EXCEEDED.format(percent=percent)} {about}"
        return Meaning(quantity, statistic, label, f"{level.upper()}{percent}", about, RENEWED)
    statistic, label, before = EXTREMES[kind]
    symbol = f"{level.upper()}{'' if kind == 'now' else kind}"
    return Meaning(quantity, statistic, f"{label}{after}, {time}", symbol, f"{before}{about}")


def _forecast(one: LevelName) -> Meaning:
    limit, level = one.part("limit").replace("p", "."), one.part("of")
    quantity = FORECAST[one.kind].format(of=level, limit=limit)
    ahead = one.level_ahead
    symbol = f"L{ahead.weighting.upper()}eq,{ahead.part('window')}"
    of = "LEX,8h" if ahead.kind == "day" else symbol
    label, about = AHEAD_WORDS[one.kind]
    return Meaning(quantity, "forecast", label, "", about.format(of=of, limit=limit), AHEAD_RENEWED)


def _smoothed(level: str) -> str:
    return f"Sound level, {level[1].upper()}-weighted, {TIMES[level[2]][1]}. {SPL}"
