"""Triton kernels of loudness: third octaves, decay, patterns and skirts, as in `gpu_kernels`."""

# mypy: ignore-errors
# Triton reads the source of a kernel; its values have no Python types.

import triton
import triton.language as tl

from amt_stream.dsp.functional.compiler.gpu_kernels import divided, lanes_of


@triton.jit
def three(at, step, there):
    """Three numbers, each `step` after the last."""
    first, second = tl.load(at, there, 0.0), tl.load(at + step, there, 0.0)
    return first, second, tl.load(at + 2 * step, there, 0.0)


@triton.jit
def store_three(at, step, there, first, second, third):
    """What `three` reads."""
    tl.store(at, first, there)
    tl.store(at + step, second, there)
    tl.store(at + 2 * step, third, there)


@triton.jit
def six(at, step, there):
    """Six numbers, each `step` after the last."""
    a, b, c = three(at, step, there)
    d, e, f = three(at + 3 * step, step, there)
    return a, b, c, d, e, f


@triton.jit
def third_octaves(
    x,
    poles,
    gain,
    smoothing,
    zi,
    y,
    zf,
    size,
    frames,
    bands,
    STEP: tl.constexpr,
    SMOOTHED: tl.constexpr,
    LANES: tl.constexpr,
):
    lane, there = lanes_of(size, LANES)
    row, band = lane // bands, lane % bands
    g = tl.load(gain + band, there, 0.0)
    a1, a2, b1, b2, c1, c2 = six(poles + band, bands, there)
    KEPT: tl.constexpr = 9 if SMOOTHED else 6
    first = row * KEPT * bands + band
    s1, s2, t1, t2, u1, u2 = six(zi + first, bands, there)
    p0, p1, p2 = tl.zeros_like(g), tl.zeros_like(g), tl.zeros_like(g)
    weight = tl.zeros_like(g)
    if SMOOTHED:
        weight = tl.load(smoothing + band, there, 0.0)
        p0, p1, p2 = three(zi + first + 6 * bands, bands, there)
    at = row * frames * STEP
    out = row * frames * bands + band
    for _ in range(frames):
        power = tl.zeros_like(g)
        for t in range(STEP):
            v = tl.load(x + at, there, 0.0).to(tl.float64) * g
            # The zeros of the three sections are `zwicker.ZEROS`.
            w = v + s1
            s1 = 2 * v - a1 * w + s2
            s2 = v - a2 * w
            v = w + t1
            t1 = -b1 * v + t2
            t2 = -w - b2 * v
            w = v + u1
            u1 = -2 * v - c1 * w + u2
            u2 = v - c2 * w
            if SMOOTHED:
                p0 += weight * (w * w - p0)
                p1 += weight * (p0 - p1)
                p2 += weight * (p1 - p2)
                power = tl.where(t == 0, p2, power)
            else:
                power += w * w / STEP
            at += 1
        tl.store(y + out, power, there)
        out += bands
    store_three(zf + first, bands, there, s1, s2, t1)
    store_three(zf + first + 3 * bands, bands, there, t2, u1, u2)
    if SMOOTHED:
        store_three(zf + first + 6 * bands, bands, there, p0, p1, p2)


@triton.jit
def network(u, fast, slow, c0, c1, c2, c3, c4, c5):
    """Both voltages after one step with the input `u`."""
    linked = fast > slow
    falling = tl.where(linked, fast * c2 - slow * c3, fast * c4)
    falling = tl.where(falling < u, u, falling)
    charge = fast * c0 - slow * c1
    charge = tl.where(linked & (charge < falling), charge, falling)
    rising = tl.where((u - fast < 1e-5) & (u <= slow), u, (slow - u) * c5 + u)
    falls = u < fast
    # NaN stays, because no comparison with it holds.
    return tl.where(falls, falling, u + 0 * fast), tl.where(falls, charge, rising)


@triton.jit
def network_backward(u, fast, slow, by_fast, by_slow, c0, c1, c2, c3, c4, c5):
    """Gradients of `u`, `fast` and `slow` in `network`, from those of its results."""
    linked = fast > slow
    falling = tl.where(linked, fast * c2 - slow * c3, fast * c4)
    below = falling < u
    apart = linked & (fast * c0 - slow * c1 < tl.where(below, u, falling))
    through = by_fast + tl.where(apart, 0.0, by_slow)
    into_u = tl.where(below, through, 0.0)
    into_fast = tl.where(apart, c0 * by_slow, 0.0)
    into_fast += tl.where(below, 0.0, tl.where(linked, c2, c4) * through)
    into_slow = tl.where(apart, -c1 * by_slow, 0.0)
    into_slow -= tl.where(below, 0.0, tl.where(linked, c3 * through, 0.0))
    falls = u < fast
    charged = (u - fast < 1e-5) & (u <= slow)
    into_u = tl.where(falls, into_u, by_fast + tl.where(charged, by_slow, (1 - c5) * by_slow))
    rising = tl.where(charged, 0.0, c5 * by_slow)
    return into_u, tl.where(falls, into_fast, 0.0), tl.where(falls, into_slow, rising)


