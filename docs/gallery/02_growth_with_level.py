"""
Loudness grows with level
=========================

A tone of 1 kHz at rising levels, by three methods. Above 40 dB, 10 dB more sound about twice as
loud.
"""

import matplotlib.pyplot as plt
import numpy as np

from amt_stream import measure

FS = 48000
t = np.arange(2 * FS) / FS
levels = np.arange(10, 101, 10)
columns = {
    "moore2016": ("max_ltl_sone", "Moore et al. (2016), ISO 532-3"),
    "gm2002": ("gm2002_max_ltl_sone", "Glasberg and Moore (2002)"),
    "zwicker": ("zwicker_nmax_sone", "Zwicker, ISO 532-1"),
}

loudness = {model: [] for model in columns}
for level in levels:
    tone = 2e-5 * 10 ** (level / 20) * np.sqrt(2) * np.sin(2 * np.pi * 1000 * t)
    for model, (column, _) in columns.items():
        loudness[model].append(measure(tone, FS, model, calibration="pascal").summary[column])

for model, (_, label) in columns.items():
    plt.semilogy(levels, loudness[model], "o-", label=label)
plt.plot([40, 100], [1, 64], color="gray", linewidth=0.5, label="doubles each 10 dB")
plt.xlabel("level (dB SPL)")
plt.ylabel("loudness (sone)")
plt.legend()
plt.show()
