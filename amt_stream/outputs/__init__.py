"""Where numbers go: rows with a header, as CSV or as JSON lines."""

from amt_stream.outputs.csv import CsvWriter
from amt_stream.outputs.jsonl import JsonLinesWriter
from amt_stream.outputs.live import LiveRows
from amt_stream.outputs.rows import COLUMNS, MARKS, Writer, header, picked, rows
from amt_stream.outputs.words import FAULT_WORDS, HIGHEST_PHON, fault_words, phon_text

FORMATS: dict[str, type[Writer]] = {"csv": CsvWriter, "jsonl": JsonLinesWriter}
"""Writers by the name of their format, which is also the ending of their files."""

__all__ = [
    "COLUMNS",
    "FAULT_WORDS",
    "FORMATS",
    "HIGHEST_PHON",
    "MARKS",
    "CsvWriter",
    "JsonLinesWriter",
    "LiveRows",
    "Writer",
    "fault_words",
    "header",
    "phon_text",
    "picked",
    "rows",
]
