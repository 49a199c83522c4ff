"""What a row of readings is: its columns, their values at a time, what goes before them all."""

from amt_stream.rows.joined import JoinedRows
from amt_stream.rows.modulation import (
    EARS,
    MODULATION_COLUMNS,
    RANGE_DB,
    ModulationRows,
    Strongest,
    below_db,
    hz_text,
    strongest,
)
from amt_stream.rows.readings import Readings, readings_of
from amt_stream.rows.row import BAND_COLUMNS, COLUMNS, MARKS, Writer, header, rows, uncertainty
from amt_stream.rows.words import (
    FAULT_WORDS,
    HIGHEST_PHON,
    band_texts,
    fault_words,
    phon_text,
    reading_text,
)

__all__ = [
    "BAND_COLUMNS",
    "COLUMNS",
    "EARS",
    "FAULT_WORDS",
    "HIGHEST_PHON",
    "MARKS",
    "MODULATION_COLUMNS",
    "RANGE_DB",
    "JoinedRows",
    "ModulationRows",
    "Readings",
    "Strongest",
    "Writer",
    "band_texts",
    "below_db",
    "fault_words",
    "header",
    "hz_text",
    "phon_text",
    "reading_text",
    "readings_of",
    "rows",
    "strongest",
    "uncertainty",
]
