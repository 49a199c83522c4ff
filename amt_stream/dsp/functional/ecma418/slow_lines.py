"""Slow modulation of envelopes as a few lines (ECMA-418-2:2025, 9.1.3 to 9.1.9).

A few lines are fitted to the spectrum of a block of each band's envelope, of which an analysis
window leaves out silence. With the phases of the spectrum counted from the middle of the window,
those of a cosine there are real and those of a sine imaginary: the two are fitted apart.
"""

import numpy as np

from amt_stream.dsp.functional.compiler.dispatch import Array, kernel
from amt_stream.dsp.functional.ecma418.bands import CENTERS

SIZE = 2048
"""Values of an envelope in a block."""

RATE = 1500.0
LINE = RATE / SIZE
"""Spacing of the modulation spectrum in Hz."""

LINES = 49
"""Lines of the modulation spectrum that fits may use."""

SEARCH = 0.25 * 2 ** ((np.arange(1, 17) - 2) / 3)
"""Rates in Hz at which a single line is fitted, in search of slow modulation."""

NEAR = 1.25 * LINE
"""Distance in Hz below which two rates are one."""

DX, CAP, TOLERANCE, STEPS = 1e-5, 2e-4, 1e-7, 40
"""Of fine tuning: difference, largest change, smallest step in values of 1/1500 s, and steps."""

LOWEST = 0.125
"""Slowest rate in Hz."""

SERIES, HARMONICS = 3, 5
"""Orders that the strongest line may have, and those of the others."""

BEST = 4.8659
"""Rate in Hz of the highest sensitivity."""

LOW_SLOPE, LOW_POWER = 0.33048, 0.85902
HIGH_SLOPE, HIGH_POWER = 0.21792, 4.6728
"""Of the weights of rates below and above it."""

SMALL = 1e-12
"""Share of a basis below which rounding alone is left of it."""


def high_rate_gains() -> np.ndarray:
    """Sensitivity to rates above `BEST` by band (53,) (ECMA-418-2:2025, 9.1.6)."""
    return 1 / (1 + 0.092623 * np.abs(np.log2(CENTERS / 1000)) ** 1.24)


@kernel
def all_lines(lines: Array, windows: Array, gains: Array, search: Array, power: Array) -> None:
    """Fill weighted and mean powers (band, 2) from spectra (band, 49, 2): 0 for none."""
    fits = np.empty((5, LINES))
    turn = np.empty((5, LINES))
    for k in range(LINES):
        turn[0, k], turn[1, k] = np.sin(np.pi * k / SIZE), np.cos(np.pi * k / SIZE)
    for band in range(len(lines)):
        first, last = windows[band]
        power[band] = 0.0
        if first == -2:
            power[band] = np.nan
        elif first >= 0:
            _turned(lines[band], first, last, turn, fits)
            _one_band(lines[band], last - first + 1, gains[band], search, turn, fits, power[band])


@kernel
def _turned(lines: Array, first: int, last: int, turn: Array, fits: Array) -> None:
    """Turn phases to the middle of a window: real and imaginary parts, and the window's own.

    turn: sines and cosines of the lines, to which those of the window's length are added
    fits: real part, imaginary part, spectrum of the window, and sums over lines that fits need
    """
    length = last - first + 1
    for k in range(LINES):
        angle = np.pi * ((first + last) * k % (2 * SIZE)) / SIZE
        c, s = np.cos(angle), np.sin(angle)
        fits[0, k] = lines[k, 0] * c - lines[k, 1] * s
        fits[1, k] = lines[k, 0] * s + lines[k, 1] * c
        angle = np.pi * (length * k % (2 * SIZE)) / SIZE
        turn[2, k], turn[3, k] = np.sin(angle), np.cos(angle)
        fits[2, k] = turn[2, k] / turn[0, k] if k else length


@kernel
def _lines_used(f: float) -> int:
    return int(min(max(np.floor(f / LINE + 0.5) + 8, 17), LINES))


