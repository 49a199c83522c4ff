import io
import os
import shlex
import subprocess
import sys
import threading

import numpy as np
import pytest
import soundfile

from amt_stream.engine import (
    FileSource,
    Noise,
    SignalSource,
    SourceError,
    StdinSource,
    Tone,
    demo_source,
)
from amt_stream.meters.signals import mix


def play(source) -> np.ndarray:
    """All that the source delivers until it ends."""
    blocks, ended = [], threading.Event()

    def deliver(block, lost=0) -> None:
        if block is None:
            ended.set()
        else:
            blocks.append(block.copy())

    source.start(deliver)
    assert ended.wait(20)
    source.stop()
    return np.concatenate(blocks) if blocks else np.zeros((0, source.channels), np.float32)


@pytest.mark.parametrize("suffix", ["wav", "flac", "ogg", "aiff"])
@pytest.mark.parametrize("fs", [44100, 48000, 96000])
def test_a_file_comes_out_whole(tmp_path, noise, suffix, fs):
    path = tmp_path / f"sound.{suffix}"
    soundfile.write(path, noise(12345, channels=3), fs)
    source = FileSource(path, paced=False)
    expected, _ = soundfile.read(path, dtype="float32")
    assert (source.fs, source.channels, source.live) == (fs, 3, False)
    np.testing.assert_array_equal(play(source), expected)
    assert source.error is None


def test_a_looped_file_goes_on_until_it_is_stopped(tmp_path, noise):
    path = tmp_path / "sound.wav"
    x = noise(1000, channels=1)
    soundfile.write(path, x, 48000, subtype="FLOAT")
    source = FileSource(path, paced=False, loop=True)
    blocks, enough = [], threading.Event()

    def deliver(block, lost=0) -> None:
        blocks.append(block)
        if sum(len(b) for b in blocks if b is not None) > 5000:
            enough.set()

    source.start(deliver)
    assert enough.wait(20)
    source.stop()
    y = np.concatenate([b for b in blocks if b is not None])[:5000]
    np.testing.assert_array_equal(y, np.tile(x, (5, 1)))


def test_bad_files_are_refused_in_one_sentence(tmp_path):
    with pytest.raises(SourceError, match=r"there is no file .*missing\.wav"):
        FileSource(tmp_path / "missing.wav")
    (tmp_path / "text.wav").write_text("no sound at all")
    with pytest.raises(SourceError, match=r"text\.wav is not a sound file"):
        FileSource(tmp_path / "text.wav")
    (tmp_path / "nothing.wav").touch()
    with pytest.raises(SourceError, match=r"nothing\.wav is not a sound file"):
        FileSource(tmp_path / "nothing.wav")
    soundfile.write(tmp_path / "empty.wav", np.zeros((0, 2)), 48000)
    with pytest.raises(SourceError, match=r"empty\.wav has no samples"):
        FileSource(tmp_path / "empty.wav")


def level_db(y: np.ndarray) -> float:
    return 10 * np.log10(np.mean(y**2) / 20e-6**2)


@pytest.mark.parametrize(
    "component",
    [
        Tone(1000.0, level_db=60.0, ramp=0.0),
        Tone(1000.0, modulation=4.0, level_db=60.0, ramp=0.0),
        Tone(1000.0, modulation=4.0, depth=0.5, level_db=60.0, ramp=0.0),
        Noise("white", level_db=60.0, ramp=0.0),
        Noise("pink", level_db=60.0, ramp=0.0),
        Noise("white", low=900.0, high=1100.0, level_db=60.0, ramp=0.0),
    ],
)
def test_levels_are_as_ordered(component):
    y = component.render(48000, 0, 2**19)
    assert level_db(y) == pytest.approx(60.0, abs=0.05 if isinstance(component, Tone) else 1e-9)


def test_noise_keeps_its_band_and_slope():
    fs = 48000
    band = Noise("white", low=900.0, high=1100.0, level_db=60.0, ramp=0.0).render(fs, 0, 2**19)
    pink = Noise("pink", level_db=60.0, ramp=0.0).render(fs, 0, 2**19)
    f = np.fft.rfftfreq(2**19, 1 / fs)
    power = np.abs(np.fft.rfft(band)) ** 2
    assert power[(f < 899) | (f > 1101)].sum() < 1e-20 * power.sum()
    power = np.abs(np.fft.rfft(pink)) ** 2
    octaves = [power[(f >= lo) & (f < 2 * lo)].sum() for lo in (100, 400, 1600, 6400)]
    np.testing.assert_allclose(octaves / octaves[0], 1.0, rtol=0.05)


def test_a_signal_can_be_rendered_from_anywhere():
    components = demo_source().components
    whole = mix(components, 48000, 0, 48000 * 30)
    for first in (0, 1, 48000 * 9 + 17, 48000 * 24 - 100, 48000 * 29):
        np.testing.assert_array_equal(
            mix(components, 48000, first, 777), whole[first : first + 777]
        )
    np.testing.assert_array_equal(whole[: 48000 * 6], whole[48000 * 24 :])
    day = mix(components, 48000, 48000 * 24 * 3600 * 100, 48000)
    np.testing.assert_allclose(day, whole[:48000], atol=1e-12)


@pytest.mark.parametrize("period", [None, 0.02])
def test_a_sound_is_rendered_where_it_is_on_and_nowhere_else(period):
    burst = Tone(900.0, level_db=60.0, start=0.01, duration=0.004, period=period, ramp=0.001)
    whole = burst.render(48000, 0, 4800)
    index = np.arange(4800) - 480
    on = (index >= 0) & (index % (4800 if period is None else 960) < 192)
    for first in range(0, 4300, 37):
        for count in (1, 48, 480):
            there = slice(first, first + count)
            part = burst.render(48000, first, count)
            assert (part is not None) == on[there].any()
            if part is not None:
                np.testing.assert_array_equal(part, whole[there])


