"""Logs to a small disk until it is full, frees it, goes on; prints what came of it as JSON."""

import json
import subprocess
import sys
import time
from pathlib import Path

from amt_stream.engine import Engine, demo_source
from amt_stream.meters.presets import Preset
from amt_stream.meters.specification import RowSettings
from amt_stream.meters.table import Sound, Table
from amt_stream.sessions import Session, SessionError, SessionLog, verify

disk = Path(sys.argv[1])
preset = Preset(("spl",))


def table(source):
    models = preset.models(source.fs, 2)
    sound = Sound("demo", source.fs, (1, 2), [source.calibration], None)
    return models, Table(preset, models, sound, RowSettings(10))


def until(condition):
    give_up = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < give_up
        time.sleep(0.01)


source = demo_source()
models, rows = table(source)
log = SessionLog(disk / "night", rows, format=sys.argv[2] if len(sys.argv) > 2 else "csv")
notes = []
with Engine(source, models, [log]) as engine:
    until(lambda: "cannot be written" in engine.health.note)
    notes.append(engine.health.note)
    heard = engine.health.samples
    until(lambda: engine.health.samples > heard + 2 * source.fs)
    (disk / "filler").unlink()
    until(lambda: "can be written again" in engine.health.note)
    notes.append(engine.health.note)
found = [row["time_s"] for row in Session(log.path).rows()]
word = verify(log.path).word
subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
try:
    SessionLog(disk / "another", table(demo_source())[1])
    refused = ""
except SessionError as error:
    refused = str(error)
told = {"notes": "; ".join(notes), "word": word, "refused": refused, "dropped": log.dropped}
# A busy computer loses some of the sound, and there are no rows in gaps.
gaps = [event for event in engine.events if event.kind == "gap"]
lost = round(sum(event.samples for event in gaps) / source.fs * 100)
told |= {"rows": len(found), "expected": round(found[-1] * 100) + 1 - lost, "gaps": len(gaps)}
print(json.dumps(told))
