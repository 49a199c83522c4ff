"""
LUFS of a programme
===================

Momentary and short-term loudness by ITU-R BS.1770 and EBU R 128 of noise in three levels, and its
integrated loudness.
"""

import matplotlib.pyplot as plt
import numpy as np

from amt_stream import measure

FS = 48000
levels = np.repeat([-40.0, -20.0, -30.0], 5 * FS)
programme = 10 ** (levels / 20) * np.random.default_rng(2).standard_normal(levels.size)
m = measure(np.clip(programme, -1, 1), FS, "bs1770", step_ms=100)

plt.plot(m["time_s"], m["momentary_lufs"], label="momentary, 400 ms")
plt.plot(m["time_s"], m["short_term_lufs"], label="short-term, 3 s")
plt.axhline(m.summary["integrated_lufs"], color="gray", label="integrated, gated")
plt.ylim(-60, -10)
plt.xlabel("time (s)")
plt.ylabel("loudness (LUFS)")
plt.legend()
plt.show()
