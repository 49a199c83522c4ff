"""Detection and measurement of an acoustic calibrator's tone: one channel, numpy only."""

import math
from collections import Counter, deque
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from amt_stream.core.errors import Refusal
from amt_stream.meters.source_description import DEVICE_CLIPS_AT

PIECE_S = 0.2
STABLE_S = 3.0
STABLE_DB = 0.1
# Quarters of a piece show a level that swings once or twice in it. Noise that is allowed beside a
# tone moves them by 0.15 dB.
QUARTERS, SWING_DB = 4, 0.3
SEEN_S = 5.0
# A fault that lasts this long will not go away by waiting: twice the time a good tone needs.
PATIENCE_S = 2 * STABLE_S
# Class 2 calibrators hold their frequency within 2 % (IEC 60942).
FREQUENCY_TOLERANCE = 0.02
# Electronic calibrators and pistonphones (IEC 60942).
USUAL_HZ = (1000.0, 250.0)
QUIET_DBFS = -70.0
PURE_DB = -20.0
# The harmonics of a square wave, the most clipped tone, are 6.3 dB below its fundamental.
CLIPPED_DB = -6.0
LOWEST_DB = -200.0


class Refused(Refusal, RuntimeError):
    """The sound is not a calibrator's tone."""


@dataclass(frozen=True)
class MeasuredTone:
    """A tone: the strongest sinusoid in a piece of sound.

    level_dbfs      its level re a full-scale sine
    residual_db     level of the rest re the sinusoid
    total_dbfs      level of all without the mean
    clipped         samples at an end of the converter's range, or peaks lower than the sinusoid's
    swing_db        range of its level in the quarters of the piece
    """

    frequency: float
    level_dbfs: float
    residual_db: float
    total_dbfs: float
    clipped: bool
    swing_db: float


def measure_tone(
    samples: object, fs: float, clips_at: float | None = DEVICE_CLIPS_AT
) -> MeasuredTone:
    """Fit a sinusoid to `samples` (time,), which clip at `clips_at` as `SourceDescription` has it.

    Frequency from the Hann-windowed spectrum, then least squares with the same weights: exact
    within 0.001 dB for a pure tone of ten periods or more.
    """
    x = np.asarray(samples, np.float64)
    n = len(x)
    window = _hann(n)
    x0 = x - np.average(x, weights=window)
    magnitude = np.abs(np.fft.rfft(window * x0))
    k = int(np.argmax(magnitude[1:-1])) + 1
    beside = k + 1 if magnitude[k + 1] >= magnitude[k - 1] else k - 1
    peak, side = magnitude[k], magnitude[beside]
    # Position between two bins of a Hann-windowed sinusoid, from the ratio of their magnitudes.
    offset = (2.0 * side - peak) / (peak + side) if peak > 0.0 else 0.0
    frequency = (k + (beside - k) * offset) * fs / n

    fit, residual = _fitted(x, frequency / fs, window)
    amplitude = math.hypot(fit[0], fit[1])
    quarter = n // QUARTERS
    fits = [_fitted(x[k * quarter : (k + 1) * quarter], frequency / fs)[0] for k in range(QUARTERS)]
    levels = [_db(math.hypot(one[0], one[1]) ** 2) for one in fits]
    total = float(np.average(x0**2, weights=window))

    highest = float(np.max(np.abs(x - fit[2])))
    # The nearest sample to a peak may be half a sampling interval away.
    crest = amplitude * math.cos(math.pi * min(frequency / fs, 0.5))
    at_end = clips_at is not None and float(np.max(np.abs(x))) >= clips_at
    clipped = at_end or crest > 1.005 * highest
    return MeasuredTone(
        frequency=float(frequency),
        level_dbfs=_db(amplitude**2),
        residual_db=_db(residual) - _db(amplitude**2 / 2.0),
        total_dbfs=_db(2.0 * total),
        clipped=clipped and highest > 0.0,
        swing_db=max(levels) - min(levels),
    )


def _hann(n: int) -> NDArray[np.float64]:
    return 0.5 - 0.5 * np.cos(2.0 * np.pi * (np.arange(n) + 0.5) / n)


def _fitted(
    x: NDArray[np.float64], cycles: float, window: NDArray[np.float64] | None = None
) -> tuple[NDArray[np.float64], float]:
    """Cosine, sine and mean of `x` at so many cycles per sample; the mean square of the rest."""
    n = len(x)
    weights = _hann(n) if window is None else window
    phase = 2.0 * np.pi * cycles * np.arange(n)
    basis = np.stack([np.cos(phase), np.sin(phase), np.ones(n)], axis=1)
    root = np.sqrt(weights)
    fit, *_ = np.linalg.lstsq(basis * root[:, None], x * root, rcond=None)
    return fit, float(np.average((x - basis @ fit) ** 2, weights=weights))


