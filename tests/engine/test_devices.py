"""Which device is meant, and which one is the same as before."""

import subprocess
from dataclasses import replace

import numpy as np
import pytest

from amt_stream.engine import InputDevice, MicrophoneSource, SourceError, list_devices
from amt_stream.engine.devices.identity import identity_of
from amt_stream.engine.devices.listing import chosen, listed, same_device


def device(index, name, host_api="ALSA", default=False, **more):
    return InputDevice(index, name, host_api, 2, 48000, default, **{"identity": name, **more})


STUDIO = [
    device(0, "Scarlett 2i2 USB: Audio (hw:1,0)"),
    device(1, "Scarlett 4i4 USB: Audio (hw:2,0)"),
    device(2, "line"),
    device(3, "line in", default=True),
    device(4, "Headset", "MME"),
    device(5, "Headset", "Windows WASAPI"),
]


@pytest.mark.parametrize(
    ("wanted", "index"),
    [(None, 3), (1, 1), ("1", 1), ("line", 2), ("LINE IN", 3), ("2i2", 0), ("head", 4)],
)
def test_the_device_that_is_meant(wanted, index):
    assert chosen(STUDIO, wanted).index == index


@pytest.mark.parametrize(
    ("wanted", "said"),
    [
        ("scarlett", "several .* 'scarlett': 0 'Scarlett 2i2 .*, 1 'Scarlett 4i4 .*its number"),
        ("lin", "several input devices are called 'lin': 2 'line' .ALSA., 3 'line in'"),
        ("violin", "no input device 'violin'; PortAudio lists 0 'Scarlett"),
        (7, "no input device 7"),
    ],
)
def test_one_that_is_not_clear_is_refused(wanted, said):
    with pytest.raises(SourceError, match=said):
        chosen(STUDIO, wanted)


def test_a_device_is_the_same_by_what_the_system_tells_of_it():
    mine = device(3, "USB Mic: Audio (hw:1,0)", identity="USB Mic: Audio (hw,0, 1:2 A)")
    other = replace(mine, identity="USB Mic: Audio (hw,0, 1:2 B)")
    moved = replace(mine, index=5, name="USB Mic: Audio (hw:2,0)")
    assert same_device([other, moved], mine) is moved
    assert same_device([other], mine) is None
    assert same_device([replace(mine, host_api="OSS")], mine) is None
    assert same_device([mine, moved], mine) is None  # which of them, nobody can tell


def test_the_number_of_a_card_is_no_identity_and_its_serial_is(tmp_path):
    for number, serial in ((1, "A1"), (2, None)):
        usb = tmp_path / f"usb{number}"
        port = usb / f"{number}-1:1.0"
        port.mkdir(parents=True)
        (usb / "idVendor").write_text("1235\n")
        (usb / "idProduct").write_text("8210\n")
        if serial:
            (usb / "serial").write_text(f"{serial}\n")
        card = tmp_path / "sound" / f"card{number}"
        card.mkdir(parents=True)
        (card / "device").symlink_to(port)
    names = [f"Mic: USB (hw:{number},0)" for number in (1, 2, 3)]
    found = [identity_of(name, "ALSA", None, tmp_path / "sound") for name in names]
    assert found == [
        "Mic: USB (hw,0, 1235:8210 A1)",
        "Mic: USB (hw,0, at 2-1:1.0)",
        "Mic: USB (hw,0)",
    ]
    assert identity_of(names[0], "Windows WASAPI", None) == names[0]


def test_a_name_that_may_be_any_microphone_keeps_no_calibration():
    given = [{"name": "default", "host_api": "ALSA", "index": 0, "channels": 2, "fs": 48000}]
    given[0]["default"] = True
    (known,), (unknown,) = listed(given, "usb_mic"), listed(given, None)
    assert known.kept_by == {"PulseAudio source usb_mic"}
    assert unknown.kept_by == set()
    assert device(0, "virtual_mic").kept_by == {"virtual_mic"}
    # Tomorrow another card may be the first.
    card = device(0, "USB Mic: Audio (hw:1,0)", identity="USB Mic: Audio (hw,0, 1:2 A)")
    assert card.kept_by == {"USB Mic: Audio (hw,0, 1:2 A)"}


