"""Collects what the long runs measured and writes it to RESULTS.md beside this file."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from amt_stream import __version__
from amt_stream.offline.benchmark import machine

RESULTS = Path(__file__).with_name("RESULTS.md")


@pytest.fixture(scope="session")
def record() -> Iterator[Callable[[str, str], None]]:
    """`record(what, figure)`: print a figure now, and keep it as a row of RESULTS.md.

    Rows of tests that did not run stay as they were, with their own date.
    """
    rows: dict[str, str] = {}
    if RESULTS.exists():
        for line in RESULTS.read_text(encoding="utf-8").splitlines():
            if line.startswith("| 20"):
                rows[line.split(" | ")[1]] = line

    def keep(what: str, figure: str) -> None:
        print(f"\n{what}: {figure}")
        rows[what] = f"| {datetime.now(UTC):%Y-%m-%d} | {what} | {figure} |"

    yield keep
    head = [
        "# What `make soak` measured last",
        "",
        f"amt_stream {__version__}, {machine()}",
        "",
        "| date | what | figure |",
        "|---|---|---|",
    ]
    RESULTS.write_text("\n".join([*head, *rows.values(), ""]), encoding="utf-8")
