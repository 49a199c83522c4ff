"""`serve --post`, with a real HTTP server that gets the events."""

import ast
import json
import re
from pathlib import Path

import pytest

from amt_stream.cli.commands.serve import _posts
from amt_stream.cli.messages import WrongUsage
from amt_stream.cli.options.live import ServeOptions
from amt_stream.core.values import NotAllowed
from amt_stream.meters.frames import COUNTING, IMPULSE_COUNTING
from amt_stream.service.identity import Identity
from amt_stream.service.message import Message
from amt_stream.service.transports.http_endpoint import (
    KINDS,
    Recipient,
    parse_kinds,
    parse_recipient,
)
from amt_stream.service.transports.webhook import Webhook
from amt_stream.sessions.events.keeper import SOUND_KEPT
from amt_stream.sessions.report.happened import NAMES
from tests.service.receiver import Receiver
from tests.service.served import Served

ROOT = Path(__file__).parents[2]
TELLING = {"tell", "_tell", "here", "_tell_when_done", "announce", "moment"}


def test_events_are_posted_in_order_after_an_outage(tmp_path):
    token = tmp_path / "token"
    token.touch(0o600)
    token.write_text("s3cret")
    with Receiver((500, {})) as server:
        asked = ["--source", "am-tone", "--model", "spl", "--columns", "laf_db"]
        asked += ["--limit", "laf_db>10", "--station", "roof", "--label", "city=Graz"]
        asked += ["--post", f"{server.url}/hook?key=1", "--post-token", str(token)]
        with Served(*asked) as served:
            served.until(lambda message: message.get("event", {}).get("kind") == "limit")
            served.ask("mark", text="Tür")
            served.until(lambda message: message.get("event", {}).get("kind") == "mark")
            posted = [server.next() for _ in range(3)]
        told = [message["event"] for message in served.past if "event" in message]
    (refused, first), (_, again), (_, second) = posted
    assert (refused, first) == (500, again)
    assert (first.path, first.headers["Authorization"]) == ("/hook?key=1", "Bearer s3cret")
    bodies = [json.loads(one.body) for one in (again, second)]
    assert [body["event"] for body in bodies] == told
    assert [body["event"]["kind"] for body in bodies] == ["limit", "mark"]
    assert (told[1]["station"], told[1]["labels"]) == ("roof", {"city": "Graz"})
    assert bodies[0]["text"].startswith("roof: LAF is red: ")
    assert bodies[1]["text"] == "roof: Tür"


def event(kind, text="", **more):
    return Message("event", {"kind": kind, "text": text, "utc": None, **more})


def posted(recipient, messages, only=()):
    """What a server gets of these messages."""
    with Receiver() as server:
        recipient = Recipient(f"{server.url}{recipient.url}", recipient.topic)
        webhook = Webhook("post", recipient, Identity("roof"), only=only)
        for message in messages:
            webhook.send(message)
        webhook._sender.start()
        webhook._sender.close()
        assert (webhook.missed, webhook.note) == (0, "")
        return [(one.path, json.loads(one.body)) for one in server.rest()]


def test_ntfy_gets_notifications_that_tell_what_is_urgent():
    messages = [
        event("limit", "hall is amber: laf_db is 80"),
        event("limit", "hall is red: laf_db is 90", microphone="desk"),
        event("checked", "1 kHz reads 60"),
        event("paused"),
    ]
    found = posted(Recipient("/ntfy/", "noise"), messages)
    assert {path for path, _ in found} == {"/ntfy/"}
    assert [(b["message"], b["tags"], b["priority"]) for _, b in found] == [
        ("hall is amber: laf_db is 80", ["limit"], 3),
        ("desk: hall is red: laf_db is 90", ["limit"], 4),
        ("paused", ["paused"], 3),
    ]
    assert all((body["topic"], body["title"]) == ("noise", "roof") for _, body in found)


def test_only_the_kinds_that_are_wanted_and_a_failure_once():
    state = {"state": "measuring", "since_utc": "2026-11-22T20:41:32.929Z", "error": ""}
    failed = {**state, "state": "failed", "error": "no memory"}
    messages = [Message("state", one) for one in (state, failed, failed, state, failed)]
    found = posted(Recipient("/"), [event("lost"), event("checked"), *messages], {"checked"})
    assert [body["event"]["kind"] for _, body in found] == ["checked"]
    found = posted(Recipient("/"), messages, {"failed"})
    assert [body["text"] for _, body in found] == ["roof: no memory"] * 2


def test_an_address_with_a_topic():
    asked = parse_recipient("ntfy:https://ntfy.sh/noise-1")
    assert asked == Recipient("https://ntfy.sh/", "noise-1")
    assert "ntfy.sh" not in repr(asked)
    assert parse_recipient("https://h/hook?key=1") == Recipient("https://h/hook?key=1")
    for text in ("ntfy:https://ntfy.sh/", "ntfy:https://ntfy.sh/a?b=c", "ntfy:https://n/a.b"):
        with pytest.raises(NotAllowed, match="topic of ntfy"):
            parse_recipient(text)
    assert parse_kinds("limit, check failed,sound_end") == ("limit", "check failed", "sound_end")
    for text in ("limit,,lost", "nonsense", "Limit", "limit lost"):
        with pytest.raises(NotAllowed, match="is not a kind of event: give some of limit, limits,"):
            parse_kinds(text)


def told_in(path):
    """The kinds of events that a file names where it tells them."""
    for call in ast.walk(ast.parse(path.read_text())):
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute):
            kind = call.args[0] if len(call.args) > 1 else None
            if call.func.attr in TELLING and isinstance(kind, ast.Constant):
                yield kind.value


def test_all_kinds_that_are_told_can_be_chosen_and_stand_on_the_page():
    files = [path for path in ROOT.glob("amt_stream/**/*.py") if "page" not in path.parts]
    told = {kind for path in files for kind in told_in(path) if isinstance(kind, str)}
    assert {"lost", "calibrated", "clock", "check failed", "reload"} <= told
    assert told | {*COUNTING, *IMPULSE_COUNTING, *NAMES, SOUND_KEPT} <= {*KINDS}
    table = (ROOT / "docs" / "wire.md").read_text().split("The kinds are:")[1].split("\n\n")[1]
    cells = [line.split("|")[1] for line in table.splitlines()]
    assert sorted(re.findall(r'"([^"]+)"', "".join(cells))) == sorted(KINDS)


def test_a_token_goes_to_one_receiver_alone(tmp_path):
    token = tmp_path / "token"
    token.touch(0o600)
    token.write_text("s3cret")
    posts = [Recipient("https://a/1"), Recipient("https://a/2"), Recipient("https://b/")]
    both = _posts(ServeOptions(post=posts[:2], post_token=str(token)))
    assert [one.name for one in both] == ["post a 1", "post a 2"]
    with pytest.raises(WrongUsage, match="would go to all of a, a, b"):
        _posts(ServeOptions(post=posts, post_token=str(token)))