@triton.jit
def decayed(
    core,
    coefficients,
    zi,
    begun,
    y,
    zf,
    size,
    frames,
    bands,
    STEP: tl.constexpr,
    LANES: tl.constexpr,
):
    lane, there = lanes_of(size, LANES)
    row, band = lane // bands, lane % bands
    c0, c1, c2, c3, c4, c5 = six(coefficients, 1, True)
    first = row * 3 * bands + band
    fast, slow, last = three(zi + first, bands, there)
    # The very first value takes one step of the network only.
    runs = tl.load(begun + row, there, 1) != 0
    at = row * frames * bands + band
    for _ in range(frames):
        new = tl.load(core + at, there, 0.0).to(tl.float64)
        part = tl.zeros_like(last)
        for k in range(1, STEP + 1):
            part += 1
            u = last + part / STEP * (new - last)
            after_fast, after_slow = network(u, fast, slow, c0, c1, c2, c3, c4, c5)
            now = runs | (k == STEP)
            fast, slow = tl.where(now, after_fast, fast), tl.where(now, after_slow, slow)
        runs = there | runs
        last = new
        tl.store(y + at, fast, there)
        at += bands
    store_three(zf + first, bands, there, fast, slow, last)


@triton.jit
def decayed_backward(
    core,
    zi,
    coefficients,
    begun,
    y,
    zf,
    kept,
    into_core,
    into_zi,
    size,
    frames,
    bands,
    STEP: tl.constexpr,
    LANES: tl.constexpr,
):
    """kept: room for the voltages before each step (frames, STEP, 2, row, band)"""
    lane, there = lanes_of(size, LANES)
    row, band = lane // bands, lane % bands
    c0, c1, c2, c3, c4, c5 = six(coefficients, 1, True)
    first = row * 3 * bands + band
    fast, slow, oldest = three(zi + first, bands, there)
    begins = tl.load(begun + row, there, 1) != 0
    at = row * frames * bands + band
    keep = lane
    last = oldest
    for n in range(frames):
        new = tl.load(core + at, there, 0.0).to(tl.float64)
        part = tl.zeros_like(last)
        for k in range(1, STEP + 1):
            tl.store(kept + keep, fast, there)
            tl.store(kept + keep + size, slow, there)
            keep += 2 * size
            part += 1
            u = last + part / STEP * (new - last)
            after_fast, after_slow = network(u, fast, slow, c0, c1, c2, c3, c4, c5)
            now = begins | (n > 0) | (k == STEP)
            fast, slow = tl.where(now, after_fast, fast), tl.where(now, after_slow, slow)
        last = new
        at += bands
    by_fast, by_slow, by_last = three(zf + first, bands, there)
    for n in range(frames):
        at -= bands
        new = tl.load(core + at, there, 0.0).to(tl.float64)
        earlier = there & (n + 1 < frames)
        last = tl.load(core + at - bands, earlier, 0.0).to(tl.float64)
        last = tl.where(n + 1 < frames, last, oldest)
        by_fast += tl.load(y + at, there, 0.0).to(tl.float64)
        by_new = by_last
        by_last = tl.zeros_like(by_new)
        part = by_last + STEP
        for k in range(STEP):
            keep -= 2 * size
            fast, slow = tl.load(kept + keep, there, 0.0), tl.load(kept + keep + size, there, 0.0)
            u = last + part / STEP * (new - last)
            into_u, into_fast, into_slow = network_backward(
                u, fast, slow, by_fast, by_slow, c0, c1, c2, c3, c4, c5
            )
            now = begins | (n + 1 < frames) | (k == 0)
            by_u = tl.where(now, into_u, 0.0)
            by_fast, by_slow = tl.where(now, into_fast, by_fast), tl.where(now, into_slow, by_slow)
            by_new += part / STEP * by_u
            by_last += (1 - part / STEP) * by_u
            part -= 1
        tl.store(into_core + at, by_new, there)
    store_three(into_zi + first, bands, there, by_fast, by_slow, by_last)


