"""Programs that end without stopping their engine: they end, whatever hangs, and say so."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

FILE = Path(__file__)
TOLD = "still ran when the program ended and was stopped for it"

# Each program is a fork of one that has torch already, and ends as any program does.
FORKS = """
import gc, json, os, signal, sys, threading, time
from amt_stream.dsp.compose import Delay
from amt_stream.engine import Engine, SignalSource, Source, Tone
from amt_stream.engine.sources import ThreadedSource

def running(source=None, **options):
    engine = Engine(source or SignalSource([Tone(500.0, level_db=60.0)]), Delay(480), **options)
    engine.start()
    while source is None and not engine.health.samples:
        time.sleep(0.001)
    return engine

def leave():
    print("leaving", flush=True)

class OwnThread(Source):
    fs, channels, name = 48000, 1, "own"

    def start(self, deliver):
        self.stopping = threading.Event()
        threading.Thread(target=self.stopping.wait).start()

    def stop(self):
        self.stopping.set()

class Blocking(ThreadedSource):
    def blocks(self):
        os.read(os.pipe()[0], 1)
        yield

def use():
    engine = running()
    time.sleep(0.6)
    print(engine.health.device_state, flush=True)

gc.freeze()
ended = {}
for case, program in json.loads(sys.argv[1]).items():
    read_end, write_end = os.pipe()
    child = os.fork()
    if not child:
        os.dup2(write_end, 1)
        os.dup2(write_end, 2)
        os.close(write_end)
        signal.alarm(100)  # what hangs does so for longer
        break
    os.close(write_end)
    with os.fdopen(read_end) as output:
        said = ""
        while "leaving" not in said and (line := output.readline()):
            said += line
        if case == "Ctrl+C":
            os.kill(child, signal.SIGINT)
        said += output.read()
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    ended[case] = status, said
else:
    print(json.dumps(ended))
    sys.exit()
exec(program)
"""

PROGRAMS = {  # what it does, its status, and how many engines it leaves running
    "falls off its end": ("running(); leave()", 0, 1),
    "SystemExit": ("running(); leave(); raise SystemExit(3)", 3, 1),
    "exception": ("running(); leave(); 1 / 0", 1, 1),
    "two engines, one nobody refers to": ("first = running(); running(); leave(); 1 / 0", 1, 2),
    "callback": ("running(run_in='callback'); leave(); 1 / 0", 1, 1),
    "as fast as it goes": ("running(SignalSource(paced=False)); leave(); 1 / 0", 1, 1),
    "a read that blocks": ("running(Blocking('pipe', 48000, 1, True)); leave(); 1 / 0", 1, 1),
    "a source with a thread of its own": ("running(OwnThread()); leave(); 1 / 0", 1, 1),
    "a sink that hangs": (
        "running(sinks=[lambda frames: time.sleep(600)]); time.sleep(0.2); leave(); 1 / 0",
        1,
        1,
    ),
    "sys.exit in another thread": (
        "t = threading.Thread(target=lambda: sys.exit(running()))\nt.start(); t.join(); leave()",
        0,
        1,
    ),
    "another thread goes on": ("threading.Thread(target=use).start(); leave()", 0, 1),
    # A signal just before a sleep begins is seen after it: so sleep for short times.
    "Ctrl+C": ("running(); leave()\nwhile True: time.sleep(0.05)", -signal.SIGINT, 1),
    "stopped": ("running().stop(); leave()", 0, 0),
}


@pytest.fixture(scope="module")
def ended(request):
    """Status and output of each program that is tested."""
    tested = [item.callspec.params["case"] for item in request.session.items if item.path == FILE]
    programs = json.dumps({case: PROGRAMS[case][0] for case in tested})
    done = subprocess.run(
        [sys.executable, "-c", FORKS, programs],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    return json.loads(done.stdout)


@pytest.mark.cases(4)
@pytest.mark.skipif(not hasattr(os, "fork"), reason="the programs are forks")
@pytest.mark.parametrize("case", PROGRAMS)
def test_a_program_that_stops_no_engine_ends_and_says_so(ended, case):
    _, status, left_running = PROGRAMS[case]
    found, said = ended[case]
    assert said.count(TOLD) == left_running, said
    assert found == status, said
    if case == "another thread goes on":
        assert "running\n" in said, "its engine was stopped while the thread used it"
