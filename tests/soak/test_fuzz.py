"""10,000 files of each kind, and 1,000 command lines, as nobody means them."""

import pytest

from tests.cli.test_fuzz import COUNTS, tried

pytestmark = pytest.mark.soak

AT_ONCE = 1000
"""That one process tries."""


@pytest.mark.parametrize("kind", COUNTS)
def test_whatever_comes_is_done_or_refused_in_a_sentence(forks, tmp_path, record, kind):
    trials = refused = 0
    for seed in range(100, 101 if kind == "commands" else 110):
        folder = tmp_path / str(seed)
        folder.mkdir()
        of_these = tried(forks, kind, AT_ONCE, seed, folder)
        trials, refused = trials + of_these[0], refused + of_these[1]
    record(f"hostile {kind}", f"{trials} tried, {refused} refused in a sentence, none wrong")
