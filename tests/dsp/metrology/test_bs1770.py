"""Programme loudness against what EBU Tech 3341, Tech 3342 and ITU-R BS.1770-5 say it must read.

Tolerances of `synth_ebu` are those of the documents: 0.1 LU, 1 LU of the loudness range, +0.2 and
-0.4 dB of the true peak. The closer ones here are what independent calculations came to.
"""

import numpy as np
import pytest
import torch

from amt_stream import BS1770, Rebuffer, Stream, check_stage
from amt_stream.dsp.channel_layout import LAYOUTS, WEIGHTS, layout_named
from amt_stream.dsp.design import interpolator, k_weighting, sections_gain
from amt_stream.meters.accumulators import ProgrammeLoudness
from amt_stream.meters.accumulators.gating import lufs
from tests.data.synth_ebu import SIGNALS, sine
from tests.dsp.noise import noise


def frames(x, fs=48000, dtype=torch.float32, **options):
    """Energies (n,) and peaks (channel, n) of a sound (channel, time), in the usual layout."""
    layout = {} if "weights" in options else {"layout": len(x)}
    stage = BS1770(fs, **layout | options).to(dtype)
    with torch.no_grad():
        return [v.numpy() for v in stage(torch.from_numpy(x))]


def read(x, fs=48000, **options):
    """Readings of a whole sound; momentary and short-term loudness of each frame."""
    meter = ProgrammeLoudness()
    momentary, short_term = meter.update(*frames(x, fs, **options))
    return meter.reading(), momentary, short_term


def assert_reads(name, fs):
    signal = SIGNALS[name]
    reading, momentary, short_term = read(signal.render(fs), fs)
    for key, expected in signal.expected.items():
        if key == "short_term_after_3s":
            got = short_term[299:]
        elif key == "momentary_after_1s":
            got = momentary[99:]
        elif key.endswith("_of_20"):
            values = short_term if "short_term" in key else momentary
            got = np.fmax.reduce(values.reshape(20, -1), axis=1)
        else:
            got = reading[key]
        off = np.asarray(got) - expected
        assert off.min() >= -signal.tolerance[0] - 1e-9, (key, off.min())
        assert off.max() <= signal.tolerance[1] + 1e-9, (key, off.max())
        if key == "lra_lu":
            assert abs(off) <= 0.02
        elif key != "true_peak_dbtp":
            assert np.abs(off).max() <= 0.05, "further off than rounding to 0.1 LU hides"


PEAKS = [f"3341-{n}" for n in range(15, 24)]
QUICK = [
    *("3341-1", "3341-6", "3341-9", "3341-10.2", "3341-10.20", "3341-12"),
    *("3341-13.1", "3341-13.2", "3341-13.4", "3341-14", *PEAKS, "1770-997Hz-C"),
]


@pytest.mark.cases(8)
@pytest.mark.parametrize("name", QUICK)
def test_signals(name):
    assert_reads(name, 48000)


@pytest.mark.parametrize("name", ["3341-5", "3342-1", "3341-13.3", *PEAKS])
def test_signals_at_44100(name):
    assert_reads(name, 44100)


@pytest.mark.parametrize("name", ["3341-13.3", *PEAKS])
def test_signals_at_96000(name):
    assert_reads(name, 96000)


@pytest.mark.soak
@pytest.mark.parametrize("fs", [44100, 48000, 96000])
@pytest.mark.parametrize("name", SIGNALS)
def test_every_signal(name, fs):
    assert_reads(name, fs)


CALCULATED = [-6.021, -5.975, -6.314, -6.028, 3.030, -0.141, -0.250, -0.141, -0.152]


@pytest.mark.parametrize(("name", "expected"), [*zip(PEAKS, CALCULATED, strict=True)])
def test_true_peaks_as_calculated_independently(name, expected):
    reading, _, _ = read(SIGNALS[name].render(48000))
    assert reading["true_peak_dbtp"] == pytest.approx(expected, abs=6e-4)


def test_true_peak_is_above_that_of_samples():
    """A full-scale sine of fs / 4 at 45 degrees: true peak 0, sample peak -3.01 dB."""
    x = np.sin(np.pi / 2 * np.arange(48000) + np.pi / 4)
    reading, _, _ = read(np.stack([x, x]))
    assert reading["sample_peak_dbfs"] == pytest.approx(-3.0103, abs=1e-4)
    # Ringing at the onset reaches higher; the sound itself is the last frame's.
    assert 20 * np.log10(frames(x[None])[1][0, -1]) == pytest.approx(0, abs=0.1)


