"""The automatic gain control: microseconds a block, and what learning its coefficients costs."""

import time

import numpy as np
import pytest
import torch

from amt_stream import Moore2016AGC, Stream
from amt_stream.offline.benchmark import machine

pytestmark = pytest.mark.bench


def cpu_us(f, times):
    """Thread CPU microseconds of each of `times` calls."""
    taken = []
    for _ in range(times):
        start = time.thread_time_ns()
        f()
        taken.append((time.thread_time_ns() - start) / 1e3)
    return taken[times // 10 :]


def test_block_of_150_channels():
    torch.set_num_threads(1)
    live = Stream(Moore2016AGC(), (1, 150))
    x = torch.rand(1, 10, 150)
    with torch.inference_mode():
        taken = cpu_us(lambda: live(x), 3000)
    print(f"\n{machine()}")
    print("Moore2016AGC, 150 channels, thread CPU microseconds per 10 frames, through Stream")
    print(f"  median {np.median(taken):.1f}   p99 {np.percentile(taken, 99):.1f}")


def test_learning_against_a_loop_over_frames():
    """Forward and backward of one second: ours beside the same recurrence in eager torch."""
    torch.set_num_threads(1)
    stage, x = Moore2016AGC(learnable=True), torch.rand(1000, 150)

    def ours():
        stage(x).sum().backward()

    def eager():
        attack, release = stage.attack_alpha, stage.release_alpha
        y, frames = torch.zeros(150), []
        for frame in x:
            y = y + torch.where(frame > y, attack, release) * (frame - y)
            frames.append(y)
        torch.stack(frames).sum().backward()

    fast, slow = np.median(cpu_us(ours, 50)), np.median(cpu_us(eager, 10))
    print("Moore2016AGC, learnable, 1000 frames of 150 channels, forward and backward")
    print(f"  ours {fast / 1e3:.2f} ms   eager loop {slow / 1e3:.1f} ms   {slow / fast:.0f} times")
