"""Formats of what is written: their names alone, so that a command line knows them at once."""

from pathlib import Path
from typing import Literal

LogFormat = Literal["sqlite", "csv", "jsonl", "parquet"]
SoundFormat = Literal["flac", "wav"]

ROW_FORMATS = ("csv", "jsonl")
"""Of rows, which is also the ending of their files."""

FILE_FORMATS = (*ROW_FORMATS, "parquet")
"""And of those in a file, also the one that nobody can read before its end."""

LOG_FORMATS: tuple[LogFormat, ...] = ("sqlite", "csv", "jsonl", "parquet")
"""Of the rows in a log, the default first."""

SOUND_FORMATS: tuple[SoundFormat, ...] = ("flac", "wav")
"""Of the sound in a log, the default first."""

WHOLE_COMMENT = b"amts"
"""Chunk of a WAV file with a comment that is too long for libsndfile."""


def header_path(rows: Path) -> Path:
    """Where the header of a CSV file is that does not begin with it."""
    return rows.with_name(f"{rows.name}.header.json")
