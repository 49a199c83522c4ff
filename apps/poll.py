"""The newest readings, for a program that looks when it likes, as a display does.

python apps/poll.py        a tone that goes up and down, for two seconds
"""

import time

from amt_stream import Engine, Moore2016, am_tone_source


def main() -> None:
    source = am_tone_source(duration=2.0)
    with Engine(source, Moore2016(fs=source.fs)) as engine:
        while not engine.wait(timeout=0.0):
            row = engine.latest()
            if row is not None:
                bar = "#" * round(row["stl_phon"] / 2)
                print(f"{row['time_s']:4.1f} s {row['stl_phon']:5.1f} phon {bar}")
            time.sleep(0.1)


if __name__ == "__main__":
    main()
