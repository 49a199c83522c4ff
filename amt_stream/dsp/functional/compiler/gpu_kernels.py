"""Triton kernels of the recurrences, launched by `gpu`, which imports this module when needed.

One lane per row and channel, with a loop over time; the GPU counterparts of the compiled CPU loops.
All tensors are contiguous; sizes are those of their axes.
"""

# mypy: ignore-errors
# Triton reads the source of a kernel; its values have no Python types.

import triton
import triton.language as tl


@triton.jit
def lanes_of(size, LANES: tl.constexpr):
    """The lanes of this program, and which of them there are."""
    lane = tl.program_id(0).to(tl.int64) * LANES + tl.arange(0, LANES)
    return lane, lane < size


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
    lane, there = lanes_of(size, LANES)
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
    lane, there = lanes_of(size, LANES)
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
    lane, there = lanes_of(size, LANES)
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
    lane, there = lanes_of(size, LANES)
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
def windows(x, bank, y, size, time, frames, phases, taps, step, LANES: tl.constexpr):
    lane, there = lanes_of(size, LANES)
    at = lane // (frames * phases) * time + lane // phases % frames * step
    weight = lane % phases * taps
    total = tl.load(bank + weight, there, 0.0) * 0
    for k in range(taps):
        total += tl.load(x + at + k, there, 0.0) * tl.load(bank + weight + k, there, 0.0)
    tl.store(y + lane, total, there)


@triton.jit
def direct_form(x, b, a, zi, y, zf, size, time, sections, ORDER: tl.constexpr, LANES: tl.constexpr):
    lane, there = lanes_of(size, LANES)
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
    lane, there = lanes_of(size, LANES)
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
    lane, there = lanes_of(size, LANES)
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
