"""What tests start for themselves: a microphone and a screen. In CI no test may skip."""

import contextlib
import gc
import os
import shlex
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from tests.cli.forks import Forks
from tests.service.served import forks as forks_of_served

ROOT = Path(__file__).parents[1]
VIRTUAL_MIC = ROOT / "tests" / "tools" / "virtual_mic.sh"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    report = yield
    return fail_if_skipped_in_ci(report)


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector):
    report = yield
    return fail_if_skipped_in_ci(report)


def fail_if_skipped_in_ci(report):
    if report.skipped and not hasattr(report, "wasxfail") and os.environ.get("CI") == "true":
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr
        report.outcome = "failed"
        report.longrepr = f"In CI nothing may skip, and this did. {reason}"
    return report


def pytest_configure(config):
    ignore_by_a_function()
    if os.environ.get("PYTEST_XDIST_WORKER"):
        import torch

        torch.set_num_threads(1)  # the workers share the cores
    elif config.getoption("numprocesses", None) and config.args_source.name == "TESTPATHS":
        compile_kernels()  # worth its time for the whole suite


IGNORED = "PYTEST_IGNORES"


def ignore_by_a_function():
    """Ignore what this process was started to ignore, but let its children hear it.

    A shell's job in the background ignores SIGINT, and one under nohup SIGHUP. So would all that
    the tests start, which have to end by these signals: a program keeps what is ignored, and not
    what is handled.
    """
    names = set(os.environ.get(IGNORED, "").split())  # by whoever has started this worker
    for name in {"SIGINT", "SIGHUP"} & set(dir(signal)):
        if signal.getsignal(getattr(signal, name)) is signal.SIG_IGN:
            names.add(name)
    os.environ[IGNORED] = " ".join(names)
    for name in names:
        signal.signal(getattr(signal, name), lambda number, frame: None)


COMPILED = 3  # families of `tests/kernels/compiling.py`


def compile_kernels():
    """Fill the cache of kernels, which each worker would otherwise compile for itself."""
    command = [sys.executable, "-m", "tests.kernels.compiling"]
    running = [
        subprocess.Popen(
            [*command, str(family)], cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        for family in range(COMPILED)
    ]
    for one in running:
        one.wait()


# Folders of tests that time something, or hear sound as it comes, and fixtures of others like them.
LIVE = {"apps", "bench", "cli", "engine", "events", "plugin", "service", "session", "soak"}
LIVE_FIXTURES = {"virtual_mic", "qtbot", "xvfb", "forks"}
LOWER = 10


def is_live(item) -> bool:
    return item.path.parent.name in LIVE or not LIVE_FIXTURES.isdisjoint(item.fixturenames)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item):
    """Beside a test that waits for sound in its time, those that only calculate stand back."""
    if is_live(item) or not may_stand_back():
        return (yield)
    before = os.getpriority(os.PRIO_PROCESS, 0)
    os.setpriority(os.PRIO_PROCESS, 0, before + LOWER)
    try:
        return (yield)
    finally:
        os.setpriority(os.PRIO_PROCESS, 0, before)


@cache
def may_stand_back() -> bool:
    """Whether the system would let this process have its priority again."""
    if sys.platform != "linux":
        return False
    allowed = []

    def ask():  # in a thread, whose priority is its own
        before = os.getpriority(os.PRIO_PROCESS, 0)
        with contextlib.suppress(PermissionError):
            os.setpriority(os.PRIO_PROCESS, 0, before + 1)
            os.setpriority(os.PRIO_PROCESS, 0, before)
            allowed.append(True)

    asking = threading.Thread(target=ask)
    asking.start()
    asking.join()
    return bool(allowed)


# Files whose tests share what takes seconds to make: one worker runs all of a file.
SHARING = {
    "tests/apps/test_modulation_window.py",
    "tests/apps/test_readings_window.py",
    "tests/engine/test_loudness_live.py",
    "tests/engine/test_program_end.py",
    "tests/service/test_page.py",
    "tests/service/test_together.py",
    "tests/service/test_web.py",
    "tests/session/test_resume.py",
    "tests/test_bootstrap.py",
    "tests/test_documents.py",
    "tests/test_wheel.py",
}