def test_bursts_come_in_time_and_in_their_ear():
    burst = Tone(
        1000.0, level_db=60.0, start=0.1, duration=0.05, period=0.2, ramp=0.005, ear="left"
    )
    y = mix([burst], 48000, 0, 48000)
    on = np.abs(y[:, 0]).reshape(-1, 480).max(1) > 0
    assert on.tolist() == [i >= 10 and (i - 10) % 20 < 5 for i in range(100)]
    assert not y[:, 1].any()
    steady = y[4800 + 240 : 4800 + 2400 - 240, 0]
    assert level_db(steady) == pytest.approx(60.0, abs=0.01)


def test_a_signal_source_knows_its_level_and_repeats_itself():
    first, second = (
        play(SignalSource([Noise(level_db=70.0)], 44100, duration=0.5, paced=False))
        for _ in range(2)
    )
    np.testing.assert_array_equal(first, second)
    assert len(first) == 22050
    pascal = first[:, 0] * SignalSource.calibration.pascal_per_unit
    assert level_db(pascal[4410:]) == pytest.approx(70.0, abs=0.2)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: SignalSource([Tone(30000.0, level_db=60.0)]), "30000.0 Hz is not between"),
        (lambda: Tone(100.0, level_db=60.0, ear="middle"), "ear is 'middle'"),
        (lambda: Tone(100.0, level_db=60.0, duration=0.01), "do not fit into 0.01 s"),
        (lambda: Tone(100.0, level_db=60.0, period=1.0), "needs a duration"),
        (lambda: SignalSource([Noise("brown", level_db=60.0)]), "kind 'brown'"),
        (lambda: SignalSource(Tone(1000.0, level_db=60.0)), r"components is Tone.*: give a list"),
        (lambda: SignalSource([1000.0]), r"components is \[1000.0\]: give a list, such as"),
        (lambda: SignalSource(duration=-1.0), "duration is -1.0: give seconds, 0 or more"),
    ],
)
def test_a_signal_that_cannot_be_is_refused(make, said):
    with pytest.raises((TypeError, ValueError), match=said):
        make()


def test_components_may_come_from_an_iterator():
    tones = [Tone(f, level_db=60.0) for f in (500.0, 1000.0)]
    for given in (iter(tones), (tone for tone in tones), tones):
        sound = play(SignalSource(given, duration=0.1, paced=False))
        np.testing.assert_array_equal(sound, play(SignalSource(tones, duration=0.1, paced=False)))
        assert sound.any()


@pytest.mark.parametrize("format", ["s16le", "s24le", "s32le", "f32le"])
def test_raw_pcm_through_a_real_pipe(noise, format):
    x = np.clip(noise(20000, rms=0.3), -1.0, 1.0 - 2**-15)
    x[:2] = [[-1.0, 0.5], [0.0, 1.0 - 2**-15]]
    whole = np.round(x.astype(np.float64) * 2**31).astype(np.int64)
    data = {
        "s16le": (whole >> 16).astype("<i2").tobytes(),
        "s24le": (whole >> 8).astype("<i4").reshape(-1, 1).view(np.uint8)[:, :3].tobytes(),
        "s32le": np.minimum(whole, 2**31 - 1).astype("<i4").tobytes(),
        "f32le": x.astype("<f4").tobytes(),
    }[format]
    bits = {"s16le": 15, "s24le": 23, "s32le": 31, "f32le": 40}[format]
    # In pieces that fit neither a sample nor a block.
    with subprocess.Popen(
        ["dd", "ibs=997", "obs=997", "status=none"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as writer:
        feeder = threading.Thread(target=lambda: (writer.stdin.write(data), writer.stdin.close()))
        feeder.start()
        source = StdinSource(format, 48000, 2, writer.stdout)
        y = play(source)
        feeder.join()
    np.testing.assert_allclose(y, x, atol=2.0**-bits, rtol=1e-7)
    assert source.note == ""


def test_an_incomplete_last_sample_is_left_out_and_reported():
    source = StdinSource("s16le", 48000, 2, io.BytesIO(bytes(4 * 1000 + 3)))
    assert play(source).shape == (1000, 2)
    assert "left out at its end: 3 bytes" in source.note


@pytest.mark.parametrize("data", [b"", b"abc"])
def test_an_input_without_one_whole_sample_is_an_error(data):
    source = StdinSource("s16le", 48000, 2, io.BytesIO(data))
    assert len(play(source)) == 0
    assert isinstance(source.error, SourceError)
    assert str(source.error) == "standard input ended before one whole sample came"


def test_a_closed_standard_input_is_refused():
    code = (
        "from amt_stream.engine import SourceError, StdinSource\n"
        "try: StdinSource()\n"
        "except SourceError as error: print(error)"
    )
    command = f"exec {shlex.quote(sys.executable)} -c {shlex.quote(code)} <&-"
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("standard input is closed")


def test_a_pipe_that_stays_silent_can_be_stopped():
    read_end, write_end = os.pipe()
    with os.fdopen(read_end, "rb") as stream, os.fdopen(write_end, "wb"):
        source = StdinSource(stream=stream)
        before = threading.active_count()
        source.start(lambda block, lost=0: None)
        assert threading.active_count() == before + 1
        source.stop()
        assert threading.active_count() == before


def test_unknown_pcm_is_refused():
    with pytest.raises(SourceError, match="format 'u8' is unknown: give one of s16le"):
        StdinSource("u8")
