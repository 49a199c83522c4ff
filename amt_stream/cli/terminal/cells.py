"""Readings of one quantity together, in each of its units."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from amt_stream.meters.names import stem_and_unit
from amt_stream.meters.rows import NO_READING
from amt_stream.meters.rows.captions import HEADLINES, caption_of, row_text


class Cell(NamedTuple):
    """A number with its names: of one quantity, in each of its units."""

    words: str
    symbol: str
    names: tuple[str, ...]

    @property
    def short(self) -> str:
        return self.symbol or self.words

    def values(self, values: Mapping[str, Any], lost: bool = False) -> list[tuple[str, str]]:
        """Each number as text, with its unit."""
        return [
            (NO_READING if lost else row_text(name, values), caption_of(name).unit)
            for name in self.names
        ]


def number_cells(names: Iterable[str]) -> list[Cell]:
    """Readings in order, those of one symbol and several units together; bounds are left out."""
    cells: dict[tuple[str, str], Cell] = {}
    for name in names:
        caption = caption_of(name)
        if caption.bound_of:
            continue
        key = stem_and_unit(name)[0], caption.symbol or name
        old = cells.get(key, Cell(caption.words, caption.symbol, ()))
        cells[key] = old._replace(names=(*old.names, name))
    return list(cells.values())


def first_numbers(cells: Sequence[Cell]) -> list[Cell]:
    """The cells with the main number first."""
    main = next((cell for name in HEADLINES for cell in cells if name in cell.names), None)
    return [*cells] if main is None else [main, *(cell for cell in cells if cell is not main)]


def cell_lines(groups: Mapping[str, Iterable[str]], values: Mapping[str, Any]) -> list[str]:
    """Each reading that has a value as text, as "LTL 4.00 sone  60.0 phon".

    groups: the names of the readings of each model; a symbol that several models have follows the
        name of its model
    """
    cells = [(model, cell) for model, names in groups.items() for cell in number_cells(names)]
    models: dict[str, set[str]] = {}
    for model, cell in cells:
        models.setdefault(cell.short, set()).add(model)
    lines = []
    for model, cell in cells:
        own = [name for name in cell.names if values.get(name) is not None]
        if own:
            whose = f"{model} " if len(models[cell.short]) > 1 else ""
            numbers = map(" ".join, cell._replace(names=tuple(own)).values(values))
            lines.append(f"{whose}{cell.short} {'  '.join(numbers).rstrip()}")
    return lines
