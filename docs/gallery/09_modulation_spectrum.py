"""
A modulated tone through a modulation filterbank
================================================

A tone of 1 kHz whose level goes up and down 8 times a second, in the model of King et al. (2019):
the modulation filter near 8 Hz of the auditory band at 1 kHz gives most.
"""

import matplotlib.pyplot as plt
import torch

from amt_stream import King2019

FS = 48000
t = torch.arange(2 * FS) / FS
tone = 0.1 * (1 + torch.sin(2 * torch.pi * 8 * t)) * torch.sin(2 * torch.pi * 1000 * t)

model = King2019(fs=FS, basef=1000.0)  # five bands, 1 ERB apart
filtered = model(tone)  # (time, band, modulation)
rms = filtered[FS:].square().mean(dim=0).sqrt()

for band, name in ((0, "2 ERB below"), (2, "1 kHz"), (4, "2 ERB above")):
    plt.semilogx(model.mfc, 1e6 * rms[band], "o-", label=name)
plt.xlabel("center of the modulation filter (Hz)")
plt.ylabel("RMS of its output (millionths of a model unit)")
plt.legend()
plt.show()
