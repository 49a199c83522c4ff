"""A sound that is played in a loop says when it had a pause."""

import os
import signal
import time

import numpy as np

from amt_stream.engine.devices.player import Player

FS = 48000


def test_a_pause_is_counted(virtual_mic):
    """As when the computer is too slow: the player gets no time for longer than it has sound."""
    with Player(np.zeros(FS, np.float32), FS) as player:
        time.sleep(0.5)
        before = player.interruptions
        os.kill(player._process.pid, signal.SIGSTOP)
        try:
            time.sleep(3.0)
        finally:
            os.kill(player._process.pid, signal.SIGCONT)
        end = time.monotonic() + 20
        while player.interruptions == before and time.monotonic() < end:
            time.sleep(0.1)
        assert player.interruptions > before
