"""The page, the WebSocket, /health: real clients, and who may come in."""

import asyncio
import itertools
import json
import os
import signal
import socket
import struct
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from websockets.asyncio.client import connect as connect_in_loop
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect

from amt_stream.service import COMMANDS
from amt_stream.service.message import Message
from amt_stream.service.web import Web
from tests.service.served import Served, is_row

TOKEN, VIEWERS = "0123456789abcdef0123", "fedcba98765432100123"
DEMO = ["--source", "demo", "--model", "spl"]


@pytest.fixture(scope="module")
def served():
    """One that anybody on this computer may connect to."""
    with Served("--web", "0", *DEMO) as one:
        one.url = one.address
        one.until(is_row)
        yield one


@pytest.fixture(scope="module")
def guarded(tmp_path_factory):
    """One that asks for a token, at all addresses of this computer."""
    path = tmp_path_factory.mktemp("token") / "token"
    path.write_text(TOKEN + "\n")
    (viewers := path.with_name("viewers")).write_text(VIEWERS + "\n")
    path.chmod(0o600)
    viewers.chmod(0o640)
    asked = ["--web", "0", "--listen", "0.0.0.0", "--token-file", str(path)]
    asked += ["--view-token-file", str(viewers)]
    with Served(*asked, *DEMO) as one:
        one.url = one.address.replace("0.0.0.0", "127.0.0.1")
        one.until(is_row)
        yield one


def client(served, token=None, **more):
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    url = served.url.replace("http", "ws") + "ws"
    more = {"close_timeout": 0.5, **more}
    return connect(url, additional_headers=headers, proxy=None, **more)


