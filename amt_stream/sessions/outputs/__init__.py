"""Outputs of rows: files of CSV, JSON lines or Parquet, the latest for display, and a recorder."""

from amt_stream.sessions.outputs.csv import CsvWriter
from amt_stream.sessions.outputs.jsonl import JsonLinesWriter
from amt_stream.sessions.outputs.latest import FollowedReadings, LatestReadings
from amt_stream.sessions.outputs.live import LiveRows, LiveWriter
from amt_stream.sessions.outputs.parquet import ParquetWriter
from amt_stream.sessions.outputs.recorder import TransitionRecorder
from amt_stream.sessions.outputs.workbook import WorkbookWriter

FORMATS: dict[str, type[LiveWriter]] = {"csv": CsvWriter, "jsonl": JsonLinesWriter}
"""Writers by format, which is also the ending of their files."""

WRITERS: dict[str, type[LiveWriter]] = {**FORMATS, "parquet": ParquetWriter, "xlsx": WorkbookWriter}
"""Writers for files, including those whose files cannot be read before their end."""

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
    "WorkbookWriter",
]
