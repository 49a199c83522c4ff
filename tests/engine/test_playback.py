"""What the computer plays, as an input."""

import subprocess
from dataclasses import replace

import numpy as np
import pytest
import soundfile

from amt_stream.engine import Engine, InputDevice, MicrophoneSource, SourceError, list_devices
from amt_stream.engine.devices.listing import chosen, is_played, listed, listed_again
from amt_stream.engine.devices.pulse_server import PulseSource

SPEAKER = "Monitor of VirtualSpeaker"
QUIET = 1e-6
"""Above the hum that is always there."""


def device(index, name, host_api="ALSA", **more):
    return InputDevice(index, name, host_api, 2, 48000, False, **{"identity": name, **more})


HERE = [
    device(0, "Built-in microphone"),
    replace(device(1, "default"), default=True, behind="mic"),
    device(1, "Monitor of Built-in output", behind="out.monitor", played=True),
    device(1, "Monitor of Television", behind="hdmi.monitor", played=True),
    device(4, "Speakers [Loopback]", "Windows WASAPI", played=True),
]


@pytest.mark.parametrize(
    ("wanted", "played", "index"),
    [
        (None, False, 1),
        (None, True, 2),
        (1, False, 1),
        ("built-in", False, 0),
        ("built-in", True, 2),
        ("hdmi.monitor", False, 3),
        ("television", True, 3),
        (4, True, 4),
    ],
)
def test_the_one_that_is_meant(wanted, played, index):
    assert chosen(HERE, wanted, played) is HERE[index]


@pytest.mark.parametrize(
    ("wanted", "said"),
    [
        ("Built-in microphone", "no input device 'Built-in microphone'.*'Monitor of Built-in"),
        (1, "there is no input device 1"),  # a number that it is heard through, and not its own
        ("monitor", "several .*: 'Monitor of Built-in output' .out.monitor., 'Monitor of Telev"),
    ],
)
def test_one_that_is_not_clear_is_refused(wanted, said):
    with pytest.raises(SourceError, match=said):
        chosen(HERE, wanted, played=True)


def test_where_there_is_none_a_sentence_says_what_helps():
    with pytest.raises(SourceError, match="no input that records what the computer plays; it"):
        chosen(HERE[:2], None, played=True)


@pytest.mark.parametrize(
    ("name", "host_api", "played"),
    [
        ("Speakers (Realtek) [Loopback]", "Windows WASAPI", True),
        ("Stereo Mix (Realtek)", "MME", True),
        ("BlackHole 2ch", "Core Audio", True),
        ("Monitor of Built-in Audio", "PulseAudio", True),
        ("Microphone (Realtek)", "Windows WASAPI", False),
        ("Studio Monitor of mine", "Core Audio", False),
        ("Monitor of mine: USB (hw:1,0)", "ALSA", False),  # the name of a card
    ],
)
def test_inputs_are_known_by_their_names(name, host_api, played):
    assert is_played(name, host_api) is played
    given = [{"index": 0, "name": name, "host_api": host_api, "channels": 2, "fs": 48000}]
    (one,) = listed([{**given[0], "default": True}], None)
    assert one.played is played
    assert bool(one.kept_by) is not played, "what is played has no calibration"


def test_a_default_that_hears_an_output_is_no_microphone():
    given = {"name": "default", "host_api": "ALSA", "index": 0, "channels": 2, "fs": 48000}
    monitor = PulseSource("out.monitor", "Monitor of it", "out", 2, 48000)
    (one,) = listed([{**given, "default": True}], "out.monitor", [monitor])
    assert (one.played, one.kept_by, one.title) == (True, frozenset(), "Monitor of it")


