"""Limits of the command line, and the report of them at the end."""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from amt_stream.cli.messages import Mistake, WrongUsage, say
from amt_stream.core.json_types import JsonMap
from amt_stream.meters.limits import Limit
from amt_stream.meters.norms import limits_of
from amt_stream.meters.output_settings import EXCEEDED, LimitSettings

if TYPE_CHECKING:
    from amt_stream.meters.presets import Preset
    from amt_stream.meters.table import Table

UNJUDGED = CUT_OFF = 1


def typed_limits(args: LimitSettings) -> tuple[Limit, ...]:
    """The limits of --limit. Raises LimitError."""
    return limits_of(args.limit)


def require_limits(args: LimitSettings, preset: "Preset") -> None:
    """Raise WrongUsage for --fail-above without limits."""
    if args.fail_above and not preset.limits:
        raise WrongUsage("--fail-above needs limits: add --limit NORM or 'COLUMN>VALUE'")


def refuse_uncalibrated(args: LimitSettings, table: "Table") -> None:
    """Raise Mistake for --fail-above if the sound's lack of calibration leaves a limit unknown."""
    if not args.fail_above or all(one.calibrated for one in table.sound.calibration):
        return
    for limit in table.rows.limits:
        for one in table.rows.readings.values():
            if one.in_pascal and any(column.name == limit.column for column in one.columns):
                raise Mistake(
                    f"{limit.words}: {table.sound.name} is not calibrated, so --fail-above cannot "
                    "check it; --full-scale-db DB gives the true level"
                )


def report_limits(
    status: int,
    limits: Iterable[tuple[str, Mapping[str, object]]],
    args: LimitSettings,
    cut_off: bool,
) -> int:
    """Report limits that were exceeded or never known, and return the exit status.

    status: exit status without limits, which is returned if it is an error
    limits: name of the sound, or "" if there is only one, and the summary of the limit
    cut_off: whether sound is missing at the end of one
    """
    worst = 0
    for name, limit in limits:
        words = _words(limit)
        if words:
            say(f"{name}: {words}" if name else words)
        if limit["exceeded"] is not False:
            worst = max(worst, EXCEEDED if limit["exceeded"] else UNJUDGED)
    # What is exceeded in a part of a sound is so in the whole.
    return status or (worst if args.fail_above else 0) or (CUT_OFF if cut_off else 0)


def _words(limit: JsonMap) -> str:
    """The report of one limit, or "" if it was kept."""
    name, column = limit["name"], limit["column"]
    side = "above" if "above" in limit else "below"
    from amt_stream.meters.rows.limit_words import unknown_words, window_words, worst_words

    value = worst_words(limit)
    if limit["exceeded"] is None:
        if limit["whole"] or limit["worst"] is None:
            return f"{name}: {column} {unknown_words(limit)}"
        return f"{name}: {column} is {value} so far, {window_words(limit)}"
    if not limit["exceeded"]:
        return ""
    if limit.get("at_end"):
        return f"{name}: {column} ended at {value}, {side} {limit[side]:g}"
    worst = f"{value} at worst, at {limit['worst_s']:g} s"
    if not limit["whole"]:
        worst = f"{value} so far, {window_words(limit)}"
    return f"{name}: red for {limit['red_s']:g} s, {column} {side} {limit[side]:g}: {worst}"
