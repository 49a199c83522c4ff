"""`run`: a station by a preset alone, with its signals, its manager and its reference tone."""

import asyncio
import contextlib
import itertools
import json
import os
import re
import signal
import socket
import time

import numpy as np
import pytest
import soundfile
from websockets.sync.client import connect

from amt_stream.cli.commands.run import options_of
from amt_stream.meters.presets import load_preset, shipped_presets
from amt_stream.service.message import Message
from amt_stream.service.reference import read_tone
from amt_stream.service.systemd import Manager
from amt_stream.sessions import Session
from amt_stream.sessions.verify import verify
from tests.patience import PATIENCE_S
from tests.service.served import ROOT, Lines, Served, forks, is_row

PRESET = """
[model]
name = "spl"

[meter]
step_ms = {step_ms}

[run]
source = "{sound}"
full_scale_db = 120
web = 0
log = "{log}"
log_format = "jsonl"
check_every = 10
columns = "laf_db,laeq_db"
"""


class Station:
    """A running `run`, and what its manager hears."""

    def __init__(self, folder, preset, *more):
        self.manager = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        address = str(folder / "notify")
        (folder / "notify").unlink(missing_ok=True)
        self.manager.bind(address)
        self.manager.settimeout(PATIENCE_S)
        told = {**os.environ, "NOTIFY_SOCKET": address}
        self.process = forks().begin("run", preset, *more, environment=told)
        self._lines = Lines(self.process.stderr)

    def said(self, words):
        """The next line on standard error that has them."""
        while line := self._lines.get(timeout=PATIENCE_S):
            if words in line:
                return line
        raise AssertionError(f"it has ended without {words!r}")

    def rest(self):
        """All further lines on standard error, once it has ended."""
        return iter(lambda: self._lines.get(timeout=PATIENCE_S), "")

    def told(self, words):
        """What the manager hears next that has them."""
        while words not in (found := self.manager.recv(4096).decode()):
            pass
        return found

    def longest_silence(self, signs):
        """The longest time between so many signs of life that the manager hears."""
        heard = [time.monotonic()]
        for _ in range(signs):
            self.told("WATCHDOG=1")
            heard.append(time.monotonic())
        return max(np.diff(heard))

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.process.kill()
        self.process.wait()
        self._lines.reader.join(PATIENCE_S)  # a pipe that closes under its reader is an error there
        for one in (self.manager, self.process.stdout, self.process.stderr):
            one.close()


@pytest.fixture
def sound(tmp_path):
    """1 kHz at 94 dB SPL, where full scale is 120."""
    tone = 10 ** (-26 / 20) * np.sin(2 * np.pi * np.arange(48000 * 120) / 48)
    soundfile.write(tmp_path / "tone.wav", tone, 48000, subtype="FLOAT")
    return tmp_path / "tone.wav"


def received(connection, wanted):
    while True:
        message = json.loads(connection.recv(timeout=PATIENCE_S))
        if wanted(message):
            return message


def test_a_station_from_its_start_to_its_end(tmp_path, sound):
    preset, log = tmp_path / "night.toml", tmp_path / "log"
    right = PRESET.format(sound=sound, log=log, step_ms=100)
    preset.write_text(right)
    with Station(tmp_path, preset) as station:
        address = station.said("the page is at ").split()[-1].replace("http", "ws") + "ws"
        assert "READY=1\nSTATUS=measuring" in station.told("READY=1")
        station.told("WATCHDOG=1")
        with connect(address, proxy=None, max_size=None) as connection:
            header = received(connection, lambda message: "header" in message)["header"]
            assert [one["name"] for one in header["columns"]] == ["laf_db", "laeq_db"]
            checked = received(connection, lambda m: m.get("event", {}).get("kind") == "checked")
            assert "laf_db 60.0" in checked["event"]["text"]
            received(connection, lambda m: is_row(m) and abs(m["laf_db"] - 94) < 0.01)

            rows = [received(connection, is_row)]
            for wrong in ("nonsense [", right + "banana = 1\n", right.replace("spl", "spll")):
                preset.write_text(wrong)
                station.process.send_signal(signal.SIGHUP)
                assert "is not used: " in station.said("was reloaded")
                rows += [received(connection, is_row) for _ in range(3)]
            steps = {b["sample"] - a["sample"] for a, b in itertools.pairwise(rows)}
            assert steps == {4800}
            assert {round(row["laf_db"], 1) for row in rows} == {94.0}

            preset.write_text(right.replace("= 100", "= 200").replace(",laeq_db", ",lcpeak_db"))
            station.process.send_signal(signal.SIGHUP)
            assert "a new measurement begins" in station.said("was reloaded")
            received(connection, lambda message: "summary" in message)
            header = received(connection, lambda message: "header" in message)["header"]
            assert [one["name"] for one in header["columns"]] == ["laf_db", "lcpeak_db"]
            assert header["step_ms"] == 200
            assert received(connection, is_row)["time_s"] == 0

        station.process.send_signal(signal.SIGTERM)
        assert station.process.wait(timeout=PATIENCE_S) == 143
        assert station.process.stdout.read() == ""
    found = verify(log)
    assert (found.word, found.open) == ("intact", [])
    events = "".join(part.read_text() for part in log.glob("events-*")).splitlines()
    kinds = {json.loads(line)["kind"] for line in events}
    assert {"checked", "reload"} <= kinds