@kernel
def _one_fit(
    f: float, count: int, length: int, turn: Array, fits: Array
) -> tuple[float, float, float]:
    """The fit of a constant and one line at a rate: constant, power and error."""
    theta = np.pi * f / RATE
    s1, c1 = np.sin(theta), np.cos(theta)
    s2, c2 = np.sin(length * theta), np.cos(length * theta)
    zero_zero = zero_even = even_even = odd_odd = 0.0
    of_zero = of_even = of_odd = total = 0.0
    for k in range(count):
        low = turn[0, k] * c1 - turn[1, k] * s1
        up = (turn[2, k] * c2 - turn[3, k] * s2) / low if abs(low) >= 1e-8 else length
        low = turn[0, k] * c1 + turn[1, k] * s1
        down = (turn[2, k] * c2 + turn[3, k] * s2) / low if abs(low) >= 1e-8 else length
        even, odd, zero = up + down, up - down, fits[2, k]
        zero_zero += zero * zero
        zero_even += zero * even
        even_even += even * even
        odd_odd += odd * odd
        of_zero += zero * fits[0, k]
        of_even += even * fits[0, k]
        of_odd += odd * fits[1, k]
        total += fits[0, k] * fits[0, k] + fits[1, k] * fits[1, k]
    share = zero_even / zero_zero
    rest, left = even_even - share * zero_even, of_even - share * of_zero
    a = left / rest if rest > SMALL * even_even else 0.0
    b = of_odd / odd_odd if odd_odd > SMALL * zero_zero else 0.0
    error = total - of_zero * of_zero / zero_zero - a * left - b * of_odd
    return of_zero / zero_zero - share * a, a * a + b * b, error


@kernel
def _together_fit(f: Array, length: int, turn: Array, fits: Array, size: Array) -> float:
    """The fit of a constant and the lines `f` together: fills their powers, gives the error."""
    number = f.size
    count = _lines_used(f.max())
    even, odd = np.empty((number + 1, count)), np.empty((number, count))
    for k in range(count):
        even[0, k] = fits[2, k]
    error = 0.0
    for k in range(count):
        error += fits[0, k] * fits[0, k] + fits[1, k] * fits[1, k]
    for i in range(number):
        theta = np.pi * f[i] / RATE
        s1, c1 = np.sin(theta), np.cos(theta)
        s2, c2 = np.sin(length * theta), np.cos(length * theta)
        for k in range(count):
            low = turn[0, k] * c1 - turn[1, k] * s1
            up = (turn[2, k] * c2 - turn[3, k] * s2) / low if abs(low) >= 1e-8 else length
            low = turn[0, k] * c1 + turn[1, k] * s1
            down = (turn[2, k] * c2 + turn[3, k] * s2) / low if abs(low) >= 1e-8 else length
            even[i + 1, k], odd[i, k] = up + down, up - down
    a, b = _least_squares(even, fits[0]), _least_squares(odd, fits[1])
    for i in range(number + 1):
        error -= a[0, i] * a[1, i]
    for i in range(number):
        error -= b[0, i] * b[1, i]
        size[i] = a[0, i + 1] ** 2 + b[0, i] ** 2
    return error


@kernel
def _least_squares(basis: Array, y: Array) -> Array:
    """Coefficients of the rows of `basis` that fit `y` best, and the products of both."""
    number, count = basis.shape
    gram, out = np.empty((number, number)), np.empty((2, number))
    for i in range(number):
        for j in range(i + 1):
            total = 0.0
            for k in range(count):
                total += basis[i, k] * basis[j, k]
            gram[i, j] = total
        total = 0.0
        for k in range(count):
            total += basis[i, k] * y[k]
        out[0, i] = out[1, i] = total
    # Cholesky's factors take the place of the products.
    for i in range(number):
        for j in range(i + 1):
            total = gram[i, j]
            for k in range(j):
                total -= gram[i, k] * gram[j, k]
            gram[i, j] = np.sqrt(total) if i == j else total / gram[j, j]
    x = out[0]
    for i in range(number):
        for k in range(i):
            x[i] -= gram[i, k] * x[k]
        x[i] /= gram[i, i]
    for i in range(number - 1, -1, -1):
        for k in range(i + 1, number):
            x[i] -= gram[k, i] * x[k]
        x[i] /= gram[i, i]
    return out


@kernel
def _weight_of(f: float, gain: float) -> float:
    """Sensitivity to a rate, where that to high ones is `gain`."""
    ratio = max(f, 1e-3) / BEST
    square = (ratio - 1 / ratio) ** 2
    if f <= BEST:
        return (1 + LOW_SLOPE**2 * square) ** -LOW_POWER
    return gain * (1 + HIGH_SLOPE**2 * square) ** -HIGH_POWER


