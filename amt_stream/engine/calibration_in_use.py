"""The calibration of a microphone, which holds for one input gain only."""

import json
from collections.abc import Iterator
from dataclasses import replace

from amt_stream.meters.calibration import Calibration
from amt_stream.meters.source_description import InputGain

AT_START, AT_CALIBRATION = "at the start", "at the calibration"


class CalibrationInUse:
    """The calibration of one ear or both, until the gain of the input is turned.

    A calibration with the gain that it was made at holds for that one. Any other holds for the
    first gain that is known after it was given. If the system does not tell the gain, all hold.

    now: the calibration in use; while it does not hold, uncalibrated, with the reason
    why: why it does not hold, as a sentence; "" while it holds
    """

    def __init__(self, given: tuple[Calibration, ...]) -> None:
        self._gain: InputGain | None = None
        self.give(given)

    def give(self, given: tuple[Calibration, ...]) -> None:
        """Use another calibration from here on."""
        self.given = given
        self._first = self._gain
        self._judge()

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
                self.why = f"the input gain is {gain.in_words} and was {wanted.in_words} {when}"
                break
        self.now = self.given
        if self.why:
            self.now = tuple(
                replace(one, calibrated=False, source=self.why) if one.calibrated else one
                for one in self.given
            )
