"""The STI of a signal that is played and recorded, alone and in as much noise."""

from functools import partial

import pytest

from tests.cli.test_stipa import LIVE, heard_without_a_pause, noise_playing

pytestmark = pytest.mark.soak

COUNT = 5
WHAT = "STI of the played test signal after 20 s, 5 times"


@pytest.fixture
def figures(virtual_mic, forks):
    begin = partial(forks.begin, *LIVE, "--duration", 20, "--seed")
    return lambda: [heard_without_a_pause(begin, seed)["sti"] for seed in range(COUNT)]


def test_what_is_played_is_heard(figures, record):
    found = figures()
    record(f"{WHAT}, alone", f"{min(found):.3f} to {max(found):.3f}")
    assert min(found) >= 0.97
    assert max(found) <= 1


def test_as_much_noise_halves_it(figures, tmp_path, record):
    with noise_playing(tmp_path / "noise.wav"):
        found = figures()
    record(f"{WHAT}, in noise at 0 dB", f"{min(found):.3f} to {max(found):.3f}")
    assert found == pytest.approx([0.49] * COUNT, abs=0.02)
