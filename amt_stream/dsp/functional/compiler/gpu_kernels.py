"""Triton kernels of the recurrences, launched by `gpu`, which imports this module when needed.

One lane per row and channel, with a loop over time; the GPU counterparts of the compiled CPU loops.
All tensors are contiguous; sizes are those of their axes.
"""

# mypy: ignore-errors
# Triton reads the source of a kernel; its values have no Python types.

import triton
import triton.language as tl


@triton.jit
def divided(a, b):
    """a / b with IEEE rounding: the plain `/` of float32 is approximate on a GPU."""
    if a.dtype == tl.float64:
        quotient = a / b
    else:
        quotient = tl.div_rn(a, b)
    return quotient


@triton.jit
def agc(x, coefficients, zi, y, zf, size, time, count, LANES: tl.constexpr):
    lane = tl.program_id(0).to(tl.int64) * LANES + tl.arange(0, LANES)
    there = lane < size
    up, down = tl.load(coefficients), tl.load(coefficients + 1)
    last = tl.load(zi + lane, there, 0.0)
    at = lane // count * time * count + lane % count
    for _ in range(time):
        change = tl.load(x + at, there, 0.0) - last
        last += tl.where(change > 0, up, down) * change
        tl.store(y + at, last, there)
        at += count
    tl.store(zf + lane, last, there)


@triton.jit
def relax(target, rate, zi, y, size, time, LANES: tl.constexpr):
    lane = tl.program_id(0).to(tl.int64) * LANES + tl.arange(0, LANES)
    there = lane < size
    last = tl.load(zi + lane, there, 0.0)
    at = lane * time
    for _ in range(time):
        goal = tl.load(target + at, there, 0.0)
        last += tl.load(rate + at, there, 0.0) * (goal - last)
        tl.store(y + at, last, there)
        at += 1


@triton.jit
def first_order(
    x,
    g,
    zi,
    y,
    zf,
    size,
    time,
    gains,
    passes,
    HIGH: tl.constexpr,
    RECTIFY: tl.constexpr,
    LANES: tl.constexpr,
):
    lane = tl.program_id(0).to(tl.int64) * LANES + tl.arange(0, LANES)
    there = lane < size
    gain = tl.load(g + lane % gains, there, 0.0)
    for k in range(passes):
        s = tl.load(zi + lane * passes + k, there, 0.0)
        at = lane * time
        for _ in range(time):
            # A pass after the first reads the previous one's output in `y`.
            v = tl.load(x + at, there, 0.0) if k == 0 else tl.load(y + at, there, 0.0)
            if RECTIFY:
                v = tl.where((v < 0) & (k == 0), 0.0, v)  # NaN stays
            change = v - s
            low = s + gain * change
            s += 2 * gain * change
            if HIGH:
                low = v - low
            tl.store(y + at, low, there)
            at += 1
        tl.store(zf + lane * passes + k, s, there)


@triton.jit
def adapt(
    x,
    floor,
    rates,
    most,
    corr,
    mult,
    zi,
    y,
    zf,
    size,
    time,
    floors,
    mosts,
    corrs,
    mults,
    loops,
    STILL: tl.constexpr,
    PER_OCTAVE: tl.constexpr,
    LEAST: tl.constexpr,
    LIMITED: tl.constexpr,
    LANES: tl.constexpr,
):
    lane = tl.program_id(0).to(tl.int64) * LANES + tl.arange(0, LANES)
    there = lane < size
    lowest = tl.load(floor + lane % floors, there, 1.0)
    rest = tl.load(corr + lane % corrs, there, 0.0)
    scale = tl.load(mult + lane % mults, there, 0.0)
    for j in range(loops):
        s = tl.load(zi + (lane * loops + j) * 2, there, 1.0)
        left = tl.load(zi + (lane * loops + j) * 2 + 1, there, 0.0)
        rate = tl.load(rates + j)
        m = tl.load(most + lane % mosts * loops + j, there, 1.0)
        slope = PER_OCTAVE / m
        at = lane * time
        for _ in range(time):
            # A loop after the first reads the previous one's output in `y`.
            v = tl.load(x + at, there, 1.0) if j == 0 else tl.load(y + at, there, 1.0)
            v = tl.where((v < lowest) & (j == 0), lowest, v)
            v = divided(v, s)
            if LIMITED:
                w = (v - 1) * slope
                w = tl.where(w > LEAST, LEAST, w)
                q = tl.exp2(-tl.where(w < 0, 0.0, w))
                v = tl.where(v > 1, 1.0, v) + m * ((1 - q) / (1 + q))
            way = v - s
            way = tl.where(tl.abs(way) <= STILL * s, 0.0, way)
            gone = rate * way + left
            after = s + gone
            left = gone - (after - s)
            s = after
            tl.store(y + at, tl.where(j == loops - 1, (v - rest) * scale, v), there)
            at += 1
        tl.store(zf + (lane * loops + j) * 2, s, there)
        tl.store(zf + (lane * loops + j) * 2 + 1, left, there)