def test_the_outputs_of_the_server_are_listed_that_of_the_default_first(virtual_mic):
    virtual_mic.hush()  # the hum would move to the default output, and change its rate
    module = pactl("load-module", "module-null-sink", "sink_name=other", "rate=44100").strip()
    try:
        found = [d for d in list_devices() if d.played]
        assert [(d.behind, d.channels, d.fs) for d in found] == [
            ("speaker.monitor", 2, 48000),
            ("other.monitor", 2, 44100),
        ]
        assert found[0].entry == f"{SPEAKER} (speaker.monitor)"
        pactl("set-default-sink", "other")
        assert next(d for d in list_devices() if d.played).behind == "other.monitor"
        assert MicrophoneSource(played=True).fs == 44100
        assert MicrophoneSource("speaker.monitor").device.name == SPEAKER
    finally:
        pactl("set-default-sink", "speaker")
        pactl("unload-module", module)
        virtual_mic.hum()


def pactl(*arguments):
    command = ["pactl", *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def test_what_is_played_is_heard_sample_for_sample(virtual_mic, until, tmp_path):
    """And not the microphone, which is the server's default source."""
    tone = 0.25 * np.sin(2 * np.pi * 997 * np.arange(96000) / 48000).astype(np.float32)
    soundfile.write(tmp_path / "tone.wav", np.stack([tone, -0.5 * tone], -1), 48000, "FLOAT")
    pactl("set-source-mute", "mic", "1")
    blocks = []

    def deliver(block, lost=0, flags=0):
        if block is not None:
            blocks.append(block.copy())

    source = MicrophoneSource(played=True)
    try:
        source.start(deliver)
        until(lambda: len(blocks) > 10)
        virtual_mic.play(tmp_path / "tone.wav")
        until(lambda: np.count_nonzero(np.abs(np.concatenate(blocks)[:, 0]) > QUIET) > 90000)
    finally:
        source.stop()
        pactl("set-source-mute", "mic", "0")
    heard = np.concatenate(blocks)
    first = np.flatnonzero(np.abs(heard[:, 0]) > QUIET)[0] + 4800
    left, right = heard[first : first + 48000].T
    assert 20 * np.log10(np.std(left)) == pytest.approx(20 * np.log10(0.25 / np.sqrt(2)), abs=0.001)
    np.testing.assert_allclose(right, -0.5 * left, atol=1e-6)


def test_an_output_that_goes_is_waited_for(virtual_mic, until):
    heard = []
    source = MicrophoneSource(played=True)
    source.start(lambda block, lost=0, flags=0: heard.append(lost))
    try:
        until(lambda: len(heard) > 10)
        virtual_mic.unplug()
        until(lambda: source.state == "lost")
        virtual_mic.plug()
        until(lambda: source.state == "running")
        count = len(heard)
        until(lambda: len(heard) > count + 10)
    finally:
        source.stop()
        virtual_mic.plug()


def test_it_is_not_the_microphone_where_alsa_records_from_elsewhere(virtual_mic, monkeypatch):
    """ALSA's default may be a card, while a sound server runs beside it."""
    source = MicrophoneSource(played=True)
    (alias,) = [d for d in list_devices() if d.name == "default"]
    raw = {n: getattr(alias, n) for n in ("index", "name", "host_api", "channels", "fs", "default")}
    assert listed_again([raw], source.device) == source.device
    assert listed_again([{**raw, "name": "hw:0"}], source.device) is None
    # The number of the process is all that tells where it records from.
    monkeypatch.setattr("amt_stream.engine.devices.input_watch.placement_of", lambda *named: None)
    told = "cannot be recorded: ALSA does not record from the sound"
    with pytest.raises(SourceError, match=told):
        source.start(lambda block, lost=0, flags=0: None)


def test_silence_of_what_is_played_is_sound(virtual_mic, power_meter, until):
    virtual_mic.hush()
    try:
        with Engine(MicrophoneSource(played=True), power_meter()) as engine:
            until(lambda: engine.health.silent)
            assert engine.health.note == "nothing is playing, or it is muted"
            assert engine.device_state == "running"
            count = engine.history.count
            until(lambda: engine.history.count > count + 100)
    finally:
        virtual_mic.hum()
    assert engine.health.lost_samples == 0


def test_in_the_callback_it_is_refused(virtual_mic, power_meter):
    engine = Engine(MicrophoneSource(played=True), power_meter(), run_in="callback")
    with pytest.raises(SourceError, match="is recorded by a separate process"), engine:
        pass