FRONT, SURROUNDS = -3.01, -1.52
"""Loudness of 997 Hz at 0 dBFS in one channel (ITU-R BS.1770-5, Annex 1), with 1 and with 1.41."""


@pytest.mark.parametrize(
    ("layout", "heard", "expected"),
    [
        ("mono", "M", FRONT),
        ("stereo", "L R", 0.0),
        ("quad", "Ls", SURROUNDS),
        ("5.0", "Ls", SURROUNDS),
        ("5.1", "Rs", SURROUNDS),
        ("L C R Ls Rs LFE", "C", FRONT),
        ("L C R Ls Rs LFE", "Rs", SURROUNDS),
        ("4.0", "Cs", FRONT),
        ("6.1", "Cs", FRONT),
        ("6.1", "Ls", SURROUNDS),
        ("7.1", "Lrs", FRONT),
        ("7.1", "Rss", SURROUNDS),
        ("5.1.4", "Ltr", FRONT),
        ("9.1.6", "Lw", SURROUNDS),
        ("9.1.6", "Rts", FRONT),
        ("22.2", "Lw", SURROUNDS),
        ("22.2", "L", FRONT),
        ("22.2", "Cbf", FRONT),
    ],
)
def test_a_full_scale_sine_in_some_channels(layout, heard, expected):
    positions = layout_named(layout).positions
    x = np.zeros((len(positions), 48000))
    x[[positions.index(one) for one in heard.split()]] = sine(0.0, 1, 48000, 997.0)
    assert read(x, layout=layout)[0]["integrated_lufs"] == pytest.approx(expected, abs=0.01)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_layout_in_any_order_reads_as_the_weighted_sum_of_its_channels(layout):
    """By position, with K-weighted energies of each channel measured on its own."""
    positions = LAYOUTS[layout].split()
    random = np.random.default_rng(7)
    x = random.normal(
        0, 10 ** (random.uniform(-40, -20, len(positions)) / 20), (9600, len(positions))
    ).T
    alone = np.stack([frames(one[None])[0] for one in x])
    weights = np.array([WEIGHTS[position] for position in positions])
    for order in (np.arange(len(positions)), random.permutation(len(positions))):
        shuffled = " ".join(positions[k] for k in order)
        energy = frames(x[order], layout=shuffled)[0]
        np.testing.assert_allclose(energy, weights @ alone, rtol=1e-5)


def test_what_counts_twice_and_what_does_not_count():
    x = sine(-20.0, 1, 48000)[None]
    once, twice = (read(x, dual_mono=dual)[0]["integrated_lufs"] for dual in (False, True))
    assert twice - once == pytest.approx(10 * np.log10(2), abs=1e-6)
    low_frequency_effects = np.zeros((6, 48000))
    low_frequency_effects[3] = x
    reading, _, _ = read(low_frequency_effects)
    assert reading["integrated_lufs"] is None
    assert reading["true_peak_dbtp"] == pytest.approx(-20, abs=0.2)


def test_a_channel_weight_of_ones_own():
    x = np.stack([sine(-20.0, 1, 48000)] * 2)
    given, _, _ = read(x, weights=(0.0, 1.41))
    assert given["integrated_lufs"] == pytest.approx(-20 - 3.01 + 1.49, abs=0.02)


COEFFICIENTS = {
    32000: "1.5111778996 -2.4648894134 1.0416332735 -1.5390450963 0.6269668560 "
    "-1.9850896690 0.9851453207",
    44100: "1.5308412301 -2.6509799952 1.1690790799 -1.6636551133 0.7125954281 "
    "-1.9891696736 0.9891990358",
    88200: "1.5575153756 -2.9056270799 1.3613339775 -1.8309199880 0.8441422611 "
    "-1.9945775155 0.9945848759",
    96000: "1.5597142290 -2.9267415783 1.3782612023 -1.8446094699 0.8558433229 "
    "-1.9950175447 0.9950237590",
    192000: "1.5722272151 -3.0472830516 1.4779713410 -1.9222022306 0.9251177351 "
    "-1.9975072228 0.9975087784",
}


@pytest.mark.parametrize("fs", COEFFICIENTS)
def test_k_weighting_at_other_rates(fs):
    """By two independent derivations from the Recommendation's analog sections."""
    shelf, high_pass = k_weighting(fs, match_48k=False)
    got = np.concatenate([np.delete(shelf, 3), high_pass[4:]])
    assert got == pytest.approx(np.array(COEFFICIENTS[fs].split(), float), abs=5.1e-11)
    assert high_pass[:4].tolist() == [1, -2, 1, 1]


