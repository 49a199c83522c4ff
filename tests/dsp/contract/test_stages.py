"""Every stage keeps the contract: the compiled form as it ships, the plain one for gradients."""

import math

import pytest
import torch

from amt_stream import (
    Chain,
    Delay,
    EarFilter,
    Excitation,
    Moore2016,
    Parallel,
    Rebuffer,
    Resample,
    RunningSpectrum,
    Stream,
    check_stage,
)
from amt_stream.dsp.stages import BinauralLoudness
from amt_stream.dsp.stages.ear import ear_taps
from tests.dsp.chunks import pushed
from tests.dsp.noise import noise


def pascal(fs, seconds, level_db=70):
    """Noise for two listeners whose ears differ, with a pause in it."""
    x = noise(2, 2, int(fs * seconds)) * 20e-6 * 10 ** (level_db / 20)
    x[:, 1] *= 0.3
    x[..., x.shape[-1] // 3 : x.shape[-1] // 2] = 0
    return x


@pytest.mark.parametrize("samples", [0, 1, 5])
def test_delay(samples):
    check_stage(lambda: Delay(samples), noise(2, 3, 40), reference=lambda x: x, linear_phase=True)


@pytest.mark.parametrize("fs_in", [16000, 44100, 48000, 88200, 96000, 192000])
def test_resample(fs_in):
    stage = Resample(fs_in, 32000)
    x = noise(2, 1, max(9 * stage.block_size, 1800) + stage.block_size // 2)
    check_stage(lambda: Resample(fs_in, 32000), x, linear_phase=True)


def test_resample_upwards_to_the_sound_card():
    check_stage(lambda: Resample(32000, 48000), noise(2, 2000), linear_phase=True)


def convolved(taps, delay):
    def reference(x):
        padded = torch.nn.functional.pad(x, (taps.numel() - 1 - delay, delay))
        rows = padded.reshape(-1, 1, padded.shape[-1])
        return torch.nn.functional.conv1d(rows, taps.flip(0)[None, None]).view(x.shape)

    return reference


def test_ear_filter():
    for phase, late in (("linear", 2048), ("mixed", 352)):
        reference = convolved(torch.tensor(ear_taps(32000, "free", phase)), late)
        check_stage(lambda p=phase: EarFilter(phase=p), noise(2, 2, 3000), reference=reference)


def test_running_spectrum():
    check_stage(RunningSpectrum, noise(2, 2, 32 * 12 + 5))


@pytest.mark.parametrize("accuracy", ["exact", "coarse"])
def test_excitation(accuracy):
    x = noise(2, 2, 9, 960).square() * torch.logspace(6, 2, 960)
    check_stage(lambda: Excitation(accuracy), x)
    check_stage(lambda: Excitation(accuracy, uncertainty_db=1.5), x[:, :, 1:])


@pytest.mark.parametrize("frames_before", [0, 3])
def test_binaural_loudness(frames_before):
    x = noise(2, 2, 12, 150).square() * torch.logspace(-1, 6, 150)
    check_stage(lambda: BinauralLoudness("iso", frames_before, True, True), x)
    band = torch.stack([x / 2, x, x * 2], -4)
    check_stage(lambda: BinauralLoudness("iso", frames_before, True, True, band=True), band)


@pytest.mark.parametrize(
    ("fs", "options"),
    [
        (32000, {"specific_loudness": True, "excitation_db": True}),
        pytest.param(48000, {}, marks=pytest.mark.soak),
        pytest.param(48000, {"accuracy": "coarse", "field": "diffuse"}, marks=pytest.mark.soak),
        pytest.param(44100, {"constants": "author", "field": "eardrum"}, marks=pytest.mark.soak),
        pytest.param(96000, {"ear_filter": "linear"}, marks=pytest.mark.soak),
    ],
)
def test_moore2016(fs, options):
    eight_blocks_s = 0.09 if fs == 44100 else 0.05  # there it resamples in blocks of 10 ms
    check_stage(lambda: Moore2016(fs, **options), pascal(fs, eight_blocks_s))


def test_moore2016_that_resamples_in_blocks_of_ten_frames():
    stage = Moore2016(44100)
    assert (stage.block_size, stage.ratio * 441) == (441, 10)
    assert stage.latency * 1000 / 44100 == 44
    assert Moore2016(48000).latency == 44 * 48
    assert Moore2016(32000).latency == 42 * 32
    assert Moore2016(48000, ear_filter="linear").latency == 1584 + 64 * 48


def mix():
    return Parallel(early=Delay(0), late=Delay(3), latest=EarFilter(phase="linear"))


def test_parallel_brings_its_outputs_together():
    x = noise(2, 2, 2200)
    check_stage(mix, x)
    y = mix().double()(x)
    assert y.early.equal(y.late)
    assert y.early.equal(Delay(2048).double()(x))


def test_chain_with_a_parallel_at_its_end():
    check_stage(
        lambda: Chain(door=Delay(2), resample=Resample(48000, 32000), ears=mix()), noise(2, 1, 3300)
    )


CHUNKS = {
    "1": [1],
    "7": [7],
    "441": [441],
    "480": [480],
    "8193": [8193],
    "random": [31, 1024, 1, 480, 777, 64],
}


@pytest.mark.parametrize("fs", [44100, pytest.param(48000, marks=pytest.mark.soak)])
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-10), (torch.float32, 1e-5)])
def test_the_same_loudness_however_the_sound_is_cut(fs, dtype, tolerance):
    x = pascal(fs, 0.25)[:1].to(dtype)
    stage = Moore2016(fs).to(dtype)
    with torch.no_grad():
        whole = stage(x)
        for sizes in CHUNKS.values():
            pieces = pushed(Rebuffer(Stream(stage, (1, 2))), x, sizes)
            for name in ("stl", "ltl"):
                got = torch.cat([getattr(y, name) for y in pieces], -1)
                expected = getattr(whole, name)
                off = (got - expected[..., : got.shape[-1]]).abs().amax() / expected.amax()
                assert off <= tolerance
                assert got.shape[-1] == math.floor(x.shape[-1] / stage.block_size) * (
                    stage.block_size * stage.ratio
                )
