"""Arrival times of an engine's samples, and their UTC."""

from amt_stream.engine.clock import ClockReading, UtcScale
from amt_stream.engine.devices.portaudio import since_boot_s
from amt_stream.engine.health import Arrivals
from amt_stream.engine.inputs.source_runner import SourceRunner
from amt_stream.engine.thread_check import thread_checked


@thread_checked
class Timeline:
    """Relates an engine's sample count to the computer's clocks.

    first_sample: where the count begins
    restored: whether it resumes from where another engine stopped
    """

    def __init__(self, runner: SourceRunner) -> None:
        self.source = runner.source
        self.utc = UtcScale()
        self._runner = runner
        self.begin(0)

    def begin(
        self, sample: int, epoch: float | None = None, stopped: ClockReading | None = None
    ) -> None:
        """Count from `sample` on [before start].

        epoch, stopped: of an engine that resumes: UTC of the first sample, and when it stopped

        A source that is not `seekable` lacks the samples between that stop and its first block.
        """
        self.first_sample, self.restored = sample, epoch is not None
        self.arrivals = Arrivals(self.source.fs, sample)
        self._epoch = epoch or 0.0
        self._stopped = None if self.source.seekable else stopped
        self._why_missing = ""

    def epoch(self, audio_s: float) -> float:
        """UTC of the first sample, as estimated after `audio_s` of audio [model-thread]."""
        if self.source.live:
            return self.utc.epoch(self.arrivals.arrived_at(0.0), audio_s)
        if self.restored:
            return self._epoch
        return self._runner.began_utc - self.first_sample / self.source.fs

    def missing_before(self, count: int, came_at: float | None = None) -> int:
        """Samples missing since another engine stopped [audio-thread, model-thread].

        They are counted once, before the first block.

        count: samples of the block
        came_at: its arrival, see `Arrivals.note`
        """
        if self._stopped is None:
            return 0
        waited_s = 0.0 if came_at is None else since_boot_s() - came_at
        fs = self.source.fs
        began = ClockReading(waited_s + count / fs)
        missing, self._why_missing = self._stopped.samples_until(began, fs)
        self._stopped = None
        return missing

    def why_missing(self) -> str:
        """Why those are missing, in words, once; else "" [model-thread]."""
        why, self._why_missing = self._why_missing, ""
        return why

    @property
    def silent_for_s(self) -> float:
        """Seconds without a block from a live source [any-thread]."""
        return self.arrivals.silent_for_s(self._runner.began_at) if self.source.live else 0.0