@triton.jit
def pattern(
    core,
    upper,
    floors,
    slopes,
    total,
    samples,
    size,
    bands,
    ranges,
    columns,
    points,
    LANES: tl.constexpr,
):
    lane, there = lanes_of(size, LANES)
    z = tl.load(core + lane * bands, there, 0.0) * 0
    n, area, nothing = z, z, z
    place = tl.zeros([LANES], tl.int32)
    point = tl.zeros([LANES], tl.int32)
    for i in range(bands + 1):
        end = tl.load(upper + i)
        level = tl.load(core + lane * bands + i, there & (i < bands), 0.0)
        column = tl.minimum(tl.maximum(i - 1, 0), columns - 1)
        nothing += 0 * level  # after NaN, the slope that falls from it is NaN too
        here = there & (z < end)
        while tl.max(here.to(tl.int32), 0) > 0:
            masked = n > level
            steps = here & masked & (place < ranges - 1) & (n <= tl.load(floors + place))
            while tl.max(steps.to(tl.int32), 0) > 0:
                place += steps.to(tl.int32)
                steps = steps & (place < ranges - 1) & (n <= tl.load(floors + place))
            slope = tl.load(slopes + place * columns + column)
            floor = tl.maximum(tl.load(floors + place), level)
            reach = z + (n - floor) / slope
            cut = masked & (reach <= end)
            to = tl.where(cut, reach, end)
            below = tl.where(cut, floor, tl.where(masked, n - (end - z) * slope, level))
            top = tl.where(masked, n, level)
            fall = tl.where(masked, slope, 0.0)
            area += tl.where(here, (top + tl.where(masked, below, level)) / 2 * (to - z), 0.0)
            due = here & (point < points) & ((point + 1).to(z.dtype) / 10 <= to)
            while tl.max(due.to(tl.int32), 0) > 0:
                line = top - fall * ((point + 1).to(z.dtype) / 10 - z) + nothing
                tl.store(samples + lane * points + point, line, due)
                point += due.to(tl.int32)
                due = here & (point < points) & ((point + 1).to(z.dtype) / 10 <= to)
            place = tl.where(here & (masked == 0), 0, place)
            z, n = tl.where(here, to, z), tl.where(here, below, n)
            here = there & (z < end)
    tl.store(total + lane, area + nothing, there)


@triton.jit
def skirts(
    intensity,
    level,
    frequency,
    fc,
    slope,
    below,
    y,
    components,
    channels,
    K: tl.constexpr,
    LANES: tl.constexpr,
):
    row = tl.program_id(0).to(tl.int64)
    channel = tl.program_id(1) * LANES + tl.arange(0, LANES)
    there = channel < channels
    center, c = tl.load(fc + channel, there, 1.0), tl.load(slope + channel, there, 1.0)
    flattest = divided(center * 0 + 0.1, c * center)
    count = tl.load(below + channel, there, 0)
    total = center * 0
    at = row * components
    for j in range(tl.max(count, 0)):
        power, f = tl.load(intensity + at + j), tl.load(frequency + j)
        steepness = tl.maximum(1 - K * (tl.load(level + at + j) - 51), flattest)
        z = c * (center - f) * steepness
        total += tl.where(j < count, power * ((1 + z) * tl.exp(-z)), 0.0)
    tl.store(y + row * channels + channel, total, there)


