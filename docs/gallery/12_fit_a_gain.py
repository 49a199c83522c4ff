"""
Loudness as a loss
==================

A gain learns to make noise 4 sone loud: the gradient passes through the whole loudness model.
"""

import matplotlib.pyplot as plt
import torch

from amt_stream import LoudnessLoss

FS = 32000
noise = torch.randn(1, 1, 4800, generator=torch.Generator().manual_seed(4)).expand(1, 2, -1)
loss = LoudnessLoss(fs=FS, of="stl", unit="doublings", skip_s=0.1)
gain_db = torch.tensor(-70.0, requires_grad=True)
optimizer = torch.optim.SGD([gain_db], lr=30.0)

distances, gains = [], []
for _ in range(15):
    optimizer.zero_grad()
    distance = loss(10 ** (gain_db / 20) * noise, target=4.0)
    distance.backward()
    optimizer.step()
    distances.append(distance.item())
    gains.append(gain_db.item())

figure, (above, below) = plt.subplots(2, 1, sharex=True, layout="constrained")
above.plot(gains)
above.set_ylabel("gain (dB)")
below.semilogy(distances)
below.set(xlabel="step", ylabel="squared doublings")
plt.show()
