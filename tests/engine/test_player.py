"""A sound that is played in a loop says when it had a pause."""

import os
import signal
import time

import numpy as np

from amt_stream.engine.devices.player import Player

FS = 48000


def test_a_pause_is_counted(virtual_mic):
    """As when the computer is too slow: the player gets no time for longer than it has sound.

    For how long it has some, the sound server decides: on a busy computer for longer.
    """
    with Player(np.zeros(FS, np.float32), FS) as player:
        before, paused_s = player.interruptions, 2.0
        end = time.monotonic() + 60
        while player.interruptions == before and time.monotonic() < end:
            os.kill(player._process.pid, signal.SIGSTOP)
            try:
                time.sleep(paused_s)
            finally:
                os.kill(player._process.pid, signal.SIGCONT)
            paused_s *= 1.5
            time.sleep(0.5)
        assert player.interruptions > before
