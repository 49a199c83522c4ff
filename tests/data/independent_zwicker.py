"""Loudness by ISO 532-1:2017, written once more and plainly.

Band after band and sample after sample, with nothing of the package but its published tables. It
gives 83.2957 sone for signal 1 of Annex B, as printed, 4.29997 for signal 10 (printed 4.2998), and
the values of the self-test that nobody has printed. Slow.
"""

import math

import numba
import numpy as np
import scipy

from tests.data.independent_loudness import published_table


def loudness(level_db, field="free"):
    """Loudness in sone of 28 third-octave levels, 25 Hz to 12.5 kHz."""
    return _area(np.array([*_cores(level_db, field), 0.0]), *_table_of_slopes())


def over_time(pascal, field="free"):
    """Loudness (frame,) in sone, 500 a second, of `pascal` (time,) at 48 kHz."""
    levels = np.stack([_levels(pascal, band) for band in range(28)], 1)
    cores = _decayed(np.array([_cores(row, field) for row in levels.tolist()]))
    slopes = _table_of_slopes()
    total = np.array([_area(np.array([*row, 0.0]), *slopes) for row in cores])
    # At 48 kHz along straight lines, the first value by itself.
    fine = np.interp(np.arange(24 * (total.size - 1) + 1) / 24, np.arange(total.size), total)
    parts = []
    for tau in (0.0035, 0.07):
        keep = math.exp(-1 / (48000 * tau))
        parts.append(scipy.signal.lfilter([1 - keep], [1, -keep], fine)[::24])
    return (0.47 * parts[0] + 0.53 * parts[1])[::4]


def _levels(pascal, band):
    row = {name: column[band] for name, column in published_table("zwicker_filters").items()}
    sections = [
        [*b, 1, -2 - row[f"da1_{s}"], 1 - row[f"da2_{s}"]]
        for s, b in ((1, (1, 2, 1)), (2, (1, 0, -1)), (3, (1, -2, 1)))
    ]
    y = scipy.signal.sosfilt(sections, row["gain"] * pascal) ** 2
    keep = math.exp(-3 * min(1000 * 10 ** ((band - 16) / 10), 1000) / (2 * 48000))
    for _ in range(3):
        y = scipy.signal.lfilter([1 - keep], [1, -keep], y)
    return 10 * np.log10((y[::24] + 1e-12) / 4e-10)


def _decayed(cores):
    """The diode network, from its differential equations' solution over one sample."""
    short, long, var, dt = 0.005, 0.015, 0.075, 1 / 48000
    p, q = (var + long) / (var * short), 1 / (short * var)
    l1, l2 = -p / 2 + math.sqrt(p * p / 4 - q), -p / 2 - math.sqrt(p * p / 4 - q)
    e1, e2, d = math.exp(l1 * dt), math.exp(l2 * dt), var * (l1 - l2)
    b0, b3 = (e1 - e2) / d, (var * l1 + 1) * (var * l2 + 1) * (e1 - e2) / d
    b1 = ((var * l2 + 1) * e1 - (var * l1 + 1) * e2) / d
    b2 = ((var * l1 + 1) * e1 - (var * l2 + 1) * e2) / d
    b4, b5 = math.exp(-dt / long), math.exp(-dt / var)
    return np.stack([_of_band(band, b0, b1, b2, b3, b4, b5) for band in cores.T], 1)


@numba.njit(cache=True)
def _of_band(core, b0, b1, b2, b3, b4, b5):
    out = np.empty_like(core)
    o = u2 = 0.0
    last = core[0]
    for t, new in enumerate(core):
        for k in range(1 if t else 24, 25):
            u = new if k == 24 else last + k * (new - last) / 24
            if u < o:
                if o > u2:
                    o, u2 = max(o * b2 - u2 * b3, u), o * b0 - u2 * b1
                    u2 = min(u2, o)
                else:
                    o = u2 = max(o * b4, u)
            elif u - o < 1e-5 and u <= u2:
                o = u2 = u
            else:
                o, u2 = u, (u2 - u) * b5 + u
        out[t], last = o, new
    return out


