"""
The tone that defines 1 sone
============================

A tone of 1 kHz and 40 dB SPL, heard with both ears in front of its source, has a loudness of 1
sone by definition. Short-term loudness follows the sound in a tenth of a second; long-term
loudness takes about a second.
"""

import matplotlib.pyplot as plt
import numpy as np

from amt_stream import measure

FS = 48000
t = np.arange(3 * FS) / FS
tone = 2e-5 * 10 ** (40 / 20) * np.sqrt(2) * np.sin(2 * np.pi * 1000 * t) * (t < 2)
m = measure(tone, FS, calibration="pascal", step_ms=1)

plt.plot(m["time_s"], m["stl_sone"], label="short-term")
plt.plot(m["time_s"], m["ltl_sone"], label="long-term")
plt.axhline(1, color="gray", linewidth=0.5)
plt.xlabel("time (s)")
plt.ylabel("loudness (sone)")
plt.legend()
plt.show()
