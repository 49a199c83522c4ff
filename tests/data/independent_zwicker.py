"""Stationary loudness by ISO 532-1:2017 from third-octave levels, written once more and plainly.

Band after band in floats, with nothing of the package but its published tables. It gives 83.2957
sone for signal 1 of Annex B.2, as printed, and the values of the self-test that nobody has printed.
"""

import math

from tests.data.independent_loudness import published_table


def loudness(level_db, field="free"):
    """Loudness in sone of 28 third-octave levels, 25 Hz to 12.5 kHz."""
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
    return _area([*cores, 0.0], [*bands["zup_bark"], 24.0])


def _area(cores, limits):
    rows = published_table("zwicker_slopes")
    floors = rows["rns"]
    area = z = n = 0.0
    for i, (core, limit) in enumerate(zip(cores, limits, strict=True)):
        limit += 0.0001
        slopes = rows[f"usl_{min(max(i, 1), 8)}"]
        while z < limit:
            if n <= core:
                area += core * (limit - z)
                z, n = limit, core
                continue
            # The range in which the specific loudness lies, its lower limit not included.
            j = next((k for k, floor in enumerate(floors) if floor < n), 17)
            low = max(floors[j], core)
            to = min(z + (n - low) / slopes[j], limit)
            end = low if to < limit else max(n - (limit - z) * slopes[j], low)
            area += (n + end) / 2 * (to - z)
            z, n = to, end
    return area
