"""Sentences with numbers in the documents, against what is measured."""

import re
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import torch

from amt_stream import (
    BS1770,
    ECMA418,
    ECMAFluctuation,
    ECMARoughness,
    Resample,
    measure,
)
from amt_stream.meters.accumulators import Histogram
from amt_stream.meters.rows.models.ecma418 import LOUDNESS
from tests.meters import threadless
from tests.meters.one_quantity import ecma_meter, sharpness_meter, zwicker_meter

DOCS = Path(__file__).parents[2] / "docs"
FS = 48000
FULL_SCALE_DB = 110.0


@cache
def text_of(page):
    return " ".join((DOCS / page).read_text(encoding="utf-8").split())


def said(page, sentence):
    """The numbers of a sentence of a page, which stand for # in it."""
    pattern = re.escape(sentence).replace(r"\#", r"(-?[\d.]*\d)")
    (found,) = re.findall(pattern, text_of(page))
    return [float(number) for number in ([found] if isinstance(found, str) else found)]


def tone(hz, seconds=1.0, phase_deg=0.0, fs=FS):
    return 0.1 * np.sin(
        2 * np.pi * hz * np.arange(round(seconds * fs)) / fs + np.radians(phase_deg)
    )


def summary(x, model="spl", fs=FS, **more):
    return measure(x, fs, model, calibration=FULL_SCALE_DB, **more).summary


@pytest.mark.parametrize("period", [6.5, 8, 10, 12, 47.3, 96, 480])
def test_the_peak_of_a_square_wave(period):
    low, high = said("rows.md", "is # to # dB above its highest sample")
    square = np.where(np.arange(FS) / period % 1 < 0.5, 0.1, -0.1)
    above = summary(square)["lzpeak_db"] - (FULL_SCALE_DB + 3.0103 - 20)
    if period >= 8:
        assert low - 0.05 <= above <= high + 0.05
    else:
        assert above <= high + 0.05


def test_a_sound_that_begins_at_its_crest():
    peak, fast = said("rows.md", "LApeak # dB and LAFmax # dB above one that begins at 0")
    at_0, crest = (summary(tone(50, phase_deg=phase)) for phase in (0, 90))
    assert crest["lapeak_db"] - at_0["lapeak_db"] == pytest.approx(peak, abs=0.5)
    assert crest["lafmax_db"] - at_0["lafmax_db"] == pytest.approx(fast, abs=0.5)


def test_laieq_of_a_second():
    (below,) = said("departures.md", "a steady tone of 1 s reads # dB below its level")
    level_db = FULL_SCALE_DB - 20
    assert level_db - summary(tone(1000))["laieq_db"] == pytest.approx(below, abs=0.02)


def test_true_peaks():
    (off,) = said("departures.md", "is at most # dB off on the signals of EBU Tech 3341")
    (high,) = said("departures.md", "The recommendation's filter reads tones up to # dB high")
    (fine,) = said("departures.md", "tones up to 15 kHz are then within # dB")
    for fs, lowest, highest in ((FS, -off, high), (192000, -fine, fine)):
        stage, errors = BS1770(fs, 1), []
        for hz in (500.3, 4100.7, 8000.0, 12000.0, 14999.0):
            for phase_deg in range(0, 90, 14):
                x = torch.from_numpy(tone(hz, 0.05, phase_deg, fs)[None]).float()
                errors.append(20 * np.log10(stage(x).true_peak.max().item() / 0.1))
        assert lowest <= min(errors) <= max(errors) <= highest
        assert max(np.abs(errors)) > 0.5 * min(-lowest, highest)


def test_percentiles():
    level, share, acum = said(
        "rows.md",
        "Percentiles are within # phon or dB of the exact values, loudness of `zwicker` and "
        "readings of ECMA-418-2 within # %, sharpness within # acum",
    )
    (least,) = said("rows.md", "What is below # dB is silence")
    (most,) = said("rows.md", "Sharpness has classes up to # acum")
    rng = np.random.default_rng(0)
    histogram = Histogram()
    assert (histogram.low, sharpness_meter().rule.high) == (least, most)
    values = rng.uniform(-100, 200, 5001)
    histogram.add(values)
    percents = np.arange(1, 100)
    off = histogram.percentiles(percents) - np.percentile(values, 100 - percents)
    assert 0.9 * level < np.abs(off).max() <= level + 1e-9
    values, time_s = rng.uniform(1, 30, 5001), np.arange(5001) / 500 + 1
    for meter, name, within in (
        (zwicker_meter(), "n{}_sone", share / 100 * values),
        (ecma_meter(LOUDNESS), "n{}_sone", share / 100 * values),
        (sharpness_meter(), "s{}_acum", np.full(5001, acum)),
    ):
        meter.update(time_s, values)
        for p in (1, 5, 10, 50, 90, 95, 99):
            exact = np.percentile(values, 100 - p)
            allowed = np.interp(exact, np.sort(values), within[np.argsort(values)])
            assert abs(meter.reading()[name.format(p)] - exact) <= allowed + 1e-9


