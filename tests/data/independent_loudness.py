"""Loudness after Moore et al. (2016) and Glasberg & Moore (2002), written once more and plainly.

FFTs instead of folded tables, every filter against every component, one recursion per frame, all in
float64: nothing of the package but its published tables. It reproduces `tvl_cases.json`, and it
gives the values of the self-test that nobody has printed. Slow.
"""

from functools import cache
from pathlib import Path

import numpy as np

TABLES = Path(__file__).parents[2] / "amt_stream" / "dsp" / "data"
FS, POINTS, HOP = 32000, 2048, 32
# Of each window: samples, first and last bin.
WINDOWS = (
    (2048, 1, 4),
    (1024, 5, 31),
    (512, 32, 79),
    (256, 80, 161),
    (128, 162, 258),
    (64, 259, 960),
)
F = np.arange(1, 961) * FS / POINTS
FC = (10 ** ((1.75 + 0.25 * np.arange(150)) / 21.366) - 1) / 0.004368


@cache
def published_table(name):
    """Columns of a table, float64."""
    lines = [s for s in (TABLES / f"{name}.csv").read_text().splitlines() if s[0] != "#"]
    return dict(
        zip(
            lines[0].split(","),
            np.array([s.split(",") for s in lines[1:]], float).T,
            strict=True,
        )
    )


def _erb(f):
    return 24.673 * (0.004368 * f + 1)