def _db(power: float) -> float:
    return 10.0 * math.log10(max(power, 1e-20))


@dataclass(frozen=True)
class ToneVerdict:
    """The verdict on a calibrator's tone after a piece of sound.

    kind        "good" once the tone was stable within 0.1 dB for 3 s; "short" before that; else the
                fault: "quiet", "noise", "clipped", "frequency", "drift", "gap", "invalid"
    words       the verdict as a sentence, with the remedy
    tone        the tone measured in the piece, if it is valid
    good_s      duration of the tone with this frequency, at most 5 s
    spread_db   range of its level in this time
    mean        the mean tone of the last 3 s if it is good, which may be accepted
    """

    kind: str
    words: str
    tone: MeasuredTone | None = None
    good_s: float = 0.0
    spread_db: float = 0.0
    mean: MeasuredTone | None = None


class ToneWatch:
    """Gives a verdict on a calibrator's tone for each piece of sound.

    frequencies: those that the tone may have
    clips_at: of the source, as `SourceDescription` has it
    """

    def __init__(
        self, fs: int, *frequencies: float, clips_at: float | None = DEVICE_CLIPS_AT
    ) -> None:
        self.fs, self.frequencies = fs, frequencies or USUAL_HZ[:1]
        self._clips_at = clips_at
        self.verdict: ToneVerdict | None = None
        self._held = np.zeros(0)
        self._size = round(PIECE_S * fs)
        self._good: deque[MeasuredTone] = deque(maxlen=round(SEEN_S / PIECE_S))
        self._gaps = 0

    def push(self, samples: np.ndarray) -> list[ToneVerdict]:
        """Take any number of samples (time,), and return the verdicts on complete pieces."""
        self._held = np.concatenate([self._held, np.asarray(samples, np.float64)])
        verdicts = []
        while len(self._held) >= self._size:
            piece, self._held = self._held[: self._size], self._held[self._size :]
            self.verdict = self._judged(piece)
            verdicts.append(self.verdict)
        return verdicts

    def interrupt(self) -> ToneVerdict:
        """Restart at missing samples."""
        self._held = self._held[:0]
        self._good.clear()
        self._gaps += 1
        self.verdict = ToneVerdict(
            "gap",
            f"sound was lost ({self._gaps} times), and {STABLE_S:g} s of the tone are needed "
            "without a gap: is this computer busy, or the cable loose?",
        )
        return self.verdict

    def _judged(self, piece: NDArray[np.float64]) -> ToneVerdict:
        if not np.isfinite(piece).all():
            self._good.clear()
            return ToneVerdict("invalid", "the input has NaN or infinity")
        tone = measure_tone(piece, self.fs, self._clips_at)
        kind, words = self._fault(tone)
        if kind:
            self._good.clear()
            return ToneVerdict(kind, words, tone)
        self._good.append(tone)
        good_s, seen = len(self._good) * PIECE_S, _spread(self._good)
        last = list(self._good)[-round(STABLE_S / PIECE_S) :]
        spread, last_s = _spread(last), len(last) * PIECE_S
        if spread > STABLE_DB:
            words = (
                f"the level drifts: it changed by {spread:.2f} dB in {last_s:.1f} s, and at most "
                f"{STABLE_DB:g} dB in {STABLE_S:g} s is allowed; press the calibrator home and "
                "let it settle"
            )
            return ToneVerdict("drift", words, tone, good_s, seen)
        if len(last) * PIECE_S < STABLE_S - PIECE_S / 2:
            words = f"the tone was there for {last_s:.1f} s only: {STABLE_S:g} s of it are needed"
            return ToneVerdict("short", words, tone, good_s, seen)
        return ToneVerdict("good", "the tone is stable", tone, good_s, seen, _mean(last))

    def _fault(self, tone: MeasuredTone) -> tuple[str, str]:
        """The fault of a piece, as a kind and a sentence; empty for a good tone."""
        if tone.total_dbfs < QUIET_DBFS:
            return "quiet", (
                f"the input is too quiet ({_level(tone.total_dbfs)}): is the calibrator on, the "
                "channel right, the microphone not muted?"
            )
        if tone.residual_db > (CLIPPED_DB if tone.clipped else PURE_DB):
            return "noise", (
                f"this is not a tone: the rest beside its strongest sinusoid ({tone.frequency:.0f} "
                f"Hz) is {_relative(tone.residual_db)} it, and must be {-PURE_DB:g} dB below"
            )
        if tone.clipped:
            return "clipped", (
                f"the tone is clipped (at {tone.level_dbfs:.1f} dBFS): turn the input gain down"
            )
        if tone.swing_db > SWING_DB:
            return "drift", (
                f"the level drifts: it changed by {tone.swing_db:.2f} dB in {PIECE_S:g} s; press "
                "the calibrator home and let it settle"
            )
        nearest = min(abs(tone.frequency / one - 1.0) for one in self.frequencies)
        if nearest > FREQUENCY_TOLERANCE:
            wanted = " or ".join(f"{one:g}" for one in self.frequencies)
            return "frequency", (
                f"the tone has the wrong frequency: {tone.frequency:.1f} Hz instead of "
                f"{wanted} Hz; if your calibrator gives that, choose "
                f"{tone.frequency:.0f} Hz as its frequency"
            )
        return "", ""