def get(served, path, **headers):
    """Status, body and headers of a plain request."""
    request = urllib.request.Request(served.url + path, headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return answer.status, answer.read(), answer.headers
    except urllib.error.HTTPError as error:
        return error.code, error.read(), error.headers


def received(connection, wanted):
    """The next message that is wanted."""
    end = time.monotonic() + 60
    while time.monotonic() < end:
        message = json.loads(connection.recv(timeout=30))
        if wanted(message):
            return message
    raise AssertionError("what was wanted did not come")


def ending_of(connection):
    """How the other end closes it, once it does."""
    try:
        while True:
            connection.recv(timeout=30)
    except ConnectionClosed as closed:
        return closed.rcvd


def test_whoever_comes_gets_the_header_and_then_what_all_get(served):
    with client(served) as before:
        received(before, is_row)  # the page has begun
    with client(served) as one:
        first = json.loads(one.recv(timeout=30))
        assert first["header"]["models"][0]["name"] == "spl"
        assert "state" in json.loads(one.recv(timeout=30))
        rows = [received(one, is_row) for _ in range(12)][1:]  # the newest, then those that come
    sent = {}
    while rows[-1]["sample"] not in sent:
        row = served.until(is_row)
        sent[row["sample"]] = row
    known = {row["sample"]: row for row in served.past if is_row(row)}
    assert [known[row["sample"]] for row in rows] == rows
    steps = {b["sample"] - a["sample"] for a, b in itertools.pairwise(rows)}
    assert steps == {4800}


def test_commands_come_over_it_too_and_only_their_sender_is_answered(served):
    with client(served) as one, client(served) as other:
        other.send(json.dumps({"subscribe": ["reply", "event"]}))
        one.send(json.dumps({"command": "mark", "text": "here", "id": 5}))
        reply = received(one, lambda message: "reply" in message)["reply"]
        assert (reply["command"], reply["id"], reply["done"]) == ("mark", 5, True)
        heard = json.loads(other.recv(timeout=30))
        while "event" not in heard:  # what was on its way before it subscribed
            assert "reply" not in heard
            heard = json.loads(other.recv(timeout=30))
        assert heard["event"]["text"] == "here"


def test_a_swap_takes_nothing_else_away():
    with Served("--web", "0", "--source", "demo", "--model", "moore2016,spl") as one:
        one.url = one.address
        with client(one) as page:
            page.send(json.dumps({"subscribe": ["specific", "event"]}))
            received(page, lambda message: "specific" in message)
            assert one.ask("swap", settings={"field": "diffuse"})["done"]
            received(page, lambda message: "event" in message)
            before = received(page, lambda message: "specific" in message)["specific"]["time_s"]
            after = received(page, lambda message: "specific" in message)["specific"]["time_s"]
            assert after > before
        header = one.until(lambda message: "header" in message)["header"]
        assert [model.get("field") for model in header["models"]] == ["diffuse", None]
        swapped = [m for m in one.past if m.get("event", {}).get("kind") == "swapped"]
        assert len(swapped) == 1  # the other model has no such setting


def test_health_says_why_it_is_not_well(served):
    assert health(served, 200) == {"well": True, "why": [], "state": "measuring"}
    assert served.ask("stop")["done"]
    try:
        why = ["no measurement is running: stopped"]
        assert health(served, 503) == {"well": False, "why": why, "state": "stopped"}
    finally:
        assert served.ask("start")["done"]


def health(served, wanted):
    """What it tells once its status is the one wanted: the page hears of a change in its time."""
    until = time.monotonic() + 30
    while True:
        status, body, _ = get(served, "health")
        told = json.loads(body)
        if status == wanted or time.monotonic() > until:
            assert status == wanted, told
            return {key: told[key] for key in ("well", "why", "state")}
        time.sleep(0.1)


def test_what_is_malformed_is_answered_and_what_is_too_much_is_cut_off(served):
    with client(served) as one:
        one.send("\x00{")
        reply = received(one, lambda message: "reply" in message)["reply"]
        assert not reply["done"]
        assert "is not a command: " in reply["error"]
        one.send(b"\xff\xfe")
        assert "is not a command: " in received(one, lambda m: "reply" in m)["reply"]["error"]
    with client(served) as one:
        one.send("x" * 20_000)
        assert ending_of(one).code == 1009
    with client(served) as one:
        for _ in range(200):
            one.send('{"command": "status"}')
        end = ending_of(one)
        assert (end.code, end.reason) == (1008, "too many messages")
    served.until(is_row)


@pytest.mark.parametrize(
    "origin", ["http://evil.example", "null", "https://127.0.0.1.evil.example"]
)
def test_a_page_of_another_site_is_refused(served, origin):
    with pytest.raises(InvalidStatus) as refused, client(served, origin=origin):
        pass
    assert refused.value.response.status_code == 403
    assert get(served, "health", Origin=origin)[0] == 403
    own = served.url.removesuffix("/")
    with client(served, origin=own) as one:
        assert received(one, is_row)


def test_another_name_that_leads_here_is_refused(served):
    port = served.url.rsplit(":", 1)[1]
    assert get(served, "", Host=f"evil.example:{port}")[0] == 403
    assert get(served, "", Host=f"localhost:{port}")[0] == 200
    assert get(served, "", Host="[::1")[0] == 403


@pytest.mark.parametrize("name", ["Host", "Origin", "Authorization"])
def test_a_header_that_comes_twice_is_refused_and_leaves_no_trace(name):
    """Whichever of the two counts: a proxy before it may think otherwise."""
    with Served("--web", "0", *DEMO) as one:
        one.url = one.address
        host, port = one.url.removeprefix("http://").removesuffix("/").split(":")
        told = {"Host": f"{host}:{port}", "Origin": one.url.removesuffix("/")}
        line = f"{name}: {told.get(name, 'Bearer x')}\r\n"
        lines = line * 2 if name == "Host" else f"Host: {host}:{port}\r\n{line * 2}"
        for path in ("health", "ws", "metrics", ""):
            with socket.create_connection((host, int(port))) as raw:
                raw.sendall(f"GET /{path} HTTP/1.1\r\n{lines}\r\n".encode())
                assert raw.makefile("rb").readline() == b"HTTP/1.1 400 Bad Request\r\n"
        assert get(one, "metrics", Accept="text/plain")[0] == 200
        one.end()
        assert not [line for line in iter(one.said_yet, "") if "Traceback" in line]


def test_nothing_else_is_served(served):
    for path in ("etc/passwd", "../web.py", "page/index.html", "%2e%2e/web.py", "metrics2"):
        assert get(served, path)[0] == 404
    status, body, headers = get(served, "")
    assert (status, b"<title>" in body) == (200, True)
    assert headers["Content-Security-Policy"].startswith("default-src 'self'")
    assert b"http://" not in body
    assert b"https://" not in body


def test_a_token_is_asked_for_and_no_other_will_do(guarded):
    for path in ("health", "metrics"):
        assert get(guarded, path)[0] == 401
        assert get(guarded, path, Authorization="Bearer wrong")[0] == 401
        assert get(guarded, f"{path}?token={TOKEN}")[0] == 401
    assert get(guarded, "health", Authorization=f"Bearer {TOKEN}")[0] == 200
    with client(guarded, token=TOKEN) as one:
        assert received(one, is_row)
    with client(guarded) as one:  # a page cannot set a header
        one.send(json.dumps({"token": TOKEN}))
        assert received(one, is_row)
    for first in ({"token": TOKEN[:-1]}, {"token": 5}, {"command": "stop"}, [TOKEN]):
        with client(guarded) as one:
            one.send(json.dumps(first))
            end = ending_of(one)
            assert (end.code, end.reason) == (1008, "a token is required")


def test_who_has_the_token_of_viewers_sees_all_and_commands_nothing(guarded):
    assert get(guarded, "health", Authorization=f"Bearer {VIEWERS}")[0] == 200
    assert get(guarded, "metrics", Authorization=f"Bearer {VIEWERS}")[0] == 200
    with client(guarded) as one:
        one.send(json.dumps({"token": VIEWERS}))
        assert received(one, is_row)
        for command in COMMANDS:
            one.send(json.dumps({"command": command, "text": "x", "id": 7}))
            reply = received(one, lambda message: "reply" in message)["reply"]
            assert (reply["command"], reply["id"], reply["done"]) == (command, 7, False)
        one.send(json.dumps({"token": TOKEN}))  # the first message has told who it is
        one.send(json.dumps({"command": "stop"}))
        reply = received(one, lambda message: "reply" in message)["reply"]
        assert reply["error"] == "stop needs the token for commands; this one is for viewing"
        one.send(json.dumps({"command": "status"}))
        reply = received(one, lambda message: "reply" in message)["reply"]
        assert (reply["done"], reply["state"]) == (True, "measuring")


def test_metrics_are_made_five_times_a_second_however_often_they_are_asked_for():
    class Counting:
        made = 0

        def exposition(self, accept):
            self.made += 1
            return f"{self.made}\n".encode(), f"text/plain; of={accept}"

    async def asked():
        """How often they were made, and how long it took; every content type is the one asked."""
        counting = Counting()
        web = Web("127.0.0.1", 0, metrics=counting)
        await web.open(object())  # whom nobody asks

        async def ask(number):
            url, accept = f"{web.address}metrics", ("a/b", "c/d")[number % 2]
            request = urllib.request.Request(url, headers={"Accept": accept})
            with await asyncio.to_thread(urllib.request.urlopen, request) as answer:
                assert answer.headers["Content-Type"] == f"text/plain; of={accept}"
                return int(answer.read())

        began = time.monotonic()
        for _ in range(10):
            told = await asyncio.gather(*(ask(number) for number in range(20)))
        took_s = time.monotonic() - began
        await asyncio.sleep(0.25)
        newer = await ask(0)
        await web.close()
        assert newer > max(told)  # and not older than that
        return counting.made, took_s

    made, took_s = asyncio.run(asked())
    assert made <= 2 * (took_s / 0.2 + 1) + 1


def test_a_refused_command_is_answered_by_its_name(served):
    with client(served) as one:
        for asked in ({"command": "mark"}, {"command": "undo_reset", "x": 1}, {"command": "fly"}):
            one.send(json.dumps(asked))
            reply = received(one, lambda message: "reply" in message)["reply"]
            known = None if asked["command"] == "fly" else asked["command"]
            assert (reply["command"], reply["done"]) == (known, False)


def test_by_default_it_listens_to_this_computer_alone(served, guarded):
    assert listens_at(served.process.pid) == {"127.0.0.1"}
    assert listens_at(guarded.process.pid) == {"0.0.0.0"}


def listens_at(pid):
    """Addresses of all sockets on which a process, or one that it started, waits for others."""
    process, own = Path("/proc") / str(pid), set()
    found = set()
    for child in (process / "task" / str(pid) / "children").read_text().split():
        found |= listens_at(child)
    for name in (process / "fd").iterdir():
        target = str(name.readlink())
        if target.startswith("socket:["):
            own.add(target[8:-1])
    for table in ("tcp", "tcp6", "udp", "udp6"):
        for line in (process / "net" / table).read_text().splitlines()[1:]:
            _, local, _, state, *rest = line.split()
            if rest[5] in own and (state == "0A" or table.startswith("udp")):
                address = local.split(":")[0]
                assert len(address) == 8, "only IPv4 is expected here"
                found.add(socket.inet_ntoa(struct.pack("<I", int(address, 16))))
    return found


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (["--listen", "0.0.0.0", "--web", "0"], "add --token-file FILE"),
        (["--token-file", "/nowhere", "--web", "0"], "cannot be read"),
        (["--share"], "--share needs the page: add --web"),
        ([], "no transport: add --web, --stdio"),
        (["--web", "0", "--listen", "203.0.113.7", "--token-file", "TOKEN"], "is not available"),
        (["--web", "0", "--token-file", "OPEN"], "(mode 644): chmod 600 "),
        (["--web", "0", "--view-token-file", "TOKEN"], "give two files"),
        (["--web", "0", "--token-file", "TOKEN", "--view-token-file", "TOKEN"], "give two files"),
        (["--view-token-file", "TOKEN"], "--view-token-file needs the page: add --web"),
    ],
)
def test_what_cannot_be_opened_is_said_in_one_sentence(forks, tmp_path, asked, said):
    paths = {"TOKEN": (tmp_path / "token", 0o600), "OPEN": (tmp_path / "open", 0o644)}
    for path, mode in paths.values():
        path.write_text(TOKEN)
        path.chmod(mode)
    asked = [str(paths[word][0]) if word in paths else word for word in asked]
    done = forks.run("serve", *DEMO, *asked)
    told = done.stderr.decode()
    assert done.returncode in (1, 2)
    assert said in told
    assert "Traceback" not in told
    assert not done.stdout