def test_k_weighting_at_48000():
    """ITU-R BS.1770-5, Tables 1 and 2."""
    expected = [
        [
            1.53512485958697,
            -2.69169618940638,
            1.19839281085285,
            -1.69065929318241,
            0.73248077421585,
        ],
        [1.0, -2.0, 1.0, -1.99004745483398, 0.99007225036621],
    ]
    got = np.delete(k_weighting(48000), 3, axis=1)
    assert got == pytest.approx(np.array(expected), abs=1e-11)
    response = {20: -13.275, 31.5: -7.790, 50: -3.934, 100: -1.133, 500: 0.042, 997: 0.691}
    response |= {1000: 0.698, 2000: 3.071, 4000: 3.968, 10000: 4.042, 20000: 4.043}
    for f, level in response.items():
        got = 20 * np.log10(sections_gain(k_weighting(48000), f, 48000))
        assert got == pytest.approx(level, abs=6e-4), f


@pytest.mark.parametrize(
    ("fs", "drift", "rest"),
    [
        (32000, (0.013, 0.032), 0.0175),
        (44100, (0.003, 0.005), 0.003),
        (96000, (-0.028, -0.017), 0.011),
        (192000, (-0.040, -0.026), 0.013),
    ],
)
def test_the_gain_of_another_rate(fs, drift, rest):
    """Its difference to 48 kHz from 20 Hz to 20 kHz, in dB, as it is and matched at 1 kHz."""
    grid = np.geomspace(20, min(20000, 0.48 * fs), 300)

    def level(rate, matched):
        sections = k_weighting(rate, matched)
        return 20 * np.log10([sections_gain(sections, f, rate) for f in grid])

    plain, matched = level(fs, False) - level(48000, False), level(fs, True) - level(48000, True)
    assert plain.min() >= drift[0] - 6e-4
    assert plain.max() <= drift[1] + 6e-4
    assert np.abs(matched).max() <= rest + 6e-4


def test_the_interpolating_filter():
    """Its gains at 0 Hz and, over all phases, at some frequencies (ITU-R BS.1770-5, Annex 2)."""
    phases = interpolator()
    assert phases.shape == (4, 12)
    assert (phases == phases[::-1, ::-1]).all()
    assert phases[:2].sum(1) == pytest.approx([1.0016, 0.9730], abs=6e-5)
    for f, level in {997: -0.08, 5000: 0.08, 10000: -0.01, 15000: -0.08, 20000: -0.10}.items():
        gain = np.abs(phases @ np.exp(-2j * np.pi * f / 48000 * np.arange(12)))
        assert 20 * np.log10(gain.mean()) == pytest.approx(level, abs=0.011)