def _spread(tones: Collection[MeasuredTone]) -> float:
    levels = [tone.level_dbfs for tone in tones]
    return max(levels) - min(levels)


def _mean(tones: Sequence[MeasuredTone]) -> MeasuredTone:
    power = np.mean([10.0 ** (tone.level_dbfs / 10.0) for tone in tones])
    frequency = np.mean([tone.frequency for tone in tones])
    return replace(tones[-1], frequency=float(frequency), level_dbfs=_db(float(power)))


class CalibratorCheck:
    """Waits until a tone was stable within 0.1 dB for 3 s.

    `push` any number of samples; `result` is then the tone, with the mean level of the 3 s. Raises
    Refused after 6 s of another sound, but waits during silence. At the end of the sound, `finish`
    has the result or says what was wrong. `interrupt` restarts the 3 s.

    frequencies: those that the tone may have
    recorded: wait during other sounds too, as a recording has its tone somewhere, and listen to its
        end: `finish` refuses a tone that was steady at two levels, as nobody knows which is right
    clips_at: of the source, as `SourceDescription` has it
    """

    def __init__(
        self,
        fs: int,
        *frequencies: float,
        recorded: bool = False,
        clips_at: float | None = DEVICE_CLIPS_AT,
    ) -> None:
        self.result: MeasuredTone | None = None
        self._recorded, self._other = recorded, ""
        self._watch = ToneWatch(fs, *frequencies, clips_at=clips_at)
        self._kind = ""
        self._in_a_row = 0
        self._heard: Counter[str] = Counter()
        self._last_words: dict[str, str] = {}

    @property
    def verdict(self) -> ToneVerdict | None:
        return self._watch.verdict

    def push(self, samples: np.ndarray) -> MeasuredTone | None:
        """Take samples (time,), and return the result, or None."""
        if self.result is None or self._recorded:
            for verdict in self._watch.push(samples):
                self._count(verdict)
                if verdict.mean is not None:
                    self._take(verdict.mean)
                    if not self._recorded:
                        break
                elif not self._recorded:
                    self._refuse_lasting(verdict)
        return self.result

    def _take(self, tone: MeasuredTone) -> None:
        """Take the mean of a steady tone, which has to be that of all others."""
        if self.result is None:
            self.result = tone
        elif abs(tone.level_dbfs - self.result.level_dbfs) > STABLE_DB:
            self._other = f"{self.result.level_dbfs:.2f} dBFS and later {tone.level_dbfs:.2f} dBFS"

    def interrupt(self) -> None:
        """Restart at missing samples."""
        self._count(self._watch.interrupt())

    def finish(self) -> MeasuredTone:
        """Return the result. Raises Refused with the most frequent fault, or for two levels."""
        if self._other:
            raise Refused(
                f"the tone has two levels: {self._other}; give a recording of the one that counts"
            )
        if self.result is not None:
            return self.result
        reasons = self._heard.copy()
        if len(reasons) > 1:
            reasons.pop("quiet", None)
        if "gap" in reasons and not reasons.keys() - {"gap", "short"}:
            raise Refused(self._last_words["gap"])
        if not reasons:
            raise Refused(f"there was no sound: a calibrator tone of {STABLE_S:g} s is needed")
        raise Refused(self._last_words[reasons.most_common(1)[0][0]])

    def _count(self, verdict: ToneVerdict) -> None:
        self._in_a_row = self._in_a_row + 1 if verdict.kind == self._kind else 1
        self._kind = verdict.kind
        self._heard[verdict.kind] += 1
        self._last_words[verdict.kind] = verdict.words

    def _refuse_lasting(self, verdict: ToneVerdict) -> None:
        """Raise Refused for a lasting fault."""
        lasts = verdict.kind != "quiet" and self._in_a_row * PIECE_S >= PATIENCE_S
        if lasts or verdict.kind == "invalid":
            raise Refused(verdict.words)


def _level(dbfs: float) -> str:
    return "digital silence" if dbfs <= LOWEST_DB + 10 else f"{dbfs:.1f} dBFS"


def _relative(db: float) -> str:
    return f"{abs(db):.1f} dB {'above' if db > 0 else 'below'}"
