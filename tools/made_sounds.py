"""Made sounds with what can happen to a measurement, for `same_rows.py`."""

from dataclasses import dataclass

import numpy as np

from amt_stream.meters.calibration import UNCALIBRATED, Calibration

FS = 48000
CALIBRATION = Calibration(107.0, source="made sounds")

Samples = np.ndarray


@dataclass(frozen=True)
class Made:
    """A sound (time, channel) and what happens in it: pairs of a time in seconds and a command."""

    samples: Samples
    events: tuple[tuple[float, str], ...] = ()
    calibration: Calibration = CALIBRATION
    microphones: int = 1


def sounds() -> dict[str, Made]:
    """All made sounds by name."""
    random = np.random.default_rng(20261128)

    def noise(seconds: float, level: float = 0.02, channels: int = 2) -> Samples:
        return level * random.standard_normal((round(seconds * FS), channels))

    def tone(seconds: float, hz: float = 1000.0, level: float = 0.05) -> Samples:
        t = np.arange(round(seconds * FS)) / FS
        return level * np.sin(2 * np.pi * hz * t)[:, None] * np.array([1.0, 0.6])

    def silence(seconds: float) -> Samples:
        return np.zeros((round(seconds * FS), 2))

    def with_invalid(x: Samples, at_s: float, value: float) -> Samples:
        x[round(at_s * FS) : round((at_s + 0.02) * FS), 0] = value
        return x

    steps = np.concatenate([noise(1.0, level) for level in (0.01, 0.2, 0.001, 0.05, 1e-5, 0.1)])
    modulated = tone(5.0) * (1 + np.sin(2 * np.pi * 70.0 * np.arange(5 * FS) / FS))[:, None]
    bursts = 8.0 * tone(4.0, 200.0) * (steps[: 4 * FS] > 0)
    pauses = (1.2, "pause"), (2.3, "unpause"), (3.1, "pause"), (3.4, "unpause")
    return {
        "steps": Made(steps),
        "noise": Made(noise(12.0)),
        "mono": Made(np.concatenate([noise(2.0, 0.1, 1), tone(3.0)[:, :1]])),
        "modulated": Made(modulated),
        "tones": Made(np.concatenate([tone(1.5, hz) for hz in (63.0, 500.0, 4000.0)])),
        "silence": Made(np.concatenate([silence(1.5), tone(1.5), silence(2.0)])),
        "only silence": Made(silence(1.3)),
        "short": Made(tone(0.07)),
        "very short": Made(tone(0.004)),
        "gap": Made(noise(6.0), ((1.7, "lose 4800"), (3.0, "lose 96000"), (4.1, "lose 30"))),
        "gap in a pause": Made(noise(5.0), (*pauses, (1.6, "lose 9600"), (3.2, "lose 60000"))),
        "invalid": Made(with_invalid(with_invalid(noise(5.0), 1.1, np.nan), 2.9, 1e30)),
        "paused": Made(noise(5.0), pauses),
        "reset": Made(steps, ((0.2, "reset"), (2.6, "reset"), (4.0, "reset"))),
        "undone": Made(
            steps, ((1.1, "reset"), (2.2, "undo"), (3.3, "reset"), (3.6, "reset"), (4.4, "undo"))
        ),
        "undone between": Made(
            noise(6.0),
            (
                *((0.9, "reset"), (1.3, "pause"), (1.6, "lose 4800"), (2.0, "unpause")),
                *((2.4, "undo"), (3.0, "filters"), (3.5, "limits"), (4.5, "reset"), (5.0, "undo")),
            ),
        ),
        "clipped": Made(np.clip(noise(4.0) + bursts, -1.0, 1.0)),
        "offset": Made(noise(5.0) + np.array([0.1, -0.03])),
        "resumed": Made(steps, ((1.5, "resume"), (2.5, "reset"), (2.75, "resume"), (3.0, "undo"))),
        "calibrated": Made(noise(5.0), ((2.0, "calibrate"),), UNCALIBRATED),
        "microphones": Made(noise(4.0), ((1.0, "lose 4800"), (2.0, "reset")), microphones=2),
    }