@triton.jit
def factors(g, k, r):
    """h, p and q of a state-variable section, with r = 1 / (1 + g (g + k))."""
    return g * (g + k) * r, g * r, g * g * r


@triton.jit
def changes(v, s, z, h, p, q):
    """Half of the change of a section's two states for the input `v`."""
    excess = v - z
    return p * excess - h * s, p * s + q * excess


@triton.jit
def low_pass(x, low, zi, y, zf, there, kept, time, K: tl.constexpr):
    """The low-pass of a bank."""
    g = tl.load(low)
    h, p, q = factors(g, K, 1 / (1 + g * (g + K)))
    s, z = tl.load(zi, there, 0.0), tl.load(zi + 1, there, 0.0)
    for t in range(time):
        d1, d2 = changes(tl.load(x + t, there, 0.0), s, z, h, p, q)
        tl.store(y + t, tl.where(kept, z + d2, 0.0), there)
        s += 2 * d1
        z += 2 * d2
    tl.store(zf, tl.where(kept, s, 0.0), there)
    tl.store(zf + 1, tl.where(kept, z, 0.0), there)


@triton.jit
def one_pole(x, delta, gain, factor, magnitude, zi, y, zf, there, kept, time):
    """A complex one-pole of a bank."""
    dr, di, gain = tl.load(delta), tl.load(delta + 1), tl.load(gain)
    re, im = tl.load(zi, there, 0.0), tl.load(zi + 1, there, 0.0)
    for t in range(time):
        v = tl.load(x + t, there, 0.0)
        p = re + (dr * re - di * im + gain * v)
        im = im + (dr * im + di * re)
        re = p
        u = tl.where(magnitude, tl.sqrt(re * re + im * im), re)
        tl.store(y + t, tl.where(kept, factor * u, 0.0), there)
    tl.store(zf, tl.where(kept, re, 0.0), there)
    tl.store(zf + 1, tl.where(kept, im, 0.0), there)


@triton.jit
def band_pass(x, g, k, weight, factor, magnitude, zi, y, zf, there, kept, time):
    """A real band-pass of a bank: two sections."""
    g0, g1, k0, k1 = tl.load(g), tl.load(g + 1), tl.load(k), tl.load(k + 1)
    w0, w1 = tl.load(weight), tl.load(weight + 1)
    h0, p0, q0 = factors(g0, k0, 1 / (1 + g0 * (g0 + k0)))
    h1, p1, q1 = factors(g1, k1, 1 / (1 + g1 * (g1 + k1)))
    a0, b0 = tl.load(zi, there, 0.0), tl.load(zi + 1, there, 0.0)
    a1, b1 = tl.load(zi + 2, there, 0.0), tl.load(zi + 3, there, 0.0)
    for t in range(time):
        da, db = changes(tl.load(x + t, there, 0.0), a0, b0, h0, p0, q0)
        band = w0 * (a0 + da)
        a0 += 2 * da
        b0 += 2 * db
        da, db = changes(band, a1, b1, h1, p1, q1)
        band = w1 * (a1 + da)
        a1 += 2 * da
        b1 += 2 * db
        u = tl.where(magnitude, tl.abs(band), band)
        tl.store(y + t, tl.where(kept, factor * u, 0.0), there)
    tl.store(zf, tl.where(kept, a0, 0.0), there)
    tl.store(zf + 1, tl.where(kept, b0, 0.0), there)
    tl.store(zf + 2, tl.where(kept, a1, 0.0), there)
    tl.store(zf + 3, tl.where(kept, b1, 0.0), there)


