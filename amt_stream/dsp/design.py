"""Filter design in float64 with numpy."""

import math
from fractions import Fraction

import numpy as np

GRID = 2**18
"""FFT size of filter design, large enough to avoid aliasing in time."""


def kaiser_low_pass(half: int, cutoff: float, attenuation_db: float) -> np.ndarray:
    """Taps (2 half + 1,) of a Kaiser-windowed sinc low-pass, -6 dB at `cutoff` cycles per sample.

    DC gain 1; `attenuation_db` of at least 50 sets the window (Kaiser & Schafer 1980).
    """
    beta = 0.1102 * (attenuation_db - 8.7)
    taps = np.sinc(2 * cutoff * np.arange(-half, half + 1)) * np.kaiser(2 * half + 1, beta)
    return taps / taps.sum()


def linear_phase(gain: np.ndarray, taps: int) -> np.ndarray:
    """Taps of a linear-phase filter with `gain` at GRID / 2 + 1 frequencies, 0 to fs / 2.

    The number of taps is odd; the impulse response is truncated without a taper. The delay is
    (taps - 1) / 2.
    """
    response = np.fft.irfft(gain, GRID)
    return np.roll(response, taps // 2)[:taps]


def minimum_phase(gain: np.ndarray, taps: int) -> np.ndarray:
    """Taps of the minimum-phase filter with `gain` > 0 at GRID / 2 + 1 frequencies, 0 to fs / 2.

    By the folded real cepstrum (Oppenheim & Schafer, Discrete-Time Signal Processing, homomorphic
    systems).
    """
    cepstrum = np.fft.irfft(np.log(gain), GRID)
    cepstrum[1 : GRID // 2] *= 2
    cepstrum[GRID // 2 + 1 :] = 0
    return np.fft.irfft(np.exp(np.fft.rfft(cepstrum)), GRID)[:taps]


SECTIONS = (16, 32, 64, 128, 256, 512)
"""Numbers of sections that `parallel_sections` tries; the first that suffices is used."""

SIDE_BY_SIDE_DB = 0.09
"""Largest error of their gain from 20 Hz to 0.9 fs / 2."""

LOWEST_POLE_HZ, HIGHEST_POLE = 8.0, 0.98
"""Lowest center in Hz, and highest as a fraction of fs / 2."""


def parallel_sections(
    hz: object, gain_db: object, fs: float, exact_hz: float = 1000.0
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Parallel second-order sections for a given gain with minimum phase: g, k and weights.

    For `functional.svf`: (section,), (section,) and (section, 3). The centers are log-spaced and
    the bands overlap by half, so that the weights follow from linear least squares (Bank 2008,
    fixed-pole parallel filters). No delay.

    hz, gain_db: points of rising frequency above 0, interpolated linearly over log frequency and
        held constant beyond the ends
    exact_hz: frequency at which the gain is exact

    Raises ValueError, naming the frequency, for a gain that changes too steeply.
    """
    hz, gain_db = np.asarray(hz, float), np.asarray(gain_db, float)
    f = np.fft.rfftfreq(GRID, 1 / fs)
    wanted_db = np.interp(np.log(np.maximum(f, hz[0] / 2)), np.log(hz), gain_db)
    response = np.fft.rfft(minimum_phase(10 ** (wanted_db / 20), GRID))
    fitted = _bins(3.0, 0.97 * fs / 2, 2000, fs)
    fitted = np.union1d(fitted, np.linspace(0, 0.995 * GRID / 2, 400).astype(int))
    judged = _bins(20.0, 0.9 * fs / 2, 6000, fs)
    for count in SECTIONS:
        centers = np.geomspace(LOWEST_POLE_HZ, HIGHEST_POLE * fs / 2, count)
        spacing = centers[1] / centers[0]
        damping = np.full(count, 2 * (spacing - 1 / spacing))
        weights = _fitted(f[fitted], response[fitted], centers, damping, fs)
        there = _side_by_side(np.array([exact_hz]), centers, damping, fs) @ weights
        weights *= 10 ** (np.interp(np.log(exact_hz), np.log(hz), gain_db) / 20) / np.abs(there)
        got = _side_by_side(f[judged], centers, damping, fs) @ weights
        off_db = np.abs(20 * np.log10(np.abs(got)) - wanted_db[judged])
        if off_db.max() <= SIDE_BY_SIDE_DB:
            through = np.where(np.arange(count), 0.0, weights[0])
            each = np.stack([through, weights[1 : count + 1], weights[count + 1 :]], -1)
            return np.tan(np.pi * centers / fs), damping, each
    worst = f[judged][off_db.argmax()]
    raise ValueError(
        f"the gain changes so steeply near {worst:.0f} Hz that a filter is off by "
        f"{off_db.max():.2f} dB there"
    )


def _bins(low: float, high: float, count: int, fs: float) -> np.ndarray:
    """Log-spaced bins of the grid."""
    return np.unique(np.round(np.geomspace(low, high, count) / fs * GRID).astype(int))


def _fitted(
    f: np.ndarray, response: np.ndarray, centers: np.ndarray, damping: np.ndarray, fs: float
) -> np.ndarray:
    """Weights of `_side_by_side` with the least relative error of the complex response."""
    table = _side_by_side(f, centers, damping, fs) / response[:, None]
    table = np.concatenate([table.real, table.imag])
    size = np.linalg.norm(table, axis=0)
    one = np.repeat([1.0, 0.0], len(f))
    weights: np.ndarray = np.linalg.lstsq(table / size, one, rcond=1e-10)[0] / size
    return weights


def _side_by_side(f: np.ndarray, centers: np.ndarray, damping: np.ndarray, fs: float) -> np.ndarray:
    """Responses at `f` of the summands: the input, all band-passes, then all low-passes."""
    s = 1j * np.tan(np.pi * f / fs)[:, None] / np.tan(np.pi * centers / fs)
    low = 1 / (s * s + damping * s + 1)
    return np.concatenate([np.ones((len(f), 1)), s * low, low], 1)


def nearly_linear_phase(gain: np.ndarray, fs: float, taps: int, late: int) -> np.ndarray:
    """Taps of a filter with `gain`, with phase as linear as a delay of `late` samples allows.

    The linear-phase response is truncated `late` samples before its center. High-frequency ringing
    at the cut would be audible, so the part just after the cut is raised by up to `EARLY_GAIN`. A
    minimum-phase filter then restores the gain (Oppenheim & Schafer, Discrete-Time Signal
    Processing, minimum-phase and all-pass decomposition).

    gain: above 0, at GRID / 2 + 1 frequencies, 0 to fs / 2
    """
    low, high = EARLY_HZ
    f = np.linspace(0, fs / 2, GRID // 2 + 1)
    above = np.clip(np.log(np.maximum(f, low) / low) / np.log(high / low), 0, 1)
    early = GRID // 2 - late
    response, ringing = (
        np.fft.fftshift(np.fft.irfft(g, GRID))[early:]
        for g in (gain, gain * np.sin(np.pi / 2 * above) ** 2)
    )
    rise = np.clip(np.linspace(1, 0, late, endpoint=False) - EARLY_PART, 0, None)
    response[:late] += EARLY_GAIN * (rise / (1 - EARLY_PART)) ** 2 * ringing[:late]
    cut = np.fft.rfft(response, GRID)
    restored = np.fft.rfft(minimum_phase(gain / np.abs(cut), GRID)) * cut
    return np.fft.irfft(restored, GRID)[:taps].copy()  # a view would hold the whole grid


EARLY_GAIN, EARLY_PART, EARLY_HZ = 1.0, 0.4, (500.0, 2000.0)
"""Gain added to the earliest part, its end as a fraction of the delay, and the frequencies between
which it fades in. Fitted so that bursts of 1 to 100 ms come closest to the linear-phase filter."""


def partitioned(h: np.ndarray, hop: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Tables of `functional.partitioned_fir` for an impulse response `h`.

    Partitions, forward and inverse transform. Spectra are sampled halfway between the bins of a
    DFT of 2 `hop` samples, so that all `hop` bins are complex (odd-frequency DFT).
    """
    count = -(-h.size // hop) + 1
    padded = np.zeros((count + 1) * hop)
    padded[hop : hop + h.size] = h
    n = np.arange(2 * hop)
    phase = np.pi * np.outer(n, 2 * np.arange(hop) + 1) / (2 * hop)
    to_spectrum = np.concatenate([np.cos(phase), -np.sin(phase)], 1)
    segments = np.lib.stride_tricks.sliding_window_view(padded, 2 * hop)[::hop]
    return segments @ to_spectrum, to_spectrum[:hop], to_spectrum[hop:].T / hop


def butterworth(order: int, cutoff: object, fs: float, btype: str = "low") -> np.ndarray:
    """Sections (section, 6) b0 b1 b2 1 a1 a2 of a Butterworth filter with passband gain 1.

    By the pre-warped bilinear transform of the analog low-pass.

    order: of the analog low-pass; "band" and "bandstop" have twice as many poles
    cutoff: -3 dB in Hz; for "band" and "bandstop" the lower and the upper edge
    btype: "low", "high", "band" or "bandstop"

    Raises ValueError for an unknown type, an order below 1 and cutoffs outside (0, fs / 2).
    """
    edges = np.atleast_1d(np.asarray(cutoff, dtype=float))
    needed = {"low": 1, "high": 1, "band": 2, "bandstop": 2}
    if btype not in needed:
        raise ValueError(f"btype is {btype!r}: give one of {', '.join(needed)}")
    if order != int(order) or order < 1:
        raise ValueError(f"the order of a Butterworth filter is {order}: give 1 or more")
    rising = np.diff(edges, prepend=0, append=fs / 2) > 0
    if edges.shape != (needed[btype],) or not rising.all():
        count = "one cutoff" if needed[btype] == 1 else "two rising cutoffs"
        raise ValueError(
            f"a {btype} Butterworth filter takes {count} between 0 and fs/2 = {fs / 2:g} Hz, "
            f"given {cutoff}"
        )
    # Normalized to 2 fs, so that z = (1 + s) / (1 - s).
    corner = np.tan(np.pi * edges / fs)
    width, middle = corner[-1] - corner[0], corner[0] * corner[-1]
    if btype in ("low", "high"):
        numerator = [1.0, 2.0, 1.0] if btype == "low" else [1.0, -2.0, 1.0]
        reference = 1.0 if btype == "low" else -1.0
    else:
        turn = (1 - middle) / (1 + middle)  # cosine of the center
        numerator = [1.0, 0.0, -1.0] if btype == "band" else [1.0, -2 * turn, 1.0]
        reference = np.exp(1j * np.arccos(turn)) if btype == "band" else 1.0
    sections = []
    for k in range((order + 1) // 2):
        pole = np.exp(1j * np.pi * (2 * k + 1 + order) / (2 * order))
        real = 2 * k + 1 == order
        if btype in ("low", "high"):
            poles = [corner[0] * pole if btype == "low" else corner[0] / pole]
        else:
            slope = width * (pole if btype == "band" else 1 / pole)
            poles = list(np.roots([1, -slope, middle]))
        if real and len(poles) == 1:
            z = ((1 + poles[0]) / (1 - poles[0])).real
            sections.append(([1.0, numerator[1] / 2, 0.0], [1.0, -z, 0.0]))
            continue
        # A real low-pass pole gives one pair, any other pairs with its conjugate.
        pairs = [tuple(poles)] if real else [(p, p.conjugate()) for p in poles]
        for s, t in pairs:
            z, w = (1 + s) / (1 - s), (1 + t) / (1 - t)
            sections.append((numerator, [1.0, -(z + w).real, (z * w).real]))
    powers = reference ** -np.arange(3.0)
    return np.array(
        [[*(b / np.abs((b @ powers) / (a @ powers))), *a] for b, a in np.array(sections)]
    )


def k_weighting(fs: float, match_48k: bool = True) -> np.ndarray:
    """Sections (2, 6) b0 b1 b2 1 a1 a2 of the K-weighting at `fs` Hz (ITU-R BS.1770-5, Annex 1).

    The analog shelf and high-pass behind the Recommendation's 48 kHz coefficients, by the bilinear
    transform at each rate. The high-pass is not normalized, so its gain depends on the rate (0.04
    dB at 192 kHz); `match_48k` scales the filter to the 48 kHz gain at 1 kHz.
    """
    sections = _k_weighting(fs)
    if match_48k:
        here, there = (sections_gain(_k_weighting(rate), 1000.0, rate) for rate in (fs, 48000.0))
        sections[1, :3] *= there / here
    return sections


def _k_weighting(fs: float) -> np.ndarray:
    top = 10 ** (3.999843853973347 / 20)
    shelf = _second_order(
        fs, 1681.974450955533, 0.7071752369554196, (top, top**0.4996667741545416, 1.0)
    )
    high_pass = _second_order(fs, 38.13547087602444, 0.5003270373238773, (1.0, 0.0, 0.0))
    high_pass[:3] = 1.0, -2.0, 1.0
    return np.stack([shelf, high_pass])


def _second_order(fs: float, f: float, q: float, gains: tuple[float, float, float]) -> np.ndarray:
    """Section (6,) with `gains` above, at and below `f` Hz, by the bilinear transform."""
    high, middle, low = gains
    k = np.tan(np.pi * f / fs)
    even, odd, below = high + low * k * k, middle * k / q, 1 + k / q + k * k
    b = even + odd, 2 * (low * k * k - high), even - odd
    return np.array([*b, below, 2 * (k * k - 1), 1 - k / q + k * k]) / below


def sections_gain(sections: np.ndarray, f: float, fs: float) -> float:
    """Gain of second-order sections (n, 6) in series at `f` Hz."""
    z = np.exp(-2j * np.pi * f / fs * np.arange(3))
    return float(np.abs(np.prod((sections[:, :3] @ z) / (sections[:, 3:] @ z))))


def interpolator(fs: float = 48000.0) -> np.ndarray:
    """Polyphase filter (4, 12) for 4x oversampling (ITU-R BS.1770-5, Annex 2).

    Output sample p is the sum over k of phases[p, k] x[n - k]; the four stand for the times
    n - 6 + 1/8, 3/8, 5/8 and 7/8. Flat within 0.24 dB up to 15 kHz at 48 kHz.

    The recommendation's table is for sound at 44.1 and 48 kHz, and serves up to 96 kHz. At 176.4
    kHz and above it would raise audible sound by up to 0.22 dB: there the filter is a sinc in a
    Kaiser window, flat within 0.005 dB up to fs / 4.
    """
    if fs >= FINE_FS:
        late = np.arange(12) - 6 + (2 * np.arange(4)[:, None] + 1) / 8
        phases = np.sinc(late) * np.i0(7 * np.sqrt(1 - (late / 6) ** 2))
        return np.asarray(phases / phases.sum(1, keepdims=True))
    outer = 14, 90, -161, 272, -487, 1125, 7964, -838, 390, -218, 122, -68
    inner = -239, 240, -424, 730, -1364, 3810, 6388, -1641, 832, -477, 271, -155
    return np.array([outer, inner, inner[::-1], outer[::-1]]) / 2**13


FINE_FS = 176_400
"""Sampling rate from which on peaks between samples are interpolated by a flatter filter."""


def numbers(values: object) -> np.ndarray:
    """Float64 copy of a number, list, array, or tensor of any device and dtype."""
    if hasattr(values, "detach"):
        values = values.detach().cpu().double().numpy()
    return np.array(values, dtype=np.float64)


def frame_lengths(fs: int, frame_rate: int) -> tuple[int, ...]:
    """Samples in each frame, over the shortest period after which frames end exactly on time.

    Frame k ends at the sample nearest to k / `frame_rate` seconds.
    """
    frames = frame_rate // math.gcd(fs, frame_rate)
    ends = [round(Fraction(k * fs, frame_rate)) for k in range(frames + 1)]
    return tuple(np.diff(ends).tolist())


BAND_ORDER = 4
"""Order of the low-pass prototype of a band filter, hence eight poles. Three would meet class 1 of
IEC 61260-1 except near fs / 2, where the bilinear transform flattens the lower skirt."""

OCTAVE = 10**0.3
"""Ratio of an octave in the base-10 system."""

NARROWED = math.sin(math.pi / (2 * BAND_ORDER)) / (math.pi / (2 * BAND_ORDER))
"""Width of a filter relative to its band, at -3 dB in log frequency: it then passes as much white
noise as an ideal filter."""

TOPMOST = 0.4999
"""Upper edge, relative to fs, of a filter whose band extends beyond fs / 2."""

LEAST_AT_EDGE = 10 ** (-5.3 / 20)
"""Gain just inside the edges of a band for class 1 of IEC 61260-1:2014, relative to its midband."""

FORGETS, RISES = 32.0 / 3, 20.0 / 3
"""Periods of the midband frequency until an octave filter's response to a sound 50 dB louder has
decayed, and until it has risen. For a fraction of an octave, divide by the fraction."""


def octave_band(f: float, fs: float, fraction: int = 1) -> np.ndarray:
    """Sections (4, 6) of the filter for an octave, or a fraction, around `f` Hz; gain 1 there.

    A Butterworth filter by the bilinear transform. A band that extends beyond fs / 2 is open at the
    top; one that ends so close to it that the transform makes the upper skirt too steep for class 1
    is not narrowed there.
    """
    half = OCTAVE ** (0.5 / fraction)
    lower, upper = f * half**-NARROWED, f * half**NARROWED
    if f * half >= fs / 2:
        return _band_filter(f, fs, f / half, TOPMOST * fs)
    sections = _band_filter(f, fs, lower, upper)
    if sections_gain(sections, f * half, fs) < LEAST_AT_EDGE:
        sections = _band_filter(f, fs, lower, f * half)
    return sections


def _band_filter(f: float, fs: float, lower: float, upper: float) -> np.ndarray:
    sections = butterworth(BAND_ORDER, (lower, upper), fs, "band")
    sections[:, :3] *= sections_gain(sections, f, fs) ** (-1 / BAND_ORDER)
    return sections


def octave_midbands(low_hz: float, high_hz: float, fraction: int = 1) -> np.ndarray:
    """Exact midband frequencies in Hz of octaves or fractions, from `low_hz` to `high_hz`.

    Base-10 system: 1 kHz times powers of 10^0.3 or 10^0.1 (IEC 61260-1:2014, 5.3), between those
    nearest to the given limits. Raises ValueError for limits that are not positive and ascending.
    """
    if not 0 < low_hz <= high_hz < np.inf:
        raise ValueError(
            f"bands from {low_hz} to {high_hz} Hz: give two ascending frequencies above 0"
        )
    tenths = 3 / fraction  # of a decade, from band to band
    first, last = (round(10 * math.log10(f / 1000) / tenths) for f in (low_hz, high_hz))
    return np.asarray(1000 * 10 ** (tenths * np.arange(first, last + 1) / 10))


NOMINAL = (1.0, 1.25, 1.6, 2.0, 2.5, 3.15, 4.0, 5.0, 6.3, 8.0)
"""Nominal midband frequencies of the third octaves of a decade (IEC 61260-1:2014, Annex E)."""


def nominal_midband(f: float) -> float:
    """Nominal frequency of the third octave or octave around `f` Hz, such as 31.5 for 31.62 Hz."""
    decades, place = divmod(round(10 * math.log10(f)), 10)
    return round(NOMINAL[place] * 10.0**decades, 6)


def band_name(nominal_hz: float) -> str:
    """A band in the name of a reading: `1000hz`, `31_5hz`."""
    return f"{nominal_hz:g}hz".replace(".", "_")