def _cores(level_db, field):
    ranges, bands = published_table("zwicker_dll"), published_table("zwicker_bands")
    corrections = [column for name, column in ranges.items() if name != "rap_db"]
    corrected = list(level_db)
    for b, column in enumerate(corrections):
        r = 0
        while r < 7 and level_db[b] > ranges["rap_db"][r] - column[r]:
            r += 1
        corrected[b] += column[r]
    joined = [
        10 * math.log10(sum(10 ** (level / 10) for level in corrected[first:last]))
        for first, last in ((0, 6), (6, 9), (9, 11))
    ]
    cores = []
    for i, level in enumerate(joined + corrected[11:]):
        threshold = bands["ltq_db"][i]
        e = level - bands["a0_db"][i] + (bands["ddf_db"][i] if field == "diffuse" else 0)
        above = 10 ** ((e - bands["dcb_db"][i] - threshold) / 10)
        core = 0.0635 * 10 ** (0.025 * threshold) * ((0.75 + 0.25 * above) ** 0.25 - 1)
        cores.append(max(core, 0) if e > threshold else 0)
    cores[0] *= min(1, 0.4 + 0.32 * cores[0] ** 0.2)
    return cores


def _table_of_slopes():
    """Upper ends of the bands, lower ends of the ranges, and slopes (band, range)."""
    rows = published_table("zwicker_slopes")
    limits = np.array([*published_table("zwicker_bands")["zup_bark"], 24.0])
    slopes = [rows[f"usl_{min(max(i, 1), 8)}"] for i in range(limits.size)]
    return limits, np.array(rows["rns"]), np.array(slopes)


@numba.njit(cache=True)
def _area(cores, limits, floors, slopes):
    total = 0.0
    for z, to, n, end in _lines(cores, limits, floors, slopes):
        total += (n + end) / 2 * (to - z)
    return total


@numba.njit(cache=True)
def _lines(cores, limits, floors, slopes):
    """Straight lines of specific loudness: from one critical-band rate to another, so high."""
    z = n = 0.0
    for i in range(cores.size):
        core, limit = cores[i], limits[i] + 0.0001
        while z < limit:
            if n <= core:
                yield z, limit, core, core
                z, n = limit, core
                continue
            # The range in which the specific loudness lies, its lower limit not included.
            j = 0
            while j < 17 and floors[j] >= n:
                j += 1
            low = max(floors[j], core)
            to = min(z + (n - low) / slopes[i, j], limit)
            end = low if to < limit else max(n - (limit - z) * slopes[i, j], low)
            yield z, to, n, end
            z, n = to, end


def sharpness(level_db):
    """Sharpness in acum of 28 third-octave levels, by weighting: din, aures and bismarck."""
    cores = np.array([*_cores(level_db, "free"), 0.0])
    lines = list(_lines(cores, *_table_of_slopes()))
    total = sum((n + end) / 2 * (to - z) for z, to, n, end in lines)
    moments = dict.fromkeys(("din", "aures", "bismarck"), 0.0)
    for k in range(1, 241):
        z = k / 10
        start, stop, first, last = next(line for line in lines if line[0] < z <= line[1])
        n = first + (last - first) * (z - start) / (stop - start)
        moments["din"] += n * z * (1 if z <= 15.8 else 0.15 * math.exp(0.42 * (z - 15.8)) + 0.85)
        moments["bismarck"] += n * z * (1 if z <= 15 else 0.2 * math.exp(0.308 * (z - 15)) + 0.8)
        moments["aures"] += n * 0.078 * math.exp(0.171 * z)
    found = {weighting: 0.1115 * moment / 10 / total for weighting, moment in moments.items()}
    # By loudness over a logarithm, and not alone.
    found["aures"] *= total / math.log(0.05 * total + 1)
    return found
