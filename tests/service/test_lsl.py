"""`serve --lsl`, with pylsl's inlets in another process on the other side."""

import asyncio
import json
import math
import os
import socket
import subprocess
import sys
from datetime import datetime
from pathlib import Path

import pytest

from amt_stream.meters.frames import Fault
from amt_stream.service.transports.lsl import Lsl, _Clock, _open_to_all
from amt_stream.service.transports.transport import ServiceError
from tests.service.served import ROOT, Served, is_row

COLUMNS = ("laf_db", "lafmax_db")


def test_a_recorder_gets_what_others_get():
    asked = ["--model", "spl", "--source", "am-tone", "--columns", ",".join(COLUMNS)]
    name = f"of test {os.getpid()}"  # another test may have streams too
    reader = [sys.executable, str(Path(__file__).with_name("lsl_reader.py")), name]
    with Served(*asked, "--lsl", "--lsl-name", name) as served:
        served.until(is_row)
        environment = os.environ | {"PYTHONPATH": str(ROOT)}
        with subprocess.Popen(reader, stdout=subprocess.PIPE, text=True, env=environment) as peer:
            told = json.loads(peer.stdout.readline())
            assert served.ask("mark", text="door")["done"]
            for _ in range(10):
                served.until(is_row)
            assert served.ask("mark", text="end")["done"]
            rows, events = json.loads(peer.stdout.readline())
        assert peer.returncode == 0
        served.until(lambda message: message.get("event", {}).get("text") == "end")

    assert (told["type"], told["rate"]) == ("Loudness", 10)
    assert told["labels"] == [*COLUMNS, "valid", "settling", "calibrated", "fault"]
    assert told["units"] == ["dB", "dB", "0 or 1", "0 or 1", "0 or 1", "bits"]
    assert told["header"] in served.past
    sent = [message for message in served.past if is_row(message)]
    numbers = [
        [one[name] for name in (*COLUMNS, "valid", "settling", "calibrated")] for one in sent
    ]
    offset = told["now"][0] - told["now"][1]
    captured = [datetime.fromisoformat(one["utc"]).timestamp() + offset for one in sent]
    begin = min(range(len(sent)), key=lambda k: abs(captured[k] - rows[0][1]))
    ends = begin + len(rows)
    assert len(rows) >= 5
    assert [sample[:-1] for sample, _ in rows] == numbers[begin:ends]
    assert [stamp for _, stamp in rows] == pytest.approx(captured[begin:ends], abs=0.1)
    marks = [json.loads(sample[0]) for sample, _ in events]
    assert [one for one in marks if one["event"]["kind"] == "mark"] == [
        message for message in served.past if message.get("event", {}).get("kind") == "mark"
    ]


def test_a_clock_that_was_set_moves_no_time_stamp():
    clock = _Clock()
    utcs = ("2036-01-01T00:00:00.000Z", "2016-01-01T00:00:00.000Z", None)
    first, *others = [clock.of({"time_s": 5 + k / 4, "utc": utc}) for k, utc in enumerate(utcs)]
    assert [one - first for one in others] == pytest.approx([0.25, 0.5], abs=1e-9)


def test_a_reading_that_is_not_there_is_nan_and_faults_are_a_sum():
    lsl = Lsl()
    lsl._channels = ["a_db", "b_db", "limit_c", "limit_d"]
    marks = {"valid": False, "settling": True, "calibrated": True, "fault": "gap clip"}
    states = {"limit_c": "red", "limit_d": "unknown"}
    a, b, c, d, *others = lsl._values({"a_db": 1.5, "b_db": None, **states, **marks})
    assert (a, math.isnan(b), c, math.isnan(d)) == (1.5, True, 2.0, True)
    assert others == [0, 1, 1, Fault.GAP + Fault.CLIP]


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux binds a socket to a device")
def test_nobody_beyond_this_computer_gets_through():
    async def ports():
        before = _open_to_all()
        lsl = Lsl()
        await lsl.open(None)
        bound = []
        for fd in _open_to_all() - before:
            with socket.socket(fileno=os.dup(fd)) as held:
                bound.append(held.getsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, 16))
        await lsl.close()
        return bound

    found = asyncio.run(ports())
    assert len(found) >= 2
    assert {one.rstrip(b"\0") for one in found} == {b"lo"}


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells what a process has open")
def test_looking_for_sockets_leaves_nothing_open():
    ours, theirs = os.pipe()
    before = sorted(Path("/proc/self/fd").iterdir())
    _open_to_all()
    assert sorted(Path("/proc/self/fd").iterdir()) == before
    os.close(theirs)
    assert os.read(ours, 1) == b""  # nobody else holds the other end
    os.close(ours)


@pytest.mark.parametrize(
    ("module", "said"),
    [
        ("", r"LSL needs pylsl, which is not installed: pip install \"amt_stream\[lsl\]\""),
        ("raise RuntimeError('no liblsl')", "LSL needs liblsl 1.17.7 or newer, which does not"),
    ],
)
def test_what_is_not_there_is_said(module, said, monkeypatch, tmp_path):
    monkeypatch.delitem(sys.modules, "pylsl", raising=False)
    if module:
        (tmp_path / "pylsl.py").write_text(module)
        monkeypatch.syspath_prepend(str(tmp_path))
    else:
        monkeypatch.setitem(sys.modules, "pylsl", None)
    with pytest.raises(ServiceError, match=said):
        asyncio.run(Lsl().open(None))