def place_of(nodeid):
    return nodeid.partition("::")[0]


def pytest_collection_modifyitems(items):
    """For workers: those that only calculate, then live ones, and last the files in SHARING."""
    if os.environ.get("PYTEST_XDIST_WORKER"):
        items.sort(key=lambda item: 2 if place_of(item.nodeid) in SHARING else is_live(item))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """Deal out tests one by one, but those of a file in SHARING together.

    One worker begins with those that only calculate, the others with the live ones: so no core
    rests where sound is waited for, and few wait for a core.
    """
    from xdist.scheduler import LoadScopeScheduling

    config.option.loadscopereorder = False

    class Scheduling(LoadScopeScheduling):
        def _split_scope(self, nodeid):
            place = place_of(nodeid)
            return place if place in SHARING else nodeid

        def _assign_work_unit(self, node):
            if node is not min(self.nodes, key=lambda one: one.gateway.id):
                self.workqueue.move_to_end(next(reversed(self.workqueue)), last=False)
            super()._assign_work_unit(node)

        def remove_node(self, node):
            """What a worker that died had not begun goes to the others.

            xdist hands on what it had done as well: a worker waits for ever with none but these.
            """
            left = self.assigned_work.pop(node)
            waiting = [
                (unit, test) for unit in left.values() for test, done in unit.items() if not done
            ]
            if not waiting:
                return None
            unit, crashed = waiting[0]
            unit[crashed] = True
            self.workqueue.update({k: unit for k, unit in left.items() if not all(unit.values())})
            for other in self.nodes:
                self._reschedule(other)
            return crashed

    return Scheduling(config, log)


def require_programs(*names: str) -> None:
    missing = [name for name in names if shutil.which(name) is None]
    if missing:
        pytest.skip(f"not installed: {', '.join(missing)}")


class VirtualMicrophone:
    """A capture device that hears what is played into it; to PortAudio it is `virtual_mic`."""

    def __init__(self, folder: Path) -> None:
        self.environment = {**os.environ, "VIRTUAL_MIC_DIR": str(folder)}

    def _run(self, *arguments: str) -> str:
        command = ["sh", str(VIRTUAL_MIC), *arguments]
        done = subprocess.run(
            command, check=False, capture_output=True, text=True, env=self.environment
        )
        assert done.returncode == 0, f"{shlex.join(command)}: {done.stderr}"
        return done.stdout

    def start(self) -> None:
        self._run("start")

    def stop(self) -> None:
        self._run("stop")

    def settings(self) -> dict[str, str]:
        """Environment variables through which a program finds this microphone."""
        exports = (line.removeprefix("export ") for line in self._run("env").splitlines())
        return dict(shlex.split(line)[0].split("=", 1) for line in exports)

    def play(self, *files: Path) -> None:
        """Play sound files into the microphone; returns when they have been heard."""
        self._run("play", *map(str, files))

    def unplug(self) -> None:
        self._run("unplug")

    def plug(self) -> None:
        self._run("plug")


