"""
Adaptation stresses onsets
==========================

The adaptation loops of Dau et al. (1997) after a hair cell's envelope: the onset of a tone gives
much more than its steady part, and what follows it is suppressed.
"""

import matplotlib.pyplot as plt
import torch

from amt_stream import AdaptLoop, IHCEnvelope

FS = 48000
t = torch.arange(FS) / FS
tone = 0.1 * torch.sin(2 * torch.pi * 1000 * t) * ((t >= 0.2) & (t < 0.6))  # 1.0 is 100 dB SPL
envelope = IHCEnvelope(FS, method="dau1996")(tone[None, None])
adapted = AdaptLoop(FS)(envelope)

figure, (above, below) = plt.subplots(2, 1, sharex=True, layout="constrained")
above.plot(t, envelope[0, 0])
above.set_ylabel("hair cell")
below.plot(t, adapted[0, 0])
below.set(xlabel="time (s)", ylabel="after adaptation")
plt.show()
