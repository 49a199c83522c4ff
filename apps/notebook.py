"""A live line in a notebook: `await show(engine)` in a cell shows readings until it is interrupted.

python apps/notebook.py        the same without a notebook: a tone of 60 dB SPL, for two seconds
"""

import asyncio
from typing import Any

from amt_stream import Engine, Moore2016, SignalSource, Tone


def words(row: dict[str, Any]) -> str:
    doubt = "" if row["calibrated"] else " (uncalibrated)"
    levels = f"STL {row['stl_phon']:5.1f}   LTL {row['ltl_phon']:5.1f} phon"
    return f"{row['time_s']:5.1f} s   {levels}{doubt}"


async def show(engine: Engine) -> None:
    """Replace one line of a cell's output, or print lines where there is no notebook."""
    try:
        from IPython.display import display

        line = display("...", display_id=True)
    except ImportError:
        line = None
    async for rows in engine.rows(step_ms=200):
        *_, newest = rows
        print(words(newest)) if line is None else line.update(words(newest))


async def main() -> None:
    source = SignalSource([Tone(1000.0, level_db=60.0)], duration=2.0)
    with Engine(source, Moore2016(fs=source.fs)) as engine:
        await show(engine)


if __name__ == "__main__":
    asyncio.run(main())
