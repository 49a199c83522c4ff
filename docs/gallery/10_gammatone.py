"""
Gammatone filters
=================

The gains of a bank of gammatone filters, from their impulse responses, and the sound of one
filter.
"""

import matplotlib.pyplot as plt
import torch

from amt_stream import GammatoneFilterbank

FS = 48000
fc = torch.tensor([125.0, 250.0, 500.0, 1000.0, 2000.0, 4000.0, 8000.0])
bank = GammatoneFilterbank(fc=fc, fs=FS, dtype=torch.float64)
impulse = torch.zeros(FS, dtype=torch.float64)
impulse[0] = 1.0
response = bank(impulse)  # (band, time)

figure, (above, below) = plt.subplots(2, 1, layout="constrained")
gain_db = 20 * torch.log10(torch.fft.rfft(response).abs() + 1e-9)
above.semilogx(torch.fft.rfftfreq(FS, 1 / FS)[1:], gain_db.T[1:])
above.set(xlim=(50, 20000), ylim=(-60, 5), xlabel="frequency (Hz)", ylabel="gain (dB)")
below.plot(1000 * torch.arange(1200) / FS, response[3, :1200])
below.set(xlabel="time (ms)", ylabel="response at 1 kHz")
plt.show()
