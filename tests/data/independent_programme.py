"""Programme loudness by ITU-R BS.1770-5 and EBU Tech 3342, written once more and plainly.

Whole files at 48 kHz, K-weighted by the coefficients that the Recommendation prints, every block
kept and gated exactly. It gives the values of the self-test that nobody has printed.
"""

import numpy as np
import scipy

FS = 48000
SHELF = (
    (1.53512485958697, -2.69169618940638, 1.19839281085285),
    (1.0, -1.69065929318241, 0.73248077421585),
)
HIGH_PASS = ((1.0, -2.0, 1.0), (1.0, -1.99004745483398, 0.99007225036621))
OUTER = np.array([14, 90, -161, 272, -487, 1125, 7964, -838, 390, -218, 122, -68]) / 8192
INNER = np.array([-239, 240, -424, 730, -1364, 3810, 6388, -1641, 832, -477, 271, -155]) / 8192
"""Phases of the interpolator that BS.1770-5 prints in Annex 2: 1/8 and 3/8 behind a sample."""


def gain_db(f):
    """Gain of the K-weighting in dB at `f` Hz."""
    z = np.exp(-2j * np.pi * f / FS) ** np.arange(3)
    return 20 * np.log10(
        np.prod([np.abs((np.array(b) @ z) / (np.array(a) @ z)) for b, a in (SHELF, HIGH_PASS)])
    )


def lufs(energy):
    return -0.691 + 10 * np.log10(energy)


def energies(x):
    """Energy (n,) of each 10 ms of `x` (channel, time), all weights 1; silence is next to none."""
    y = scipy.signal.lfilter(*HIGH_PASS, scipy.signal.lfilter(*SHELF, x))
    return (y.reshape(len(x), -1, FS // 100) ** 2).mean(-1).sum(0) + 1e-30


def blocks(x, frames):
    """Energies over so many frames, every 100 ms."""
    each = np.convolve(energies(x), np.full(frames, 1 / frames), "valid")
    return each[-frames % 10 :: 10]


def integrated(x):
    """Integrated loudness in LUFS of `x` (channel, time)."""
    e = blocks(x, 40)
    e = e[lufs(e) > -70]
    return lufs(e[lufs(e) > lufs(e.mean()) - 10].mean())


def loudness_range(x):
    """Loudness range in LU of `x` (channel, time)."""
    e = blocks(x, 300)
    e = e[lufs(e) > -70]
    kept = np.sort(lufs(e[lufs(e) > lufs(e.mean()) - 20]))
    low, high = (kept[int((kept.size - 1) * p + 0.5)] for p in (0.10, 0.95))
    return high - low


def true_peak_db(x):
    """True peak of `x` (channel, time), from its first sample to its last, re full scale."""
    highest = np.abs(x).max()
    for phase in (OUTER, INNER, INNER[::-1], OUTER[::-1]):
        between = scipy.signal.convolve(x, phase[None])[:, 6 : x.shape[1] + 5]
        highest = max(highest, np.abs(between).max())
    return 20 * np.log10(highest)


def readings(x):
    """All that a meter would read of `x` (channel, time) at its end, by the names it has there."""
    last, highest = {}, {}
    for name, frames in (("momentary", 40), ("short_term", 300)):
        each = np.convolve(energies(x), np.full(frames, 1 / frames), "valid")
        last[f"{name}_lufs"], highest[f"max_{name}_lufs"] = lufs(each[-1]), lufs(each.max())
    return {
        "integrated_lufs": integrated(x),
        "lra_lu": loudness_range(x) if blocks(x, 300).size > 1 else None,
        **last,
        **highest,
    }
