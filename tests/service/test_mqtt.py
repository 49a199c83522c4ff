"""`serve --mqtt`, with a real mosquitto and paho's client on the other side of it."""

import argparse
import asyncio
import contextlib
import json
import re
import signal
import socket
import subprocess

import aiomqtt
import pytest

from amt_stream.cli.options.arguments import broker as broker_of
from amt_stream.cli.options.arguments import topic
from amt_stream.service.message import Message, Thinned
from amt_stream.service.transports.home_assistant import Sensors, discovery
from amt_stream.service.transports.mqtt import ALL_WAIT, PASSWORD, USER, Broker, Mqtt, problem
from amt_stream.service.transports.transport import ServiceError
from tests.service.broker import RealBroker, mosquitto, until
from tests.service.served import Served, is_row

SPL = ["--model", "spl", "--source", "am-tone", "--columns", "laf_db,l10_db"]


@pytest.fixture
def broker(tmp_path):
    running = RealBroker(tmp_path, "allow_anonymous true")
    yield running
    running.end()


def test_who_subscribes_gets_what_others_get_and_commands(broker):
    client, heard = broker.subscriber("amt/#", "homeassistant/#")
    ways = ["--mqtt", f"127.0.0.1:{broker.port}", "--mqtt-topic", "amt/hall"]
    with Served(*SPL, *ways, "--mqtt-every", "0", "--mqtt-commands") as served:
        before = until(heard, lambda topic, text: topic == "amt/hall/main/row")
        rows = [before[-1]]
        rows += [
            one
            for one in until(heard, lambda topic, text: json.loads(text).get("time_s", 0) > 1)
            if one[0] == "amt/hall/main/row"
        ]
        served.until(lambda m: is_row(m) and m["time_s"] > 1)
        client.publish("amt/hall/command", json.dumps({"command": "fly"}), retain=True)
        client.publish("amt/hall/command", json.dumps({"command": "mark", "text": "door", "id": 4}))
        # The broker hands on what it keeps to who is there as well.
        replies = [
            json.loads(until(heard, lambda topic, text: topic == "amt/hall/reply")[-1][1])["reply"]
            for _ in range(2)
        ]
        assert replies[0]["error"].startswith("'fly' is not a command")
        assert (replies[1]["command"], replies[1]["id"], replies[1]["done"]) == ("mark", 4, True)
        _, late = broker.subscriber("amt/hall/#")
        first = dict(until(late, lambda topic, text: topic == "amt/hall/main/row"))
    assert {*first} >= {"amt/hall/availability", "amt/hall/header", "amt/hall/state"}
    assert first["amt/hall/availability"] == "online"
    assert json.loads(first["amt/hall/header"]) in served.past
    # It was killed.
    assert until(late, lambda topic, text: text == "offline")[-1][0] == "amt/hall/availability"
    sent = [message for message in served.past if is_row(message)]
    # Before the first one some may have been missed.
    got = [json.loads(text) for _, text in rows[1:]]
    begin = sent.index(got[0])
    assert got == sent[begin : begin + len(got)]
    told = dict(before)
    config = json.loads(told["homeassistant/sensor/amt_hall/laf_db/config"])
    assert (config["device_class"], config["unit_of_measurement"]) == ("sound_pressure", "dBA")
    assert config["state_topic"] == rows[0][0]
    topics = [one["topic"] for one in config["availability"]]
    assert topics == ["amt/hall/availability", "amt/hall/state"]
    assert config["availability_mode"] == "all"


