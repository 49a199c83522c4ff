"""The calibration of a microphone, which holds for one input gain only."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace

from amt_stream.core.words import counted, one_or_each
from amt_stream.engine.microphone.channels import EARS
from amt_stream.meters.calibration import Calibration, with_corrections
from amt_stream.meters.correction import Correction
from amt_stream.meters.source_description import InputGain

Corrections = tuple[Correction | None, ...]

AT_START, AT_CALIBRATION = "at the start", "at the calibration"


class CalibrationInUse:
    """The calibration of one ear or both, and a gain, until the gain of the input is turned.

    A calibration with the gain that it was made at holds for that one. Any other holds for the
    first gain that is known after it was given. If the system does not tell the gain, all hold.

    channels: their number
    places: their places among `measured` channels, of which calibrations may be given for each
    now: the calibration in use; while it does not hold, uncalibrated, with the reason
    why: why it does not hold, as a sentence; "" while it holds
    """

    def __init__(
        self,
        calibration: Calibration | Sequence[Calibration],
        gain_db: float = 0.0,
        channels: int = EARS,
        places: Sequence[int] = (),
        measured: int = 0,
    ) -> None:
        self._channels, self._places, self._measured = channels, places, measured
        self._gain: InputGain | None = None
        self.now: tuple[Calibration, ...] = ()
        self.give(calibration, gain_db)

    def give(
        self,
        calibration: Calibration | Sequence[Calibration] | None,
        gain_db: float | None = None,
        keep_corrections: bool = False,
    ) -> None:
        """Use another calibration, gain or both from here on; None leaves them."""
        if gain_db is not None:
            self.gain_db = gain_db
        if calibration is None:
            return
        given = self.own(calibration)
        if keep_corrections:
            given = tuple(with_corrections(given, [one.correction for one in self.now]))
        self.given, self._first = given, self._gain
        self._judge()

    def own(self, calibration: Calibration | Sequence[Calibration]) -> tuple[Calibration, ...]:
        """The calibration of its channels, from one for all or one for each measured channel.

        Raises ValueError for another number of them.
        """
        given = each_ear(calibration)
        if self._places and len(given) == self._measured:
            return tuple(given[place] for place in self._places)
        if len(given) not in (1, max(EARS, self._channels)):
            raise ValueError(
                f"{counted(len(given), 'calibration')} given: give one, or one for each "
                f"{'ear' if self._channels <= EARS else 'channel'}"
            )
        return given

    @property
    def form(self) -> str:
        """The calibration and gain, in words."""
        words = "; ".join(f"{c} ({c.full_scale_db_spl!r})" for c in self.given)
        return f"{words}, {self.gain_db:+g} dB" if self.gain_db else words

    @property
    def gain(self) -> float:
        """The gain before the model, as a factor."""
        return float(10.0 ** (self.gain_db / 20.0))

    def know_gain(self, gain: InputGain) -> None:
        """Take the present gain of the input; while it is turning, no calibration holds again."""
        if gain.turning and self.why:
            return
        self._gain = gain
        self._first = self._first or gain
        self._judge()

    @property
    def began_at(self) -> str:
        """The gain for which a calibration without one holds, as text for saved states."""
        return "" if self._first is None else json.dumps(self._first.to_dict())

    @began_at.setter
    def began_at(self, given: str) -> None:
        self._first = InputGain.from_dict(json.loads(given)) if given else None
        self._judge()

    @property
    def holds(self) -> str:
        """Why it holds, as a sentence."""
        when = " and ".join(dict.fromkeys(when for _, when in self._wanted()))
        return "" if self._gain is None else f"the input gain is {self._gain.in_words} as {when}"

    def _wanted(self) -> Iterator[tuple[InputGain, str]]:
        """The gains for which the calibrations hold, and when they were so."""
        for one in self.given:
            if not one.calibrated:
                continue
            if one.input_gain is not None:
                yield one.input_gain, AT_CALIBRATION
            elif self._first is not None:
                yield self._first, AT_START

    def _judge(self) -> None:
        self.why, gain = "", self._gain
        for wanted, when in self._wanted():
            if gain is not None and not gain.amplifies_as(wanted):
                now, before = gain.beside(wanted)
                self.why = f"the input gain is {now} and was {before} {when}"
                break
        self.now = self.given
        if self.why:
            self.now = tuple(
                replace(one, calibrated=False, source=self.why) if one.calibrated else one
                for one in self.given
            )


def each_ear(calibration: Calibration | Sequence[Calibration]) -> tuple[Calibration, ...]:
    """The calibration for both ears, or one for each ear or channel, as a tuple."""
    if isinstance(calibration, Calibration):
        return (calibration,)
    given = tuple(calibration) if isinstance(calibration, Sequence) else (calibration,)
    for one in given:
        if not isinstance(one, Calibration):
            raise TypeError(f"the calibration is {one!r}: give a Calibration, or one for each ear")
    if not given:
        raise ValueError("0 calibrations given: give one, or one for each ear")
    return given


def corrections_of(calibration: Sequence[Calibration], channels: int) -> Corrections:
    """The correction of each channel; () if there is none at all.

    A single one applies to all channels; two for one channel are those of its two ears.
    """
    given = tuple(one.correction for one in calibration)
    if not any(given):
        return ()
    if len(set(given)) == 1:
        return given[:1] * channels
    if len(given) < channels:
        raise ValueError(one_or_each(len(given), "correction", channels))
    return given