def test_lines_of_a_spectrum():
    bin_hz, other_hz = said("rows.md", "# Hz at 48 kHz, # Hz at 44.1 kHz (`NarrowBandSpectrum`)")
    (between,) = said("rows.md", "a tone between two bins reads up to # dB less")
    (noise,) = said("rows.md", "10 lg(1.5 times the bin spacing), which is # dB at 48 kHz")
    (together,) = said("rows.md", "is that of their summed powers, minus # dB")

    def powers(x, fs=FS):
        found = measure(x, fs, "spectrum", calibration="pascal", outputs="spectrum_db", step_ms=500)
        hz = found.axes["spectrum_db"][-1].values
        return hz[1] - hz[0], 10 ** (found["spectrum_db"][2:, 0].T / 10) * 4e-10

    spacing, _ = powers(tone(1000))
    assert spacing == pytest.approx(bin_hz, abs=0.005)
    assert powers(tone(1000, fs=44100), 44100)[0] == pytest.approx(other_hz, abs=0.005)
    for place, less in ((200, 0.0), (200.5, between)):
        _, power = powers(np.sqrt(2) * tone(place * spacing, 3.0))
        tops = 10 * np.log10(power[:, -1].max() / 0.01)
        assert tops == pytest.approx(-less, abs=0.005)
        assert 10 * np.log10(power[:, -1].sum() / 0.01) == pytest.approx(together, abs=0.01)
    white = 0.1 * np.random.default_rng(0).standard_normal(8 * FS)
    _, power = powers(white)
    per_hz = 0.01 / (FS / 2)
    assert 10 * np.log10(power[200:3800].mean() / per_hz) == pytest.approx(noise, abs=0.1)


def test_how_late_frames_are():
    here, elsewhere = said("rows.md", "All its readings lag by # s, by # s at other rates than 48")
    (fluctuation,) = said("rows.md", "and its frames lag by # s")
    assert round(float(ECMA418().latency / FS), 2) == here
    assert {round(float(ECMA418(fs).latency / fs), 2) for fs in (16000, 44100, 96000)} == {
        elsewhere
    }
    assert round(float(ECMAFluctuation().latency / FS), 2) == fluctuation
    usual, slow = said(
        "departures.md", "converts sound at other rates: linear phase, # ms (# ms at 8 kHz)"
    )
    for fs, late in ((44100, usual), (FS, usual), (8000, slow)):
        assert float(Resample(fs, 32000).latency / fs) == late / 1000


@pytest.mark.parametrize("fs", [22050, 44100])
def test_a_band_of_which_a_part_is_missing(fs):
    low, high = said("departures.md", "half the sampling rate reads noise # to # dB low")
    white = 0.1 * np.random.default_rng(0).standard_normal(40 * fs)
    found = summary(white, "third_octave", fs, to_s=40.0)
    *_, name = (one for one in found if one.startswith("lzeq_"))
    nominal = float(name.removeprefix("lzeq_").removesuffix("hz_db"))
    middle = 1000 * 10 ** (round(10 * np.log10(nominal / 1000)) / 10)
    ideal = 0.01 * middle * (10**0.05 - 10**-0.05) / (fs / 2)
    expected_db = 10 * np.log10(ideal) + FULL_SCALE_DB + 3.0103
    assert low - 0.06 <= expected_db - found[name] <= high + 0.06


@pytest.mark.cases(1)
@pytest.mark.parametrize(
    ("single", "column"),
    [(ECMARoughness, "ecma_roughness_asper"), (ECMAFluctuation, "ecma_fluctuation_vacil")],
)
def test_after_a_long_gap_models_have_other_blocks(single, column, monkeypatch):
    (percent,) = said("departures.md", "of `ecma` and of the single models differ by up to # %")
    name = column.rpartition("_")[0]
    monkeypatch.setattr(threadless, "MODELS", {"ecma": ECMA418, name: single})
    turn = 2 * np.pi * np.arange(8 * FS) / FS
    swells = (1 + np.cos(70 * turn)) * (1 + 0.9 * np.cos(4 * turn))
    x = (0.02 * np.sin(1000 * turn) * swells).astype(np.float32)
    found, start, stop = [], 8000, 8000 + round(1.371 * FS)
    for model in ("ecma", name):
        meters = threadless.Meters([model], 20, [column])
        meters.take(x[:start])
        meters.take(x[stop:], stop - start)
        rows = meters.rows
        found.append(np.array(rows[column], float)[np.array(rows["time_s"]) > stop / FS + 4.5])
    count = min(map(len, found))
    off = np.abs(found[0][:count] - found[1][:count]).max()
    assert 0 < off <= percent / 100 * found[1].max()
