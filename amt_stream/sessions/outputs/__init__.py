"""Where rows go: written as CSV or as JSON lines, kept to be shown, or recorded to learn from."""

from amt_stream.sessions.outputs.csv import CsvWriter
from amt_stream.sessions.outputs.jsonl import JsonLinesWriter
from amt_stream.sessions.outputs.latest import FollowedReadings, LatestReadings
from amt_stream.sessions.outputs.live import LiveRows, LiveWriter
from amt_stream.sessions.outputs.parquet import ParquetWriter
from amt_stream.sessions.outputs.recorder import TransitionRecorder

FORMATS: dict[str, type[LiveWriter]] = {"csv": CsvWriter, "jsonl": JsonLinesWriter}
"""Writers by the name of their format, which is also the ending of their files."""

WRITERS: dict[str, type[LiveWriter]] = {**FORMATS, "parquet": ParquetWriter}
"""And of those in a file, also the one that nobody can read before its end."""

__all__ = [
    "FORMATS",
    "WRITERS",
    "CsvWriter",
    "FollowedReadings",
    "JsonLinesWriter",
    "LatestReadings",
    "LiveRows",
    "LiveWriter",
    "ParquetWriter",
    "TransitionRecorder",
]