@triton.jit
def bank(
    x,
    low,
    a,
    b,
    c,
    scale,
    envelope,
    counts,
    low_zi,
    zi,
    y,
    low_zf,
    zf,
    size,
    time,
    channels,
    bands,
    K: tl.constexpr,
    FIRST: tl.constexpr,
    EACH: tl.constexpr,
    LANES: tl.constexpr,
):
    m = tl.program_id(1)
    row = tl.program_id(0).to(tl.int64) * LANES + tl.arange(0, LANES)
    there = row < size
    kept = there & (m < tl.load(counts + row % channels, there, 0))
    x += row * time
    y += (row * (FIRST + bands) + m) * time
    if m < FIRST:
        low_pass(x, low, low_zi + row * 2, y, low_zf + row * 2, there, kept, time, K)
    else:
        n = m - FIRST
        factor, magnitude = tl.load(scale + n), tl.load(envelope + n)
        its_zi = zi + (row * bands + n) * EACH
        its_zf = zf + (row * bands + n) * EACH
        if EACH == 2:
            one_pole(x, a + 2 * n, b + n, factor, magnitude, its_zi, y, its_zf, there, kept, time)
        else:
            its_a, its_b, its_c = a + 2 * n, b + 2 * n, c + 2 * n
            band_pass(
                x, its_a, its_b, its_c, factor, magnitude, its_zi, y, its_zf, there, kept, time
            )


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
    lane = tl.program_id(0).to(tl.int64) * LANES + tl.arange(0, LANES)
    there = lane < size
    row, band = lane // bands, lane % bands
    g = tl.load(gain + band, there, 0.0)
    a1, a2 = tl.load(poles + band, there, 0.0), tl.load(poles + bands + band, there, 0.0)
    b1 = tl.load(poles + 2 * bands + band, there, 0.0)
    b2 = tl.load(poles + 3 * bands + band, there, 0.0)
    c1 = tl.load(poles + 4 * bands + band, there, 0.0)
    c2 = tl.load(poles + 5 * bands + band, there, 0.0)
    KEPT: tl.constexpr = 9 if SMOOTHED else 6
    first = row * KEPT * bands + band
    s1, s2 = tl.load(zi + first, there, 0.0), tl.load(zi + first + bands, there, 0.0)
    t1 = tl.load(zi + first + 2 * bands, there, 0.0)
    t2 = tl.load(zi + first + 3 * bands, there, 0.0)
    u1 = tl.load(zi + first + 4 * bands, there, 0.0)
    u2 = tl.load(zi + first + 5 * bands, there, 0.0)
    p0, p1, p2 = tl.zeros_like(g), tl.zeros_like(g), tl.zeros_like(g)
    weight = tl.zeros_like(g)
    if SMOOTHED:
        weight = tl.load(smoothing + band, there, 0.0)
        p0 = tl.load(zi + first + 6 * bands, there, 0.0)
        p1 = tl.load(zi + first + 7 * bands, there, 0.0)
        p2 = tl.load(zi + first + 8 * bands, there, 0.0)
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
    tl.store(zf + first, s1, there)
    tl.store(zf + first + bands, s2, there)
    tl.store(zf + first + 2 * bands, t1, there)
    tl.store(zf + first + 3 * bands, t2, there)
    tl.store(zf + first + 4 * bands, u1, there)
    tl.store(zf + first + 5 * bands, u2, there)
    if SMOOTHED:
        tl.store(zf + first + 6 * bands, p0, there)
        tl.store(zf + first + 7 * bands, p1, there)
        tl.store(zf + first + 8 * bands, p2, there)


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
    lane = tl.program_id(0).to(tl.int64) * LANES + tl.arange(0, LANES)
    there = lane < size
    row, band = lane // bands, lane % bands
    c0, c1 = tl.load(coefficients), tl.load(coefficients + 1)
    c2, c3 = tl.load(coefficients + 2), tl.load(coefficients + 3)
    c4, c5 = tl.load(coefficients + 4), tl.load(coefficients + 5)
    first = row * 3 * bands + band
    fast, slow = tl.load(zi + first, there, 0.0), tl.load(zi + first + bands, there, 0.0)
    last = tl.load(zi + first + 2 * bands, there, 0.0)
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
    tl.store(zf + first, fast, there)
    tl.store(zf + first + bands, slow, there)
    tl.store(zf + first + 2 * bands, last, there)


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
    lane = tl.program_id(0).to(tl.int64) * LANES + tl.arange(0, LANES)
    there = lane < size
    row, band = lane // bands, lane % bands
    c0, c1 = tl.load(coefficients), tl.load(coefficients + 1)
    c2, c3 = tl.load(coefficients + 2), tl.load(coefficients + 3)
    c4, c5 = tl.load(coefficients + 4), tl.load(coefficients + 5)
    first = row * 3 * bands + band
    fast, slow = tl.load(zi + first, there, 0.0), tl.load(zi + first + bands, there, 0.0)
    oldest = tl.load(zi + first + 2 * bands, there, 0.0)
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
    by_fast, by_slow = tl.load(zf + first, there, 0.0), tl.load(zf + first + bands, there, 0.0)
    by_last = tl.load(zf + first + 2 * bands, there, 0.0)
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
    tl.store(into_zi + first, by_fast, there)
    tl.store(into_zi + first + bands, by_slow, there)
    tl.store(into_zi + first + 2 * bands, by_last, there)


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
    lane = tl.program_id(0).to(tl.int64) * LANES + tl.arange(0, LANES)
    there = lane < size
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
    lane = tl.program_id(0).to(tl.int64) * LANES + tl.arange(0, LANES)
    there = lane < size
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


