"""Where rows go: written as CSV or as JSON lines, kept to be shown, or recorded to learn from."""

from amt_stream.outputs.csv import CsvWriter
from amt_stream.outputs.jsonl import JsonLinesWriter
from amt_stream.outputs.latest import FollowedReadings, LatestReadings
from amt_stream.outputs.live import LiveRows, Writer
from amt_stream.outputs.parquet import ParquetWriter
from amt_stream.outputs.recorder import TransitionRecorder

FORMATS: dict[str, type[Writer]] = {"csv": CsvWriter, "jsonl": JsonLinesWriter}
"""Writers by the name of their format, which is also the ending of their files."""

WRITERS: dict[str, type[Writer]] = {**FORMATS, "parquet": ParquetWriter}
"""And of those in a file, also the one that nobody can read before its end."""

__all__ = [
    "FORMATS",
    "WRITERS",
    "CsvWriter",
    "FollowedReadings",
    "JsonLinesWriter",
    "LatestReadings",
    "LiveRows",
    "ParquetWriter",
    "TransitionRecorder",
    "Writer",
]
