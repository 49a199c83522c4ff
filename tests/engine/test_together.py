"""Several devices at once: on one count of samples, and none of them held up by another."""

import math
import threading
import time

import numpy as np
import pytest

from amt_stream.engine import Engine, PushSource, SignalSource, SourceError, Together, Tone
from amt_stream.engine.inputs.together import SLIP_S, _Joint, _Member
from amt_stream.engine.microphone.gaps import is_missing
from amt_stream.engine.sources import Source
from amt_stream.meters.calibration import Calibration
from tests.engine.test_rows import ByRow

FS = 48000
BLOCK = 480


def pushed_together(power_meter, sounds, losses, size):
    """Several programs push at once, each in a thread of its own, as fast as it goes."""
    sources = [
        PushSource(FS, sound.shape[1], f"push {k}", live=False, calibration=Calibration(90.0 + k))
        for k, sound in enumerate(sounds)
    ]
    sink = ByRow()

    def push(source, sound, loss):
        with source:
            for at in range(0, len(sound), size):
                source.push(sound[at : at + size], loss.get(at, 0))

    with Engine(sources, power_meter(), [sink], ladder=()) as engine:
        threads = [
            threading.Thread(target=push, args=given)
            for given in zip(sources, sounds, losses, strict=True)
        ]
        for thread in threads:
            thread.start()
        assert engine.wait(60), engine.error
        for thread in threads:
            thread.join()
    return sink, engine


def test_the_name_of_a_device_is_no_formula(power_meter):
    sources = [PushSource(FS, 1, name, live=False) for name in ("=1+1", "@-A1 mic", "plain")]
    assert Engine(sources, power_meter(), []).microphone_names == ("1+1", "A1 mic", "plain")


