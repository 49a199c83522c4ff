"""Sums over the components of each group, from which `group_skirts` takes its moments."""

from amt_stream.dsp.functional.compiler.dispatch import Array, kernel, recurrence

ROWS = 4
"""Rows whose moments are summed together."""


@kernel
def _parted(ends: Array, above: Array, center: Array, components: int) -> bool:
    """Whether `ends` partition the components, `above` are valid, and `center` ascends."""
    count = ends.size - 1
    for g in range(count):
        if ends[g + 1] < ends[g] or above[g] < 0 or above[g] > center.size:
            return False
    for i in range(center.size - 1):
        if not center[i] < center[i + 1]:
            return False
    return ends[0] == 0 and ends[count] == components


@recurrence
def _moments(intensity: Array, first: int, apart: Array, ends: Array, moments: Array) -> None:
    """Sums over each group of p, p d and p d^2 (3, `ROWS`, group) for the rows from `first`."""
    last, zero = intensity.shape[0] - 1, intensity.dtype.type(0)
    sums, means, squares = moments[0], moments[1], moments[2]
    # Rows in parallel, as groups are too small for a register; past the end, the last is repeated.
    x0, x1 = intensity[first], intensity[min(first + 1, last)]
    x2, x3 = intensity[min(first + 2, last)], intensity[min(first + 3, last)]
    for g in range(ends.size - 1):
        p0, p1, p2, p3 = zero, zero, zero, zero
        m0, m1, m2, m3 = zero, zero, zero, zero
        q0, q1, q2, q3 = zero, zero, zero, zero
        for j in range(ends[g], ends[g + 1]):
            d = apart[j]
            v0, v1, v2, v3 = x0[j] * d, x1[j] * d, x2[j] * d, x3[j] * d
            p0 += x0[j]
            p1 += x1[j]
            p2 += x2[j]
            p3 += x3[j]
            m0 += v0
            m1 += v1
            m2 += v2
            m3 += v3
            q0 += v0 * d
            q1 += v1 * d
            q2 += v2 * d
            q3 += v3 * d
        sums[0, g], sums[1, g], sums[2, g], sums[3, g] = p0, p1, p2, p3
        means[0, g], means[1, g], means[2, g], means[3, g] = m0, m1, m2, m3
        squares[0, g], squares[1, g], squares[2, g], squares[3, g] = q0, q1, q2, q3


@recurrence
def _moments_of_one(x: Array, apart: Array, ends: Array, moments: Array) -> None:
    """The same of one row, in a third of the time."""
    zero = x.dtype.type(0)
    sums, means, squares = moments[0, 0], moments[1, 0], moments[2, 0]
    for g in range(ends.size - 1):
        p, m, q = zero, zero, zero
        for j in range(ends[g], ends[g + 1]):
            v = x[j] * apart[j]
            p += x[j]
            m += v
            q += v * apart[j]
        sums[g], means[g], squares[g] = p, m, q


@kernel
def _reaches(apart: Array, ends: Array, reach: Array) -> None:
    """Largest distance of a component from the middle of its group."""
    for g in range(reach.size):
        reach[g] = 0
        for j in range(ends[g], ends[g + 1]):
            reach[g] = max(reach[g], abs(apart[j]))
