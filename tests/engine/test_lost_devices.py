"""Devices that go and come back, and sound servers that stand still."""

import contextlib
import math
import os
import signal
import sys
import threading
import time
from pathlib import Path

import pytest

from amt_stream.engine import DeviceLost, Engine, MicrophoneSource, list_devices
from amt_stream.engine.sources import SourceError

FS = 48000


class Listener:
    """What a source delivers: how much, and when the last of it came."""

    def __init__(self) -> None:
        self.samples = self.lost = 0
        self.gaps: list[int] = []
        self.came_at = 0.0
        self.flags = 0

    def __call__(self, block, lost=0, flags=0) -> None:
        self.lost += lost
        self.flags |= flags
        if lost:
            self.gaps.append(lost)
        if block is not None:
            self.samples += len(block)
            self.came_at = time.monotonic()

    def delay_s(self) -> float:
        """The least time from a count of samples and gaps to the clock.

        A busy computer adds to it for a while: until half a second finds no less.
        """
        least, before = self._least_delay_s(), math.inf
        while least < before - 0.02:
            least, before = min(least, self._least_delay_s()), least
        return least

    def _least_delay_s(self) -> float:
        end, least = time.monotonic() + 0.5, math.inf
        while time.monotonic() < end:
            least = min(least, self.came_at - (self.samples + self.lost) / FS)
            time.sleep(0.002)
        return least


def open_descriptors() -> int:
    return len([*Path("/proc/self/fd").iterdir()])