WAITING = """
[model]
name = "spl"

[run]
source = "mic"
device = "virtual_mic"
wait = true
web = 0
columns = "laf_db"
"""


def longest_silence_without_a_microphone(folder, trouble, signs):
    """A microphone is away for so many signs of life, at the start and once more."""
    (folder / "waits.toml").write_text(WAITING)
    away = trouble("module")
    away.begin()
    with Station(folder, folder / "waits.toml") as station:
        address = station.said("the page is at ").split()[-1].replace("http", "ws") + "ws"
        assert "STATUS=waiting for the microphone: " in station.told("READY=1")
        with connect(address, proxy=None) as connection:
            for command, done in (("status", True), ("mark", False)):
                connection.send(json.dumps({"command": command} | ({} if done else {"text": "x"})))
                reply = received(connection, lambda message: "reply" in message)["reply"]
                assert (reply["done"], reply["state"]) == (done, "waiting")
            assert "waiting for the microphone" in reply["error"]
        longest_s = station.longest_silence(signs)
        away.end()
        assert "READY=1\nSTATUS=measuring" in station.told("STATUS=measuring")
        with connect(address, proxy=None) as connection:
            received(connection, is_row)
        away.begin()
        assert "was lost" in station.told("STATUS=measuring: ")
        longest_s = max(longest_s, station.longest_silence(signs))
        with connect(address, proxy=None) as connection:
            away.end()
            while "gap" not in received(connection, is_row)["fault"]:
                pass
        station.process.send_signal(signal.SIGTERM)
        assert station.process.wait(timeout=PATIENCE_S) == 143
    return longest_s


def test_a_station_whose_microphone_is_away_is_ready_and_lives(tmp_path, trouble):
    longest_silence_without_a_microphone(tmp_path, trouble, signs=3)


def assert_begins_anew(served):
    """Start, and see that the first row is of the first sample."""
    before = len(served.past)
    assert served.ask("start")["done"]
    served.until(is_row)
    first = next(message for message in served.past[before:] if is_row(message))
    assert first["sample"] == 0


def test_a_wait_for_a_microphone_is_stopped_and_begun_again_by_command(trouble):
    away = trouble("module")
    away.begin()
    with Served("--source", "mic", "-d", "virtual_mic", "--wait", "--model", "spl") as served:
        served.until(lambda message: message.get("state", {}).get("state") == "waiting")
        reply = served.ask("stop")
        assert (reply["done"], reply["state"]) == (True, "stopped")
        away.end()
        assert_begins_anew(served)


def test_a_station_that_waits_for_its_microphone_ends_in_order(tmp_path, trouble):
    (tmp_path / "waits.toml").write_text(WAITING)
    trouble("module").begin()
    with Station(tmp_path, tmp_path / "waits.toml") as station:
        station.told("READY=1")
        station.process.send_signal(signal.SIGTERM)
        assert station.told("STOPPING=1")
        assert station.process.wait(timeout=PATIENCE_S) == 143
        assert not any("did not end in time" in line for line in station.rest())


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ("webb = 1", "unrecognized arguments: --webb=1: did you mean --web?"),
        ('web = "x"', "argument --web: 'x' is not a whole number"),
        ("web = { a = 1 }", "must be options of amt-stream serve"),
    ],
)
def test_what_is_wrong_in_a_preset_is_said_in_one_sentence(forks, tmp_path, lines, said):
    path = tmp_path / "own.toml"
    path.write_text(f'[model]\nname = "spl"\n[run]\n{lines}\n')
    done = forks.run("run", path)
    (told,) = done.stderr.decode().splitlines()
    assert done.returncode in (1, 2)
    assert said in told


def test_the_station_that_ships_has_options_that_serve_knows():
    assert "station" in shipped_presets()
    asked = options_of("station", ["--web", "9000", "--source", "demo"])
    assert (asked.web, asked.source, asked.log, asked.check_every) == (
        9000,
        "demo",
        "station",
        3600,
    )
    assert options_of("moore2016", []).check_every == 3600


def test_the_station_that_ships_goes_on_and_publishes_where_there_is_a_broker():
    asked = options_of("station", [])
    assert (asked.restore, asked.mqtt, asked.mqtt_if_there) == (
        "or-anew",
        ("localhost", 1883, False),
        True,
    )
    assert options_of("station", ["--mqtt", ""]).mqtt == ""


