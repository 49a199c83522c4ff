"""A microphone that goes and comes back, again and again, in one run."""

import threading
import time
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import pytest

from amt_stream import Engine, MicrophoneSource, Moore2016
from amt_stream.meters.calibration import Calibration
from tests.service.test_run import longest_silence_without_a_microphone

pytestmark = pytest.mark.soak

FS = 48000
NOTICED_S, RESUMED_S, GAP_S, DRIFT_S = 1.0, 3.0, 0.1, 0.06
HOLE_S = 0.25

# Seconds that the microphone is away; 30 cycles each.
PAUSES = {
    "module": [1.0] * 30,
    "daemon": [1.0] * 30,
    "suspend": [0.3] * 24 + [3.0] * 5 + [30.0],
    "stop": [0.5] * 12 + [0.9] * 6 + [1.5] * 6 + [4.0] * 5 + [60.0],
}


class Heard(MicrophoneSource):
    """The microphone, and a note of each delivery: when, how much, and what was missing before."""

    def start(self, deliver) -> None:
        self.notes: list[tuple[float, int, int]] = []
        self.count = 0

        def noted(block, lost=0, flags=0) -> None:
            samples = 0 if block is None else len(block)
            self.notes.append((time.monotonic(), samples, lost))
            self.count += samples + lost
            deliver(block, lost, flags)

        super().start(noted)

    def delay_s(self, from_s: float) -> float:
        """The least time from the count of samples and gaps to the clock, since then."""
        count, least = self.count, float("inf")
        for at, samples, lost in reversed(self.notes):
            if at < from_s:
                break
            least = min(least, at - count / FS)
            count -= samples + lost
        return least


class Cycle(NamedTuple):
    """Of one time away: until it was noticed and resumed, and how the count was off after it."""

    noticed_s: float
    resumed_s: float
    gap_s: float
    gap_off_s: float
    drift_s: float


def cycle(engine, source, trouble, pause_s, reference_s) -> Cycle:
    began, noticed = time.monotonic(), float("nan")
    lost_before = sum(lost for _, _, lost in source.notes)
    trouble.begin()
    ends = began + pause_s
    while time.monotonic() < ends:
        if noticed != noticed and engine.health.device_state != "running":
            noticed = time.monotonic() - began
        time.sleep(0.01)
    trouble.end()
    back = time.monotonic()
    while not (source.state == "running" and source.notes[-1][0] > back):
        assert time.monotonic() < back + 20, "it never came back"
        time.sleep(0.005)
    time.sleep(2.0)
    while source.delay_s(time.monotonic() - 0.8) == float("inf"):  # lost again, on a busy machine
        assert time.monotonic() < back + 20, "it does not stay"
        time.sleep(0.1)
    notes = [note for note in source.notes if note[0] > began - 0.5]
    holes = [(before, at) for (before, *_), (at, *_) in pairwise(notes) if at - before > HOLE_S]
    first_sound = next((at for _, at in holes if at > back), back)
    # What comes with the first of it at once had been waiting: that long ago it began again.
    waited_s = sum(n for _, end in holes for at, n, _ in notes if end <= at < end + 0.02) / FS
    silent_s = sum(at - before for before, at in holes) - waited_s
    gap_s = (sum(lost for _, _, lost in source.notes) - lost_before) / FS
    drift = source.delay_s(time.monotonic() - 0.8) - reference_s
    # It was silent in these holes, or its server made good for them.
    off = 0.0 if gap_s == 0.0 and abs(drift) < DRIFT_S else gap_s - silent_s
    return Cycle(noticed, max(0.0, first_sound - back), gap_s, off, drift)


@pytest.mark.parametrize("way", PAUSES)
def test_thirty_times_away_and_back(record, virtual_mic, trouble, way):
    source = Heard("virtual_mic", fs=FS)
    one = trouble(way)
    descriptors, threads = open_descriptors(), threading.active_count()
    calibration = Calibration(100.0, source="test")
    with Engine(source, Moore2016(FS), calibration=calibration) as engine:
        time.sleep(4.0)
        reference_s = source.delay_s(time.monotonic() - 2.0)
        began = time.monotonic()
        cycles = [cycle(engine, source, one, pause, reference_s) for pause in PAUSES[way]]
        took_s = time.monotonic() - began
        health = engine.health
        counted = health.samples + health.lost_samples
        stop_at = time.monotonic()
    stopped_s = time.monotonic() - stop_at
    assert engine.error is None
    assert counted <= source.count
    assert threading.active_count() == threads
    assert open_descriptors() == descriptors
    noticed = [c.noticed_s for c in cycles if c.noticed_s == c.noticed_s]
    resumed, off = [c.resumed_s for c in cycles], [abs(c.gap_off_s) for c in cycles]
    drift = [abs(c.drift_s) for c in cycles]
    record(
        f"the virtual microphone 30 times away and back, by {way}",
        f"in {took_s:.0f} s: noticed {max(noticed, default=0):.2f} s at most, sound again after "
        f"{max(resumed):.2f} s, gaps off by {1e3 * max(off):.0f} ms, samples and gaps against the "
        f"clock {1e3 * max(drift):.1f} ms, {sum(c.gap_s for c in cycles):.1f} s lost in all, "
        f"stopped in {stopped_s:.2f} s",
    )
    long = [c for c, pause in zip(cycles, PAUSES[way], strict=True) if pause > 1.0]
    assert all(c.noticed_s < NOTICED_S for c in long)
    assert max(resumed) < RESUMED_S
    assert max(off) < GAP_S
    assert max(drift) < DRIFT_S


def open_descriptors() -> int:
    return len([*Path("/proc/self/fd").iterdir()])


def test_a_station_lives_through_five_minutes_without_its_microphone(tmp_path, trouble):
    longest_s = longest_silence_without_a_microphone(tmp_path, trouble, signs=300)
    assert longest_s < 5.0  # one each second; the rest is for a busy machine
