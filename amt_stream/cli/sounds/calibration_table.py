"""The table of --calibrations: CSV as any spreadsheet saves it, or a workbook."""

import unicodedata
from collections.abc import Iterator, Mapping
from pathlib import Path

from amt_stream.cli.messages import Mistake
from amt_stream.core import tables
from amt_stream.core.files import NotThatFile, decoded, small_content
from amt_stream.core.safe_text import brief
from amt_stream.core.workbooks import OLD_SIGNATURE, SIGNATURE, read_workbook
from amt_stream.meters.calibration import Calibration

FULL_SCALE, SENSITIVITY = "full_scale_db", "sensitivity_dbfs"
"""Columns of the table: the level of a full-scale sine in dB SPL, or the level in dBFS of a sine of
94 dB SPL, as in data sheets of digital microphones."""

COLUMNS = [sorted(["file", "channel", level]) for level in (FULL_SCALE, SENSITIVITY)]


def calibration_table(path: Path) -> dict[tuple[str, int | None], Calibration]:
    """Read calibrations by file, as `name_in_table`, and channel; an empty cell stands for all.

    Raises Mistake with the line if it is not such a table.
    """
    try:
        content = small_content(path)
        if content.startswith(OLD_SIGNATURE):
            raise tables.TableError(
                "it is a workbook of an old Excel (.xls): save it as .xlsx or CSV"
            )
        is_workbook = content.startswith(SIGNATURE)
        names, records = tables.records_in(
            _lines_of_workbook(path) if is_workbook else tables.lines_in(decoded(content))
        )
    except NotThatFile as error:
        raise Mistake(f"{path} {error}") from error
    except tables.TableError as error:
        raise Mistake(f"{path}: {error}") from error
    except UnicodeDecodeError as error:
        raise Mistake(f"{path} is not text: save the table as CSV in UTF-8") from error
    if sorted(names) not in COLUMNS:
        raise Mistake(
            f"{path} has the columns {brief(','.join(names))}: give file,channel,{FULL_SCALE} or "
            f"file,channel,{SENSITIVITY}"
        )
    found: dict[tuple[str, int | None], Calibration] = {}
    for place, row in records:
        where = f"{path}, line {place}"
        try:
            channel = _channel(row["channel"]) if row["channel"] else None
            level = Calibration(_full_scale_db(row), source=str(path))
        except ValueError as error:
            raise Mistake(f"{where}: {brief(error)}") from error
        key = name_in_table(row["file"]), channel
        if key in found:
            raise Mistake(f"{where}: {key[0]} channel {channel} is listed twice")
        found[key] = level
    return found


def name_in_table(name: str) -> str:
    """A file name as tables and files of all systems agree on it: / between folders, composed."""
    return unicodedata.normalize("NFC", name).replace("\\", "/")


def _channel(text: str) -> int:
    channel = tables.whole_number(text)
    if channel < 1:
        raise ValueError(f"channel is {channel}: channels are counted from 1")
    return channel


def _full_scale_db(row: Mapping[str, str]) -> float:
    if FULL_SCALE in row:
        return tables.decimal_number(row[FULL_SCALE])
    return 94.0 - tables.decimal_number(row[SENSITIVITY])


def _lines_of_workbook(path: Path) -> Iterator[tables.Line]:
    for place, row in enumerate(read_workbook(path), 1):
        cells = ["" if value is None else str(value) for value in row]
        if any(map(str.strip, cells)) and not cells[0].startswith("#"):
            yield place, cells