@pytest.mark.parametrize(
    ("fs", "low", "high"), [(48000, -0.32, 0.23), (96000, -0.32, 0.23), (192000, -0.01, 0.01)]
)
def test_the_peak_of_a_tone(fs, low, high):
    """Of any frequency up to 15 kHz, within what the documents say."""
    stage, n = BS1770(fs, 1), np.arange(fs // 10)
    for f in (*np.arange(500.37, 15000, 250.0), 8000.0):
        x = 0.5 * np.sin(2 * np.pi * f / fs * n + np.pi / 3)
        with torch.no_grad():
            peak = stage(torch.from_numpy(x[None]).float()).true_peak.max().item()
        assert low <= 20 * np.log10(peak / 0.5) <= high, f


def programme(fs, seconds, seed=0):
    """Speech-like noise in stereo whose level wanders over 40 dB."""
    random = np.random.default_rng(seed)
    level = np.interp(
        np.arange(int(fs * seconds)) / fs, np.arange(60) / 4, random.normal(-30, 10, 60)
    )
    return 10 ** (level / 20) * random.normal(0, 0.3, (2, level.size))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("sizes", [[441], [8193], [31, 1024, 7, 480, 777]])
def test_readings_do_not_depend_on_blocks(sizes, dtype):
    x = programme(44100, 4.5)
    meter, door = ProgrammeLoudness(), Rebuffer(Stream(BS1770(44100).to(dtype), (2,)))
    levels, at, turn = [], 0, 0
    with torch.no_grad():
        while at < x.shape[1]:
            y = door.push(torch.from_numpy(x[:, at : at + sizes[turn % len(sizes)]]).to(dtype))
            at, turn = at + sizes[turn % len(sizes)], turn + 1
            if y is not None:
                levels.append(meter.update(*(v.numpy() for v in y)))
    reading, *whole = read(x, 44100, dtype=dtype)
    assert meter.reading() == pytest.approx(reading, abs=1e-9)
    for got, expected in zip(zip(*levels, strict=True), whole, strict=True):
        assert np.concatenate(got) == pytest.approx(expected, abs=1e-9, nan_ok=True)


def test_polarity_changes_nothing():
    x = programme(48000, 1.0)
    for plus, minus in zip(frames(x), frames(-x), strict=True):
        assert (plus == minus).all()


def test_sampling_rates_agree():
    """The same tones at 44.1, 48 and 96 kHz, and at 22.05 kHz, whose frames differ in length."""

    def integrated(fs):
        tones = [(60, -25), (250, -20), (1000, -23), (4000, -30), (9000, -30)]
        x = sum(sine(level, 2, fs, f) for f, level in tones)
        return read(np.stack([x, x]), fs)[0]["integrated_lufs"]

    expected = integrated(48000)
    for fs in (44100, 96000):
        assert integrated(fs) == pytest.approx(expected, abs=0.01)
    assert integrated(22050) == pytest.approx(expected, abs=0.1)


def test_single_precision_costs_nothing():
    x = programme(48000, 4.0)
    reading, exact = (read(x, dtype=dtype)[0] for dtype in (torch.float32, torch.float64))
    assert reading == pytest.approx(exact, abs=2e-6)


@pytest.mark.parametrize("fs", [48000, 192000])
def test_an_offset_dies_away(fs):
    """In float32 it would leave -67.5 LUFS at 192 kHz, above the gate. Denormals end in zero."""
    energy = frames(np.full((2, 3 * fs), 0.5), fs)[0]
    assert lufs(energy[10]) < -70
    assert energy[150:].max() < 1e-24
    x = np.concatenate([np.full((1, fs), 0.5), np.zeros((1, fs))], axis=1)
    stage = BS1770(fs, 1)
    with torch.no_grad():
        _, state = stage.step(torch.from_numpy(x).float(), stage.initial_state((1,)))
    assert state["filters"].eq(0).all()


@pytest.mark.cases(2)
@pytest.mark.parametrize(
    ("fs", "options"),
    [
        (48000, {}),
        (11025, {"layout": "mono", "dual_mono": True}),
        (22050, {"weights": (1.0, 0.5), "match_48k": False}),
        *((48000, {"layout": layout}) for layout in ("2.1", "quad", "5.1", "L C R Ls Rs LFE")),
        *((44100, {"layout": layout}) for layout in ("6.1", "7.1", "5.1.4", "22.2")),
    ],
)
def test_contract(fs, options):
    stage = BS1770(fs, **options)
    x = 0.3 * noise(2, stage.channels, 8 * stage.block_size + 100)
    check_stage(lambda: BS1770(fs, **options), x)


def test_frames_of_rates_that_no_10_ms_divide():
    stage = BS1770(22050, 1)
    assert (stage.block_size, stage.ratio * 441, stage.lengths) == (441, 2, (220, 221))
    assert BS1770(11025, 1).lengths == (110, 110, 111, 110)
    assert BS1770(44100).lengths == (441,)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"fs": 4000}, "fs is 4000: give whole hertz, 8000 or more"),
        ({"fs": 44100.5}, "fs is 44100.5: give whole hertz"),
        ({"layout": 9}, "nobody says what the 9 channels are for: give their layout"),
        ({"layout": "5.2"}, "the layout '5.2' is unknown: give one of mono, stereo"),
        ({"layout": "L R X"}, "no position of a channel is called 'X'"),
        ({"layout": "L R L"}, "the position L is given twice"),
        ({"layout": "LFE"}, "LFE has the weight 0 .*: choose other channels, or give the layout M"),
        ({"layout": "stereo", "weights": (1.0, 1.0)}, "layout stereo and weights are given"),
        ({"weights": ()}, "give one for each channel"),
        ({"weights": (1.0, -1.0)}, "0 or more"),
        ({"dual_mono": True}, "dual_mono is for one channel, not 2"),
    ],
)
def test_what_is_refused(options, message):
    with pytest.raises(ValueError, match=message):
        BS1770(**options)


def test_sound_of_other_channels_is_refused():
    with pytest.raises(ValueError, match=r"takes 2 on axis -2, given 5 in shape \(5, time\)"):
        BS1770()(torch.zeros(5, 4800))
