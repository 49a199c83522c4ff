"""
One ear or two
==============

A sound in both ears is about 1.5 times as loud as in one, not twice: each ear's loudness is
reduced by what the other one hears (binaural inhibition). The level of the right ear rises here
from silence to that of the left.
"""

import matplotlib.pyplot as plt
import numpy as np

from amt_stream import measure

FS = 48000
t = np.arange(2 * FS) / FS
left = 2e-2 * np.sqrt(2) * np.sin(2 * np.pi * 1000 * t)
below = np.arange(-60, 1, 5)

loudness = []
for difference in below:
    ears = np.stack([left, left * 10 ** (difference / 20)], axis=1)
    loudness.append(
        measure(ears, FS, calibration="pascal", field="eardrum").summary["max_ltl_sone"]
    )

plt.plot(below, np.array(loudness) / loudness[0], "o-")
plt.xlabel("level of the right ear, re left (dB)")
plt.ylabel("loudness, re left ear alone")
plt.show()