@triton.jit
def groups(
    intensity,
    density,
    apart,
    ends,
    middle,
    slope,
    bend,
    above,
    center,
    made,
    size,
    components,
    count,
    channels,
    SHIFT: tl.constexpr,
    SLOPE: tl.constexpr,
    K: tl.constexpr,
    LANES: tl.constexpr,
):
    """`made` (10, row, group): what `group_skirts` needs of each group; see `_group_skirts`."""
    lane, there = lanes_of(size, LANES)
    row, g = lane // count, lane % count
    start, stop = tl.load(ends + g, there, 0), tl.load(ends + g + 1, there, 0)
    v = tl.load(middle + g, there, 1.0)
    p, m, q, reach = v * 0, v * 0, v * 0, v * 0
    for j in range(tl.max(stop - start, 0)):
        inside = there & (start + j < stop)
        power = tl.load(intensity + row * components + start + j, inside, 0.0)
        d = tl.load(apart + start + j, inside, 0.0)
        p += power
        m += power * d
        q += power * d * d
        reach = tl.maximum(reach, tl.abs(d))
    some = tl.where(p == 0, 1.0, p)
    m, q = m / some, q / some
    here = v * 0
    s1, s2 = v * 0, v * 0
    for k in range(3):
        at = tl.minimum(tl.maximum(g + k - 1, 0), count - 1)
        power = tl.maximum(tl.load(density + row * count + at, there, 1.0), 1e-30)
        s = 1 - SLOPE * (4.342944819032518 * tl.log(power) + (SHIFT - 51))
        # The weights of a derivative sum to 0, so that s can replace the level.
        s1 += tl.load(slope + k * count + g, there, 0.0) * s
        s2 += tl.load(bend + k * count + g, there, 0.0) * s
        here = tl.where(k == 1, s, here)
    a = here + s1 * m + s2 * q / 2
    b = v * a + here * m + s1 * q
    c = s1 + s2 * m
    e = c * (v + m) + a
    half_spread = K * K / 2 * tl.maximum(q - m * m, 0.0)
    first = tl.load(above + g, there, 0)
    # Where the skirt becomes negligible, and the channel there.
    w = tl.maximum(tl.log(tl.maximum(p, 1e-30) / 5e-4), 0.0)
    ending = (a - (w + tl.log(2 + w)) / K) / b
    origin, top = tl.log(tl.load(center)), tl.log(tl.load(center + channels - 1))
    spacing = (top - origin) / tl.maximum(channels - 1, 1)
    last = (-tl.log(tl.maximum(ending, 1e-9)) - origin) / spacing
    last = tl.minimum(tl.maximum(last, -1e6), 1e6)
    turns = tl.maximum((last.to(tl.int64) + 1 - first + 15) // 16, 0)
    limit = tl.where(last == last, first + 16 * turns, channels)
    t = 1 / tl.load(center + tl.minimum(first, channels - 1), there, 2.0)
    least = here - tl.abs(s1) * reach - tl.abs(s2) * reach * reach / 2
    # If a channel is at its least steepness, compute each component.
    limit = tl.where(least < 0.1 / K / (1 - t), -1, limit)
    tl.store(made + lane, p, there)
    tl.store(made + size + lane, a, there)
    tl.store(made + 2 * size + lane, b, there)
    tl.store(made + 3 * size + lane, c, there)
    tl.store(made + 4 * size + lane, e, there)
    tl.store(made + 5 * size + lane, half_spread, there)
    tl.store(made + 6 * size + lane, limit.to(p.dtype), there)
    tl.store(made + 7 * size + lane, here, there)
    tl.store(made + 8 * size + lane, s1, there)
    tl.store(made + 9 * size + lane, s2, there)


@triton.jit
def group_skirts(
    intensity,
    apart,
    ends,
    middle,
    above,
    center,
    made,
    y,
    size,
    components,
    count,
    channels,
    K: tl.constexpr,
    GROUPS: tl.constexpr,
    LANES: tl.constexpr,
):
    row = tl.program_id(0).to(tl.int64)
    lowest = tl.program_id(1) * LANES
    channel = lowest + tl.arange(0, LANES)
    there = channel < channels
    t = 1 / tl.load(center + channel, there, 2.0)
    flattest = 0.1 / K / (1 - t)
    total = t * 0
    # Groups ascend: those after the last one below these channels add nothing.
    each = tl.arange(0, GROUPS)
    below = tl.load(above + each, each < count, channels) < lowest + LANES
    for g in range(tl.max(tl.where(below, each + 1, 0))):
        at = made + row * count + g
        limit, first = tl.load(at + 6 * size), tl.load(above + g)
        if limit < 0:
            s0, s1 = tl.load(at + 7 * size), tl.load(at + 8 * size)
            s2 = tl.load(at + 9 * size)
            for j in range(tl.load(ends + g), tl.load(ends + g + 1)):
                d = tl.load(apart + j)
                steepness = tl.maximum(s0 + d * (s1 + d * s2 / 2), flattest)
                z = tl.maximum(K * steepness * (1 - (tl.load(middle + g) + d) * t), 0.0)
                power = tl.load(intensity + row * components + j)
                total += tl.where(channel >= first, power * tl.exp(-z) * (1 + z), 0.0)
        else:
            if limit > lowest:
                p, a, b = tl.load(at), tl.load(at + size), tl.load(at + 2 * size)
                lean = tl.load(at + 3 * size) - tl.load(at + 4 * size) * t
                z = tl.maximum(K * (a - b * t), 0.0)
                weight = 1 + z + (z - 1) * (tl.load(at + 5 * size) * lean * lean)
                covered = (channel >= first) & (channel < limit)
                total += tl.where(covered, p * tl.exp(-z) * weight, 0.0)
    tl.store(y + row * channels + channel, total, there)