def ear_filtered(u, field, taps=4097):
    """`u` (time,) through a linear-phase ear filter, its delay taken out."""
    rows = published_table("moore_ear_transfer")
    n = 2**17
    gain_db = rows["middle_ear_db"] + (0 if field == "eardrum" else rows[f"{field}_field_db"])
    gain = 10 ** (np.interp(np.linspace(0, FS / 2, n // 2 + 1), rows["freq_hz"], gain_db) / 20)
    h = np.roll(np.fft.irfft(gain), taps // 2)[:taps]
    size = u.size + taps - 1
    y = np.fft.irfft(np.fft.rfft(u, size) * np.fft.rfft(h, size), size)
    # What rings before the first sample stays in the history of the first frames.
    return y[: taps // 2], y[taps // 2 : taps // 2 + u.size]


def intensities(pascal, field, cal_db):
    """(frame, 960) re 0 dB SPL, for frames at 0, 1, 2 ... ms."""
    before, y = ear_filtered(pascal / (np.sqrt(2) * 20e-6), field)
    x = np.concatenate([before[-1024:], y, np.zeros(1024)])
    frames = y.size // HOP + 1
    out = np.zeros((frames, 960))
    segments = np.lib.stride_tricks.sliding_window_view(x, POINTS)[::HOP][:frames]
    for i, (length, first, last) in enumerate(WINDOWS):
        w = np.zeros(POINTS)
        start = (POINTS - length) // 2
        w[start : start + length] = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(length) / (length - 1))
        power = np.abs(np.fft.rfft(segments * w)[:, first : last + 1]) ** 2
        out[:, first - 1 : last] = (2 / POINTS) ** 2 * power * 2**i * 10 ** (cal_db / 10)
    return out


def _rounded(z):
    return (1 + z) * np.exp(-z)


@cache
def _weights():
    """What depends on no sound: of each component (960,) around each, and for each channel (150,).

    Gives the filters around components, and by channel p, the distance of each component re the
    center, whether it lies below, and the filter above.
    """
    g = (F[None, :] - F[:, None]) / F[:, None]
    around = np.where(g <= 4, _rounded((4 * F / _erb(F))[:, None] * np.abs(g)), 0)
    p = (4 * FC / _erb(FC))[:, None]
    g = (F[None, :] - FC[:, None]) / FC[:, None]
    return around, p, np.abs(g), g < 0, np.where(g <= 4, _rounded(p * np.abs(g)), 0)


def excitations(kept):
    """Excitations (frame, 150) of the components `kept` (frame, 960) of F."""
    around, p, distance, below, above = _weights()
    levels = kept @ around.T
    out = np.zeros((len(kept), 150))
    for frame in np.flatnonzero(kept.any(1)):
        j = np.flatnonzero(kept[frame])
        level = 10 * np.log10(levels[frame, j])
        low = np.maximum(p - 0.35 * p / (4000 / _erb(1000.0)) * (level - 51), 0.1)
        weights, under = above.take(j, 1), below.take(j, 1)
        weights[under] = _rounded(low[under] * distance.take(j, 1)[under])
        out[frame] = weights @ kept[frame, j]
    return out


# Column of the threshold, its value from 500 Hz, and C, by the name of the constants.
EDITIONS = {
    "iso": ("iso532_3_db", 3.63, 0.063),
    "author": ("iso532_3_db", 3.63, 0.0631),
    "ansi": ("ansi_s34_2007_db", 3.73, 0.046871),
}


def specific(e, edition):
    """Specific loudness (150,) of the excitation `e` (150,)."""
    column, top, c = EDITIONS[edition]
    rows = published_table("moore_threshold")
    level = np.interp(FC, rows["freq_hz"], rows[column])
    g_db = top - level
    rows = published_table("moore_alpha")
    alpha = np.interp(g_db, rows["g_db"], rows["alpha"])
    if edition == "iso":
        rows = published_table("moore_a_iso")
        a = np.where(g_db == 0, 4.614, np.interp(g_db, rows["g_db"], rows["iso532_3_a"]))
    else:
        rows = published_table("moore_a_ansi")
        a = np.interp(g_db, rows["g_db"], rows["a"])
    threshold = 10 ** (level / 10)
    n = c * ((10 ** (g_db / 10) * e + a) ** alpha - a**alpha)
    n = np.where(e <= threshold, n * (2 * e / (e + threshold)) ** 1.5, n)
    return np.where(e >= 1e10, c * (e / 1.0707) ** 0.2, n)


def kept(i, highest):
    """What is above -60 dB re the highest (frame,) of its frame, and above -30 dB SPL."""
    return np.where(i > np.maximum(highest, 1000)[:, None] / 1e6, i, 0)


def inhibited(left, right):
    d = np.arange(-72, 73)
    kernel = np.exp(-((0.08 * 0.25 * d) ** 2))
    kernel /= kernel.sum()
    q = [np.convolve(s, kernel)[72:-72] + 1e-13 for s in (left, right)]
    gains = []
    for own, other in ((q[0], q[1]), (q[1], q[0])):
        falling = np.exp(-other / own)
        gains.append((1 + (2 * falling / (1 + falling**2)) ** 1.5978) / 2)
    return 0.25 * (gains[0] * left).sum(), 0.25 * (gains[1] * right).sum()


def moore2016(pascal, field="free", constants="iso"):
    """Short-term and long-term loudness of the ears (frame, 2) in sone of `pascal` (2, time)."""
    of_ears = [intensities(x, field, 3.32) for x in pascal]
    highest = np.maximum(*(i.max(1) for i in of_ears))
    left, right = (excitations(kept(i, highest)) for i in of_ears)
    short, long = np.zeros((2, 150)), np.zeros(2)
    stl, ltl = [], []
    for frame in zip(left, right, strict=True):
        for ear, e in enumerate(frame):
            n = specific(e, constants)
            short[ear] += np.where(n > short[ear], 0.045, 0.033) * (n - short[ear])
        ears = np.array(inhibited(*short))
        long = long + np.where(ears > long, 0.01, 0.00133) * (ears - long)
        stl.append(ears)
        ltl.append(long)
    return np.array(stl), np.array(ltl)


def glasberg2002(pascal, field="free", release=0.0005):
    """Loudness of both ears (frame,) of `pascal` (time,) that both hear."""
    short = long = 0.0
    stl, ltl = [], []
    i = intensities(pascal, field, 3.41)
    for e in excitations(kept(i, i.max(1))):
        n = 0.5 * specific(e, "ansi").sum()
        short += (0.045 if n > short else 0.02) * (n - short)
        long += (0.01 if short > long else release) * (short - long)
        stl.append(short)
        ltl.append(long)
    return np.array(stl), np.array(ltl)
