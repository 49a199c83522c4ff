"""Published tables, one CSV each; '#' lines name the source, the first other line the columns."""

from functools import cache
from importlib import resources

import numpy as np


@cache
def table(name: str) -> dict[str, np.ndarray]:
    """Columns of `data/NAME.csv` as float64 arrays of one length, read-only."""
    text = resources.files(__package__).joinpath(f"{name}.csv").read_text(encoding="utf-8")
    rows = [line for line in text.splitlines() if line and not line.startswith("#")]
    values = np.array([[float(cell) for cell in row.split(",")] for row in rows[1:]])
    values.setflags(write=False)
    return dict(zip(rows[0].split(","), values.T, strict=True))
