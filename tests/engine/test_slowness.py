"""Why processing does not keep up: the models' own cost, a busy computer, or a stopped program."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from amt_stream.core import processor_time
from amt_stream.engine.models import slowness
from amt_stream.engine.models.slowness import Spent, cause_of, shares_of
from tests.engine.held_back import held_back

ROOT = Path(__file__).parents[2]


def spent(**seconds) -> Spent:
    """A second in which a model needs 0.3 s and gets 0.1 s, unless said otherwise."""
    usual = {"wall": 1.0, "cpu": 0.1, "idle": 0.0, "audio": 0.33, "process": 0.15, "halted": 0.0}
    return Spent(**{**usual, "waited": 0.0, **seconds})


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        ({"waited": 0.88}, slowness.BUSY),
        ({"waited": 0.88, "throttled": 9}, slowness.LIMITED),
        ({"waited": 0.88, "throttled": 0}, slowness.BUSY),
        ({"waited": 0.5, "stolen": 0.9}, slowness.STOLEN),
        # It waits for a thread that waits for a processor.
        ({"waited": 0.1, "others": 0.8, "halted": 0.7}, slowness.BUSY),
        ({"waited": 0.02, "halted": 0.85}, slowness.STOPPED),
        ({"waited": 0.02, "process": 0.95}, slowness.OTHER_PARTS),
        ({"waited": 0.02, "process": 0.95, "halted": 0.5}, slowness.OTHER_PARTS),
        ({"cpu": 0.95, "audio": 0.7, "waited": 0.04}, slowness.OWN_COST),
        # Also beside other programs: more than one core helps nothing.
        ({"cpu": 0.4, "audio": 0.3, "waited": 0.55}, slowness.OWN_COST),
        # It sleeps, or the system tells too little.
        ({"waited": 0.01}, ""),
        ({"waited": None}, ""),
    ],
)
def test_the_cause_is_what_took_most_of_the_time(seconds, words):
    assert cause_of(spent(**seconds), processors=2).words == words


def test_time_on_another_device_is_the_models_own():
    assert cause_of(spent(waited=0.01), on_cpu=False).words == slowness.OWN_COST


def test_a_cause_says_its_figures():
    busy = cause_of(spent(waited=0.88))
    assert str(busy) == f"{slowness.BUSY} (30 % of a core needed, 10 % available)"
    own = cause_of(spent(cpu=0.95, audio=0.5))
    assert own.figures == "1.9 s of work for each second of sound"
    stopped = cause_of(spent(halted=0.85))
    assert stopped.figures == "80 % of the time"
    assert not str(cause_of(spent()))


def test_shares_are_of_the_time_and_unknown_where_the_system_tells_nothing():
    shares = shares_of(spent(wall=2.0, waited=1.5, stolen=0.4), 2)
    assert shares == (0.05, 0.75, 0.0, 0.1)
    assert shares_of(spent(waited=None), 2)[1:] == (None, None, None)


def test_what_the_system_tells_grows_and_is_none_elsewhere(monkeypatch, tmp_path):
    thread = os.getpid()  # of the first thread
    if sys.platform == "linux":
        before = processor_time.waited_s(thread)
        assert 0.0 <= before <= processor_time.waited_s(thread)
        assert thread in processor_time.all_waited_s()
        assert processor_time.stolen_s() >= 0.0
    monkeypatch.setattr(processor_time, "PROC", tmp_path)
    assert processor_time.waited_s(thread) is None
    assert processor_time.all_waited_s() == {}
    assert processor_time.throttled() is None
    assert processor_time.stolen_s() is None


@pytest.mark.parametrize(
    ("listed", "folder", "text", "seconds"),
    [
        ("0::/a/b\n", "a/b", "nr_periods 9\nnr_throttled 3\nthrottled_usec 250000\n", 0.25),
        (
            "4:cpu,cpuacct:/a\n0::/\n",
            "cpu,cpuacct/a",
            "nr_throttled 3\nthrottled_time 500000000",
            0.5,
        ),
    ],
)
def test_limits_of_both_versions_of_groups_are_read(
    monkeypatch, tmp_path, listed, folder, text, seconds
):
    proc, groups = tmp_path / "proc", tmp_path / "groups"
    (proc / "self").mkdir(parents=True)
    (proc / "self" / "cgroup").write_text(listed)
    (groups / folder).mkdir(parents=True)
    (groups / folder.partition("/")[0] / "cgroup.procs").write_text("")
    (groups / "cgroup.procs").write_text("")
    (groups / folder / "cpu.stat").write_text(text)
    monkeypatch.setattr(processor_time, "PROC", proc)
    monkeypatch.setattr(processor_time, "CGROUPS", groups)
    assert processor_time.throttled() == (3, seconds)


class Burning:
    """A measurement in a process of its own, and what it tells of its health."""

    def __init__(self, seconds: float) -> None:
        command = [sys.executable, "-m", "tests.engine.burning", str(seconds)]
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, cwd=ROOT)
        assert self.process.stdout.readline() == "ready\n"

    def health(self) -> dict:
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def end(self) -> None:
        self.process.send_signal(signal.SIGCONT)
        self.process.kill()
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()


@pytest.fixture
def burning():
    made = []

    def begin(seconds: float) -> Burning:
        made.append(Burning(seconds))
        return made[-1]

    yield begin
    for one in made:
        one.end()


def overload(burning: Burning, hold=lambda: time.sleep(0.02)) -> dict:
    """Its health once it has told an overload and its cause."""
    give_up = time.monotonic() + 120
    while time.monotonic() < give_up:
        hold()
        health = burning.health()
        if health["slow_because"] and causes_in(health):
            return health
    pytest.fail(f"no overload was told: {health}")


def causes_in(health: dict) -> list[tuple[str, str]]:
    """Texts of the overloads whose cause is known, with the cause."""
    events = health["events"]
    return [(text, cause) for kind, text, cause in events if kind == "overload" and cause]


def refuse_another_word(health: dict, words: str) -> None:
    """All that tells of an overload has the same word."""
    assert health["overloaded"]
    assert health["slow_because"] == words
    assert health["note"].startswith(f"processing cannot keep up with the sound, because {words} (")
    for text, cause in causes_in(health):
        assert cause == words
        assert f"because {words} (" in text


def test_a_model_that_costs_too_much_is_its_own_cause(burning):
    health = overload(burning(1.6))
    refuse_another_word(health, slowness.OWN_COST)
    assert health["load"] > 1.0
    work = re.search(r"\(([\d.]+) s of work for each second", health["note"])
    assert float(work[1]) == pytest.approx(1.6, abs=0.2)


@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not tell")
def test_a_program_that_is_stopped_in_turn_says_so(burning):
    measuring = burning(0.5)

    def hold() -> None:
        """Nine tenths of the time, so that a busy computer changes little."""
        measuring.process.send_signal(signal.SIGSTOP)
        time.sleep(0.45)
        measuring.process.send_signal(signal.SIGCONT)
        time.sleep(0.05)

    health = overload(measuring, hold)
    refuse_another_word(health, slowness.STOPPED)
    assert health["load"] < 0.95
    assert health["stopped"] > 0.3
    assert health["stopped_s"] > 0.5


@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not tell")
def test_a_computer_that_leaves_too_little_is_the_cause_and_not_the_model(burning):
    measuring = burning(0.5)
    with held_back(measuring.process.pid) as cause:
        health = overload(measuring)
    refuse_another_word(health, cause)
    assert health["load"] < 0.95
    assert health["processor_waited"] > 0.3
    assert health["stopped"] < 0.3
    assert (health["throttled"] or 0) > 0 or cause != slowness.LIMITED