def page_of(served):
    """The process of its page."""
    (page,) = children(served.process.pid)
    return page


def children(pid):
    """Processes that its first thread has started."""
    return set(map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split()))


def test_the_page_stands_back_behind_the_measurement(served):
    nice = [os.getpriority(os.PRIO_PROCESS, pid) for pid in (page_of(served), served.process.pid)]
    assert nice[0] > nice[1]


def test_the_first_row_after_some_that_were_left_out_says_so():
    def row(time_s, length=0):
        return Message("row", {"time_s": time_s, "fault": "clip", "long": "x" * length})

    async def faults():
        """Of two rows after a page that stood still."""
        web, before = Web("127.0.0.1", 0), children(os.getpid())
        await web.open(None)
        (page,) = children(os.getpid()) - before
        os.kill(page, signal.SIGSTOP)
        while not web.missed:
            web.send(row(0.0, 1 << 20))
        os.kill(page, signal.SIGCONT)
        missed = 0
        while missed != web.missed:
            missed = web.missed
            await asyncio.sleep(0.01)
            web.send(row(1.0))
        url = web.address.replace("http", "ws") + "ws"
        async with connect_in_loop(url, proxy=None, max_size=None) as one:
            first = await row_at(one, 1.0)
            web.send(row(2.0))
            second = await row_at(one, 2.0)
        await web.close()
        return first["fault"], second["fault"]

    async def row_at(connection, time_s):
        while (told := json.loads(await connection.recv())).get("time_s") != time_s:
            pass
        return told

    assert asyncio.run(faults()) == ("clip overload", "clip")


