"""A converter's offset is no sound: it is known before the first frame, and removed."""

import numpy as np
import pytest
import soundfile

from amt_stream import Engine, FileSource, PushSource, SoundLevel, measure
from amt_stream.engine.microphone.offset import (
    LISTEN_S,
    FirstSound,
    KnownOffset,
    offset_of,
    offset_words,
)
from amt_stream.meters.calibration import UNCALIBRATED
from amt_stream.meters.source_description import SourceDescription
from amt_stream.offline.analysis import CheckedFile, analyze

FS = 48000
TIME_S = np.arange(2 * FS) / FS


def quiet(offset=0.0, seconds=5.0, seed=0):
    """Noise of -60 dB re full scale with an offset, two channels alike."""
    rng = np.random.default_rng(seed)
    x = 1e-3 * rng.standard_normal(round(seconds * FS)) + offset
    return np.stack([x, x], 1).astype(np.float32)


@pytest.mark.parametrize(
    ("sound", "near"),
    [
        (0.1 * np.random.default_rng(1).standard_normal(2 * FS), 2e-3),
        (np.sin(2 * np.pi * 1000 * TIME_S), 1e-6),
        (np.sin(2 * np.pi * 49.3 * TIME_S + 1), 1e-4),
        (0.3 * np.sin(2 * np.pi * 20 * TIME_S), 1e-3),
        (np.where((TIME_S > 0.2) & (TIME_S < 0.202), 1.0, 0.0), 1e-3),
    ],
    ids=["noise", "tone", "hum", "20 Hz", "pulse"],
)
@pytest.mark.parametrize("offset", [0.0, 0.02, -0.3])
def test_tones_noise_and_pulses_do_not_move_it(sound, near, offset):
    (found,) = offset_of((sound + offset)[:, None].astype(np.float32), FS)
    assert found == pytest.approx(offset, abs=near)


def test_too_little_sound_has_none():
    assert offset_of(np.full((4000, 1), 0.5, np.float32), FS) == 0.0
    assert offset_of(np.full((5000, 1), 0.5, np.float32), FS) == pytest.approx(0.5)


def test_words_are_of_large_ones():
    assert offset_words([0.0009, -0.0004]) == ""
    assert offset_words([0.02, -0.0015]) == (
        "2 % of full scale in channel 1, -0.15 % of full scale in channel 2"
    )


@pytest.mark.parametrize("size", [7, 441, 480, 100_000])
def test_sound_is_held_from_its_first_sample_on_however_it_comes(size):
    """Zeros before it go on at once; nothing is lost, and the offset is known before it goes on."""
    x = np.concatenate([np.zeros((1234, 2), np.float32), quiet(0.02, 0.8)])
    known, passed = [], []
    held = FirstSound(FS, known.append)
    for at in range(0, len(x), size):
        for block, lost, flags in held.take(x[at : at + size], 0, 0):
            passed.append(block)
            assert (lost, flags) == (0, 0)
            assert bool(known) == bool(block.any())
    passed += [block for block, _, _ in held.rest()]
    np.testing.assert_array_equal(np.concatenate(passed), x)
    (offset,) = known
    np.testing.assert_array_equal(offset, offset_of(x[1234 : 1234 + round(LISTEN_S * FS)], FS))
    assert offset == pytest.approx(0.02, abs=1e-4)


def test_what_ends_or_stops_early_is_passed_on():
    known = []
    held = FirstSound(FS, known.append)
    assert not [*held.take(quiet(0.02, 0.2), 0, 0)]
    later = [*held.take(quiet(0.02, 0.01), 300, 1)]
    assert [(len(block), lost) for block, lost, _ in later] == [(9600, 0), (480, 300)]
    assert known[0] == pytest.approx(0.02, abs=1e-3)
    assert held.over


