"""Rows of readings in an asyncio program, beside whatever else it does.

python apps/rows_async.py        a tone of 60 dB SPL, for two seconds
"""

import asyncio

from amt_stream import Engine, Moore2016, SignalSource, Tone


async def listen(engine: Engine) -> None:
    async for rows in engine.rows(step_ms=200):
        for row in rows:
            print(f"{row['time_s']:4.1f} s {row['ltl_phon']:5.1f} phon {row['fault']}")


async def other_work() -> int:
    turns = 0
    while True:
        turns += 1
        try:
            await asyncio.sleep(0.01)
        except asyncio.CancelledError:
            return turns


async def main() -> None:
    source = SignalSource([Tone(1000.0, level_db=60.0)], duration=2.0)
    with Engine(source, Moore2016(fs=source.fs)) as engine:
        working = asyncio.create_task(other_work())
        await listen(engine)
        working.cancel()
        print(f"{await working} turns of other work meanwhile")


if __name__ == "__main__":
    asyncio.run(main())