def test_sensors_of_an_earlier_run_are_removed(broker):
    """Those of another station, and of this one that are still there, stay."""
    client, heard = broker.subscriber("homeassistant/#")
    gone = [f"homeassistant/sensor/amt_hall/old_{k}/config" for k in range(400)]
    other = "homeassistant/sensor/amt_hall_2/old_1/config"
    for place in (*gone, other):
        client.publish(place, json.dumps({"name": "old"}), qos=1, retain=True)
    until(heard, lambda topic, text: topic == other)
    ways = ["--mqtt", f"127.0.0.1:{broker.port}", "--mqtt-topic", "amt/hall"]
    left = {*gone}

    def removed(topic, text):
        left.difference_update([] if text else [topic])
        return not left

    with Served(*SPL, *ways):
        until(heard, removed)
    _, late = broker.subscriber("homeassistant/#")
    client.publish("homeassistant/last", "x", retain=True)
    kept = {topic for topic, _ in until(late, lambda topic, text: topic == "homeassistant/last")}
    assert {other, "homeassistant/sensor/amt_hall/laf_db/config"} < kept
    assert not kept & {*gone}


def test_columns_that_go_while_it_runs_are_removed():
    sensors = Sensors("homeassistant", "amt/hall")
    place = "homeassistant/sensor/amt_hall/{}/config".format
    assert not sensors.is_gone(place("old"))
    told = [("sensor/amt_hall/new", {"name": "new"}), ("sensor/amt_hall/laf_db", {})]
    texts = sensors.announced(told)
    assert texts == {place("old"): "", place("new"): '{"name": "new"}', place("laf_db"): "{}"}
    assert sensors.announced(told[1:]) == {place("new"): "", place("laf_db"): "{}"}
    assert sensors.is_gone(place("new"))
    assert not sensors.is_gone(place("laf_db"))
    assert sensors.is_one(place("old"))
    assert not Sensors("", "amt/hall").is_one("amt/hall/command")


def test_a_broker_that_dies_is_waited_for(broker):
    ways = ["--mqtt", f"localhost:{broker.port}", "--mqtt-topic", "t", "--mqtt-every", "0"]
    with Served(*SPL, *ways) as served:
        served.until(is_row)
        broker.kill()

        def told(message):
            (found,) = [
                one
                for name, one in message["state"]["transports"].items()
                if name.startswith("mqtt")
            ]
            return found

        # Rows may also have been missed before it was reached at the start.
        lost = told(served.until(lambda m: "state" in m and told(m)["note"]))
        assert f"the MQTT broker localhost:{broker.port} does not answer: " in lost["note"]
        served.until(lambda m: "state" in m and told(m)["missed_rows"] > lost["missed_rows"])
        served.ask("mark", text="meanwhile")
        broker.start()
        _, heard = broker.subscriber("t/#")
        # The first row after those that were missed says so.
        found = until(
            heard,
            lambda topic, text: topic == "t/main/row" and "overload" in json.loads(text)["fault"],
        )
        topics = [topic for topic, _ in found]
        assert {"t/availability", "t/header", "t/state"} <= {*topics}
        assert any(topic == "t/event" and "meanwhile" in text for topic, text in found)
        served.until(lambda m: "state" in m and not told(m)["note"])
        status, _ = served.end()
        assert status == 0
        until(heard, lambda topic, text: (topic, text) == ("t/availability", "offline"))


def test_a_broker_that_was_never_there_is_no_trouble_and_one_that_goes_is(broker):
    broker.kill()
    place = f"localhost:{broker.port}"
    ways = ["--mqtt", place, "--mqtt-topic", "t", "--mqtt-if-there"]
    with Served(*SPL, *ways, "--step-ms", "100") as served:
        served.until(is_row)
        for _ in range(3):
            state = served.until(lambda m: "state" in m and m["state"]["state"] == "measuring")
            assert state["state"]["transports"][f"mqtt {place}"] == {"note": "", "missed_rows": 0}
            assert state["state"]["why"] == []
        broker.start()
        _, heard = broker.subscriber("t/#")
        until(heard, lambda topic, text: topic == "t/main/row")
        broker.kill()
        served.until(lambda m: "state" in m and "does not answer" in "".join(m["state"]["why"]))


