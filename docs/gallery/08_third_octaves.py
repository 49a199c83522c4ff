"""
Third octaves
=============

Levels of the third octaves of pink noise with a hum at 100 Hz and a tone at 2 kHz, by the filters
of IEC 61260-1.
"""

import matplotlib.pyplot as plt
import torch

from amt_stream import ThirdOctaves

FS = 48000
generator = torch.Generator().manual_seed(3)
spectrum = torch.fft.rfft(torch.randn(5 * FS, generator=generator))
pink = torch.fft.irfft(spectrum / torch.arange(spectrum.numel()).clamp(min=100).sqrt())
t = torch.arange(5 * FS) / FS
sound = 0.02 * pink / pink.std()
sound = sound + 0.02 * torch.sin(2 * torch.pi * 100 * t) + 0.02 * torch.sin(2 * torch.pi * 2000 * t)

bank = ThirdOctaves(fs=FS)
mean_square = bank(sound).mean_square[..., 50:].mean(dim=-1)  # without the first half second
level_db = 10 * torch.log10(mean_square / 2e-5**2)

plt.figure(layout="constrained")  # room for the upright labels
plt.bar(range(len(level_db)), level_db, width=0.9)
plt.xticks(range(0, len(level_db), 3), [f"{fc:g}" for fc in bank.nominal[::3]], rotation=90)
plt.ylim(20, 70)
plt.xlabel("third octave (Hz)")
plt.ylabel("level (dB SPL)")
plt.show()
