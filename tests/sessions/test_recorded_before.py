"""Sessions recorded before modules and settings got new names are measured again as they were."""

import contextlib
import re
import shutil
import sqlite3
from pathlib import Path

import pytest

from amt_stream.sessions.replay import replay_session

RECORDED = Path(__file__).parents[1] / "data" / "before" / "recorded.zip"


def in_classes_of_today(folder):
    """Percentiles of silence are not those of the lowest class: levels are null, loudness 0."""
    for path in folder.glob("rows*.csv"):
        path.write_text(path.read_text().replace("0.0009767317", "0.0"))
    for path in folder.glob("rows.sqlite"):
        with contextlib.closing(sqlite3.connect(path)) as database:
            names = [name for _, name, *_ in database.execute("PRAGMA table_info(rows)")]
            for name in {"l10_db", "l50_db", "l90_db"}.intersection(names):
                database.execute(f"UPDATE rows SET {name} = NULL WHERE {name} = 0.025")
            database.commit()


@pytest.mark.parametrize("name", ["moore2016", "levels", "zwicker"])
def test_a_session_is_measured_again_as_it_was(tmp_path, name):
    """With equal digests; the processor of another computer may round a last digit otherwise."""
    shutil.unpack_archive(RECORDED, tmp_path)
    in_classes_of_today(tmp_path / name)
    found = replay_session(tmp_path / name)
    assert found.rows == 11
    if not found.same:
        was, now = re.search(r" was (\S+) and is (\S+)$", found.differs).groups()
        assert float(now) == pytest.approx(float(was), rel=1e-5), found.differs
