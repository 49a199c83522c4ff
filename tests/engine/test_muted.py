"""A microphone that is muted gives exact zeros, which are no sound."""

import subprocess
import time

import numpy as np
import pytest

from amt_stream.engine import Engine, MicrophoneSource, Together
from amt_stream.meters.frames import Fault

FS = 48000


def mute(on, source="mic"):
    subprocess.run(["pactl", "set-source-mute", source, "01"[on]], check=True)


@pytest.fixture
def muted(virtual_mic):
    """Mutes the microphone, and gives it back as it was."""
    yield mute
    mute(False)


@pytest.mark.parametrize("run_in", ["engine", "callback"])
def test_a_muted_microphone_is_missing_and_says_so_and_who_mutes_it(
    muted, power_meter, collector, until, run_in
):
    with Engine(MicrophoneSource(), power_meter(), [collector], run_in=run_in) as engine:
        until(lambda: engine.history.count > 200)
        began = time.monotonic()
        muted(True)
        until(lambda: engine.device_state == "silent")
        note = "'VirtualMicrophone' gives exact zeros: it is muted in the sound server"
        assert (engine.health.note, engine.health.silent) == (note, True)
        until(lambda: engine.source.missing > FS)
        muted(False)
        until(lambda: engine.device_state == "running")
        lasted_s = time.monotonic() - began
        count = engine.history.count
        until(lambda: engine.history.count > count + 500)
    assert engine.error is None
    health = engine.health
    assert (health.note, health.silent) == ("", False)
    assert 1.0 < health.lost_samples / FS < lasted_s + 0.3  # which the system held before
    told = [(event.kind, event.text) for event in engine.events]
    assert told[0] == ("silent", note)
    assert told[1][0] == "back"
    assert told[1][1].startswith("'VirtualMicrophone' gives sound again after ")
    assert told[2] == ("gap", "VirtualMicrophone gave exact zeros")
    assert [kind for kind, _ in told] == ["silent", "back", "gap"]
    time_s, fault = collector.column("time_s"), collector.column("fault")
    (at,) = np.flatnonzero(np.diff(time_s) > 0.1)
    assert time_s[at + 1] - time_s[at] == pytest.approx(health.lost_samples / FS, abs=0.002)
    assert fault[at + 1] & (Fault.GAP | Fault.SILENT) == Fault.GAP | Fault.SILENT
    beside = np.abs(np.arange(len(fault)) - at) > 10  # a frame may reach into the gap
    assert not (fault[beside] & ~(Fault.OVERLOAD | Fault.STALL)).any()
    # No frame is of zeros: the hum is in every one.
    assert (collector.column("stl") > 0.0).all()


def test_a_silence_in_a_callback_is_no_stall(muted, power_meter, until, monkeypatch):
    """Nothing comes from it, and yet its callback is called."""
    monkeypatch.setattr("amt_stream.engine.devices.in_process.STALLED_S", 1.5)
    with Engine(MicrophoneSource(), power_meter(), run_in="callback") as engine:
        until(lambda: engine.history.count > 200)
        muted(True)
        until(lambda: engine.source.missing > 2.5 * FS or engine.error)
        muted(False)
        count = engine.history.count
        until(lambda: engine.history.count > count + 100 or engine.error)
    assert engine.error is None


def test_a_microphone_that_warms_up_begins_with_its_sound(
    virtual_mic, muted, power_meter, collector, until
):
    muted(True)
    with Engine(MicrophoneSource(), power_meter(), [collector]) as engine:
        until(lambda: engine.source.missing > 0.8 * FS)
        assert collector.all == []
        muted(False)
        until(lambda: len(collector.all) > 20)
    assert collector.all[0].begin_s > 0.8
    assert (collector.column("stl") > 0.0).all()


def test_what_is_silent_at_the_end_is_missing(muted, power_meter, until):
    with Engine(MicrophoneSource(), power_meter()) as engine:
        until(lambda: engine.history.count > 200)
        muted(True)
        until(lambda: engine.source.missing > FS)
    assert (engine.events[-1].kind, engine.events[-1].text) == (
        "gap",
        "VirtualMicrophone gave exact zeros",
    )
    assert engine.health.lost_samples > FS


def test_a_microphone_that_is_unplugged_while_it_is_silent_is_lost_and_then_silent(
    virtual_mic, muted, power_meter, until
):
    with Engine(MicrophoneSource(), power_meter()) as engine:
        until(lambda: engine.history.count > 200)
        muted(True)
        until(lambda: engine.device_state == "silent")
        virtual_mic.unplug()
        until(lambda: engine.device_state == "lost")
        virtual_mic.plug()
        muted(True)
        until(lambda: engine.device_state == "silent")
        muted(False)
        until(lambda: engine.device_state == "running")
        count = engine.history.count
        until(lambda: engine.history.count > count + 100)
    kinds = [event.kind for event in engine.events if event.kind != "stall"]
    assert kinds[0] == "silent"
    after = kinds[kinds.index("lost") :]
    assert after.index("back") < after.index("gap")


def test_of_several_devices_only_the_rows_of_the_muted_one_are_missing(muted, power_meter, until):
    pactl = ["pactl", "load-module", "module-remap-source", "source_name=desk"]
    pactl += ["master=speaker.monitor", "source_properties=device.description=Desk"]
    module = subprocess.run(pactl, check=True, capture_output=True, text=True).stdout.strip()
    rows = {"VirtualMicrophone": [], "Desk": []}

    def keep(frames):
        rows[frames.microphone].append(frames)

    def last_s(name):
        return rows[name][-1].end_s if rows[name] else 0.0

    try:
        both = Together([MicrophoneSource(), MicrophoneSource("Desk")])
        with Engine(both, power_meter(), [keep]) as engine:
            until(lambda: min(map(last_s, rows)) > 0.3)
            muted(True)
            until(lambda: engine.health.microphones["VirtualMicrophone"].silent)
            assert engine.device_state == "running"
            assert "'VirtualMicrophone' gives exact zeros" in engine.health.note
            muted_s, there_s = last_s("VirtualMicrophone"), last_s("Desk")
            until(lambda: last_s("Desk") > there_s + 0.5)
            assert last_s("VirtualMicrophone") == pytest.approx(muted_s, abs=0.01)
            muted(False)
            until(lambda: last_s("VirtualMicrophone") > last_s("Desk") - 0.5)
            cause = "VirtualMicrophone gave exact zeros"
            until(lambda: cause in {event.text for event in engine.events})
    finally:
        subprocess.run(["pactl", "unload-module", module], check=True)
    (gap,) = [event for event in engine.events if event.text == cause]
    assert (gap.kind, gap.microphone) == ("gap", "VirtualMicrophone")
    faults = {
        name: int(np.bitwise_or.reduce(np.concatenate([one.fault for one in found])))
        for name, found in rows.items()
    }
    assert faults["VirtualMicrophone"] & Fault.SILENT
    assert not faults["Desk"] & Fault.SILENT
