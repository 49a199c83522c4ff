"""Columns of rows: what each is called, and what its numbers are."""

import difflib
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

RENEWED = "renewed every 0.1 s of sound, held between"
"""Of a statistic that is dear to tell."""


QUANTITIES = {"sone": "loudness", "phon": "loudness level"}
"""What is told in these units."""


class NoSuchColumn(ValueError):
    """A column was asked for that no model gives; the message names the nearest."""


@dataclass(frozen=True)
class Column:
    """One column: its name, which ends in its unit, and what its numbers are.

    `statistic` is "instantaneous" for what a model gives at that time, or what was made of all that
    is counted until then. `note` tells what else has to be known, such as how often it is renewed.
    """

    name: str
    unit: str
    quantity: str
    model: str = ""
    statistic: str = "instantaneous"
    note: str = ""

    def to_dict(self) -> dict[str, Any]:
        """As a header tells it."""
        return {key: value for key, value in asdict(self).items() if value or key != "note"}


def no_such_column(name: str, offered: Sequence[str]) -> str:
    """What to say of a column that is not there."""
    near = difflib.get_close_matches(name, offered, n=1, cutoff=0.5)
    remedy = f"did you mean {near[0]}?" if near else f"there are {', '.join(offered)}"
    return f"no column is called {name!r}: {remedy}"
