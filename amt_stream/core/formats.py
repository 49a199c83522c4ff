"""Names of formats; importing them is cheap, so a command line can list them."""

from pathlib import Path
from typing import Literal

LogFormat = Literal["sqlite", "csv", "jsonl", "parquet"]
SoundFormat = Literal["flac", "wav"]

ROW_FORMATS = ("csv", "jsonl")
"""Formats of rows, and their file extensions."""

FILE_FORMATS = (*ROW_FORMATS, "parquet", "xlsx")
"""Formats of rows in a file; the last two cannot be read before the file is complete.

xlsx is for intervals and summaries only.
"""

LOG_FORMATS: tuple[LogFormat, ...] = ("sqlite", "csv", "jsonl", "parquet")
"""Formats of the rows in a log, the default first."""

SOUND_FORMATS: tuple[SoundFormat, ...] = ("flac", "wav")
"""Formats of the audio in a log, the default first."""

PAPERS = ("a4", "letter")
"""Paper sizes of reports, the default first."""

WAYS = {
    "pcm16": "a WAV file of 16 bits",
    "float": "a WAV file of floating-point numbers",
    "cd": "a WAV file of 16 bits at 44.1 kHz",
    "pipe": "PCM of 24 bits from a pipe, live",
    "device": "blocks as of a device, live",
}
"""Ways in which the self-test plays sounds, the usual one first."""

WHOLE_COMMENT = b"amts"
"""WAV chunk that holds a comment too long for libsndfile."""


def header_path(rows: Path) -> Path:
    """Path of the header of a CSV file that does not contain it."""
    return rows.with_name(f"{rows.name}.header.json")
