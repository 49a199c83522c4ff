"""Roughness after Daniel & Weber (1997) of one window: simple, slow, independent.

The signal of each channel is taken at every sample. Of the package it uses the tables only.
"""

import numpy as np

from amt_stream.dsp.data import table as published_table

FS = 48000
ASPER = 0.2482


def _at(name, column, place):
    rows = published_table(name)
    return np.interp(place, rows["bark"], rows[column])


def _curve(channel):
    rows = published_table("daniel_weber_rates")
    here = rows["channel"] == channel
    return lambda hz: np.interp(hz, rows["hz"][here], rows["weight"][here])


def _weight(channel, hz):
    """Between the curves of the figure, of channels 1 to 4, 5, 16 to 20, 21, and 42 to 47."""
    if channel <= 4 or channel >= 42:
        return _curve(2 if channel <= 4 else 42)(hz)
    if 16 <= channel <= 20:
        return _curve(16)(hz)
    lower, upper, left, right = (4, 5, 2, 5) if channel == 5 else (5, 16, 5, 16)
    if channel > 20:
        lower, upper, left, right = (21, 42, 21, 42)
    part = (channel - lower) / (upper - lower)
    return (1 - part) * _curve(left)(hz) + part * _curve(right)(hz)


def _lines(pascal):
    """Places in Bark, frequencies, complex RMS, levels, and numbers of the lines that are heard."""
    n = pascal.size
    hz = np.arange(n // 2) * FS / n
    critical = published_table("bark")
    bark = np.interp(hz, critical["hz"], critical["bark"])
    window = np.blackman(n + 1)[:-1]
    spectrum = np.fft.fft(pascal * window)[: n // 2] * np.sqrt(2) / window.sum()
    spectrum *= 10 ** (_at("daniel_weber_ear", "gain_db", bark) / 20)
    level_db = 20 * np.log10(np.abs(spectrum) / 2e-5 + 1e-20)
    heard = (level_db > _at("daniel_weber_threshold", "level_db", bark)) & (hz < 16000)
    return bark, hz, spectrum, level_db, np.flatnonzero(heard)


def _envelope(channel, pascal_lines, n):
    bark, hz, spectrum, level_db, heard = pascal_lines
    center, parts = channel / 2, np.zeros(n, complex)
    for line in heard:
        edge, loss_db = None, 0.0
        if bark[line] > center + 0.5:
            edge = center + 0.5
            loss_db = 27 * (bark[line] - edge)
        elif bark[line] < center - 0.5:
            edge = center - 0.5
            slope = max(0.0, 24 + 230 / hz[line] - 0.2 * level_db[line])
            loss_db = slope * (edge - bark[line])
        at_edge_db = level_db[line] - loss_db
        if edge is None or at_edge_db > _at("daniel_weber_threshold", "level_db", edge):
            parts[line] = spectrum[line] * 10 ** (-loss_db / 20)
    return np.abs(np.fft.ifft(parts))


def specific_roughness(pascal):
    """Of a window of 200 ms, in asper/Bark (47,)."""
    n, lines = pascal.size, _lines(pascal)
    hz = np.abs(np.fft.fftfreq(n, 1 / FS))
    depths, filtered = [], []
    for channel in range(1, 48):
        envelope = _envelope(channel, lines, n)
        weights = np.where(hz < 10, 0.0, _weight(channel, np.minimum(hz, 645.0)))
        swing = np.fft.ifft(np.fft.fft(envelope) * weights).real
        mean = envelope.mean()
        depths.append(min(1.0, np.sqrt(np.mean(swing**2)) / mean) if mean else 0.0)
        filtered.append(swing)
    like = [_likeness(filtered[i], filtered[i + 2]) for i in range(45)]
    found = np.empty(47)
    for i in range(47):
        above, below = like[i] if i < 45 else 1.0, like[i - 2] if i >= 2 else 1.0
        share = _at("daniel_weber_share", "share", (i + 1) / 2)
        found[i] = 2 * ASPER * share * (depths[i] * above * below) ** 2
    return found


def _likeness(a, b):
    size = np.sqrt(np.sum(a * a) * np.sum(b * b))
    return np.sum(a * b) / size if size else 0.0
