"""The gain at which a sound has a wanted loudness, found by the gradient of its loudness.

python apps/fit_gain.py        a tone of 1 kHz at 50 dB SPL, to be 1 sone loud: 40 dB, gain -10 dB
"""

import math
from collections.abc import Callable

import torch

from amt_stream import LoudnessLoss

FS, SECONDS, WANTED_SONE = 32000, 0.25, 1.0


def main() -> None:
    torch.set_num_threads(1)
    time = torch.arange(int(FS * SECONDS)) / FS
    tone = 20e-6 * 10 ** (50 / 20) * math.sqrt(2) * torch.sin(2 * math.pi * 1000 * time)
    sound = tone.expand(1, 2, -1)  # one listener, the same in both ears
    loss = LoudnessLoss(FS, of="stl", unit="doublings", skip_s=SECONDS - 0.02)
    gain_db = torch.zeros((), requires_grad=True)
    optimizer = torch.optim.LBFGS([gain_db], max_iter=8, line_search_fn="strong_wolfe")

    def distance() -> torch.Tensor:
        optimizer.zero_grad()
        squares: torch.Tensor = loss(sound * 10 ** (gain_db / 20), target=WANTED_SONE)
        torch.autograd.backward(squares)
        print(f"gain {gain_db.item():6.2f} dB: {math.sqrt(squares.item()):.3f} doublings off")
        return squares

    # LBFGS takes a closure that gives a tensor, which torch's own types do not say.
    step: Callable[[Callable[[], torch.Tensor]], object] = optimizer.step
    step(distance)
    print(f"{gain_db.item():.1f} dB")


if __name__ == "__main__":
    main()
