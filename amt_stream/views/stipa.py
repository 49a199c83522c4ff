"""A measurement of the STI at a position: its signal, its progress and its result."""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from amt_stream.core.errors import Refusal
from amt_stream.core.words import counted
from amt_stream.dsp.stipa_signal import FS, OCTAVES, stipa_signal
from amt_stream.engine.devices.player import Player
from amt_stream.meters.accumulators.stipa import VALID_S, Reason, StiResult
from amt_stream.meters.calibration import utc_now
from amt_stream.meters.rows.readings import CALIBRATED
from amt_stream.sessions.outputs import LatestReadings
from amt_stream.sessions.results.stipa_positions import StiPosition, overall

MODEL = "stipa"
USUAL_S, NOISE_S = 25.0, 10.0
"""How long a position is measured, and noise that is measured apart."""

LOST_S = 2.0
"""Of sound that is missing, from which on a message says so: the first second always is."""

BEGIN_S = 1.0
"""From the start of the player until its sound is in the room."""

USUAL_DBFS, LOUDEST_DBFS = -20.0, -17.0
"""RMS level of the signal."""


class NotMeasured(Refusal, ValueError):
    """There is no result; the message says why."""


def play_signal(seed: int = 1, level_dbfs: float = USUAL_DBFS, device: str | None = None) -> Player:
    """Begin to play the test signal. Raises SourceError if the output does not."""
    return Player(_signal(FS, seed, level_dbfs), FS, device)


def _signal(fs: int, seed: int, level_dbfs: float) -> NDArray[np.float32]:
    return stipa_signal(fs, seed, rms=10 ** (level_dbfs / 20))


def write_signal(path: Path, fs: int = FS, seed: int = 1, level_dbfs: float = USUAL_DBFS) -> None:
    """Write the period of the test signal as a sound file. Raises NotMeasured where it cannot."""
    import soundfile

    try:
        soundfile.write(path, _signal(fs, seed, level_dbfs), fs, subtype="PCM_24")
    except (soundfile.LibsndfileError, TypeError, ValueError, OSError) as error:
        raise NotMeasured(f"{path} cannot be written: {error}") from error


class StiMeasurement:
    """The test signal at one position, as a running engine measures it [main-thread].

    latest: readings of the engine, with the model `stipa`
    player: plays the signal meanwhile, if this computer does
    """

    def __init__(self, latest: LatestReadings, player: Player | None = None) -> None:
        self._latest, self._player = latest, player
        self._before = 0 if player is None else player.interruptions

    @property
    def result(self) -> StiResult | None:
        """Of all since the last reset; None before 3 s of sound."""
        result: StiResult | None = self._latest.ask(MODEL, lambda readings: readings.overall)
        return result

    @property
    def calibrated(self) -> bool:
        """Whether levels are true."""
        return bool(self._latest.ask(MODEL, lambda readings: readings.level == CALIBRATED))

    def position(self, name: str, noise_db: list[float] | None = None) -> StiPosition:
        """The result at the position of this name, or of the time.

        noise_db: (7,) of noise that is added

        Raises NotMeasured without a result, and for noise without a calibration.
        """
        result = self.result
        if result is None:
            raise NotMeasured(f"{self._too_little}: measure for 15 s or more")
        if noise_db is not None and not self.calibrated:
            raise NotMeasured("noise that is added needs the true level: calibrate the input")
        now = utc_now()
        interrupted = self._player is not None and self._player.interruptions > self._before
        return StiPosition.of(name or now, now, result, self.calibrated, noise_db, interrupted)

    @property
    def _too_little(self) -> str:
        """Why there is no result, in words."""
        lost_s: float = self._latest.ask(MODEL, lambda readings: readings.lost_s)
        words = "less than 4 s of sound are too little"
        lost = f"{lost_s:.0f} s of the sound were clipped or missing"
        return f"{lost}, and {words}" if lost_s >= LOST_S else words

    @property
    def noise_db(self) -> list[float]:
        """The levels (7,) of what was measured, as noise. Raises NotMeasured without them."""
        result = self.result
        if result is None:
            raise NotMeasured(f"{self._too_little} for the level of noise")
        if not self.calibrated:
            raise NotMeasured("the level of noise has to be true: calibrate the input")
        if silent := [
            f"{hz}" for hz, one in zip(OCTAVES, result.level_db, strict=True) if one != one
        ]:
            raise NotMeasured(
                f"there is no sound in the octaves of {', '.join(silent)} Hz, so the noise has no "
                "level there: is the microphone on?"
            )
        return [round(float(level), 1) for level in result.level_db]


def progress_text(result: StiResult) -> str:
    """A result so far in one line."""
    if Reason.NO_SIGNAL in result.reasons:
        return f"{result.seconds:4.1f} s: no signal"
    words = f"{result.seconds:4.1f} s: STI {result.sti:.2f} ± {result.sd:.3f}"
    return words if result.seconds >= VALID_S else f"{words} (uncertain until {VALID_S:g} s)"


def overall_text(positions: list[StiPosition]) -> str:
    """Mean and lowest of the valid positions in one line; "" without one."""
    total = overall(positions)
    if total is None:
        return ""
    valid = counted(total.number, "valid position")
    return f"{valid}: mean {total.mean:.2f}, lowest {total.lowest:.2f} at {total.where}"
