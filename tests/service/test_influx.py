"""`serve --influx`, with a real HTTP server and a parser of line protocol that is not ours."""

import signal
import socket
import time
from datetime import datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from line_protocol_parser import parse_line

from amt_stream.core.values import NotAllowed
from amt_stream.service.identity import Identity
from amt_stream.service.message import Message
from amt_stream.service.transports.http_endpoint import Endpoint, influx_endpoint, influx_url
from amt_stream.service.transports.http_sender import MOST_WAITING, HttpSender, token_from
from amt_stream.service.transports.influx import Influx, protocol_line
from amt_stream.service.transports.transport import ServiceError
from tests.patience import PATIENCE_S
from tests.service.receiver import Receiver
from tests.service.served import Served, is_row

TEXTS = st.text(st.characters(codec="utf-8", exclude_categories=["Cs", "Cc"]), min_size=1)
LINES = st.text(st.characters(codec="utf-8", exclude_categories=["Cs"], exclude_characters="\0"))
FLOATS = st.floats(allow_nan=False, allow_infinity=False, allow_subnormal=False)
VALUES = st.one_of(LINES, st.booleans(), st.integers(-(2**63), 2**63 - 1), FLOATS)


def test_rows_events_and_states_arrive_after_an_outage(tmp_path):
    token = tmp_path / "token"
    token.touch(0o600)
    token.write_text("s3cret==\n")
    with Receiver((503, {}), (503, {})) as server:  # long enough for a state to say so
        asked = ["--source", "am-tone", "--model", "spl", "--columns", "laf_db,l10_db"]
        asked += ["--influx", f"{server.url}/api/v2/write?org=o&bucket=b", "--influx-token", token]
        asked += ["--station", "roof top", "--label", "city=Graz", "--limit", "laf_db>10"]
        with Served(*map(str, asked)) as served:
            refused, first = server.next()
            served.until(lambda m: "state" in m and "answers 503" in "".join(m["state"]["why"]))
            served.ask("mark", text='a "door"')
            server.next()
            again, second = server.next()
            served.until(lambda m: "state" in m and not m["state"]["why"])
            status, rest = served.end()
        assert (refused, again, status) == (503, 204, 0)
        bodies = [second.body, *(one.body for one in server.rest())]
    assert second.body.startswith(first.body)  # nothing was lost, and nothing twice
    assert first.path == "/api/v2/write?org=o&bucket=b&precision=ns"
    assert first.headers["Authorization"] == "Token s3cret=="
    points = [parse_line(line) for body in bodies for line in body.splitlines()]
    messages = [*served.past, *rest]
    assert all(one["tags"].items() >= NAMED.items() for one in points)

    rows = [one for one in points if one["measurement"] == "amt"]
    sent = [message for message in messages if is_row(message)]
    assert [one["time"] for one in rows] == [ns_of(row["utc"]) for row in sent]
    assert len(rows) > 10
    left_out = {"time_s", "utc", "station", "labels"}
    for point, row in zip(rows, sent, strict=True):
        assert point["tags"]["microphone"] == "main"
        there = {k: v for k, v in row.items() if v is not None and k not in left_out}
        assert point["fields"] == there
        assert {k: type(v) for k, v in point["fields"].items()} == {
            k: type(v) for k, v in there.items()
        }
    events = [one for one in points if one["measurement"] == "amt_event"]
    told = [message["event"] for message in messages if "event" in message]
    assert [(one["tags"]["kind"], one["fields"]["text"]) for one in events] == [
        (event["kind"], event["text"]) for event in told
    ]
    assert {"limit", "mark"} <= {one["tags"]["kind"] for one in events}
    states = [one["fields"] for one in points if one["measurement"] == "amt_state"]
    assert [states[0]["state"], states[-1]["state"]] == ["starting", "stopped"]
    assert "answers 503" in "".join(state["why"] for state in states)
    assert states[-1]["samples"] > 48000


def test_servers_that_say_nothing_hold_up_no_end():
    with socket.socket() as deaf:
        deaf.bind(("127.0.0.1", 0))
        deaf.listen(8)
        deaf.settimeout(PATIENCE_S)
        url = f"http://127.0.0.1:{deaf.getsockname()[1]}/write"
        asked = ["--source", "am-tone", "--model", "spl", "--limit", "laf_db>10"]
        with Served(*asked, "--influx", url, "--post", url, "--post", url) as served:
            served.until(lambda message: message.get("event", {}).get("kind") == "limit")
            connections = [deaf.accept() for _ in range(3)]
            served.process.terminate()
            assert served.process.wait(timeout=20) == 128 + signal.SIGTERM
            served.said(r"^(amt-stream: [\d.:]+ did not take the last \d+ messages?)$")
            with pytest.raises(AssertionError, match="it has ended without"):
                served.said("(did not end in time)")
        for one, _ in connections:
            one.close()


NAMED = {"station": "roof top", "city": "Graz"}


def ns_of(utc):
    return round(datetime.fromisoformat(utc).timestamp() * 1000) * 1_000_000


