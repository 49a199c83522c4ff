"""Samples counted against the clock, driven with numbers."""

import numpy as np
import pytest

from amt_stream.engine.inputs.continuity import Continuity
from amt_stream.meters.frames import Fault

FS = 48000
BLOCK = 480
BURST_S = 0.03


class Device:
    """Gives blocks in bursts at `rate` times its nominal rate; what it hands on is kept."""

    def __init__(self, rate: float = 1.0) -> None:
        self.time_s, self.rate, self.late_s = 1000.0, rate, 0.0
        self.made_s = self.time_s
        self.continuity = Continuity(FS)
        self.passed = self.lost = 0
        self.gaps: list[int] = []
        self.verdicts = []
        self.held = 0
        self.rng = np.random.default_rng(1)

    def run(self, seconds: float, age_s: float = 0.0) -> None:
        end = self.time_s + seconds
        while self.time_s < end:
            self.time_s += BURST_S
            self.burst(age_s)

    def burst(self, age_s: float = 0.0) -> None:
        """What was made until now, in blocks that come at once."""
        now = self.time_s + self.rng.uniform(0.0, 0.01)
        while self.made_s + BLOCK / FS / self.rate <= self.time_s - self.late_s:
            self.made_s += BLOCK / FS / self.rate
            verdict = self.continuity.take(now, BLOCK, 0, age_s + self.late_s)
            self.verdicts.append(verdict)
            if verdict.what == "hold":
                self.held += BLOCK
            elif verdict.what == "pass":
                self.passed += BLOCK + self.held
                self.held = 0
                if verdict.lost:
                    self.gaps.append(verdict.lost)
                self.lost += verdict.lost

    def pause(self, seconds: float, keeps: bool) -> None:
        """Nothing comes; the sound of that time comes afterwards or never."""
        self.time_s += seconds
        if not keeps:
            self.made_s = self.time_s

    def renew(self, seconds: float) -> None:
        """The stream is thrown away, and another one begins later."""
        self.pause(seconds, keeps=False)
        self.continuity.restart()

    @property
    def marked(self) -> bool:
        return any(verdict.flags & Fault.STALL for verdict in self.verdicts)

    def drift_s(self) -> float:
        """How far samples and gaps are from the clock since the beginning."""
        return (self.time_s - 1000.0) - (self.passed + self.lost) / FS


def test_sound_in_bursts_is_whole():
    device = Device()
    device.run(60.0)
    assert (device.lost, device.marked) == (0, False)
    assert device.continuity.counted == device.passed


@pytest.mark.parametrize("pause_s", [0.15, 0.3, 0.8, 3.0, 30.0])
def test_sound_that_never_comes_is_counted_once_after_a_second(pause_s):
    device = Device()
    device.run(5.0)
    device.pause(pause_s, keeps=False)
    device.run(0.9)
    assert device.gaps == []
    assert device.marked
    device.run(10.0)
    assert len(device.gaps) == 1
    assert device.lost / FS == pytest.approx(pause_s, abs=0.015)
    assert not any(verdict.flags for verdict in device.verdicts[-800:])


@pytest.mark.parametrize("pause_s", [0.15, 0.5, 5.0])
def test_sound_that_comes_later_is_not_missing(pause_s):
    device = Device()
    device.run(5.0)
    device.pause(pause_s, keeps=True)
    device.run(10.0)
    assert device.gaps == []
    assert device.marked
    assert device.drift_s() == pytest.approx(0.0, abs=0.03)


def test_what_was_counted_as_lost_does_not_count_twice():
    """A rest that comes only after it was given up is thrown away."""
    device = Device()
    device.run(5.0)
    device.late_s = 0.7
    device.time_s += 0.7
    # The system does not say that it is late.
    take = device.continuity.take
    device.continuity.take = lambda now, count, lost, age_s: take(now, count, lost, 0.0)
    device.run(2.0)
    assert device.lost / FS == pytest.approx(0.7, abs=0.02)
    device.late_s = 0.0
    device.run(5.0)
    assert device.lost / FS == pytest.approx(0.7, abs=0.02)
    assert device.drift_s() == pytest.approx(0.0, abs=0.05)


@pytest.mark.parametrize(("late_s", "what"), [(0.6, "pass"), (2.0, "stale")])
def test_sound_that_piles_up_is_late_and_not_lost(late_s, what):
    """Beyond a second the stream is to be thrown away."""
    device = Device()
    device.run(5.0)
    device.late_s = late_s
    device.run(late_s + 2.0)
    assert device.gaps == []
    assert ("stale" in {verdict.what for verdict in device.verdicts}) == (what == "stale")


@pytest.mark.parametrize("rate", [1.0, 1 + 100e-6, 1 - 300e-6])
def test_thirty_gaps_do_not_drift(rate):
    device = Device(rate)
    device.run(30.0)
    for cycle in range(30):
        device.renew(0.5 + 0.1 * cycle)
        device.run(2.0 + cycle)
    assert len(device.gaps) == 30
    # Between its own clock and the computer's, as gaps are counted by the latter.
    own_s = (device.time_s - 1000.0) * (1 - rate)
    assert min(0.0, own_s) - 0.06 < device.drift_s() < max(0.0, own_s) + 0.06


@pytest.mark.parametrize("rate", [1 + 400e-6, 1 - 400e-6])
def test_a_clock_that_drifts_is_followed(rate):
    """In these minutes it goes off by several times of what counts as a pause."""
    device = Device(rate)
    device.run(1000.0)
    assert abs(device.drift_s()) > 0.35
    assert (device.gaps, device.marked) == ([], False)


def test_what_is_missing_at_the_end_is_known():
    device = Device()
    device.run(3.0)
    assert device.continuity.missing(device.time_s + 2.0) / FS == pytest.approx(2.0, abs=0.05)
    assert Continuity(FS).missing(5.0) == 0


def test_losses_that_were_told_are_not_found_again():
    continuity = Continuity(FS)
    for n in range(300):
        skipped = 4800 * (n // 100)
        lost = 4800 if n in (100, 200) else 0
        verdict = continuity.take((n * BLOCK + skipped) / FS, BLOCK, lost)
        assert verdict == ("pass", 0, 0)
    assert continuity.counted == 300 * BLOCK + 2 * 4800


def test_a_delay_that_grows_in_small_steps_ends_the_stream_before_much_is_late():
    device = Device()
    device.run(5.0)
    while device.late_s < 3.0 and "stale" not in [one.what for one in device.verdicts]:
        device.late_s += 0.05 * BURST_S
        device.run(BURST_S)
    assert device.late_s < 1.5


@pytest.mark.parametrize("rate", [1.0, 1 - 300e-6])
def test_each_of_many_losses_in_a_stream_is_counted_once(rate):
    """From the start, while it is not yet known how late the sound of this device is."""
    device = Device(rate)
    device.run(1.0)
    pauses = [0.2 + 0.15 * (n % 7) for n in range(20)]
    for pause_s in pauses:
        device.pause(pause_s, keeps=False)
        device.run(1.5)
    assert np.array(device.gaps) / FS == pytest.approx(np.array(pauses), abs=0.02)


def test_a_loss_in_sound_that_is_late_is_counted_once():
    device = Device()
    device.run(20.0)
    device.late_s = 0.6
    device.run(20.0)
    assert device.gaps == []
    device.pause(0.5, keeps=False)  # and with it what was still to come
    device.run(20.0)
    assert np.array(device.gaps) / FS == pytest.approx([1.1], abs=0.02)
