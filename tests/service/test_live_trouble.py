"""What happens to a microphone: rows, events, state, metrics, log and report tell it."""

import contextlib
import html
import json
import os
import subprocess

import numpy as np
import pytest
import soundfile

from amt_stream.meters.rows.block import is_named
from amt_stream.sessions.report.times import duration
from tests.service.served import Served, forks, is_row
from tests.service.test_metrics import Scrape

FS, LEVEL_DB = 48000, 90.0
LIMIT = "laf_db>95,name=loud"
ASKED = ["--source", "mic", "--model", "spl", "--limit", LIMIT, "--full-scale-db", "100"]
COLUMNS = "laf_db,laeq_db,lafmax_db,lafmin_db,l90_db,lcpeak_db"
SERVED = ["--step-ms", "100", "--columns", COLUMNS, "--web", "0"]


def pactl(*arguments):
    command = ["pactl", *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def written(path, x):
    soundfile.write(path, np.stack([x, x], -1), FS, "FLOAT")
    return path


@pytest.fixture(scope="module")
def steady(tmp_path_factory):
    """A tone of 90 dB, where full scale is 100."""
    path = tmp_path_factory.mktemp("sound") / "tone.wav"
    peak = 10 ** ((LEVEL_DB - 100.0) / 20)
    tone = peak * np.sin(2 * np.pi * 1000 * np.arange(90 * FS) / FS)
    return written(path, tone)


@pytest.fixture
def play(virtual_mic):
    """Plays a file into the microphone until its process is terminated."""
    settings = {**os.environ, **virtual_mic.settings()}
    return lambda path: subprocess.Popen(
        ["paplay", "--device=speaker", "--latency-msec=500", str(path)], env=settings
    )


@pytest.fixture
def playing(play, steady):
    """The tone is heard, and the microphone is as it was afterwards."""
    with play(steady) as process:
        yield
        process.terminate()
    pactl("set-source-mute", "mic", "0")
    pactl("set-source-volume", "mic", "100%")
    pactl("suspend-source", "mic", "0")


class Listened(Served):
    """A station that hears the tone; it knows its log and its page."""

    def __init__(self, folder):
        self.log = folder / "log"
        super().__init__(*ASKED, *SERVED, "--log", str(self.log), "--log-format", "jsonl")
        self.page, self.since = self.address, 0
        self.until(lambda one: is_row(one) and one["time_s"] > 2.0)

    def first(self, wanted):
        """The first message that is wanted since the last `pactl`, come or still to come."""
        there = (message for message in self.past[self.since :] if wanted(message))
        return next(there, None) or self.until(wanted)

    def pactl(self, *arguments):
        self.since = len(self.past)
        pactl(*arguments)

    def event(self, kind):
        return self.first(lambda one: one.get("event", {}).get("kind") == kind)["event"]

    def device(self, state):
        """The state message of the device's state."""

        def tells(message):
            health = message.get("state", {}).get("health") or {}
            return health.get("device_state") == state

        return self.first(tells)["state"]

    def row(self, wanted=lambda row: True):
        """The next row."""
        return self.until(lambda one: is_row(one) and wanted(one))

    def row_after(self, event):
        """The first row after an event, in the order in which they are sent."""
        place = next(k for k, one in enumerate(self.past) if one.get("event") == event)
        there = (message for message in self.past[place:] if is_row(message))
        return next(there, None) or self.row()

    def limit(self, scrape, state):
        labels = {"limit": "loud", "microphone": "main", "state": state}
        return scrape("amt_limit", **labels)

    def counted(self):
        """What is counted so far, once all is calm again."""
        since_s = self.row()["time_s"]
        return self.row(lambda row: row["time_s"] > since_s + 3.0)

    def report(self, folder):
        """End it; gives its summary and the text of the report."""
        _, last = self.end()
        (summary,) = [one["summary"] for one in last if "summary" in one]
        page = folder / "report.html"
        done = forks().run("report", self.log, "--out", page)
        assert done.returncode == 0, done.stderr
        return summary, html.unescape(page.read_text())


@pytest.fixture
def station(playing, tmp_path):
    with Listened(tmp_path) as one:
        yield one


def has_counted_the_tone_alone(row):
    """Nothing of what happened is in any number."""
    for name in ("laeq_db", "lafmax_db", "lafmin_db", "l90_db"):
        assert row[name] == pytest.approx(LEVEL_DB, abs=0.15), name
    # Where a tone breaks off, a filter overshoots.
    assert row["lcpeak_db"] == pytest.approx(LEVEL_DB + 3.0, abs=1.0)


def test_a_muted_microphone(station, tmp_path):
    station.pactl("set-source-mute", "mic", "1")
    event = station.event("silent")
    note = "'VirtualMicrophone' gives exact zeros: it is muted in the sound server"
    assert event["text"] == note
    state = station.device("silent")
    assert (state["health"]["note"], state["health"]["silent"]) == (note, True)
    assert note in state["why"]
    scrape = Scrape(station.page)
    assert scrape("amt_audio_silent") == 1
    assert scrape("amt_valid", microphone="main") == 0
    assert station.limit(scrape, "green") == 0
    assert not any(name[0] == "amt_sound_laf_db" for name in scrape.samples)
    assert any(name[0] == "amt_sound_laeq_db" for name in scrape.samples), "it was measured"
    station.pactl("set-source-mute", "mic", "0")
    back = station.event("back")
    assert back["text"].startswith("'VirtualMicrophone' gives sound again after ")
    gap = station.event("gap")
    assert gap["text"] == "VirtualMicrophone gave exact zeros"
    row = station.row_after(gap)
    assert row["fault"] == "gap silent"
    assert row["time_s"] - event["time_s"] == pytest.approx(gap["samples"] / FS, abs=0.2)
    has_counted_the_tone_alone(station.counted())
    summary, report = station.report(tmp_path)
    has_counted_the_tone_alone(summary)
    excluded_s = summary["statistics"]["spl"]["excluded_s"]
    assert 0.0 <= excluded_s - gap["samples"] / FS < 0.2, "with what settles after it"
    assert f"silent 1 time, {duration(gap['samples'] / FS)} in all" in report
    assert "it is muted in the sound server" in report
    assert "the buffer was full" not in report


def test_a_gain_that_another_program_turns(station, tmp_path):
    station.pactl("set-source-volume", "mic", "50%")
    event = station.event("gain")
    turned = "the input gain of 'VirtualMicrophone' was turned from 100 % to 50 %"
    assert event["text"] == turned
    event = station.event("uncalibrated")
    why = "the input gain is 50 % and was 100 % at the start"
    assert event["text"] == f"readings are uncalibrated: {why}"
    header = station.first(lambda one: "header" in one)["header"]
    assert header["source"]["sound"]["input_gain"] == {
        "percent": [50.0, 50.0],
        "muted": False,
        "port": "",
    }
    assert {(one["calibrated"], one["origin"]) for one in header["calibration"]} == {
        (False, event["text"])
    }
    row = station.first(lambda one: is_row(one) and not one["calibrated"])
    assert row["time_s"] - event["time_s"] < 0.25
    assert row["limit_loud"] == "uncalibrated"
    assert station.device("running")["health"]["note"] == event["text"]
    quiet = station.row(lambda row: row["time_s"] > event["time_s"] + 2.0)
    assert quiet["laf_db"] == pytest.approx(LEVEL_DB - 18.06, abs=0.1)
    scrape = Scrape(station.page)
    assert scrape("amt_calibrated", microphone="main") == 0
    assert station.limit(scrape, "green") == 0
    station.pactl("set-source-volume", "mic", "100%")
    event = station.event("calibrated")
    assert event["text"].startswith("readings are calibrated again: the input gain is 100 %")
    row = station.counted()
    assert row["calibrated"]
    assert row["limit_loud"] == "green"
    has_counted_the_tone_alone(row)
    summary, report = station.report(tmp_path)
    has_counted_the_tone_alone(summary)
    assert summary["calibrated"]
    assert "uncalibrated, left out of all readings 1 time" in report
    assert turned in report


def test_a_program_that_takes_the_microphone_for_itself(station, tmp_path):
    """As pasuspender does, and JACK."""
    station.pactl("suspend-source", "mic", "1")
    assert station.event("stall")["text"].endswith(": the sound server has suspended it")
    event = station.event("lost")
    lost = "the device 'VirtualMicrophone' was lost: the sound server has suspended it; "
    assert event["text"].startswith(lost)
    station.device("lost")
    scrape = Scrape(station.page)
    assert station.limit(scrape, "green") == 0
    station.pactl("suspend-source", "mic", "0")
    station.event("back")
    assert "gap" in station.row_after(station.event("gap"))["fault"]
    has_counted_the_tone_alone(station.counted())
    _, report = station.report(tmp_path)
    assert "the sound server has suspended it" in report


def test_another_source_that_the_desktop_chooses(station, tmp_path):
    module = pactl("load-module", "module-sine-source", "source_name=other")
    try:
        outputs = pactl("list", "short", "source-outputs").splitlines()
        (mine,) = [one.split("\t")[0] for one in outputs if "protocol-native" in one]
        station.pactl("move-source-output", mine, "other")
        event = station.event("lost")
        assert "the sound server has moved it to 'Sine source at 440 Hz'" in event["text"]
        assert station.device("lost")["why"]
        station.event("back")
        assert "gap" in station.row_after(station.event("gap"))["fault"]
        has_counted_the_tone_alone(station.counted())
        _, report = station.report(tmp_path)
        assert "has moved it to" in report
    finally:
        with contextlib.suppress(subprocess.CalledProcessError):
            pactl("unload-module", module)


def test_a_log_of_a_muted_microphone_is_intact_and_says_why(station, tmp_path):
    station.pactl("set-source-mute", "mic", "1")
    station.device("silent")
    station.report(tmp_path)
    events = "".join(part.read_text() for part in station.log.glob("events-*")).splitlines()
    kinds = [json.loads(one)["kind"] for one in events]
    assert kinds == ["silent", "gap"]


def test_a_converter_that_clips(station, play, tmp_path):
    """A burst that is 12 dB too loud for it."""
    square = 4.0 * np.sin(2 * np.pi * 500 * np.arange(FS) / FS)
    station.since = len(station.past)
    with play(written(tmp_path / "burst.wav", square)):
        event = station.event("clip")
        assert event["text"] == "VirtualMicrophone is clipped: the sound may have been louder"
        row = station.row_after(event)
        assert row["time_s"] - event["time_s"] < 0.25
    clipped = station.first(lambda one: is_row(one) and "clip" in one["fault"])
    assert is_named("laf_db", clipped["clipped_columns"])
    assert clipped["limit_loud"] in ("red", "unknown")
    assert not clipped["settling"]
    scrape = Scrape(station.page)
    assert station.limit(scrape, "green") == 0
    # The page gets the engine's health now and then, not with each row.
    while not scrape("amt_audio_clipped_samples_total"):
        station.row()
        scrape = Scrape(station.page)
    calm = station.counted()
    assert calm["laf_db"] == pytest.approx(LEVEL_DB, abs=0.1)
    assert not is_named("laf_db", calm["clipped_columns"])
    assert is_named("lafmax_db", calm["clipped_columns"])
    assert calm["lafmax_db"] > 100.0
    summary, report = station.report(tmp_path)
    assert summary["statistics"]["spl"]["clipped_s"] == pytest.approx(1.0, abs=0.2)
    assert summary["statistics"]["spl"]["excluded_s"] < 0.1
    (stood,) = summary["limits"]
    assert stood["exceeded"]
    assert event["text"] in report


def test_a_converter_with_an_offset(play, steady, virtual_mic, tmp_path):
    x, _ = soundfile.read(steady)
    with play(written(tmp_path / "offset.wav", x[:, 0] + 0.02)) as process:
        with Listened(tmp_path) as station:
            event = station.event("offset")
            words = "VirtualMicrophone has an offset of 2 % of full scale, which is removed"
            assert event["text"] == words
            has_counted_the_tone_alone(station.counted())
            summary, report = station.report(tmp_path)
        process.terminate()
    has_counted_the_tone_alone(summary)
    assert summary["lzeq_db"] == pytest.approx(LEVEL_DB, abs=0.1)
    assert event["text"] in report