@pytest.mark.parametrize("size", [480, 4801, 48_000])
def test_of_a_whole_sound_it_is_known_anywhere(size):
    x = np.concatenate([np.zeros((700, 2), np.float32), quiet(0.02, 60.0)])
    known = KnownOffset(FS, 1)
    for at in range(0, len(x), size):
        known.hear(x[at : at + size], x[at : at + size, 1:2])
    known.end()
    assert known.begin == 700
    for sample in (0, 700, 701, 50_000, 2_500_000, len(x)):
        place, offset = known.before(sample)
        known.go_on(x[place:sample, 1:2], offset)
        plain = np.zeros(1) if sample < 700 else known.first.copy()
        known.go_on(x[700 : max(700, sample), 1:2], plain)
        np.testing.assert_array_equal(offset, plain)


@pytest.mark.parametrize("value", [0.02, 1 / 32768, -0.9])
def test_a_constant_alone_is_silence(value):
    constant, silence = (
        measure(np.full((FS, 1), one, np.float32), FS, "spl", calibration=120.0).summary
        for one in (value, 0.0)
    )
    for name in ("laeq_db", "lzeq_db", "lcpeak_db", "lafmax_db"):
        assert constant[name] is silence[name] is None, name


@pytest.mark.cases(2)
@pytest.mark.parametrize("subtype", ["PCM_16", "PCM_24", "FLOAT"])
@pytest.mark.parametrize("models", ["spl,zwicker", "moore2016", "bs1770"])
def test_a_file_with_an_offset_reads_as_one_without(tmp_path, subtype, models):
    values = []
    for offset in (0.0, 0.02):
        path = tmp_path / f"{offset}.wav"
        soundfile.write(path, quiet(offset), FS, subtype)
        values.append(measure(path, models=models, calibration=120.0))
    free, found = values
    assert max(free.header["source"]["sound"]["offset"]) == 0.0
    assert found.header["source"]["sound"]["offset"] == pytest.approx([0.02, 0.02], abs=1e-4)
    for name, value in free.summary.items():
        if isinstance(value, float) and name.endswith(("_db", "_sone", "_lufs")):
            assert found.summary[name] == pytest.approx(value, abs=0.05), name


def test_peaks_of_full_scale_are_those_of_the_samples_as_they_are(tmp_path):
    x = quiet(0.02)
    soundfile.write(tmp_path / "x.wav", x, FS, "FLOAT")
    m = measure(tmp_path / "x.wav", models="bs1770")
    assert m.summary["sample_peak_dbfs"] == pytest.approx(20 * np.log10(np.abs(x).max()), abs=1e-4)


def test_an_offset_in_pascal_is_kept():
    x = quiet(0.02).astype(np.float64)
    summary = measure(x, FS, "spl", calibration="pascal").summary
    assert summary["lzeq_db"] == pytest.approx(20 * np.log10(0.02 / 2e-5), abs=0.1)


def test_a_device_and_a_file_give_the_same_numbers(tmp_path, collector):
    """The engine holds the first sound, and the file is known as a whole: the same to the bit."""
    x = np.concatenate([np.zeros((5000, 2), np.float32), quiet(0.02, 2.0)])
    source = PushSource(FS, 2, live=False)
    source.description = SourceDescription.of_device(2)
    with Engine(source, SoundLevel(FS), sinks=[collector]) as engine:
        with source:
            for at in range(0, len(x), 333):
                source.push(x[at : at + 333])
        assert engine.wait(60)
    (event,) = [event for event in engine.events if event.kind == "offset"]
    assert event.text == ("pushed sound has an offset of 2 % of full scale, which is removed")
    of_device = np.concatenate([f.values.power for f in collector.all], -1)
    collector.all.clear()
    soundfile.write(tmp_path / "x.wav", x, FS, "FLOAT")
    file = FileSource(tmp_path / "x.wav", paced=False)
    with Engine(file, SoundLevel(FS), sinks=[collector]) as engine:
        assert engine.wait(60)
    of_file = np.concatenate([f.values.power for f in collector.all], -1)
    np.testing.assert_array_equal(of_device, of_file)
    recording = CheckedFile(tmp_path / "x.wav")
    offline = analyze(recording, SoundLevel(FS), UNCALIBRATED)
    of_whole = np.concatenate([f.values.power for f in offline], -1)
    np.testing.assert_array_equal(of_whole, of_file[..., : of_whole.shape[-1]])
