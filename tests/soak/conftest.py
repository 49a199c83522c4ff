"""Collects what the long runs measured and writes it to RESULTS.md beside this file."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from amt_stream import __version__
from tests.bench.machine import machine

RESULTS = Path(__file__).with_name("RESULTS.md")


@pytest.fixture(scope="session")
def record() -> Iterator[Callable[[str, str], None]]:
    """`record(what, figure)`: print a figure now, and keep it as a row of RESULTS.md."""
    rows: list[tuple[str, str]] = []

    def keep(what: str, figure: str) -> None:
        print(f"\n{what}: {figure}")
        rows.append((what, figure))

    yield keep
    head = [
        "# What `make soak` measured last",
        "",
        f"{datetime.now(UTC):%Y-%m-%d}, amt_stream {__version__}, {machine()}",
        "",
        "| what | figure |",
        "|---|---|",
    ]
    table = [f"| {what} | {figure} |" for what, figure in rows]
    RESULTS.write_text("\n".join([*head, *table, ""]), encoding="utf-8")
