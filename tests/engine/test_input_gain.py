"""The gain of an input, which a calibration holds for, turned by another program."""

import subprocess
from dataclasses import replace

import numpy as np
import pytest

from amt_stream.engine import Engine, MicrophoneSource
from amt_stream.engine.devices import alsa_mixer, pulse_server
from amt_stream.engine.devices.identity import card_of
from amt_stream.engine.microphone.calibration_in_use import CalibrationInUse
from amt_stream.meters.calibration import UNCALIBRATED, Calibration
from amt_stream.meters.source_description import InputGain
from tests.conftest import require_programs

FULL, HALF = InputGain((100.0, 100.0)), InputGain((50.0, 50.0))
GIVEN = Calibration(100.0, source="a test")


def pactl(*arguments):
    command = ["pactl", *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


@pytest.fixture
def volume(virtual_mic):
    """Turns the volume of the microphone, and gives it back as it was."""

    def turn(percent, source="mic"):
        turned.add(source)
        pactl("set-source-volume", source, f"{percent}%")

    turned = {"mic"}
    yield turn
    for source in turned:
        turn(100, source)


def told(engine):
    return [(event.kind, event.text) for event in engine.events]


@pytest.mark.parametrize("run_in", ["engine", "callback"])
def test_readings_are_uncalibrated_while_another_program_has_turned_the_gain(
    volume, power_meter, collector, until, run_in
):
    settings = {"calibration": GIVEN, "run_in": run_in}
    with Engine(MicrophoneSource(), power_meter(), [collector], **settings) as engine:
        until(lambda: engine.history.count > 200)
        until(lambda: engine.source.description.gain == FULL)
        volume(50)
        why = "the input gain is 50 % and was 100 % at the start"
        until(lambda: engine.health.note == f"readings are uncalibrated: {why}")
        assert engine.source.description.gain.percent == HALF.percent
        (now,) = engine.calibration
        assert (now.calibrated, now.source, now.full_scale_db_spl) == (False, why, 100.0)
        count = engine.history.count
        until(lambda: engine.history.count > count + 300)
        volume(100)
        until(lambda: engine.health.note == "")
        assert engine.calibration == (GIVEN,)
        count = engine.history.count
        until(lambda: engine.history.count > count + 300)
    assert told(engine) == [
        ("gain", "the input gain of 'VirtualMicrophone' was turned from 100 % to 50 %"),
        ("uncalibrated", f"readings are uncalibrated: {why}"),
        ("gain", "the input gain of 'VirtualMicrophone' was turned from 50 % to 100 %"),
        ("calibrated", "readings are calibrated again: the input gain is 100 % as at the start"),
    ]
    known = np.concatenate([np.full(len(one), one.calibrated) for one in collector.all])
    assert known[0]
    assert known[-1]
    level = np.concatenate([one.level_db.max(axis=0) for one in collector.all])
    quiet = level < level[0] - 9  # 18 dB less
    assert np.count_nonzero(quiet) > 100
    # A callback passes sound on before the server may have told the change.
    assert not (quiet & known).any() or run_in == "callback"
    # Readings settle again after each step.
    settling = collector.column("settling")
    assert settling[np.flatnonzero(np.diff(known.astype(int)) != 0) + 1].all()


def test_a_stored_calibration_holds_for_the_gain_that_it_was_made_at(volume, power_meter, until):
    calibration = replace(GIVEN, input_gain=InputGain((80.0, 80.0)))
    with Engine(MicrophoneSource(), power_meter(), calibration=calibration) as engine:
        until(lambda: engine.history.count > 200)
        why = "the input gain is 100 % and was 80 % at the calibration"
        assert engine.health.note == f"readings are uncalibrated: {why}"
        volume(80)
        until(lambda: engine.health.note == "")
        assert engine.calibration == (calibration,)
    assert engine.events[0].kind == "uncalibrated"
    assert engine.events[0].sample == 0
    assert engine.events[-1].text.endswith("the input gain is 80 % as at the calibration")


def test_another_calibration_holds_for_the_present_gain(volume, power_meter, until):
    with Engine(MicrophoneSource(), power_meter(), calibration=GIVEN) as engine:
        until(lambda: engine.source.description.gain == FULL)
        volume(50)
        until(lambda: not engine.calibration[0].calibrated)
        engine.calibrate(Calibration(118.0, source="again"))
        until(lambda: engine.calibration[0].calibrated)
        assert engine.health.note == ""
        engine.calibrate(replace(GIVEN, input_gain=FULL))
        until(lambda: not engine.calibration[0].calibrated)
        until(lambda: engine.events[-1].kind == "uncalibrated")
        assert "is 50 % and was 100 % at the calibration" in engine.events[-1].text


def test_without_a_calibration_a_turned_gain_is_told_all_the_same(volume, power_meter, until):
    with Engine(MicrophoneSource(), power_meter()) as engine:
        until(lambda: engine.source.description.gain == FULL)
        volume(50)
        until(lambda: engine.events)
    assert [kind for kind, _ in told(engine)] == ["gain"]
    assert engine.calibration == (UNCALIBRATED,)


def test_a_source_that_is_started_again_tells_its_gain_again(volume, power_meter, until):
    source = MicrophoneSource()
    for _ in range(2):
        with Engine(source, power_meter(), calibration=GIVEN) as engine:
            until(lambda: engine.history.count > 100 and source.description.gain == FULL)
            volume(50)
            until(lambda: not engine.calibration[0].calibrated)
            volume(100)
            until(lambda: engine.calibration[0].calibrated)


def test_mute_is_no_gain(virtual_mic, power_meter, until):
    with Engine(MicrophoneSource(), power_meter(), calibration=GIVEN) as engine:
        until(lambda: engine.source.description.gain == FULL)
        try:
            pactl("set-source-mute", "mic", "1")
            until(lambda: engine.source.description.gain == replace(FULL, muted=True))
            assert engine.calibration == (GIVEN,)
        finally:
            pactl("set-source-mute", "mic", "0")
        until(lambda: engine.source.description.gain == FULL)
    assert "gain" not in dict(told(engine))


def test_the_gain_of_the_stream_and_of_the_master_count_too(volume, virtual_mic, until):
    source = MicrophoneSource()
    source.start(lambda *block: None)

    def gain():
        return source.description.gain

    try:
        until(lambda: gain() == FULL)
        volume(50, "speaker.monitor")
        until(lambda: gain() == HALF)
        volume(100, "speaker.monitor")
        outputs = [one.split("\t") for one in pactl("list", "short", "source-outputs").splitlines()]
        (mine,) = [one[0] for one in outputs if one[2] != "-"]
        pactl("set-source-output-volume", mine, "40%")
        until(lambda: gain().percent == (40.0, 40.0))
        pactl("set-source-output-mute", mine, "1")
        until(lambda: gain().muted)
        until(lambda: source.state == "silent")
        assert source.note.endswith("the recording of this program is muted in the sound server")
    finally:
        source.stop()


def test_another_program_that_records_from_it_is_named(volume, until):
    heard = []
    source = MicrophoneSource()
    source.tell = lambda kind, text: heard.append((kind, text))
    source.start(lambda *block: None)
    other = subprocess.Popen(
        ["parecord", "--client-name=Jam", "--device=mic", "/dev/null"], stderr=subprocess.DEVNULL
    )
    try:
        until(lambda: source.description.gain == FULL)
        until(lambda: "Jam" in pactl("list", "source-outputs"))
        volume(70)
        until(lambda: heard)
    finally:
        source.stop()
        other.terminate()
        other.wait()
    turned = "the input gain of 'VirtualMicrophone' was turned from 100 % to 70 %"
    assert heard == [("gain", f"{turned}; Jam records from it too")]


def test_a_port_is_another_microphone():
    mine, other = InputGain((60.0,), port="analog-input-mic"), InputGain((60.0,), port="headset")
    assert not mine.amplifies_as(other)
    assert mine.amplifies_as(replace(mine, muted=True))
    assert mine.amplifies_as(InputGain((60.0,))), "a system may not tell the port"
    assert str(replace(mine, muted=True)) == "60 %, muted, analog-input-mic"
    assert InputGain.from_dict(mine.to_dict()) == mine


@pytest.mark.parametrize(
    "given", [{}, {"percent": "x", "muted": False, "port": ""}, {"percent": [1], "muted": 1}]
)
def test_an_invalid_gain_is_refused(given):
    with pytest.raises(ValueError, match="give percent, muted and port"):
        InputGain.from_dict(given)


def test_a_calibration_goes_on_to_hold_for_the_gain_at_its_first_start():
    in_use = CalibrationInUse((GIVEN,))
    in_use.know_gain(FULL)
    restored = CalibrationInUse((GIVEN,))
    restored.began_at = in_use.began_at
    restored.know_gain(HALF)
    assert restored.why == "the input gain is 50 % and was 100 % at the start"
    assert CalibrationInUse((GIVEN,)).began_at == ""


def test_a_microphone_with_other_channels_is_told_by_them():
    """As a headset that the system switches from playing music to calling."""
    in_use = CalibrationInUse((GIVEN,))
    for percent in ((80.0, 80.0), (80.0,)):
        in_use.know_gain(InputGain(percent))
    now, before = "80 % of 1 channel", "80 % of 2 channels"
    assert in_use.why == f"the input gain is {now} and was {before} at the start"
    ears = InputGain((50.0, 50.0, 80.0)), InputGain((50.0, 80.0, 80.0))
    assert ears[0].beside(ears[1]) == ("50/50/80 %", "50/80/80 %")


def test_one_ear_that_is_turned_is_enough():
    ears = replace(GIVEN, input_gain=FULL), replace(GIVEN, input_gain=HALF)
    in_use = CalibrationInUse(ears)
    in_use.know_gain(FULL)
    assert [one.calibrated for one in in_use.now] == [False, False]


PIPEWIRE = """\
Source #52
\tState: SUSPENDED
\tName: alsa_input.usb-miniDSP_UMIK-1.analog-stereo
\tDescription: UMIK-1: Gain  18dB Analog Stereo
\tDriver: PipeWire
\tSample Specification: s24le 2ch 48000Hz
\tChannel Map: front-left,front-right
\tOwner Module: 4294967295
\tMute: yes
\tVolume: front-left: 42598 /  65% / -11.22 dB,   front-right: 42598 /  65% / -11.22 dB
\t        balance 0.00
\tBase Volume: 65536 / 100% / 0.00 dB
\tMonitor of Sink: n/a
\tLatency: 0 usec, configured 0 usec
\tFlags: HARDWARE HW_MUTE_CTRL HW_VOLUME_CTRL DECIBEL_VOLUME LATENCY
\tProperties:
\t\tdevice.description = "UMIK-1"
\t\tnode.name = "Name: no"
\tPorts:
\t\tanalog-input-mic: Microphone (type: Mic, priority: 8700, availability group: Mic, available)
\tActive Port: analog-input-mic
\tFormats:
\t\tpcm

Source #53
\tState: RUNNING
\tName: broken
"""


def test_what_pipewire_says_of_a_source(monkeypatch):
    monkeypatch.setattr(pulse_server, "pactl", lambda *arguments, **limits: PIPEWIRE.splitlines())
    (one,) = pulse_server.sources()
    assert (one.title, one.output) == ("UMIK-1: Gain  18dB Analog Stereo", "")
    assert (one.channels, one.fs, one.number) == (2, 48000, "52")
    assert one.volume == pytest.approx((0.65, 0.65), abs=0.001)
    assert (one.muted, one.suspended, one.port) == (True, True, "analog-input-mic")


HDA = """\
Simple mixer control 'Master',0
  Capabilities: pvolume pswitch pswitch-joined
  Playback channels: Mono
  Limits: Playback 0 - 87
  Mono: Playback 60 [69%] [-20.25dB] [on]
Simple mixer control 'Mic Boost',0
  Capabilities: volume
  Playback channels: Front Left - Front Right
  Capture channels: Front Left - Front Right
  Limits: 0 - 3
  Front Left: 1 [33%] [10.00dB]
  Front Right: 1 [33%] [10.00dB]
Simple mixer control 'Capture',0
  Capabilities: cvolume cswitch
  Capture channels: Front Left - Front Right
  Limits: Capture 0 - 63
  Front Left: Capture 21 [33%] [-1.50dB] [off]
  Front Right: Capture 42 [67%] [15.00dB] [off]
Simple mixer control 'Auto Gain Control',0
  Capabilities: pswitch pswitch-joined
  Playback channels: Mono
  Mono: Playback [on]
Simple mixer control 'Input Source',0
  Capabilities: cenum
  Items: 'Front Mic' 'Rear Mic'
  Item0: 'Rear Mic'
"""


def test_what_the_mixer_of_a_card_says(monkeypatch):
    monkeypatch.setattr(alsa_mixer, "printed_by", lambda *arguments: HDA.splitlines())
    port = "Mic Boost 33.33 %, Auto Gain Control on, Rear Mic"
    assert alsa_mixer.read_gain("hw:1") == InputGain((33.33, 66.67), True, port)
    assert card_of("HDA Intel: ALC (hw:1,0)", "ALSA") == "hw:1"
    assert card_of("virtual_mic", "ALSA") is card_of("Mic (hw:1,0)", "MME") is None


def test_a_real_mixer_is_read_and_watched(volume, until):
    """ALSA's plugin shows the sound server as a card with a mixer."""
    require_programs("amixer")
    assert alsa_mixer.read_gain("default") == FULL
    watch = alsa_mixer.watch_gain("default")
    try:

        def turned(percent):
            volume(percent)
            return watch.changed.wait(0.1)

        until(lambda: turned(70) or turned(60))  # until it watches
        volume(50)
        until(lambda: alsa_mixer.read_gain("default") == HALF)
        pactl("set-source-mute", "mic", "1")
        until(lambda: alsa_mixer.read_gain("default") == replace(HALF, muted=True))
    finally:
        watch.close()
        pactl("set-source-mute", "mic", "0")


def test_a_card_that_is_not_there_has_no_gain():
    assert alsa_mixer.read_gain("hw:77") is None