@triton.jit
def windows(x, bank, y, size, time, frames, phases, taps, step, LANES: tl.constexpr):
    lane = tl.program_id(0).to(tl.int64) * LANES + tl.arange(0, LANES)
    there = lane < size
    at = lane // (frames * phases) * time + lane // phases % frames * step
    weight = lane % phases * taps
    total = tl.load(bank + weight, there, 0.0) * 0
    for k in range(taps):
        total += tl.load(x + at + k, there, 0.0) * tl.load(bank + weight + k, there, 0.0)
    tl.store(y + lane, total, there)


@triton.jit
def direct_form(x, b, a, zi, y, zf, size, time, sections, ORDER: tl.constexpr, LANES: tl.constexpr):
    lane = tl.program_id(0).to(tl.int64) * LANES + tl.arange(0, LANES)
    there = lane < size
    for k in range(sections):
        table, state = k * (ORDER + 1), (lane * sections + k) * ORDER
        b0, b1, a1 = tl.load(b + table), tl.load(b + table + 1), tl.load(a + table + 1)
        s1 = tl.load(zi + state, there, 0.0)
        if ORDER == 2:
            b2, a2 = tl.load(b + table + 2), tl.load(a + table + 2)
            s2 = tl.load(zi + state + 1, there, 0.0)
        at = lane * time
        for _ in range(time):
            # A section after the first reads the previous one's output in `y`.
            v = tl.load(x + at, there, 0.0) if k == 0 else tl.load(y + at, there, 0.0)
            out = b0 * v + s1
            s1 = b1 * v - a1 * out
            if ORDER == 2:
                s1 += s2
                s2 = b2 * v - a2 * out
            tl.store(y + at, out, there)
            at += 1
        tl.store(zf + state, s1, there)
        if ORDER == 2:
            tl.store(zf + state + 1, s2, there)


@triton.jit
def svf(x, g, k, weights, zi, y, zf, size, time, channels, sections, LANES: tl.constexpr):
    lane = tl.program_id(0).to(tl.int64) * LANES + tl.arange(0, LANES)
    there = lane < size
    for n in range(sections):
        table, state = lane % channels * sections + n, (lane * sections + n) * 2
        gain, damping = tl.load(g + table, there, 0.0), tl.load(k + table, there, 1.0)
        h, p, q = factors(gain, damping, divided(gain * 0 + 1, 1 + gain * (gain + damping)))
        through = tl.load(weights + table * 3, there, 0.0)
        band = tl.load(weights + table * 3 + 1, there, 0.0)
        low = tl.load(weights + table * 3 + 2, there, 0.0)
        s1, s2 = tl.load(zi + state, there, 0.0), tl.load(zi + state + 1, there, 0.0)
        at = lane * time
        for _ in range(time):
            # A section after the first reads the previous one's output in `y`.
            v = tl.load(x + at, there, 0.0) if n == 0 else tl.load(y + at, there, 0.0)
            d1, d2 = changes(v, s1, s2, h, p, q)
            tl.store(y + at, through * v + band * (s1 + d1) + low * (s2 + d2), there)
            s1 += 2 * d1
            s2 += 2 * d2
            at += 1
        tl.store(zf + state, s1, there)
        tl.store(zf + state + 1, s2, there)


@triton.jit
def first_state(x, a, b, c, d, zi, y, zf, size, time, channels, LANES: tl.constexpr):
    lane = tl.program_id(0).to(tl.int64) * LANES + tl.arange(0, LANES)
    there = lane < size
    channel = lane % channels
    keep, drive = tl.load(a + channel, there, 0.0), tl.load(b + channel, there, 0.0)
    see, through = tl.load(c + channel, there, 0.0), tl.load(d + channel, there, 0.0)
    s = tl.load(zi + lane, there, 0.0)
    at = lane * time
    for _ in range(time):
        v = tl.load(x + at, there, 0.0)
        tl.store(y + at, see * s + through * v, there)
        s = keep * s + drive * v
        at += 1
    tl.store(zf + lane, s, there)