def test_programs_that_can_wait_are_what_they_are_alone(power_meter, noise):
    sounds = [noise(FS), noise(FS // 2)[:, :1], noise(FS)]
    losses = [{}, {4410: 700}, {441: 2 * FS}]
    many, engine = pushed_together(power_meter, sounds, losses, 441)
    assert engine.microphone_names == ("push 0", "push 1", "push 2")
    for k, (sound, loss) in enumerate(zip(sounds, losses, strict=True)):
        source, sink = PushSource(FS, sound.shape[1], live=False), ByRow()
        calibration = Calibration(90.0 + k)
        with Engine(source, power_meter(), [sink], calibration=calibration, ladder=()) as alone:
            with source:
                for at in range(0, len(sound), 441):
                    source.push(sound[at : at + 441], loss.get(at, 0))
            assert alone.wait(30)
        row = f"push {k}"
        count = len(sink.column("", "time_s"))
        for name in ("time_s", "sample", "fault", "settling", "stl", "ltl"):
            mine, its = many.column(row, name), sink.column("", name)
            # Its very last frame hears what is there beyond its end: nothing, or another gap.
            np.testing.assert_array_equal(mine[: count - 1], its[: count - 1], f"{row} {name}")
        assert len(many.column(row, "time_s")) <= count
        assert engine.health.microphones[row].samples == len(sound)


class Late(Source):
    """A device that delivers in step with the clock but for a while, of which it owes `kind`."""

    def __init__(self, name, kind, still_s, seconds=2.0, peak_s=1.6):
        self.name, self.fs, self.channels, self.live = name, FS, 1, True
        self._kind, self._still_s, self._seconds = kind, still_s, seconds
        self.sound = 0.01 * np.ones((round(seconds * FS), 1), np.float32)
        self.sound[round(peak_s * FS) :][:BLOCK] = 0.5
        self._stopping = threading.Event()

    def start(self, deliver):
        self._thread = threading.Thread(target=self._run, args=(deliver,), daemon=True)
        self._thread.start()

    def stop(self):
        self._stopping.set()
        self._thread.join()

    def _run(self, deliver):
        began, lost, held = time.monotonic(), 0, []
        for at in range(0, len(self.sound), BLOCK):
            self._stopping.wait(max(0.0, began + (at + BLOCK) / FS - time.monotonic()))
            block = self.sound[at : at + BLOCK]
            if self._still_s[0] <= at / FS < self._still_s[1]:
                held.append(block)
                continue
            if held and self._kind == "lost":
                lost = BLOCK * len(held)
            elif held:
                deliver(np.concatenate(held))
            held = []
            deliver(block, lost)
            lost = 0
        deliver(None)


@pytest.mark.parametrize("kind", ["lost", "late"])
def test_one_that_stands_still_is_missing_and_holds_nobody_up(power_meter, kind):
    sources = [Late("steady", kind, (9, 9)), Late("still", kind, (0.5, 1.2))]
    sink = ByRow()
    together = Together(sources, deadline_s=0.1)
    with Engine(together, power_meter(), [sink], ladder=()) as engine:
        assert engine.wait(60), engine.error
        health = engine.health
    steady, still = health.microphones["steady"], health.microphones["still"]
    # A busy machine may hold up the start, or a thread for longer than the deadline.
    assert steady.lost_samples < 0.1 * FS
    assert 0.4 * FS < still.lost_samples < 1.0 * FS
    gaps = [one for one in sink.events if one.kind == "gap" and one.microphone == "still"]
    assert sum(one.samples for one in gaps) == still.lost_samples
    # What comes after it stands at its own time: the peak of both at once.
    peaks = [
        sink.column(row, "time_s")[np.argmax(sink.column(row, "stl"))] for row in health.microphones
    ]
    assert abs(peaks[0] - peaks[1]) < 0.03
    stood = sink.column("still", "time_s")
    assert not ((stood > 0.75) & (stood < 1.0)).any()
    assert (np.diff(sink.column("steady", "time_s")) < 0.1).all()


class Given(Source):
    """A source that a test speaks for."""

    def __init__(self, name, channels=1, live=True):
        self.name, self.fs, self.channels, self.live = name, FS, channels, live


def joint(count, deadline_s=0.25):
    told = []
    members = [_Member(Given(f"mic{k}"), 4.0) for k in range(count)]
    return members, _Joint(members, FS, deadline_s, lambda *text: told.append(text)), told


def tell(member, position, samples, lost=0):
    """Samples that say which ones they are."""
    block = (position + np.arange(samples, dtype=np.float32))[:, None]
    member.receive(lambda: False, block, lost)


def test_they_begin_together_whenever_each_begins():
    (one, two), both, _ = joint(2)
    tell(one, 0, 4800)
    assert both.due(0.0) == 0
    tell(one, 4800, 480)
    tell(two, 0, 480)
    assert both.due(0.1) == 480
    np.testing.assert_array_equal(both.take(480)[0], [4800, 0])


def test_one_that_begins_late_is_level_from_then_on():
    (one, two), both, _ = joint(2)
    tell(one, 0, 480)
    assert both.due(0.0) == 0
    assert both.due(0.3) == 480
    assert is_missing(both.take(480)[:, 1:]).all()
    tell(one, 480, 9600)
    # As a device tells of the time since it was opened.
    tell(two, 0, 480, lost=100_000)
    count = both.due(0.4)
    assert count == 4800
    block = np.concatenate([both.take(4800), both.take(both.due(0.4))])
    assert block[-1].tolist() == [480 + 9599, 479]
    assert is_missing(block[:-480, 1:]).all()
    assert not is_missing(block[-480:]).any()


def test_a_slower_clock_is_followed_by_a_gap_now_and_then():
    (one, two), both, told = joint(2)
    came = [0.0, 0.0]
    missing = lag = 0
    for k in range(3000):
        now = 0.02 * k
        for m, (member, rate) in enumerate([(one, FS), (two, FS * (1 - 4e-3))]):
            count = int(rate * now) + BLOCK - int(came[m])
            tell(member, came[m], count)
            came[m] += count
        while count := both.due(now):
            block = both.take(count)
            missing += np.count_nonzero(is_missing(block[:, 1:]))
            assert not is_missing(block[:, :1]).any()
        lag = max(lag, one.ready)
    # 4 ms/s too slow: 0.24 s in a minute, in steps of half the deadline or little more.
    assert 1 <= len(told) == round(missing / (0.14 * FS))
    assert all(kind == "clock" for kind, _ in told)
    assert lag < (0.125 + 4e-3 * SLIP_S + 0.04) * FS


def test_sources_that_do_not_go_together_are_refused():
    with pytest.raises(SourceError, match="a has fs = 48000 and b fs = 44100"):
        Together([PushSource(FS, 1, "a"), PushSource(44100, 1, "b")])
    with pytest.raises(SourceError, match="live = True and b live = False"):
        Together([PushSource(FS, 1, "a"), PushSource(FS, 1, "b", live=False)])
    with pytest.raises(ValueError, match="deadline_s is 0"):
        Together([PushSource(FS, 1)], deadline_s=0)
    with pytest.raises(TypeError, match=r"the sources are \[\]"):
        Together([])
    with pytest.raises(TypeError, match="the source is 'mic'"):
        Together(["mic"])


def test_rows_are_named_by_their_source():
    sources = [PushSource(FS, 2, "desk"), PushSource(FS, 1, "desk"), PushSource(FS, 3, "array")]
    rows = Together(sources).microphones
    assert [row.name for row in rows] == ["desk (1)", "desk (2)", "array 1", "array 2", "array 3"]
    assert [row.channels for row in rows] == [(1, 2), (3,), (4,), (5,), (6,)]


class Breaks(SignalSource):
    def blocks(self):
        yield from (block for block, _ in zip(super().blocks(), range(20), strict=False))
        raise OSError("it was pulled out")


@pytest.mark.parametrize("all_break", [False, True])
def test_one_that_fails_leaves_the_others(power_meter, all_break):
    tone = [Tone(1000.0, level_db=60.0)]
    kinds = Breaks if all_break else SignalSource, Breaks
    sources = [kind(tone, FS, 0.6, paced=False) for kind in kinds]
    sink = ByRow()
    with Engine(sources, power_meter(), [sink]) as engine:
        assert engine.wait(60) != all_break
    assert isinstance(engine.error, OSError) == all_break
    names = engine.microphone_names
    assert sink.column(names[1], "time_s")[-1] == pytest.approx(0.2, abs=0.002)
    end_s = sink.column(names[0], "time_s")[-1]
    assert end_s == pytest.approx(0.2 if all_break else 0.6, abs=0.002)
    assert math.isclose(engine.health.samples / FS, 0.2, abs_tol=0.002)