@pytest.fixture(scope="session", autouse=True)
def private_folders(tmp_path_factory) -> Iterator[None]:
    """Keep the user's own calibrations out of the tests, and the tests' out of theirs."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CONFIG_HOME", str(tmp_path_factory.mktemp("config")))
        yield


@pytest.fixture(scope="session")
def virtual_mic(tmp_path_factory) -> Iterator[VirtualMicrophone]:
    """The virtual microphone, running, with its settings in this process's environment.

    ALSA reads its settings once in a process: a test that touches sounddevice asks for this first.
    """
    require_programs("pulseaudio", "pactl", "paplay", "flock", "setsid")
    microphone = VirtualMicrophone(tmp_path_factory.mktemp("mic"))
    microphone.start()
    with pytest.MonkeyPatch.context() as patch:
        for name, value in microphone.settings().items():
            patch.setenv(name, value)
        yield microphone
    microphone.stop()


def pactl(*arguments: str) -> None:
    subprocess.run(["pactl", *arguments], check=True, capture_output=True)


class Trouble:
    """Takes the virtual microphone away and brings it back.

    way: "module" unplugs it, "daemon" kills the sound server, "suspend" has it give no sound,
        "stop" stops the sound server
    """

    def __init__(self, microphone, way: str) -> None:
        self._microphone, self._way = microphone, way

    @property
    def _daemon(self) -> int:
        folder = Path(self._microphone.environment["VIRTUAL_MIC_DIR"])
        return int((folder / "pid").read_text())

    def begin(self) -> None:
        match self._way:
            case "module":
                self._microphone.unplug()
            case "daemon":
                os.kill(self._daemon, signal.SIGKILL)
            case "suspend":
                pactl("suspend-source", "mic", "1")
            case "stop":
                os.kill(self._daemon, signal.SIGSTOP)

    def end(self) -> None:
        match self._way:
            case "module":
                self._microphone.plug()
            case "daemon":
                self._microphone.start()
            case "suspend":
                pactl("suspend-source", "mic", "0")
            case "stop":
                os.kill(self._daemon, signal.SIGCONT)


@pytest.fixture
def trouble(virtual_mic):
    """Makes `Trouble` of a kind; whatever fails, the microphone is there afterwards."""
    made = []

    def make(way: str) -> Trouble:
        made.append(Trouble(virtual_mic, way))
        return made[-1]

    yield make
    for one in made:
        one.end()
    virtual_mic.start()


@pytest.fixture(scope="session")
def xvfb() -> Iterator[str]:
    """A screen of our own; gives its DISPLAY, which is also set in this process's environment."""
    require_programs("Xvfb")
    read_end, write_end = os.pipe()
    command = ["Xvfb", "-displayfd", str(write_end), "-screen", "0", "1280x1024x24"]
    server = subprocess.Popen(
        [*command, "-nolisten", "tcp"],
        pass_fds=[write_end],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    os.close(write_end)
    with os.fdopen(read_end) as ready:
        number = ready.readline().strip()
    assert number, f"Xvfb did not start; it ended with status {server.wait()}"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DISPLAY", f":{number}")
        patch.setenv("QT_QPA_PLATFORM", "xcb")
        patch.delenv("WAYLAND_DISPLAY", raising=False)
        yield f":{number}"
    server.terminate()
    server.wait()


PATIENCE_MS = 30000


@pytest.fixture
def qtbot(qtbot):
    """Garbage is collected between events: it may hold the very window that takes one.

    What a test waits for may take as long as a busy machine needs, whatever the test says.
    """
    from pyqtgraph.util.garbage_collector import GarbageCollector

    for name in ("waitUntil", "waitSignal", "waitActive", "waitExposed"):
        setattr(qtbot, name, patient(getattr(qtbot, name)))
    collector = GarbageCollector()
    yield qtbot
    collector.timer.stop()
    gc.collect()
    gc.freeze()  # else each test would look through all that was imported
    gc.enable()


def patient(wait):
    """`wait` of pytest-qt, which gives up no sooner than after PATIENCE_MS."""

    def waiting(what, *, timeout=0, **more):
        return wait(what, timeout=max(timeout, PATIENCE_MS), **more)

    return waiting


@pytest.fixture(scope="session")
def forks() -> Forks:
    """The process in whose forks commands run."""
    if not hasattr(os, "fork"):
        pytest.skip("commands run in forks, which are POSIX")
    return forks_of_served()


@pytest.fixture(scope="session")
def qapp_args(xvfb) -> list[str]:
    """pytest-qt's arguments for QApplication: every window of a test opens on our own screen."""
    return ["amt-monitor"]
