"""What a row of readings is: its columns, their values at a time, what goes before and after."""

from amt_stream.rows.block import AFTER, BEFORE, Rows
from amt_stream.rows.cells import CellReadings, cell_readings
from amt_stream.rows.column import Column, NoSuchColumn
from amt_stream.rows.each import AnyRows, RowsOfEach
from amt_stream.rows.fields import FieldReadings
from amt_stream.rows.header import SCHEMA, header, seven_digits, summary
from amt_stream.rows.joined import JoinedRows
from amt_stream.rows.judge import Judge, Stood
from amt_stream.rows.limited import LimitEvents, columns_of, forecast, limit_words
from amt_stream.rows.loudness import LoudnessReadings
from amt_stream.rows.modulation import (
    EARS,
    RANGE_DB,
    ModulationReadings,
    Strongest,
    below_db,
    hz_text,
    strongest,
)
from amt_stream.rows.programme import ProgrammeReadings
from amt_stream.rows.readings import Readings, choose, readings_of
from amt_stream.rows.sound_level import SoundLevelReadings
from amt_stream.rows.spotted import Spotted, Spotter
from amt_stream.rows.words import (
    FAULT_NAMES,
    FAULT_WORDS,
    HIGHEST_PHON,
    band_texts,
    fault_words,
    phon_text,
    reading_text,
)
from amt_stream.rows.zwicker import ZwickerReadings

__all__ = [
    "AFTER",
    "BEFORE",
    "EARS",
    "FAULT_NAMES",
    "FAULT_WORDS",
    "HIGHEST_PHON",
    "RANGE_DB",
    "SCHEMA",
    "AnyRows",
    "CellReadings",
    "Column",
    "FieldReadings",
    "JoinedRows",
    "Judge",
    "LimitEvents",
    "LoudnessReadings",
    "ModulationReadings",
    "NoSuchColumn",
    "ProgrammeReadings",
    "Readings",
    "Rows",
    "RowsOfEach",
    "SoundLevelReadings",
    "Spotted",
    "Spotter",
    "Stood",
    "Strongest",
    "ZwickerReadings",
    "band_texts",
    "below_db",
    "cell_readings",
    "choose",
    "columns_of",
    "fault_words",
    "forecast",
    "header",
    "hz_text",
    "limit_words",
    "phon_text",
    "reading_text",
    "readings_of",
    "seven_digits",
    "strongest",
    "summary",
]
