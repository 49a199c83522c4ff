"""
Where loudness comes from
=========================

Specific loudness over the ERB-number scale: a tone excites a part of the scale, pink noise all of
it. The area below a curve is the loudness of one ear.
"""

import matplotlib.pyplot as plt
import numpy as np

from amt_stream import measure

FS = 48000
t = np.arange(FS) / FS
tone = np.sin(2 * np.pi * 1000 * t)
spectrum = np.fft.rfft(np.random.default_rng(1).standard_normal(FS))
pink = np.fft.irfft(spectrum / np.sqrt(np.maximum(np.arange(spectrum.size), 20)))

for name, sound in {"tone of 1 kHz": tone, "pink noise": pink}.items():
    pressure = 2e-2 * sound / np.sqrt(np.mean(sound**2))  # 60 dB SPL
    m = measure(pressure, FS, calibration="pascal", step_ms=100, outputs=["specific_loudness"])
    left = m["specific_loudness"][-1, 0]
    plt.plot(np.arange(1.75, 39.1, 0.25), left, label=f"{name}: {m['stl_sone'][-1]:.2f} sone")
plt.xlabel("ERB number (Cam)")
plt.ylabel("specific loudness (sone/Cam)")
plt.legend()
plt.show()