def test_the_page_outlives_its_process_and_not_the_measurement():
    with Served("--web", "0", *DEMO) as one:
        one.url = one.address
        one.until(is_row)
        before = page_of(one)
        os.kill(before, signal.SIGKILL)
        until = time.monotonic() + 30
        while get_or_none(one, "health") != 200:
            assert time.monotonic() < until
            time.sleep(0.1)
        with client(one) as again:
            assert "header" in json.loads(again.recv(timeout=30))
            assert received(again, is_row)
        page = page_of(one)
        assert page != before
        one.process.send_signal(signal.SIGSTOP)
        while get_or_none(one, "health") != 503:
            assert time.monotonic() < until + 30
            time.sleep(0.2)
        assert b"no state from the measurement" in get(one, "health")[1]
        one.process.kill()
        while Path(f"/proc/{page}").exists():
            assert time.monotonic() < until + 60
            time.sleep(0.05)


def get_or_none(served, path):
    """The status, where somebody answers."""
    try:
        return get(served, path)[0]
    except OSError:
        return None


def test_who_falls_behind_is_dropped_and_nobody_else_misses_a_row():
    asked = ["--web", "0", "--columns", "*", "--step-ms", "2", *DEMO]
    with Served(*asked) as one:
        one.url = one.address
        one.until(is_row)
        with client(one) as quick, narrow(one) as stalled:
            before = received(quick, is_row)["sample"]
            until = time.monotonic() + 60
            while "too slow" not in (told := said_of_web(quick)):
                assert time.monotonic() < until
            assert told.startswith("1 client ")
            samples = [received(quick, is_row)["sample"] for _ in range(3)]
            assert samples[0] > before
            del stalled
        known = [row["sample"] for row in one.past if is_row(row)]
        while known[-1] < samples[-1]:
            known.append(one.until(is_row)["sample"])
        assert {b - a for a, b in itertools.pairwise(known)} == {96}


def narrow(served):
    """A client that reads nothing after its greeting, and has little room."""
    host, port = served.url.removeprefix("http://").removesuffix("/").split(":")
    raw = socket.socket()
    raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    raw.connect((host, int(port)))
    lines = [f"GET /ws HTTP/1.1\r\nHost: {host}:{port}\r\nUpgrade: websocket\r\n"]
    lines += ["Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"]
    lines += ["Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"]
    raw.sendall("".join(lines).encode())
    return raw


def said_of_web(connection):
    state = received(connection, lambda message: "state" in message)
    return state["state"]["transports"]["web"]["note"]
