"""A microphone's response is taken off: right in gain, at once, the same in any blocks."""

import copy
from itertools import product

import numpy as np
import pytest
import torch

from amt_stream import Stream, check_stage
from amt_stream.dsp.stages import MicrophoneCorrection

RATES = (44100, 48000, 96000)


def condenser(hz):
    """As of a measurement microphone: a fall below 20 Hz, a hump at 12 kHz, some ripple."""
    octaves = np.log2(hz / 1000)
    hump = 4 * np.exp(-((np.log2(hz / 12000) / 0.5) ** 2))
    return -10 * np.log10(1 + (18 / hz) ** 4) + hump + 0.2 * np.sin(7 * octaves)


def points(hz, gain_db):
    return np.stack([hz, gain_db], -1)


FINE = np.geomspace(10, 20000, 600)
THIRDS = 1000 * 10 ** (np.arange(-17, 14) / 10)
GAINS = {
    "condenser": points(FINE, -condenser(FINE)),
    "thirds": points(THIRDS, np.random.default_rng(1).normal(0, 1, len(THIRDS))),
    "two points": np.array([(100.0, 12.0), (10000.0, -9.0)]),
    "flat": np.array([(20.0, 3.0), (20000.0, 3.0)]),
    "bass": points(FINE, np.clip(24 * np.log2(80 / FINE), 0, 30)),
}


EVERY = list(product(GAINS, RATES))
QUICK = {*((name, 48000) for name in GAINS), *(("condenser", fs) for fs in RATES)}


@pytest.mark.parametrize(
    ("name", "fs"),
    [pytest.param(*one, marks=[] if one in QUICK else pytest.mark.soak) for one in EVERY],
)
def test_the_gain_is_that_of_the_points(name, fs):
    hz, gain_db = GAINS[name].T
    stage = MicrophoneCorrection(fs, [GAINS[name]]).double()
    click = torch.zeros(1, 2 * fs, dtype=torch.float64)
    click[0, 0] = 1
    response = np.fft.rfft(stage(click)[0].numpy())
    f = np.arange(len(response)) / 2
    heard = (f >= 20) & (f <= 0.9 * fs / 2)
    wanted_db = np.interp(np.log(f[heard]), np.log(hz), gain_db)
    off_db = 20 * np.log10(np.abs(response[heard])) - wanted_db
    assert np.abs(off_db).max() < 0.1
    # The very frequency of a calibrator.
    assert off_db[np.flatnonzero(f[heard] == 1000)] == pytest.approx(0.0, abs=1e-3)


def test_what_a_microphone_did_is_undone_sample_by_sample():
    microphone = MicrophoneCorrection(48000, [points(FINE, condenser(FINE))]).double()
    correction = MicrophoneCorrection(48000, [GAINS["condenser"]]).double()
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(1, 48000, generator=generator, dtype=torch.float64)
    back = correction(microphone(x))
    # 0.1 dB is 1.2 %: nothing is late, or turned in phase.
    assert (back - x).square().mean().sqrt() < 0.005 * x.square().mean().sqrt()


def test_any_blocks_give_the_same():
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(2, 2, 100, generator=generator, dtype=torch.float64)
    stage = MicrophoneCorrection(8000, [GAINS["flat"], None])
    check_stage(lambda: copy.deepcopy(stage), x)


def test_both_forms_agree_and_sections_do_not_hear_how_long_a_block_is():
    stage = MicrophoneCorrection(48000, [GAINS["condenser"], GAINS["flat"]])
    x = torch.randn(3, 2, 4800, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        whole = stage(x)
        live = Stream(stage, (3, 2))
        parts = torch.cat([live(part) for part in x.split([1, 7, 441, 480, 3871], -1)], -1)
    assert parts.equal(whole)
    plain = stage(x.requires_grad_())
    torch.testing.assert_close(plain, whole, rtol=0, atol=1e-6)


def test_a_channel_without_gain_stays_as_it_is():
    x = torch.randn(2, 500, generator=torch.Generator().manual_seed(0))
    y = MicrophoneCorrection(48000, [None, GAINS["flat"]])(x)
    assert y[0].equal(x[0])
    torch.testing.assert_close(y[1], x[1] * 10 ** (3 / 20), rtol=0.005, atol=1e-4)


def test_a_gain_that_no_filter_has_is_refused():
    steps = np.where(FINE < 1000, 0.0, -20.0)
    with pytest.raises(ValueError, match=r"so steeply near \d+ Hz"):
        MicrophoneCorrection(48000, [points(FINE, steps)])
