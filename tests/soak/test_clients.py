"""Two hundred who look at one page, and twenty of them who stand still.

They stand for other computers: their program has what this one leaves of its processors.
"""

import asyncio
import json
import subprocess
import sys

import pytest

from tests.service.served import ROOT, Served, is_row

pytestmark = pytest.mark.soak

CLIENTS, STALLED, SECONDS, TURNS = 200, 20, 20, 2

READERS = """
import asyncio, json, sys
from websockets.asyncio.client import connect

async def read(url, seen):
    async with connect(url, compression=None, proxy=None, max_queue=64) as one:
        async for text in one:
            if text.startswith('{"time_s"'):
                seen.append(json.loads(text)["sample"])

async def main(url, count, seconds):
    seen = [[] for _ in range(count)]
    tasks = [asyncio.create_task(read(url, one)) for one in seen]
    await asyncio.sleep(float(seconds))
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    steps = sorted({b - a for one in seen for a, b in zip(one[1:], one[2:])})
    print(json.dumps([steps, min(map(len, seen)), max(map(len, seen))]))

asyncio.run(main(sys.argv[1], int(sys.argv[2]), sys.argv[3]))
"""


async def stand_still(host, port, count, seconds):
    """Clients that are let in and then read nothing."""
    greeting = f"GET /ws HTTP/1.1\r\nHost: {host}:{port}\r\nUpgrade: websocket\r\n"
    greeting += "Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
    greeting += "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    kept = [await asyncio.open_connection(host, port, limit=1024) for _ in range(count)]
    for reader, writer in kept:
        reader._transport.pause_reading()
        writer.write(greeting.encode())
    await asyncio.sleep(seconds)
    for _, writer in kept:
        writer.transport.abort()


def measured(clients):
    """Health of a station after a minute, and what its clients got."""
    asked = ["--web", "0", "--source", "demo", "--model", "moore2016"]
    with Served(*asked) as served:
        address = served.address
        served.until(is_row)
        got = None
        if clients:
            url = address.replace("http", "ws") + "ws"
            host, port = address.removeprefix("http://").removesuffix("/").split(":")
            command = ["nice", "-n", "19", sys.executable, "-c", READERS]
            command += [url, str(CLIENTS - STALLED), str(SECONDS)]
            with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as readers:
                asyncio.run(stand_still(host, int(port), STALLED, SECONDS))
                got = json.loads(readers.communicate(timeout=60)[0])
        else:
            sample = served.past[-1]["sample"] + SECONDS * 48000
            served.until(lambda message: is_row(message) and message["sample"] >= sample)
        return served.ask("status"), got


def test_many_clients_and_some_that_stand_still(record):
    turns = [(measured(clients=False), measured(clients=True)) for _ in range(TURNS)]
    alone, among = zip(*turns, strict=True)
    # What else the computer does makes blocks longer, now and then; the least is of this alone.
    p99, p99_alone = (
        min(status["health"]["block_share_p99"] for status, _ in some) for some in (among, alone)
    )
    fewest, most = min(got[1] for _, got in among), max(got[2] for _, got in among)
    lost = [status["health"][key] for status, _ in among for key in ("overruns", "lost_samples")]
    told = (
        f"{sum(lost)} overruns and lost samples; a block's p99 {100 * p99:.1f} % of its duration, "
        f"{100 * p99_alone:.1f} % without ({p99 / p99_alone:.2f} times); {fewest} to {most} rows "
        f"each; {among[0][0]['transports']['web']['note']}"
    )
    record(f"{CLIENTS} clients of the WebSocket, {STALLED} of them stand still, {SECONDS} s", told)
    assert not any(lost)
    assert all(got[0] == [4800] for _, got in among)
    assert p99 <= 1.1 * p99_alone + 0.01