def pactl(*arguments):
    command = ["pactl", *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def test_the_default_stays_the_microphone_that_it_was(virtual_mic, until):
    """Another one that becomes the default is not measured instead."""

    module = pactl("load-module", "module-sine-source", "source_name=other").strip()
    heard = []
    try:
        source = MicrophoneSource()
        assert (source.device.name, source.device.behind) == ("default", "mic")
        source.start(lambda block, lost=0, flags=0: heard.append(lost))
        try:
            until(lambda: len(heard) > 50)
            virtual_mic.unplug()
            until(lambda: source.state == "lost")
            pactl("set-default-source", "other")
            (now,) = [d for d in list_devices() if d.name == "default"]
            assert now.behind == "other"
            count = len(heard)
            with pytest.raises(AssertionError):
                until(lambda: len(heard) > count, 2.0)
            virtual_mic.plug()
            until(lambda: source.state == "running")
            index = {line.split("\t")[1]: line.split("\t")[0] for line in sources()}["mic"]
            assert index in {line.split("\t")[1] for line in outputs()}
        finally:
            source.stop()
    finally:
        pactl("unload-module", module)
        virtual_mic.plug()
        pactl("set-default-source", "mic")


def remap(name):
    """Have the server remap a source, as it does with those that cancel an echo."""
    made = f"source_name={name}", "master=speaker.monitor"
    pactl("load-module", "module-remap-source", *made, "source_properties=device.description=Desk")


@pytest.fixture
def desk(virtual_mic):
    """A source of the server besides the microphone."""
    remap("desk")
    yield
    virtual_mic.unplug()
    virtual_mic.plug()


@pytest.mark.parametrize("name", ["Desk", "desk", "des"])
def test_a_source_of_the_server_is_chosen_by_its_name(desk, name):
    device = MicrophoneSource(name).device
    assert (device.behind, device.title, device.played) == ("desk", "Desk", False)
    assert device.kept_by == {"PulseAudio source desk"}
    assert (device.has_index, device.channels, device.fs) == (False, 2, 48000)


def test_it_has_the_calibration_that_it_has_as_the_default(desk):
    (by_name,) = [d for d in list_devices() if d.title == "Desk"]
    pactl("set-default-source", "desk")
    (default,) = [d for d in list_devices() if d.name == "default"]
    assert default.kept_by == by_name.kept_by
    assert (default.title, default.entry) == ("Desk", "Desk (default)")
    assert MicrophoneSource().name == MicrophoneSource("Desk").name == str(by_name) == "Desk"


def test_it_is_heard_and_comes_back(desk, until):
    heard, told = [], []
    source = MicrophoneSource("Desk")
    source.tell = lambda kind, text: told.append((kind, text))
    source.start(lambda block, lost=0, flags=0: heard.append(lost))
    try:
        until(lambda: len(heard) > 10)
        assert source.description.gain.percent == (100.0, 100.0)
        modules = pactl("list", "short", "modules").splitlines()
        (mine,) = [one.split()[0] for one in modules if "source_name=desk" in one]
        pactl("unload-module", mine)
        until(lambda: source.state == "lost")
        remap("desk")
        until(lambda: source.state == "running")
        until(lambda: any(heard))
    finally:
        source.stop()
    assert dict(told)["lost"].startswith("the device 'Desk' was lost: ")


def test_two_sources_of_one_description_have_their_names_too(desk):
    remap("door")
    titles = {d.behind: d.title for d in list_devices() if d.behind}
    assert (titles["desk"], titles["door"]) == ("Desk (desk)", "Desk (door)")
    with pytest.raises(SourceError, match=r"several .* 'Desk': .*, or the name in parentheses"):
        MicrophoneSource("Desk")
    assert MicrophoneSource("Desk (door)").device.behind == "door"


def test_a_card_of_its_own_is_preferred_to_the_same_one_of_a_server():
    card = device(0, "USB Mic: Audio (hw:1,0)")
    of_server = device(1, "USB Mic Analog", behind="alsa_input.usb")
    assert chosen([card, of_server], "usb mic") is card
    assert chosen([card, of_server], "USB Mic Analog") is of_server


def test_a_stream_that_the_server_moves_is_taken_back(virtual_mic, until):
    """As servers do when a microphone goes, without a word."""
    module = pactl("load-module", "module-sine-source", "source_name=other").strip()
    told, foreign = [], 0

    def deliver(block, lost=0, flags=0):
        nonlocal foreign
        foreign += 0 if block is None else np.count_nonzero(np.abs(block[:, 0]) > 1e-6)

    source = MicrophoneSource("virtual_mic")
    source.tell = lambda kind, text: told.append((kind, text))
    source.start(deliver)
    try:
        until(lambda: source.reader._watch.settled)
        (mine,) = [line.split("\t")[0] for line in outputs() if "protocol-native" in line]
        pactl("move-source-output", mine, "other")
        until(lambda: "back" in [kind for kind, _ in told])
        assert "the sound server has moved it to 'Sine source at 440 Hz'" in dict(told)["lost"]
        index = {line.split("\t")[1]: line.split("\t")[0] for line in sources()}["mic"]
        assert index in {line.split("\t")[1] for line in outputs()}
    finally:
        source.stop()
        pactl("unload-module", module)
    assert foreign == 0, "what came from another one is dropped"


def sources():
    return pactl("list", "short", "sources").splitlines()


def outputs():
    return pactl("list", "short", "source-outputs").splitlines()
