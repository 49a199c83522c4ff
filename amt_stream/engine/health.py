"""Health of the live path: counters, load, and the sound card's clock."""

import math
import time
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from amt_stream.engine.devices.portaudio import since_boot_s
from amt_stream.engine.thread_check import thread_checked
from amt_stream.meters.calibration import Calibration

WINDOW_S = 2.0
WINDOWS = 300
ENOUGH_WINDOWS = 10
LATE_S = 0.1


@dataclass(frozen=True)
class MicrophoneHealth:
    """A snapshot of one of several microphones: fields as in `Health`, and

    missing         it delivers no sound at present
    calibration     present calibration, of both ears or of each, and gain in dB
    """

    samples: int
    lost_samples: int
    dropped_samples: int
    non_finite: int
    clipped: int
    broken_frames: int
    silent: bool
    missing: bool
    calibration: tuple[Calibration, ...]
    gain_db: float


@dataclass(frozen=True)
class Health:
    """A snapshot of the engine. Seconds, samples at the source's rate, frames.

    load, load_max      thread CPU seconds per second of audio, smoothed over 1 s, and its maximum:
                        what the models need
    processor_used      share of the last second in which the models' thread was on a processor,
    processor_waited    could have run and had none (other programs, or a limit: see `throttled`),
    stopped             and in which this program stood still, as after SIGSTOP
    throttled           how often a limit of processor time (cgroup) has stopped this program
    stolen              share of the computer's processor time that a hypervisor gave to others
                        in the last second; these five are None where unknown
    stopped_s           seconds in which this program stood still since the start
    slow_because        why processing cannot keep up, in words, or "" if it can or that is unknown
    block_share_*       processing time of a block over its duration: median, p99 (of the last 8192
                        blocks) and maximum
    overruns            blocks that did not fit into the ring; with run_in="callback", blocks after
                        which the model lagged more than the device's buffer holds; plus the number
                        of times that waiting audio was dropped as a last resort
    overloaded          processing cannot keep up and omits something
    queue_s             audio that waits in the ring, or in a callback for the model
    samples             input samples received; plus lost_samples, those that passed by the clock
    dropped_samples     of the lost ones, those that this program dropped as a buffer was full; the
                        others were lost by the device or the sound server
    late_callbacks      blocks that came more than 0.1 s later, by the sample count, than others in
                        the seconds before: sound halted; bursts are not late
    latency_s           from the sound to its frame: device, ring, block and model
    clock_ppm           rate of the device's clock against the computer's, None until known; with
                        twice its standard error and the seconds of observation
    utc_ahead_s         how far UTC is ahead of the computer's clock, after that was set back
    behind_s            how much less audio than time has passed since the start; of a source that
                        can wait, how much later it plays than in real time
    broken_frames       frames for which a model gave NaN or infinity from valid sound
    silent              only exact zeros for more than 1 s, or 0.5 s from a device
    sink_missed         frames that a slow sink did not get
    device_state        "waiting", "running", "stalled", "silent", "lost", "ended" or "stopped"
    uncalibrated        why readings are uncalibrated although a calibration was given, or ""
    note                the most important remark as a sentence, or ""
    microphones         of several, by name; the values above are then those of the worst, and
                        silent means all
    """

    device_state: str
    uncalibrated: str
    note: str
    samples: int
    frames: int
    load: float
    load_max: float
    processor_used: float | None
    processor_waited: float | None
    stopped: float | None
    throttled: int | None
    stolen: float | None
    stopped_s: float
    slow_because: str
    block_share_median: float
    block_share_p99: float
    block_share_max: float
    queue_s: float
    overruns: int
    overloaded: bool
    lost_samples: int
    dropped_samples: int
    device_overflows: int
    callbacks: int
    late_callbacks: int
    latency_s: float
    clock_ppm: float | None
    clock_ppm_uncertainty: float | None
    clock_observed_s: float
    utc_ahead_s: float
    behind_s: float
    non_finite: int
    clipped: int
    broken_frames: int
    silent: bool
    sink_errors: int
    sink_missed: int
    error: str | None
    microphones: Mapping[str, MicrophoneHealth] = field(default_factory=dict)

    @property
    def load_words(self) -> str:
        """The load for a status line, with the reason if it is too high for this computer."""
        return load_words(self.load, self.slow_because)


def load_words(load: float, slow_because: str) -> str:
    """The load, a fraction, for a status line, with the reason if it is too high."""
    words = f"load {100 * load:.0f} %"
    return f"{words}, too slow: {slow_because}" if slow_because else words


