"""Where numbers go: rows with a header, as CSV or as JSON lines; transitions to learn from."""

from amt_stream.outputs.csv import CsvWriter
from amt_stream.outputs.joined import JoinedRows
from amt_stream.outputs.jsonl import JsonLinesWriter
from amt_stream.outputs.latest import LatestReadings
from amt_stream.outputs.live import LiveRows, SteppedRows, loudness_rows
from amt_stream.outputs.modulation import (
    EARS,
    MODULATION_COLUMNS,
    RANGE_DB,
    ModulationRows,
    Strongest,
    below_db,
    hz_text,
    strongest,
)
from amt_stream.outputs.readings import READINGS, Readings, readings_of
from amt_stream.outputs.recorder import TransitionRecorder
from amt_stream.outputs.rows import BAND_COLUMNS, COLUMNS, MARKS, Writer, header, rows, uncertainty
from amt_stream.outputs.words import (
    FAULT_WORDS,
    HIGHEST_PHON,
    band_texts,
    fault_words,
    phon_text,
    reading_text,
)

FORMATS: dict[str, type[Writer]] = {"csv": CsvWriter, "jsonl": JsonLinesWriter}
"""Writers by the name of their format, which is also the ending of their files."""

__all__ = [
    "BAND_COLUMNS",
    "COLUMNS",
    "EARS",
    "FAULT_WORDS",
    "FORMATS",
    "HIGHEST_PHON",
    "MARKS",
    "MODULATION_COLUMNS",
    "RANGE_DB",
    "READINGS",
    "CsvWriter",
    "JoinedRows",
    "JsonLinesWriter",
    "LatestReadings",
    "LiveRows",
    "ModulationRows",
    "Readings",
    "SteppedRows",
    "Strongest",
    "TransitionRecorder",
    "Writer",
    "band_texts",
    "below_db",
    "fault_words",
    "header",
    "hz_text",
    "loudness_rows",
    "phon_text",
    "reading_text",
    "readings_of",
    "rows",
    "strongest",
    "uncertainty",
]