def test_cells_and_events_of_one_time_do_not_replace_each_other():
    with Receiver() as server:
        endpoint = influx_endpoint(influx_url(f"{server.url}/api/v3/write_lp?db=d"), "t0ken")
        influx = Influx(endpoint, Identity())
        columns = [("row", ""), ("band", ""), ("limit_a", ""), ("value", "mine")]
        influx.send(
            Message("header", {"columns": [{"name": n, "model": model} for n, model in columns]})
        )
        utc = "2026-11-22T20:41:32.929Z"
        marks = {"fault": "", "valid": True, "limit_a": "red"}
        for band in (1, 2):
            row = {"time_s": 0.0, "utc": utc, "row": "desk", "band": band, "value": 1.0, **marks}
            influx.send(Message("row", row))
        influx.send(Message("row", {**row, "utc": None}))
        for text in "ab":
            event = {"kind": "limit", "utc": utc, "text": text, "sample": 1, "samples": 0}
            influx.send(Message("event", event))
        assert (influx.missed, influx.note) == (
            1, f"1 row not sent to {influx.name}: UTC is unknown",
        )  # fmt: skip
        influx._sender.start()
        influx._sender.close()
        ((_, request),) = [server.next()]
    assert request.path == "/api/v3/write_lp?db=d&precision=nanosecond"
    assert request.headers["Authorization"] == "Bearer t0ken"
    points = [parse_line(line) for line in request.body.splitlines()]
    assert [one["tags"].get("band") for one in points] == ["1", "2", None, None]
    assert points[0]["tags"]["microphone"] == "desk"
    assert points[0]["fields"] == {"value": 1.0, **marks}
    assert len({(one["measurement"], *one["tags"].items(), one["time"]) for one in points}) == 4


@settings(max_examples=50, deadline=None)
@given(st.dictionaries(TEXTS, TEXTS, max_size=3), st.dictionaries(TEXTS, VALUES, min_size=1))
def test_any_text_is_read_as_it_was_written(tags, fields):
    line = protocol_line("amt", tags, fields, 1795380092929000000).decode()
    assert line.count("\n") == 1
    point = parse_line(line)

    def as_name(text):
        return text.replace("\\", "_")

    assert point["tags"] == {as_name(key): as_name(value) for key, value in tags.items()}
    wanted = {
        as_name(key): value.replace("\n", " ").replace("\r", " ")
        if isinstance(value, str)
        else value
        for key, value in fields.items()
    }
    assert point["fields"] == wanted
    assert point["time"] == 1795380092929000000


def test_what_is_refused_is_counted_and_what_fits_goes_on():
    elsewhere = (302, {"Location": "https://elsewhere/"})
    with Receiver((400, {}), (429, {"Retry-After": "0"}), (204, {}), elsewhere) as server:
        sender = HttpSender(Endpoint(f"{server.url}/secret"), joins=False)
        assert [sender.put(part) for part in (b"bad", b"good", b"late")] == [True] * 3
        sender.start()
        answers = [server.next() for _ in range(4)]
        until_s = time.monotonic() + 20
        while "302" not in sender.note and time.monotonic() < until_s:
            time.sleep(0.005)
        where = "give the address that it points to, https://elsewhere/"
        assert sender.note.endswith(f"{where}; messages lost: 1")
        assert "secret" not in sender.note
        sender.close()
    assert [(status, one.body) for status, one in answers] == [
        (400, "bad"), (429, "good"), (204, "good"), (302, "late"),
    ]  # fmt: skip
    assert sender.lost == 2


def test_what_waits_has_a_bound_and_nobody_waits_for_a_server_that_is_away():
    with Receiver() as server:
        url = server.url
    sender = HttpSender(Endpoint(url), joins=True)
    large = bytes(MOST_WAITING // 2)
    assert [sender.put(large), sender.has_room, sender.put(large), sender.put(b"more")] == [
        True, False, True, False,
    ]  # fmt: skip
    sender.start()
    sender.close()
    assert "cannot be reached: " in sender.note
    assert sender.lost == 3


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("localhost:8086", "give a URL"),
        ("ftp://h/x", "give a URL"),
        ("http://h:99999/x", "give a URL"),
        ("http://u:s3cret@h/x", "leave user and password out"),
        ("http://h/x#t", "leave out the part"),
        ("http://h:8086", "/api/v2/write"),
        ("http://h:8086/api/v2/write?org=o", "needs .org=ORG&bucket=BUCKET"),
        ("http://h:8181/api/v3/write_lp", "needs .db=DATABASE"),
    ],
)
def test_what_is_no_address_is_refused_and_no_secret_repeated(text, said):
    with pytest.raises(NotAllowed, match=said) as refusal:
        influx_url(text)
    assert "s3cret" not in str(refusal.value)


def test_a_token_is_read_from_a_file_or_from_the_environment(tmp_path, monkeypatch):
    assert token_from(None, "NO_TOKEN") is None
    monkeypatch.setenv("A_TOKEN", "from where")
    with pytest.raises(ServiceError, match="the variable A_TOKEN has no token"):
        token_from(None, "A_TOKEN")
    file = tmp_path / "token"
    file.write_text("abc\n")
    file.chmod(0o644)
    with pytest.raises(ServiceError, match="chmod 600"):
        token_from(str(file), "A_TOKEN")
    file.chmod(0o600)
    assert token_from(str(file), "A_TOKEN") == "abc"