@thread_checked
class Load:
    """Processing cost of the blocks, in fixed memory; written by the thread that runs the model."""

    def __init__(self, size: int = 8192) -> None:
        self.smoothed = self.highest = self.highest_share = 0.0
        self.blocks = 0
        self._shares = np.zeros(size, np.float32)

    def add(self, cpu_s: float, wall_s: float, audio_s: float) -> None:
        """Count one block [model-thread]."""
        weight = min(1.0, max(audio_s, 1.0 / (self.blocks + 1)))
        self.smoothed += weight * (cpu_s / audio_s - self.smoothed)
        if self.blocks * audio_s > 1.0:
            self.highest = max(self.highest, self.smoothed)
        share = wall_s / audio_s
        self.highest_share = max(self.highest_share, share)
        self._shares[self.blocks % len(self._shares)] = share
        self.blocks += 1

    def shares(self) -> tuple[float, float, float]:
        """Median, 99th percentile and maximum of block time over block duration [any-thread]."""
        known = self._shares[: min(self.blocks, len(self._shares))].copy()
        if not len(known):
            return 0.0, 0.0, 0.0
        median, p99 = np.percentile(known, (50, 99))
        return float(median), float(p99), self.highest_share


@thread_checked
class Arrivals:
    """Arrival times of blocks, compared with their sample count.

    Blocks come in bursts, so one arrival says little. But the delay of the earliest block within
    two seconds is stable, and its trend is the difference between the two clocks. A block is late
    if its delay exceeds the largest of the last seconds; blocks at their normal time after an early
    burst are not late. While delayed audio is being caught up, the minimum is not reached yet: the
    two seconds start after that.
    """

    def __init__(self, fs: int, begin: int = 0) -> None:
        self.fs = fs
        self.callbacks = self.late = 0
        self.samples = self._begin = begin
        self.last: float | None = None
        self._windows = np.zeros((WINDOWS, 2))
        self._closed = 0
        self._first_delay = self._base = self._least = self._made_good = 0.0
        self._usual = self._greatest = -math.inf
        self._usual_until = -math.inf
        self._window_end = begin / fs + WINDOW_S

    def note(self, samples: int, came_at: float | None = None) -> bool:
        """Count a block; True if it is late [audio-thread, model-thread].

        came_at: its arrival by `since_boot_s`; None for now
        """
        now = since_boot_s() if came_at is None else came_at
        self.samples += samples
        audio_s = self.samples / self.fs
        delay = now - audio_s
        if not self.callbacks:
            self._first_delay = self._base = self._least = self._made_good = delay
        self.callbacks += 1
        self.last = time.monotonic()
        self._least = min(self._least, delay)
        self._base = min(self._base, delay)
        late = self.callbacks > 1 and delay > max(self._usual, self._greatest) + LATE_S
        self.late += late
        if now >= self._usual_until:
            self._usual, self._greatest = self._greatest, -math.inf
            self._usual_until = now + WINDOW_S
        self._greatest = max(self._greatest, delay)
        if delay < self._made_good - LATE_S:
            self._made_good, self._window_end = delay, audio_s + WINDOW_S
        elif audio_s >= self._window_end:
            self._windows[self._closed % WINDOWS] = audio_s, self._least
            self._closed += 1
            self._base, self._least = self._least, delay
            self._made_good, self._window_end = delay, audio_s + WINDOW_S
        return late

    def arrived_at(self, audio_s: float) -> float:
        """When, by `since_boot_s`, the sample at `audio_s` came, or would have without delay."""
        return self._base + audio_s

    def silent_for_s(self, began_at: float | None) -> float:
        """Seconds since the last block, or since the source began [any-thread]."""
        last = self.last or began_at
        return time.monotonic() - last if last is not None else 0.0

    @property
    def behind_s(self) -> float:
        return self._base - self._first_delay

    def clock(self) -> tuple[float | None, float | None, float]:
        """Device clock re the computer's in ppm, twice its standard error, seconds observed."""
        count = min(self._closed, WINDOWS)
        if count < ENOUGH_WINDOWS:
            return None, None, (self.samples - self._begin) / self.fs
        audio_s, delay = self._windows[:count].copy().T
        audio_s = audio_s - audio_s.mean()
        spread = float(audio_s @ audio_s)
        slope = float(audio_s @ delay) / spread
        residual = delay - delay.mean() - slope * audio_s
        error = float(np.sqrt(residual @ residual / (count - 2) / spread))
        return -slope * 1e6, 2e6 * error, (self.samples - self._begin) / self.fs