def test_a_broker_that_says_nothing_holds_up_no_end():
    with socket.socket() as deaf, contextlib.ExitStack() as waiting:
        deaf.bind(("127.0.0.1", 0))
        deaf.listen(0)
        place = deaf.getsockname()
        # Its queue is full: whoever comes now hears nothing at all.
        for _ in range(3):
            one = waiting.enter_context(socket.socket())
            one.setblocking(False)
            one.connect_ex(place)
        with Served(*SPL, "--mqtt", f"127.0.0.1:{place[1]}") as served:
            served.until(is_row)
            served.process.terminate()
            assert served.process.wait(timeout=20) == 128 + signal.SIGTERM
            with pytest.raises(AssertionError, match="it has ended without"):
                served.said("(did not end in time)")


def test_a_broker_that_is_not_there_is_said():
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        with Served(*SPL, "--mqtt", f"127.0.0.1:{nobody.getsockname()[1]}") as served:
            assert served.said("(the MQTT broker .* does not answer)")


def test_a_secret_goes_encrypted_to_a_broker_that_is_known(tmp_path, monkeypatch):
    key, certificate, passwords = (tmp_path / name for name in ("key", "certificate", "passwords"))
    asked = "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost -addext"
    asked = [*asked.split(), "subjectAltName=DNS:localhost", "-keyout", key, "-out", certificate]
    subprocess.run(asked, check=True, capture_output=True)
    passwords.touch(0o600)
    tool = mosquitto().replace("sbin", "bin") + "_passwd"
    subprocess.run([tool, "-b", passwords, "meter", "s3cret!"], check=True)
    lines = [f"certfile {certificate}", f"keyfile {key}", f"password_file {passwords}"]
    running = RealBroker(tmp_path, *lines, "allow_anonymous false")
    try:
        for name, value in (("SSL_CERT_FILE", certificate), (USER, "meter"), (PASSWORD, "s3cret!")):
            monkeypatch.setenv(name, str(value))
        ways = ["--mqtt", f"mqtts://localhost:{running.port}"]
        with Served(*SPL, *ways) as served:
            served.until(lambda m: is_row(m) and m["time_s"] > 2)
            told = served.ask("status")["transports"][f"mqtt localhost:{running.port}"]
            assert told == {"note": "", "missed_rows": told["missed_rows"]}
            assert told["missed_rows"] <= 1
        assert "s3cret" not in json.dumps(served.past)
    finally:
        running.end()


@pytest.mark.parametrize(
    ("user", "words"),
    [
        (None, "wants a user and password: give --mqtt-login FILE"),
        ("meter", "refuses this user and password"),
    ],
)
def test_a_refused_login_is_told_from_silence(tmp_path, user, words):
    running = RealBroker(tmp_path, "allow_anonymous false")

    async def connect():
        async with aiomqtt.Client("127.0.0.1", running.port, username=user, password=user):
            pass

    try:
        with pytest.raises(aiomqtt.MqttError) as refused:
            asyncio.run(connect())
    finally:
        running.end()
    assert problem(Broker("127.0.0.1", running.port, user=user), refused.value) == words
    assert problem(Broker("127.0.0.1", 1), TimeoutError()) == "does not answer: timeout"


def message(time_s, fault="", valid=True):
    return Message("row", {"time_s": time_s, "fault": fault, "valid": valid})


def test_a_row_that_goes_out_tells_of_those_left_out():
    thinned = Thinned(1.0)
    given = [message(k / 10) for k in range(31)]
    given[13] = message(1.3, "clip", True)
    given[17] = message(1.7, "gap", False)
    out = [one.content for row in given if (one := thinned.take(row))]
    assert [one["time_s"] for one in out] == [0, 1, 2, 3]
    assert [(one["fault"], one["valid"]) for one in out[1:]] == [
        ("", True), ("gap clip", False), ("", True),
    ]  # fmt: skip
    assert thinned.take(message(0.2)).content["time_s"] == 0.2  # another measurement
    cells = [thinned.take(message(5.0)) for _ in range(3)]
    assert all(cells)


