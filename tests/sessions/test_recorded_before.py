"""Sessions recorded before modules and settings got new names are measured again as they were."""

import re
import shutil
from pathlib import Path

import pytest

from amt_stream.sessions.replay import replay_session

RECORDED = Path(__file__).parents[1] / "data" / "before" / "recorded.zip"


@pytest.mark.parametrize("name", ["moore2016", "levels", "zwicker"])
def test_a_session_is_measured_again_as_it_was(tmp_path, name):
    """With equal digests; the processor of another computer may round a last digit otherwise."""
    shutil.unpack_archive(RECORDED, tmp_path)
    found = replay_session(tmp_path / name)
    assert found.rows == 11
    if not found.same:
        was, now = re.search(r" was (\S+) and is (\S+)$", found.differs).groups()
        assert float(now) == pytest.approx(float(was), rel=1e-5), found.differs
