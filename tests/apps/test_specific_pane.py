"""Specific roughness and tonality over the last minute, with the strongest band in words."""

import re
from types import SimpleNamespace

import numpy as np
import pytest
import soundfile

from amt_monitor.panes.specific_pane import SPECIFIC, SpecificQualityPane, band_at
from amt_stream import ECMALoudness, ECMARoughness, ECMATonality
from amt_stream.dsp.functional.ecma418.bands import CENTERS
from amt_stream.dsp.models.ecma418_all import ECMA418Output
from amt_stream.engine import Engine, FileSource, Tone
from amt_stream.meters import catalog
from amt_stream.meters.calibration import Calibration
from tests.apps.test_followed_panes import heard

FS = 48000
FULL_SCALE_DB = 100.0
BEGINS_S, RATE = 0.5, 45.0
RATTLE_HZ = 1500.0, 3000.0


def fan():
    """A fan that hums and rushes at 50 dB, and from 0.5 s on rattles 45 times a second."""
    time_s = np.arange(round(2.6 * FS)) / FS
    noise = np.fft.rfft(np.random.default_rng(1).standard_normal(len(time_s)))
    f = np.fft.rfftfreq(len(time_s), 1 / FS)

    def band(low, high):
        y = np.fft.irfft(np.where((f >= low) & (f <= high), noise, 0), len(time_s))
        return y / np.sqrt(np.mean(y**2))

    rms = lambda db_spl: 10 ** ((db_spl - FULL_SCALE_DB) / 20) / np.sqrt(2)  # noqa: E731
    swells = np.where(time_s > BEGINS_S, 1 + np.sin(2 * np.pi * RATE * time_s), 0)
    hum = np.sqrt(2) * rms(50) * np.sin(2 * np.pi * 120 * time_s)
    return hum + rms(45) * band(100, 4000) + rms(60) * band(*RATTLE_HZ) * swells


@pytest.fixture
def fan_file(tmp_path):
    path = tmp_path / "fan.wav"
    soundfile.write(path, fan(), FS, "FLOAT")
    return path


def right(words):
    """Whether words name the band and the rate of the rattle."""
    band, rate = map(float, re.findall(r"[\d.]+", words))
    return RATTLE_HZ[0] < band < RATTLE_HZ[1] and abs(rate - RATE) < 1


def test_the_window_names_band_and_rate_of_a_rattling_fan(qtbot, open_window, fan_file):
    def engine(wanted):
        models = {"ecma_roughness": ECMARoughness(FS)}
        return Engine(FileSource(fan_file), models, calibration=Calibration(FULL_SCALE_DB))

    dock = open_window(engine).area.docks["specific_ecma_roughness"]
    assert not dock.isHidden()
    qtbot.waitUntil(lambda: dock.pane is not None and bool(dock.pane.texts()[0]))
    qtbot.waitUntil(lambda: right(dock.pane.texts()[0]))
    assert dock.pane.colors.highest > 0.01


def test_a_rattling_fan_is_named_within_2_s(qtbot, fan_file):
    """When the frame that says so has come, in the time of the sound."""
    frames, model = [], ECMARoughness(FS)
    source = FileSource(fan_file, paced=False)
    calibration = Calibration(FULL_SCALE_DB)
    with Engine(source, {"it": model}, [frames.append], calibration=calibration) as engine:
        assert engine.wait(60)
    pane = SpecificQualityPane(catalog.entry("ecma_roughness"), "it", *SPECIFIC["ecma_roughness"])
    qtbot.addWidget(pane)
    words = {
        round(float(one.time_s[k]), 2): pane.words(one, k)
        for one in frames
        if not one.after_end
        for k in range(len(one))
    }
    latency_s = float(model.latency) / FS
    named = [time_s for time_s, text in words.items() if text and right(text)]
    assert BEGINS_S < named[0] + latency_s < BEGINS_S + 1
    assert all(right(words[k]) for k in words if 1 < k < 2.2)
    assert not any(words[k] for k in words if k < BEGINS_S - 0.2)


@pytest.fixture
def shown(qtbot):
    """The pane of a model that heard components, and its frames."""

    def make(name, model, components, **more):
        engine, readings, frames = heard(components, {name: model}, **more)
        pane = SpecificQualityPane(catalog.entry(name), name, *SPECIFIC[name])
        qtbot.addWidget(pane)
        pane.take_frames(engine, readings)
        pane.fit()
        return pane, frames

    return make


def test_a_tone_is_named_with_its_frequency(shown):
    tone = [Tone(1000.0, level_db=40.0)]
    pane, frames = shown("ecma_tonality", ECMATonality(FS), tone, duration=1.0)
    assert pane.words(frames[-1]).startswith("strongest tone at ")
    hz = float(pane.words(frames[-1]).split()[3])
    assert hz == pytest.approx(1000, abs=4)
    assert pane.words(frames[0], 0) == ""


def test_the_colors_are_the_greatest_values_of_each_time(shown):
    tone = [Tone(1000.0, level_db=60.0, start=0.3)]
    pane, frames = shown("ecma_loudness", ECMALoudness(FS), tone, duration=1.0)
    specific = np.concatenate([one.values.specific for one in frames], axis=1)[0]
    columns = np.concatenate([one.time_s for one in frames]) // 0.1
    expected = specific[columns == 7].max(axis=0)
    np.testing.assert_allclose(pane.colors.curve(0.75), expected, rtol=1e-6)
    highest = specific[columns < columns[-1]].max()
    assert pane.colors.low == 0
    assert highest < pane.colors.high < 5 * highest
    assert pane.texts()[1] == f"0 to {pane.colors.high:g} sone_HMS/Bark_HMS"
    assert pane.words(frames[-1]).startswith("loudest at ")


def test_each_quality_of_all_is_named(qtbot):
    """Of a roughness of 1 asper at 1 kHz, 70 times a second, and a tone of 2 tu_HMS of 500 Hz."""
    bands = np.eye(53, dtype=np.float32)[np.argmin(np.abs(CENTERS - 1000))][None, None]
    values = {"n": 0.0, "t": 2.0, "tone_hz": 500.0, "r": 1.0, "modulation_hz": 70.0, "f": 0.0}
    given = {name: np.full((1, 1), v, np.float32) for name, v in values.items()}
    given |= {f"specific_{letter}": bands for letter in "ntrf"}
    frames = SimpleNamespace(values=ECMA418Output(**given))
    found = {}
    for quality in SPECIFIC["ecma"]:
        pane = SpecificQualityPane(catalog.entry("ecma"), "it", quality)
        qtbot.addWidget(pane)
        found[pane.objectName()] = pane.words(frames)
    assert list(found.values()) == [
        "",
        "strongest tone at 500.0 Hz",
        "roughest at 1030 Hz, modulated by 70.0 Hz",
        "",
    ]
    assert len(found) == 4


def test_rows_are_bands():
    assert band_at(CENTERS[0]) == 0.5
    assert band_at(CENTERS[-1]) == len(CENTERS) - 0.5
    assert set(SPECIFIC) == {name for name in catalog.names() if name.startswith("ecma")}