def test_help_tells_the_options_that_may_follow_the_preset(forks):
    done = forks.run("run", "station", "--help")
    assert done.returncode == 0
    assert done.stdout.startswith(b"usage: amt-stream run station ")
    for option in (b"--web", b"--log", b"--mqtt-topic", b"--check-every"):
        assert option in done.stdout


GOES_ON = """
[model]
name = "spl"

[meter]
step_ms = 100

[run]
source = "{sound}"
full_scale_db = {full_scale_db}
log = "{log}"
restore = "or-anew"
columns = "laeq_db"
"""


def test_a_station_goes_on_where_that_fits_and_begins_anew_where_not(tmp_path, sound):
    preset, log = tmp_path / "night.toml", tmp_path / "log"

    def run(full_scale_db, *words):
        """Until there is a snapshot of this run; words that are said at its start."""
        before = (log / "snapshot.state").stat().st_mtime_ns if log.exists() else 0
        preset.write_text(GOES_ON.format(sound=sound, log=log, full_scale_db=full_scale_db))
        with Station(tmp_path, preset) as station:
            for one in words:
                station.said(one)
            until = time.monotonic() + PATIENCE_S
            while not (log / "snapshot.state").exists() or (
                (log / "snapshot.state").stat().st_mtime_ns == before
            ):
                assert time.monotonic() < until
                time.sleep(0.05)
            station.process.send_signal(signal.SIGTERM)
            assert station.process.wait(timeout=PATIENCE_S) == 143

    run(120, "has no run to continue, so run 1 begins")
    run(120)
    run(114, "cannot be continued, and a new run begins: ")
    told = Session(log).descriptions
    first, second, third = (told[number]["restored"] for number in sorted(told))
    assert first is third is None
    assert second["run"] == 1
    assert second["sample"] > 0


def test_what_is_begun_by_command_goes_on_with_nothing(tmp_path):
    asked = ["--source", "demo", "--model", "spl", "--log", str(tmp_path / "log")]
    with Served(*asked, "--restore", "or-anew") as served:
        served.until(lambda message: message.get("sample", 0) > 48000)
        assert served.ask("stop")["done"]
        assert_begins_anew(served)


def asked_in_page(folder, page):
    """The options of the preset that a page shows."""
    text = (ROOT / "docs" / page).read_text()
    (block,) = re.findall(r"```toml\n(.*?)```", text, re.DOTALL)
    (folder / "own.toml").write_text(block)
    return options_of(str(folder / "own.toml"), [])


def test_the_presets_that_documents_show_are_some(tmp_path):
    station = asked_in_page(tmp_path, "station.md")
    assert (station.post[0].topic, station.interval) == ("roof-7f3c", 900)
    asked = asked_in_page(tmp_path, "unattended.md")
    assert (asked.device, asked.wait, asked.web, asked.log_sound) == ("USB", True, 8765, "flac")
    assert asked.identity.tags == {"station": "roof", "city": "Graz", "lat": "47.07"}
    assert (asked.keep_days, asked.keep_size) == (365, 200 * 10**9)


@pytest.mark.cases(2)
@pytest.mark.parametrize(
    ("preset", "column", "value"),
    [
        ("moore2016", "ltl_phon", 60.0),
        ("psychoacoustics", "zwicker_n_phon", 60.0),
        ("noise-control", "laf_db", 60.0),
        ("broadcast", "momentary_lufs", -70.0),
    ],
)
def test_the_reference_tone_reads_as_it_should(preset, column, value):
    first, again = (read_tone(load_preset(preset), 48000, 2) for _ in range(2))
    assert first == again
    # 60 phon by definition; a level, by the calibration of the tone, 70 dB below full scale.
    assert first[column] == pytest.approx(value, abs=0.2)


def test_a_start_that_takes_too_long_and_rows_that_stay_away_are_no_sign_of_life(tmp_path):
    """The manager then starts it again: what compiles may take its time, and not for ever."""

    def told(state, seconds, device="running"):
        health = {"device_state": device}
        message = Message("state", {"state": state, "why": [], "health": health})
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listener:
            path = tmp_path / "notify"
            path.unlink(missing_ok=True)
            listener.bind(str(path))
            manager = Manager(str(path))
            manager.send(message)
            manager._since -= seconds
            listener.settimeout(0.1)
            with contextlib.suppress(TimeoutError):
                while listener.recv(4096):
                    pass
            manager.send(message)
            found = [listener.recv(4096).decode()]
            with contextlib.suppress(TimeoutError):
                found.append(listener.recv(4096).decode())
            asyncio.run(manager.close())
        return "WATCHDOG=1" in found

    assert told("starting", 200)
    assert not told("starting", 400)
    assert told("waiting", 4000)
    assert told("measuring", 4000, device="lost")
    assert not told("measuring", 4000)
