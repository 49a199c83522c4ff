"""Microphones that are muted or turned, measured by the command as a person starts it."""

import json
import signal
import statistics

import pytest

from tests.as_it_comes.devices import HAPPENINGS
from tests.conftest import pactl

ROWS = "--format", "jsonl", "--step-ms", "100", "--columns", "laf_db"
METER = "meter", "--wait", "-d", "virtual_mic", "--model", "spl", "--full-scale-db", "120", *ROWS


@pytest.fixture
def sounding(virtual_mic):
    """A tone that the sound server itself plays into the microphone, which never breaks off."""
    tone = "load-module", "module-sine", "sink=speaker", "frequency=1000"
    pactl(*tone)
    yield
    turn(100)
    pactl("unload-module", "module-sine")
    virtual_mic.hum()


def turn(percent):
    pactl("set-source-mute", "mic", "1" if percent == 0 else "0")
    pactl("set-source-volume", "mic", f"{percent or 100}%")


class Meter:
    """The command, its rows, and what it says."""

    def __init__(self, process):
        self._process, self.rows, self._said = process, [], []

    def row(self):
        line = json.loads(next(self._process.stdout, None) or self._fail("rows"))
        if "time_s" in line:
            self.rows.append(line)
        return line

    def until(self, is_there):
        """Read rows until one is as it should be."""
        while not is_there(self.row()):
            pass

    def says(self, words):
        while words not in (line := next(self._process.stderr, None) or self._fail(words)):
            self._said.append(line)
        return line

    def _fail(self, awaited):
        said = [*self._said, *self._process.stderr]
        pytest.fail(f"it ended before {awaited!r}: {said}, {self._process.wait()}")

    def end(self):
        """Interrupt it; its summary, {} if there was no sound at all, and its status."""
        self._process.send_signal(signal.SIGINT)
        out, _ = self._process.communicate()
        summary = json.loads(out.splitlines()[-1])["summary"] if out else {}
        return summary, self._process.returncode


@pytest.mark.parametrize("happening", HAPPENINGS, ids=str)
def test_a_microphone_like_that_of_a_report(happening, sounding, forks):
    turn(happening.percent[0])
    with forks.begin(*METER) as process:
        happens(happening, Meter(process))


def is_counted(row):
    return row["calibrated"] and not row["settling"] and row["laf_db"] is not None


def happens(happening, meter):
    before, later = happening.percent
    if before:
        meter.until(lambda row: row.get("time_s", 0) > 1.0)
        assert meter.rows[-1]["calibrated"]
    else:
        assert "it is muted in the sound server" in meter.says("gives exact zeros")
    turn(later)
    if before and later:
        words = f"the input gain is {later} % and was {before} % at the start"
        assert words in meter.says("uncalibrated: ")
        meter.until(lambda row: row.get("calibrated") is False)
    elif before:
        assert "it is muted in the sound server" in meter.says("gives exact zeros")
        turn(before)
        meter.until(lambda row: "silent" in (row.get("fault") or ""))
    elif later:
        meter.until(lambda row: row.get("time_s", 0) and "silent" in (row.get("fault") or ""))
    if later or before:
        turned = bool(before and later)
        meter.until(lambda row: row.get("time_s") and (turned or is_counted(row)))
    summary, status = meter.end()
    assert status in (0, 130)
    heard = [row["laf_db"] for row in meter.rows if is_counted(row)]
    if not heard:
        assert not summary
        return
    assert summary["laeq_db"] == pytest.approx(statistics.median(heard), abs=0.1)
    excluded_s = summary["statistics"]["spl"]["excluded_s"]
    assert excluded_s > 0.5 if 0 in happening.percent else excluded_s > 0
