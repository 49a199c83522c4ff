"""
Short sounds are less loud
==========================

The highest short-term loudness level of bursts of 1 kHz, 60 dB SPL, of 5 to 500 ms. Zwicker's and
Moore's methods agree that loudness builds up over about a tenth of a second.
"""

import matplotlib.pyplot as plt
import numpy as np

from amt_stream import measure

FS = 48000
t = np.arange(FS) / FS
durations = np.array([5, 10, 20, 50, 100, 200, 500])
columns = {"moore2016": "max_stl_phon", "zwicker": "zwicker_nmax_phon"}

for model, column in columns.items():
    phon = []
    for duration in durations:
        burst = 2e-2 * np.sqrt(2) * np.sin(2 * np.pi * 1000 * t) * (t < duration / 1000)
        phon.append(measure(burst, FS, model, calibration="pascal").summary[column])
    plt.semilogx(durations, phon, "o-", label=model)
plt.xlabel("duration (ms)")
plt.ylabel("loudness level (phon)")
plt.legend()
plt.show()
