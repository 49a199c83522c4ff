"""The models that columns need: those that run if nobody chose models."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from amt_stream.core.settings import PresetError
from amt_stream.meters import catalog
from amt_stream.meters.limits import Limit
from amt_stream.meters.presets import Preset

if TYPE_CHECKING:
    from amt_stream.meters.rows import Readings

LEVELS = "spl"
"""The model of A-weighted levels, which intervals, reports and levels of day and night need."""

Reasons = dict[str, list[str]]
"""Models by name, each with what needs it; nothing for the default model."""


class WantedColumn(NamedTuple):
    """A column that is asked for: its name or a pattern, what asks, and words for an error."""

    column: str
    reason: str
    words: str = ""


def asked_by_limits(limits: Iterable[Limit], reason: str = "--limit") -> list[WantedColumn]:
    return [WantedColumn(limit.column, reason, limit.words) for limit in limits]


def models_for(
    columns: Iterable[WantedColumn],
    levels: Sequence[str] = (),
    options: Mapping[str, str] | None = None,
    outputs: Mapping[str, str] | None = None,
) -> Reasons:
    """The models to run, and why: those of the columns, or the default one, and LEVELS.

    columns: of several models that have a column, the first one runs
    levels: what needs A-weighted levels
    options: options of readings by name, such as target_lufs, each with what asks for it
    outputs: outputs of models by name, each with what asks for it

    Raises NoSuchColumn for a column that no model has.
    """
    pairs = models_with(columns)
    every = catalog.entries().items()
    for name, reason in (options or {}).items():
        pairs += [(key, reason) for key, one in every if name in one.readings_take][:1]
    for name, reason in (outputs or {}).items():
        pairs += [(key, reason) for key, one in every if name in one.outputs][:1]
    pairs = pairs or [(catalog.DEFAULT, "")]
    found: Reasons = {}
    for model, reason in (*pairs, *((LEVELS, reason) for reason in levels)):
        reasons = found.setdefault(model, [])
        if reason and reason not in reasons:
            reasons.append(reason)
    return found


def models_with(columns: Iterable[WantedColumn]) -> list[tuple[str, str]]:
    """The models that have these columns, the first one for each, with what asks for it.

    Models that a column is computed from are included. Raises NoSuchColumn.
    """
    columns = tuple(columns)
    if not columns:
        return []
    from amt_stream.meters.rows import widest_readings

    readings = widest_readings(catalog.models_side_by_side())
    pairs = [(model, one.reason) for one in columns for model in _models_of(one, readings)]
    return list(dict.fromkeys(pairs))


def _models_of(asked: WantedColumn, readings: "Mapping[str, Readings]") -> list[str]:
    from amt_stream.meters.rows import NoSuchColumn
    from amt_stream.meters.rows.column import no_such_column

    def first(name: str) -> str | None:
        return next((model for model, one in readings.items() if one.matching(name)), None)

    model = first(asked.column)
    if model is None:
        offered = [column.name for one in readings.values() for column in one.offered]
        words = f"{asked.words}: " if asked.words else ""
        raise NoSuchColumn(f"{words}{no_such_column(asked.column, offered)}")
    needs = [need for column in readings[model].matching(asked.column) for need in column.needs]
    return [model, *filter(None, map(first, needs))]


def refuse_no_such_columns(preset: Preset, columns: Iterable[WantedColumn]) -> None:
    """Raise NoSuchColumn for a column that no model of the preset may have.

    Columns of a chain, and of a model that runs alone, follow from the made model.
    """
    columns = tuple(columns)
    if not columns or preset.stages or any(entry.alone for entry in preset.entries):
        return
    from amt_stream.meters.rows import NoSuchColumn, choose, widest_readings

    readings = widest_readings(preset.names)
    for one in columns:
        try:
            choose(readings, None, [one.column])
        except NoSuchColumn as error:
            raise NoSuchColumn(f"{one.words}: {error}" if one.words else str(error)) from None


def refuse_no_impulses(preset: Preset, asked: str) -> None:
    """Raise PresetError if `asked` is about single impulses, and no model counts them."""
    if not {"impulses", "rating"} & {*preset.names}:
        raise PresetError(
            f"{asked} is for the models impulses and rating, and not for {preset.where}: add "
            "--model rating, or leave it out"
        )
