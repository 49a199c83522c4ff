"""Readings of audible tones, impulses and the rating level."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from amt_stream.meters.accumulators.rating import NOW, Impulse, RatingMeter, Values
from amt_stream.meters.frames import Fault, Frames
from amt_stream.meters.rows.column import Column
from amt_stream.meters.rows.models.channel_readings import INSTANT, ChannelReadings, ChannelWords
from amt_stream.meters.rows.readings import fully_heard

SETTLE_S = 0.1
"""Until a filter of A has forgotten louder sound."""

TONE = "By the engineering method of ISO/PAS 20065."
IMPULSE = "By the method of NT ACOU 112 and ISO/PAS 1996-3."
RATED = "LAeq with the adjustments of each half hour."


TONES = {
    "tone_dl": ChannelWords(
        "tone_dl{side}_db",
        "dB",
        "audibility of the most audible tone",
        INSTANT,
        "Audibility of the tone",
        "ΔL",
        f"How far the tone is above what the noise in its critical band masks. {TONE}",
        "renewed every 3 s; none without a tone",
    ),
    "tone_hz": ChannelWords(
        "tone{side}_hz",
        "Hz",
        "frequency of the most audible tone",
        INSTANT,
        "Frequency of the tone",
        "f",
        f"Where the most audible tone is; below 90 Hz it is uncertain. {TONE}",
        "renewed every 3 s; none without a tone",
    ),
    "tone_u": ChannelWords(
        "tone_u{side}_db",
        "dB",
        "expanded uncertainty of the audibility, 90 %",
        INSTANT,
        "Uncertainty of the audibility",
        "U",
        f"Of one spectrum; that of the mean of 12 spectra or more is smaller. {TONE}",
        "renewed every 3 s; none without a tone",
    ),
    "tone_age": ChannelWords(
        "tone_age{side}_s",
        "s",
        "time since the last spectrum of tones",
        INSTANT,
        "Age of the tone",
        "",
        "From 10 s on the tone is an old one: spectra with a gap or clipped sound are thrown away.",
    ),
    "tone_mean_dl": ChannelWords(
        "tone_mean_dl{side}_db",
        "dB",
        "audibility of the most audible tone",
        "mean",
        "Mean audibility",
        "ΔLm",
        f"The energy mean of all spectra; with fewer than 12 it is uncertain. {TONE}",
        "spectra without a tone count as -10 dB; none if no spectrum has one",
    ),
    "tone_max_hz": ChannelWords(
        "tone_max{side}_hz",
        "Hz",
        "frequency of the most audible tone",
        "maximum",
        "Frequency of the most audible tone",
        "fmax",
        f"Where the tone was that stood out most of all. {TONE}",
    ),
    "tone_n": ChannelWords(
        "tone{side}_n",
        "",
        "spectra of the mean audibility",
        "number",
        "Spectra",
        "",
        "How many spectra of 3 s the mean is of; ISO/PAS 20065 asks for 12.",
    ),
    "tone_discarded": ChannelWords(
        "tone_discarded{side}_n",
        "",
        "spectra with a gap or clipped sound",
        "number",
        "Spectra thrown away",
        "",
        "How many spectra of 3 s were not used, as sound was missing or clipped in them.",
    ),
    "kt": ChannelWords(
        "kt{side}_db",
        "dB",
        "adjustment for tones",
        "adjustment",
        "Adjustment for tones",
        "K_T",
        "0 to 6 dB by the mean audibility (ISO 1996-2:2017, Table J.1).",
        "none without a spectrum",
    ),
}
IMPULSES = {
    "impulse_s": ChannelWords(
        "impulse{side}_s",
        "s",
        "time at which the last impulse began",
        INSTANT,
        "Last impulse",
        "",
        f"An impulse is an onset with a prominence above 5. {IMPULSE}",
    ),
    "impulse_p": ChannelWords(
        "impulse{side}_p",
        "",
        "prominence of the last impulse",
        INSTANT,
        "Prominence",
        "P",
        f"3 lg OR + 2 lg LD, of the level LAF each 20 ms. {IMPULSE}",
    ),
    "impulse_or": ChannelWords(
        "impulse_or{side}_db_s",
        "dB/s",
        "onset rate of the last impulse",
        INSTANT,
        "Onset rate",
        "OR",
        f"The slope of the straight line through the levels of the onset. {IMPULSE}",
    ),
    "impulse_ld": ChannelWords(
        "impulse_ld{side}_db",
        "dB",
        "level difference of the last impulse",
        INSTANT,
        "Level difference",
        "LD",
        f"The level at the end of the onset above that at its start. {IMPULSE}",
    ),
    "impulse_max_p": ChannelWords(
        "impulse_max{side}_p",
        "",
        "prominence of impulses",
        "maximum",
        "Highest prominence",
        "Pmax",
        f"Of the impulses that were not left out. {IMPULSE}",
    ),
    "impulse_n": ChannelWords(
        "impulse{side}_n",
        "",
        "impulses",
        "number",
        "Impulses",
        "",
        f"How many impulses there were, without those that were left out. {IMPULSE}",
    ),
    "ki": ChannelWords(
        "ki{side}_db",
        "dB",
        "adjustment for impulses",
        "adjustment",
        "Adjustment for impulses",
        "K_I",
        f"1.8 (P - 5) of the most prominent impulse, ± 0.3 dB. {IMPULSE}",
        "onsets in LAF each 20 ms; none in the first second, and in one after a gap",
    ),
}
LEVELS = {
    "laeq": ChannelWords(
        "rating_laeq{side}_db",
        "dB",
        "sound level A",
        "equivalent",
        "Average level",
        "LAeq",
        "The energy mean of the A-weighted level.",
    ),
    "rating": ChannelWords(
        "rating{side}_db",
        "dB",
        "rating level",
        "rated",
        "Rating level",
        "Lr",
        f"{RATED} Without adjustments for the time of day.",
        "half hours, from the start or the last reset; none if less than half was measured with "
        "both adjustments",
    ),
}


OF_INTERVAL = ("rating", "laeq", "kt", "tone_max_hz", "tone_mean_dl", "ki", "impulse_max_p")
"""The readings of an interval: its level, and its adjustments with their reasons."""

UNUSUAL = ("tone_u", "tone_max_hz", "tone_discarded")

LEADS = dict.fromkeys(("tone_hz", "tone_u"), "tone_dl")
LEADS["tone_max_hz"] = "tone_mean_dl"
LEADS |= dict.fromkeys(("impulse_s", "impulse_or", "impulse_ld"), "impulse_p")
"""Of two channels, that with the higher one of these has the value that is shown."""


class RatingReadings(ChannelReadings):
    """Tones, impulses and rating level: of two channels the higher ones, and those of each.

    built: the model, which has how adjustments are combined, and the duration of a spectrum
    """

    now, unusual, interval, leads, settles_s = NOW, UNUSUAL, OF_INTERVAL, LEADS, SETTLE_S

    def __init__(
        self,
        model: str,
        channels: int,
        words: dict[str, ChannelWords],
        headlines: Iterable[str],
        built: Any = None,
    ) -> None:
        self.combine = getattr(built, "combine", "sum")
        self._spectrum_s = getattr(built, "spectrum_s", 3.0)
        super().__init__(model, channels, words, headlines)

    def _column(self, model: str, key: str, side: str) -> Column:
        column = super()._column(model, key, side)
        if key == "rating" and self.combine == "max":
            return replace(column, note=f"the greater adjustment; {column.note}")
        return column

    def _meter(self, keys: tuple[str, ...]) -> RatingMeter:
        return RatingMeter(keys, self.combine)

    def _values(self, frames: Frames, channel: int) -> Values:
        given = {name: getattr(frames.values, name, None) for name in Values._fields}
        return Values(**{k: None if v is None else v[channel] for k, v in given.items()})

    def take(self, frames: Frames) -> NDArray[np.float64]:
        counted = self.counted(frames, SETTLE_S)
        clean = fully_heard(frames) & ((frames.fault & (Fault.CLIP | Fault.STALL)) == 0)
        given = frames.time_s, counted, clean, frames.since_s, self._spectrum_s
        each = [m.update(self._values(frames, k), *given) for k, m in enumerate(self.meters)]
        return self.shown(np.stack(each))

    def tail(self, frames: Frames) -> None:
        shares = self.shares(frames, self.counted(frames, SETTLE_S))
        for k, meter in enumerate(self.meters):
            meter.tail(self._values(frames, k), shares, frames.time_s)

    @property
    def impulses(self) -> list[Impulse]:
        """The impulses of the channel that has the most prominent one."""

        def most(impulses: list[Impulse]) -> float:
            return max((one.prominence for one in impulses), default=0.0)

        return max((meter.impulses for meter in self._meters), key=most)

    @property
    def missing_impulses(self) -> set[float]:
        """Times of impulses that are to be left out, and that no channel has yet."""
        return set.intersection(*({*meter.expected_s.tolist()} for meter in self._meters))

    def has_impulse(self, time_s: float) -> bool:
        """Whether `leave_out` knows an impulse that began at this time."""
        return any(meter.has_impulse(time_s) for meter in self._meters)

    def leave_out(self, time_s: float, out: bool) -> None:
        """Leave out the impulse that began at this time, or count it again."""
        for meter in self._meters:
            meter.leave_out(time_s, out)


def tonal_audibility_readings(channels: int, model: Any = None) -> RatingReadings:
    headlines = ("tone_mean_dl", "kt")
    return RatingReadings("tonal_audibility", channels, TONES, headlines, model)


def impulses_readings(channels: int) -> RatingReadings:
    return RatingReadings("impulses", channels, IMPULSES, ("impulse_max_p", "ki"))


def rating_readings(channels: int, model: Any = None) -> RatingReadings:
    headlines = ("rating", "laeq", "kt", "ki")
    return RatingReadings("rating", channels, TONES | IMPULSES | LEVELS, headlines, model)