def test_home_automation_is_told_of_each_column_of_each_row():
    columns = [
        {"name": "ltl_phon", "unit": "phon", "quantity": "long-term loudness level"},
        {"name": "lceq_db", "unit": "dB", "quantity": "C-weighted sound level"},
        {"name": "limit_hall", "unit": "", "quantity": "state of a limit"},
    ]
    header = {
        "columns": [one | {"statistic": "instantaneous"} for one in columns],
        "models": [{"name": "moore2016"}],
        "source": {"microphones": {"1+2": [1, 2], "door": [3]}},
        "step_ms": 100,
    }
    told = dict(discovery(header, "amt/pi", lambda row: f"amt/pi/{row}/row", 1.0))
    assert len(told) == 6
    phon = told["sensor/amt_pi/1_2_ltl_phon"]
    assert phon["state_topic"] == "amt/pi/1+2/row"
    assert phon["value_template"] == "{{ value_json['ltl_phon'] }}"
    assert (phon["unit_of_measurement"], phon.get("device_class")) == ("phon", None)
    assert told["sensor/amt_pi/door_lceq_db"]["device_class"] == "sound_pressure"
    assert "state_class" not in told["sensor/amt_pi/door_limit_hall"]
    assert len({one["unique_id"] for one in told.values()}) == 6


@pytest.mark.parametrize("names", [("左", "右"), ("Küche", "Köche"), ("desk 1", "desk_1")])
def test_names_in_any_script_are_different_sensors(names):
    header = {
        "columns": [{"name": "laf_db", "unit": "dB", "quantity": "", "statistic": ""}],
        "models": [],
        "source": {"microphones": {name: [1] for name in names}},
        "step_ms": 100,
    }
    told = dict(discovery(header, "amt/кухня", lambda row: row, 1.0))
    other = dict(discovery(header, "amt/ванна", lambda row: row, 1.0))
    assert len(told | other) == 4
    assert len({one["unique_id"] for one in (*told.values(), *other.values())}) == 4
    assert all(re.fullmatch(r"sensor/[\w-]+/[\w-]+", one, re.ASCII) for one in told)


def test_events_that_find_no_room_while_the_broker_is_away_are_counted():
    mqtt = Mqtt(Broker("127.0.0.1", 1), "amt/hall")
    for _ in range(ALL_WAIT + 3):
        mqtt.send(Message("event", {"kind": "mark", "text": "here"}))
    assert mqtt.missed == 3


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("pi", ("pi", 1883, False)),
        ("mqtt://pi:7", ("pi", 7, False)),
        ("mqtts://pi/", ("pi", 8883, True)),
        ("[::1]", ("::1", 1883, False)),
        ("mqtts://[::1]:9", ("::1", 9, True)),
    ],
)
def test_a_broker_by_its_address(text, meant):
    assert broker_of(text) == meant


@pytest.mark.parametrize("text", ["http://pi", "mqtt://me:secret@pi", "", "::1", "a:b"])
def test_what_is_no_broker_is_refused_and_no_secret_repeated(text):
    with pytest.raises(argparse.ArgumentTypeError, match="give HOST") as refusal:
        broker_of(text)
    assert "secret" not in str(refusal.value)


@pytest.mark.parametrize("text", ["", "a//b", "a/+", "#", "a\0", "/a"])
def test_what_is_no_topic_is_refused(text):
    with pytest.raises(argparse.ArgumentTypeError, match=r"give words with / between"):
        topic(text)


def test_a_login_is_read_and_never_shown(tmp_path):
    path = tmp_path / "login"
    path.write_text("meter\ns3cret!\n")
    path.chmod(0o604)
    with pytest.raises(ServiceError, match=r"others can read or write it \(mode 604\): chmod 600 "):
        Broker("pi", 1883).with_login(str(path))
    path.chmod(0o600)
    known = Broker("pi", 1883).with_login(str(path))
    assert (known.user, known.password) == ("meter", "s3cret!")
    assert "s3cret" not in f"{known} {known!r}"
    path.write_text("s3cret!\n")
    with pytest.raises(ServiceError, match="has 1 line: write the user on one and the") as no:
        Broker("pi", 1883).with_login(str(path))
    assert "s3cret" not in str(no.value)
    with pytest.raises(ServiceError, match="nothing-here cannot be read"):
        Broker("pi", 1883).with_login(str(tmp_path / "nothing-here"))
