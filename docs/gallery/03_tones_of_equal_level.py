"""
Tones of equal level are not equally loud
=========================================

Loudness level of tones from 50 Hz to 12.5 kHz, each at 60 dB SPL, in front of the listener and in
a diffuse field.
"""

import matplotlib.pyplot as plt
import numpy as np

from amt_stream import measure

FS = 48000
t = np.arange(2 * FS) / FS
frequencies = 50 * 2 ** np.linspace(0, 8, 25)

for field in ("free", "diffuse"):
    phon = []
    for fc in frequencies:
        tone = 2e-2 * np.sqrt(2) * np.sin(2 * np.pi * fc * t)
        m = measure(tone, FS, calibration="pascal", field=field)
        phon.append(m.summary["max_ltl_phon"])
    plt.semilogx(frequencies, phon, label=f"{field} field")
plt.xlabel("frequency (Hz)")
plt.ylabel("loudness level (phon)")
plt.legend()
plt.show()
