"""Turns the recipe of a test case into sound: `render(recipe, fs)` gives pascal (samples, 2).

Keys of a component
  level_db_spl  RMS level re 20 uPa of its steady part, ramps and silence left out
  ramp          seconds, raised cosine at both ends
  start         seconds of silence before it; the whole lasts recipe["duration"]
  on, off       gauss_tone only: -3 dB points in seconds, sigma of the Gaussian edges; no ramp
  ear           "both" (diotic), "left" or "right"
"""

import numpy as np

P0 = 2e-5


def _ramps(n, ramp, fs):
    w = np.ones(n)
    r = round(ramp * fs)
    if r:
        h = np.sin(0.5 * np.pi * (np.arange(r) + 0.5) / r) ** 2
        w[:r] *= h
        w[n - r :] *= h[::-1]
    return w


def _component(c, fs):
    n = round(c["duration"] * fs)
    t = np.arange(n) / fs
    kind = c["kind"]
    if kind == "tone":
        x = np.sqrt(2) * np.sin(2 * np.pi * c["frequency"] * t + c.get("phase", 0.0))
    elif kind == "am_tone":  # sinusoidal AM, RMS of the modulated tone = level, starts at a trough
        x = (1 - c["depth"] * np.cos(2 * np.pi * c["rate"] * t)) * np.sin(
            2 * np.pi * c["frequency"] * t
        )
        x /= np.sqrt(0.5 * (1 + c["depth"] ** 2 / 2))
    elif kind == "fm_tone":  # its frequency moves by the deviation, sinusoidally, upwards first
        swing = c["deviation"] / c["rate"] * np.cos(2 * np.pi * c["rate"] * t)
        x = np.sqrt(2) * np.sin(2 * np.pi * c["frequency"] * t - swing)
    elif (
        kind == "level_ramp_tone"
    ):  # level moves linearly in dB from level_db_spl to level_end_db_spl
        x = np.sqrt(2) * np.sin(2 * np.pi * c["frequency"] * t)
        x *= 10 ** ((c["level_end_db_spl"] - c["level_db_spl"]) * t / c["duration"] / 20)
    elif kind == "noise":  # Gaussian, brick-wall band, slope in dB/octave; level = overall RMS
        rng = np.random.Generator(np.random.PCG64(c["seed"]))
        # spectrum drawn per 1-Hz-rounded bin so that the band content does not depend on fs
        f = np.fft.rfftfreq(n, 1 / fs)
        z = np.zeros(len(f), complex)
        sel = np.flatnonzero((f >= c["low"]) & (f <= c["high"]))
        ph = rng.standard_normal((len(sel), 2))
        z[sel] = (ph[:, 0] + 1j * ph[:, 1]) * 10 ** (
            c.get("slope", 0.0) * np.log2(f[sel] / 1000.0) / 20
        )
        x = np.fft.irfft(z, n)
        x /= np.sqrt(np.mean(x**2))
    elif kind == "am_noise":  # noise with sinusoidal AM, starts at a trough
        x = _component({**c, "kind": "noise", "level_db_spl": 0.0, "ramp": 0.0}, fs)
        x = x * (1 - c["depth"] * np.cos(2 * np.pi * c["rate"] * t))
        x /= np.sqrt(np.mean(x**2))
    elif (
        kind == "gauss_tone"
    ):  # cosine with Gaussian edges; "on"/"off" are the -3 dB points in seconds
        r = c["sigma"] * np.sqrt(np.log(2))
        t0, t1 = c["on"] + r, c["off"] - r
        env = np.exp(-(np.maximum(np.maximum(t0 - t, t - t1), 0) ** 2) / (2 * c["sigma"] ** 2))
        return (
            P0
            * 10 ** (c["level_db_spl"] / 20)
            * np.sqrt(2)
            * env
            * np.cos(2 * np.pi * c["frequency"] * t)
        )
    elif kind == "click":  # one rectangular pulse, peak pressure in Pa
        return np.where(t < c["width"], c["peak_pa"], 0.0)
    else:
        raise ValueError(kind)
    return P0 * 10 ** (c["level_db_spl"] / 20) * x * _ramps(n, c.get("ramp", 0.0), fs)


def render(recipe, fs=32000):
    n = round(recipe["duration"] * fs)
    out = np.zeros((n, 2))
    for c in recipe["components"]:
        x = _component(c, fs)
        k = round(c.get("start", 0.0) * fs)
        m = min(len(x), n - k)
        if c.get("ear", "both") in ("both", "left"):
            out[k : k + m, 0] += x[:m]
        if c.get("ear", "both") in ("both", "right"):
            out[k : k + m, 1] += x[:m]
    return out