def children(process: int) -> list[int]:
    """Processes that were started by one."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            if int(stat.read_text().rpartition(")")[2].split()[1]) == process:
                found.append(int(stat.parent.name))
    return found


@pytest.mark.cases(2)
@pytest.mark.parametrize(
    ("way", "pause_s"),
    [("module", 0.5), ("daemon", 0.5), ("suspend", 0.3), ("suspend", 1.6), ("stop", 1.6)],
)
def test_a_device_that_comes_back_is_measured_on_and_the_gap_is_right(trouble, until, way, pause_s):
    one, told, heard = trouble(way), [], Listener()
    descriptors, threads = open_descriptors(), threading.active_count()
    source = MicrophoneSource("virtual_mic")
    source.tell = lambda kind, text: told.append(kind)
    source.start(heard)
    try:
        until(lambda: heard.samples > FS)
        before = heard.delay_s()
        one.begin()
        ended_at = heard.came_at
        began = time.monotonic()
        time.sleep(pause_s)
        if pause_s > 1.0:
            until(lambda: "lost" in told)  # while it is away
        one.end()
        back = time.monotonic()
        until(lambda: heard.came_at > back and source.state == "running")
        # What stands still is a gap only after a second without the rest of it.
        until(lambda: heard.gaps)
        silence_s = heard.came_at - ended_at if pause_s < 1.0 else heard.came_at - began
        assert len(heard.gaps) == 1
        assert pause_s - 0.1 < heard.lost / FS < silence_s + 0.1
        assert heard.delay_s() - before == pytest.approx(0.0, abs=0.1)
    finally:
        source.stop()
    if pause_s > 1.0:
        assert [kind for kind in told if kind != "stall"] == ["lost", "back"]
    assert threading.active_count() == threads
    assert open_descriptors() == descriptors


def test_what_is_away_at_the_end_counts_too(trouble, until, power_meter):
    one = trouble("module")
    with Engine(MicrophoneSource("virtual_mic"), power_meter()) as engine:
        until(lambda: engine.history.count > 200)
        began = time.monotonic()
        one.begin()
        until(lambda: engine.health.device_state == "lost")
        time.sleep(1.0)
        before = engine.health.lost_samples
    lost_s = (engine.health.lost_samples - before) / FS
    assert 0.9 < lost_s < time.monotonic() - began + 0.2
    assert engine.events[-1].kind == "gap"


def test_a_program_without_an_interpreter_says_so(monkeypatch):
    monkeypatch.setattr(sys, "frozen", True, raising=False)
    with pytest.raises(SourceError, match="this program has no interpreter"):
        list_devices()


def test_a_short_stop_of_the_server_loses_nothing(trouble, until):
    one, heard = trouble("stop"), Listener()
    source = MicrophoneSource("virtual_mic")
    source.start(heard)
    try:
        until(lambda: heard.samples > FS)
        before = heard.delay_s()
        one.begin()
        time.sleep(0.4)
        one.end()
        time.sleep(1.3)
        assert heard.gaps == []
        assert heard.delay_s() - before == pytest.approx(0.0, abs=0.1)
    finally:
        source.stop()


def test_the_engine_says_that_the_device_is_lost_and_goes_on(trouble, until, power_meter):
    one, heard = trouble("module"), []
    with Engine(MicrophoneSource("virtual_mic"), power_meter(), [heard.append]) as engine:
        until(lambda: engine.history.count > 200)
        one.begin()
        until(lambda: engine.health.device_state == "lost")
        assert "the measurement goes on when it is back" in engine.health.note
        one.end()
        until(lambda: engine.health.device_state == "running")
        count = engine.history.count
        until(lambda: engine.history.count > count + 200)
        assert "when it is back" not in engine.health.note
        until(lambda: {"lost", "gap", "back"} <= {event.kind for event in engine.events})
    assert engine.error is None
    assert engine.health.lost_samples > 0
    (gap,) = [event for event in engine.events if event.kind == "gap"]
    assert gap.text == "virtual_mic lost it"
    order = [event.kind for event in engine.events if event.kind != "stall"]
    assert order.index("lost") < min(order.index("back"), order.index("gap"))


def test_a_stopped_server_is_one_sentence_at_the_start_and_no_hindrance_at_the_end(
    trouble, until, power_meter
):
    one = trouble("stop")
    engine = Engine(MicrophoneSource("virtual_mic"), power_meter()).start()
    until(lambda: engine.history.count > 200)
    one.begin()
    engine.stop()
    with pytest.raises(SourceError, match="the sound system has not answered for 3 s"):
        MicrophoneSource("virtual_mic")


def test_a_server_that_stands_still_at_the_start_is_waited_for(trouble, until, power_meter):
    one = trouble("stop")
    source = MicrophoneSource("virtual_mic")
    one.begin()
    with Engine(source, power_meter()) as engine:
        assert engine.health.device_state == "lost"
        assert "the sound system has not answered" in engine.health.note
        one.end()
        until(lambda: engine.history.count > 200)
        assert engine.health.device_state == "running"
        assert engine.health.lost_samples == 0


@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGSTOP])
def test_a_process_that_holds_a_device_and_fails_is_replaced(virtual_mic, until, end):
    heard, told = Listener(), []
    source = MicrophoneSource("virtual_mic")
    source.tell = lambda kind, text: told.append(kind)
    before = set(children(os.getpid()))
    source.start(heard)
    try:
        until(lambda: heard.samples > FS)
        delay_s = heard.delay_s()
        for process in set(children(os.getpid())) - before:
            os.kill(process, end)
        until(lambda: "back" in told)
        assert heard.delay_s() - delay_s == pytest.approx(0.0, abs=0.1)
        assert len(heard.gaps) == 1
    finally:
        source.stop()


@pytest.mark.quick
def test_what_holds_the_device_ends_with_its_program(virtual_mic, until, forks):
    """Also where that is killed."""
    code = (
        "import time\n"
        "from amt_stream.engine import MicrophoneSource\n"
        "source = MicrophoneSource('virtual_mic')\n"
        "source.start(lambda *a: None)\n"
        "print('ready', flush=True)\n"
        "time.sleep(60)"
    )
    with forks.begin(code, options=["code"]) as program:
        program.stdout.readline()
        started = children(program.pid)
        started += [below for one in started for below in children(one)]
        program.kill()
    assert started
    until(lambda: not any(map(is_running, started)))


def is_running(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().split()[2] != "Z"
    except FileNotFoundError:
        return False


def test_a_program_that_was_stopped_counts_what_it_did_not_hear(virtual_mic, forks):
    code = (
        "import time\n"
        "from amt_stream.engine import MicrophoneSource\n"
        "heard = [0, 0]\n"
        "def deliver(block, lost=0, flags=0):\n"
        "    heard[0] += 0 if block is None else len(block)\n"
        "    heard[1] += lost\n"
        "source = MicrophoneSource('virtual_mic')\n"
        "source.start(deliver)\n"
        "began = time.monotonic()\n"
        "print('ready', flush=True)\n"
        "while time.monotonic() < began + 4: time.sleep(0.05)\n"
        "source.stop()\n"
        "print(*heard, time.monotonic() - began, source.state, source.error)\n"
    )
    with forks.begin(code, options=["code"]) as program:
        program.stdout.readline()
        time.sleep(0.5)
        program.send_signal(signal.SIGSTOP)
        time.sleep(2.7)
        program.send_signal(signal.SIGCONT)
        samples, lost, took_s, state, error = program.stdout.readline().split()
    assert (state, error) == ("running", "None")
    assert int(lost) > FS // 2
    assert (int(samples) + int(lost)) / FS == pytest.approx(float(took_s), abs=0.25)


def test_devices_are_listed_anew_while_one_runs(trouble, virtual_mic, until, power_meter):
    def names():
        return {device.name for device in list_devices()}

    with Engine(MicrophoneSource("virtual_mic"), power_meter()) as engine:
        until(lambda: engine.history.count > 200)
        several = [threading.Thread(target=list_devices) for _ in range(4)]
        for thread in several:
            thread.start()
        for thread in several:
            thread.join()
        assert {"virtual_mic", "default"} <= names()
        assert engine.health.device_state == "running"
    assert engine.health.lost_samples == 0
    assert engine.error is None


def test_a_lost_device_that_nobody_waits_for_tells_its_loss(trouble, until):
    one, heard = trouble("suspend"), Listener()
    source = MicrophoneSource("virtual_mic", wait=False)
    source.start(heard)
    try:
        until(lambda: heard.samples > FS)
        one.begin()
        until(lambda: source.error is not None)
    finally:
        source.stop()
    assert isinstance(source.error, DeviceLost)
    assert heard.lost / FS == pytest.approx(1.05, abs=0.2)
