"""A function that is called with a row twenty times a second: it tells when a limit is passed.

python apps/alarm.py        twenty seconds of the built-in demo sound, as fast as it goes
"""

from typing import Any

from amt_stream import Engine, RowSink, SoundLevel, demo_source

LIMIT_DB = 58.0


class Alarm:
    """Prints when the level passes the limit, up or down."""

    def __init__(self) -> None:
        self.over = False

    def __call__(self, row: dict[str, Any]) -> None:
        level_db = row["laf_db"]
        if level_db is not None and (level_db > LIMIT_DB) != self.over:
            self.over = not self.over
            words = "above" if self.over else "below"
            print(f"{row['time_s']:5.2f} s: {level_db:.1f} dB, {words} {LIMIT_DB:g} dB")


def main() -> None:
    source = demo_source(duration=20.0, paced=False)
    alarm = RowSink(Alarm(), step_ms=50, columns=["laf_db"])
    with Engine(source, SoundLevel(fs=source.fs), [alarm]) as engine:
        engine.wait()


if __name__ == "__main__":
    main()
