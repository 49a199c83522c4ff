"""`--source playback`: what the computer plays."""

import json

import numpy as np
import soundfile

from amt_stream.cli.command import build_parser
from amt_stream.cli.inputs import PLAYED, open_input
from amt_stream.cli.making import input_from_window
from amt_stream.meters.presets import load_preset


def test_what_is_played_is_measured_and_is_uncalibrated(begin, virtual_mic, tmp_path):
    """A sine of -20 dBFS reads 80 dB where full scale is taken for 100."""
    tone = 0.1 * np.sin(2 * np.pi * 1000 * np.arange(72000) / 48000)
    soundfile.write(tmp_path / "tone.wav", tone, 48000, "FLOAT")
    call = ["meter", "--source", "playback", "--model", "spl,bs1770", "--format", "jsonl"]
    with begin(*call, "--duration", "3") as meter:
        header = json.loads(meter.stdout.readline())["header"]
        virtual_mic.play(tmp_path / "tone.wav")
        rows = [json.loads(line) for line in meter.stdout.read().splitlines()]
        errors = meter.stderr.read()
    assert meter.returncode == 0, errors
    assert header["source"]["name"] == "Monitor of VirtualSpeaker"
    assert {one["origin"] for one in header["calibration"]} == {
        "nominal: playback has no sound pressure"
    }
    rows = [row for row in rows if "laf_db" in row]
    assert not any(row["calibrated"] for row in rows)
    assert abs(max(row["laf_db"] or 0.0 for row in rows) - 80.0) < 0.1
    assert abs(max(row["momentary_lufs"] or -99.0 for row in rows) - (-20.0)) < 0.1


def test_it_is_listed_and_has_no_calibration(said, virtual_mic):
    status, out, _ = said("devices")
    assert status == 0
    (line,) = [line for line in out.splitlines() if "playback" in line]
    assert line.split(maxsplit=1) == [
        "-",
        "Monitor of VirtualSpeaker (speaker.monitor), ALSA, playback, 2 channels, 48000 Hz",
    ]
    status, out, err = said("calibrate", "--source", "playback")
    assert (status, out) == (1, "")
    assert "has no sound pressure: give an agreed level with --full-scale-db" in err


def test_where_nothing_can_be_heard_it_says_what_helps(said, virtual_mic):
    virtual_mic.unplug()
    try:
        status, out, err = said("meter", "--source", "playback", "--format", "csv")
    finally:
        virtual_mic.plug()
    assert (status, out, err.count("\n")) == (1, "", 1)
    assert "no input that records what the computer plays; it needs" in err
    assert said("meter", "--source", "playback", "--fast", "--format", "csv")[0] == 2


def test_chosen_by_name_or_in_the_window_it_has_no_calibration_either(virtual_mic, capsys):
    for name in ("Monitor of VirtualSpeaker", "speaker.monitor"):
        args = build_parser().parse_args(["meter"])
        assert input_from_window(name, args, load_preset()).calibration == [PLAYED]
        typed = build_parser().parse_args(["meter", "-d", name, "--full-scale-db", "105"])
        (agreed,) = open_input(typed, "mic").calibration
        assert (agreed.full_scale_db_spl, agreed.calibrated) == (105.0, True)
    assert capsys.readouterr().err == ""