@kernel
def _find_lines(
    lines: Array, length: int, search: Array, turn: Array, fits: Array, f: Array, size: Array
) -> int:
    """Fill rates and powers of the lines of a spectrum, and give their number."""
    power = np.empty(LINES)
    for k in range(LINES):
        power[k] = lines[k, 0] ** 2 + lines[k, 1] ** 2
    least, peaks = max(0.001 * power[0], 0.15), 0
    for k in range(1, LINES - 1):
        p0, p1, p2 = power[k - 1], power[k], power[k + 1]
        if p1 > p0 and p1 > p2 and p1 >= least:
            f[peaks] = (k + (p2 - p0) / (p0 + p1 + p2)) * LINE
            peaks += 1
    error = np.empty(search.size)
    for i in range(search.size):
        error[i] = _one_fit(search[i], _lines_used(search[i]), length, turn, fits)[2]
    deepest, lowest = 0, np.inf
    for i in range(1, search.size - 1):
        if error[i] < error[i - 1] and error[i] < error[i + 1] and error[i] < lowest:
            deepest, lowest = i, error[i]
    count = peaks
    if deepest:
        apart, sizes, far = np.empty(peaks + 1), np.empty(peaks + 1), 0
        for i in range(peaks):
            if abs(f[i] - search[deepest]) >= NEAR:
                apart[far] = f[i]
                far += 1
        apart[far] = search[deepest]
        first = _together_fit(apart[: far + 1], length, turn, fits, sizes)
        chosen = far == peaks
        if not chosen:
            chosen = first < _together_fit(f[:peaks], length, turn, fits, size)
        if chosen:
            count = far + 1
            for i in range(count):
                f[i], size[i] = apart[i], sizes[i]
    elif peaks:
        _together_fit(f[:peaks], length, turn, fits, size)
    highest, kept = 0.0, 0
    for i in range(count):
        highest = max(highest, size[i])
    for i in range(count):
        if size[i] > 0.05 * highest:
            f[kept], size[kept] = f[i], size[i]
            kept += 1
    return kept


@kernel
def _tune(start: float, length: int, turn: Array, fits: Array) -> float:
    """The rate near `start` at which one line fits best."""
    f, count, d = start, _lines_used(start), RATE * DX
    for _ in range(STEPS):
        low = _one_fit(f - d, count, length, turn, fits)[2]
        middle = _one_fit(f, count, length, turn, fits)[2]
        high = _one_fit(f + d, count, length, turn, fits)[2]
        slope, bend = (high - low) / (2 * DX), abs((high - 2 * middle + low) / DX**2)
        change = CAP if abs(slope) >= CAP * bend else abs(slope) / bend
        step = 0.25 * np.sign(slope) * change
        f -= RATE * step
        if abs(step) <= TOLERANCE:
            break
    return f


@kernel
def _one_band(
    lines: Array, length: int, gain: float, search: Array, turn: Array, fits: Array, power: Array
) -> None:
    """Weighted and mean power of a band, from its spectrum."""
    f, size = np.empty(LINES), np.empty(LINES)
    count = _find_lines(lines, length, search, turn, fits, f, size)
    if not count:
        return
    heard, strongest = np.empty(count), 0
    for i in range(count):
        heard[i] = size[i] * _weight_of(f[i], gain)
        if heard[i] > heard[strongest]:
            strongest = i
    base = _tune(f[strongest], length, turn, fits)
    if abs(base - f[strongest]) <= NEAR:
        f[strongest] = base
        again = _one_fit(base, _lines_used(base), length, turn, fits)[1]
        heard[strongest] = again * _weight_of(base, gain)
    base = f[strongest]
    if base < LOWEST:
        return
    most, best, members = -1.0, 1, np.zeros((SERIES, HARMONICS), np.bool_)
    for order in range(1, SERIES + 1):
        energy = 0.0
        for i in range(count):
            ratio = f[i] / base * order
            number = int(np.floor(ratio + 0.5))
            if 1 <= number <= HARMONICS and abs(ratio / number - 1) < 0.04:
                energy += heard[i]
                members[order - 1, number - 1] = True
        if energy > most:
            most, best = energy, order
    constant = total = center = square = 0.0
    number = 0
    for i in range(HARMONICS):
        if members[best - 1, i]:
            rate = (i + 1) * base / best
            p0, own, _ = _one_fit(rate, _lines_used(rate), length, turn, fits)
            weighted = own * _weight_of(rate, gain)
            constant += p0
            square += own
            total += weighted
            center += rate * weighted
            number += 1
    if total > 0:
        power[0] = (1 + 0.79577 * abs(center / total - base) ** 0.43461) * total
        power[1] = (constant / number) ** 2 + 2 * square
