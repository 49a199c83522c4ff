"""What tests start for themselves: a microphone and a screen. In CI no test may skip."""

import contextlib
import ctypes
import gc
import hashlib
import os
import shlex
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from functools import cache, partial
from pathlib import Path

import pytest

# Read when amt_stream.engine is imported. With `-m bench` its cost would be measured too.
os.environ["AMT_STREAM_THREAD_CHECK"] = "0" if "bench" in sys.argv else "1"
if "bench" not in sys.argv:
    # Read when numpy is imported. Threads of OpenBLAS wait for one another without sleeping: where
    # workers share the cores, a design of filters took 20 s instead of 2 s.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from tests.cli.forks import Forks, SharedForks
from tests.service.served import forks as forks_of_served

ROOT = Path(__file__).parents[1]
VIRTUAL_MIC = ROOT / "tests" / "tools" / "virtual_mic.sh"
SHIM = ROOT / "tests" / "tools" / "set_clock.c"


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
    keep_bytecode()
    if os.environ.get("PYTEST_XDIST_WORKER"):
        import torch

        take_huge_pages()
        torch.set_num_threads(1)  # the workers share the cores
        give_large_pieces_back()
    elif config.getoption("numprocesses", None) and config.args_source.name == "TESTPATHS":
        cache, now = getattr(config, "cache", None), state_of_sources()
        compiled = cache.get(KERNELS, None) if cache else None
        if not config.getoption("quick") and compiled != now:
            compile_kernels()  # worth its time for the whole suite
            if cache:
                cache.set(KERNELS, now)
        if hasattr(os, "fork"):
            config.add_cleanup(partial(SharedForks().__enter__().__exit__, None))


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


def call_glibc(name: str, *arguments: int):
    if sys.platform == "linux":
        with contextlib.suppress(AttributeError):  # another C library
            getattr(ctypes.CDLL(None), name)(*arguments)


M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3


def give_large_pieces_back():
    """Else glibc keeps the memory of large tensors: with each one that is freed it keeps larger."""
    call_glibc("mallopt", M_MMAP_THRESHOLD, 2_000_000)
    call_glibc("mallopt", M_TRIM_THRESHOLD, 16_000_000)  # else it gives each small piece back, too


def take_huge_pages():
    """Have large tensors take memory in pages of 2 MB: pages of 4 kB take a tenth of all time.

    Only here: the programs that tests start run as they do for their users.
    """
    import torch

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("THP_MEM_ALLOC_ENABLE", "1")
        torch.empty(1)  # which reads it, once


def keep_bytecode():
    """Else each worker would compile all tests, and each process that they start the package."""
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    sys.dont_write_bytecode = False


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """What is imported and collected stays to the end: no search for garbage looks through it."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


KERNELS = "amt_stream/kernels"
"""Where pytest's cache holds for which sources the kernels were compiled."""


def state_of_sources() -> str:
    """Of all files that kernels may stand in; numba looks at the time of a file as well."""
    states = [(str(path), path.stat()) for path in sorted(ROOT.glob("amt_stream/**/*.py"))]
    text = repr([(path, one.st_mtime_ns, one.st_size) for path, one in states])
    return hashlib.sha256(text.encode()).hexdigest()


def compile_kernels():
    """Compile kernels and the tests themselves, which each worker would otherwise do for itself."""
    subprocess.run(
        [sys.executable, "-m", "tests.dsp.kernels.compiling"],
        cwd=ROOT,
        check=False,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


# Folders of tests that time something, or hear sound as it comes, and fixtures of others like them.
LIVE = {"apps", "bench", "cli", "engine", "events", "service", "sessions", "soak"}
LIVE_FIXTURES = {"virtual_mic", "qtbot", "xvfb", "forks"}
LOWER = 10
ONCE_MORE = pytest.mark.flaky(reruns=1)
"""A shared machine may stand still for seconds. The end of the output names each test that passed
only when run again."""


def is_live(item) -> bool:
    return item.path.parent.name in LIVE or not LIVE_FIXTURES.isdisjoint(item.fixturenames)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item):
    """Beside a test that waits for sound in its time, those that only calculate stand back."""
    memory.keep_small()
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


# Files that take longest: each worker begins with one of them. Those that take most memory, for
# gradients, come before a worker holds what others have imported and compiled.
LONGEST = [
    "test_torch",
    "test_transforms",
    "test_lost_devices",
    "test_page",
    "test_gpu_kernels",
    "test_ladder",
    "test_stages",
    "test_window",
    "test_moore2016",
    "test_signals",
    "test_adding",
    "test_meter",
    "test_plugin",
    "test_web",
    "test_glasberg2002",
    "test_scripted_session",
    "test_module_contract",
    "test_engine",
    "test_run",
    "test_wheel",
    "test_microphone",
    "test_ears",
    "test_calibrate",
    "test_split",
    "test_documents",
]
# test_public_names comes late: in CI it finds what `make lint` has seen of the types.


def file_of(nodeid: str) -> str:
    return nodeid.partition("::")[0]


@pytest.hookimpl(wrapper=True)
def pytest_pycollect_makeitem():
    """Of a test with the mark `cases`, all but so many cases, evenly spread, are for the soak."""
    made = yield
    cases = [one for one in made if isinstance(one, pytest.Function)] if made else []
    cases = [one for one in cases if not one.get_closest_marker("soak")]
    mark = cases[0].get_closest_marker("cases") if cases else None
    if mark is not None:
        (wanted,), count = mark.args, len(cases)
        quick = {(2 * n + 1) * count // (2 * wanted) for n in range(wanted)}
        for place, one in enumerate(cases):
            if place not in quick:
                one.add_marker(pytest.mark.soak)
    return made


def pytest_addoption(parser):
    parser.addoption("--quick", action="store_true", help="one test of each file")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config, items):
    """Leave one test of each file for `--quick`, and order the files for workers.

    First come files that only calculate, the longest before the others; then live ones, the longest
    last.
    """
    if config.getoption("quick"):
        chosen = quick_tests(items)
        config.hook.pytest_deselected(items=[item for item in items if item not in chosen])
        items[:] = [item for item in items if item in chosen]
    if os.environ.get("CI") == "true":
        for item in filter(is_live, items):
            item.add_marker(ONCE_MORE)
    if os.environ.get("PYTEST_XDIST_WORKER"):
        live = {item.path for item in items if is_live(item)}

        def place(item):
            rank = LONGEST.index(item.path.stem) if item.path.stem in LONGEST else len(LONGEST)
            return (1, -rank) if item.path in live else (0, rank)

        items.sort(key=place)


def quick_tests(items) -> set:
    """Of each file the test marked `quick`, or else the first one."""
    chosen: dict[Path, pytest.Item] = {}
    for item in items:
        if item.path not in chosen or is_marked_quick(item) > is_marked_quick(chosen[item.path]):
            chosen[item.path] = item
    return {*chosen.values()}


def is_marked_quick(item) -> bool:
    return item.get_closest_marker("quick") is not None


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """Deal out whole files, whose tests share what takes seconds to make.

    One worker begins with files that only calculate, the others with live ones: so no core rests
    where a test waits for sound, and few tests wait for a core.
    """
    from xdist.scheduler import LoadFileScheduling

    config.option.loadscopereorder = False

    class Scheduling(LoadFileScheduling):
        def _assign_work_unit(self, node):
            if node is not min(self.nodes, key=lambda one: one.gateway.id):
                self.workqueue.move_to_end(next(reversed(self.workqueue)), last=False)
            super()._assign_work_unit(node)

        def remove_node(self, node):
            """Give the tests that a crashed worker had not begun to the others.

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


MUCH_MB, GROWN_MB, GROWN_MUCH_MB = 800, 60, 150
"""A test that finds a worker larger than the first size, and grown by the second since it last
looked for garbage, has it give back what is free, in thousandths of a second, and where that is not
enough, look for garbage, in hundredths. Where it has grown by the third since it last looked
through all that was collected, it looks there too, for half a second."""


class Memory:
    """What this process holds, and how it gives back to the system what it no longer uses."""

    def __init__(self) -> None:
        self._last_mb = self._least_mb = 0.0

    def now_mb(self) -> float:
        """Where no file says so, always the same: then nothing seems to grow."""
        with contextlib.suppress(OSError):
            pages = int(Path("/proc/self/statm").read_text().split()[1])
            return pages * os.sysconf("SC_PAGE_SIZE") / 1e6
        return 0.0

    def keep_small(self) -> None:
        most_mb = max(MUCH_MB, self._last_mb + GROWN_MB)
        if self.now_mb() <= most_mb:
            return
        call_glibc("malloc_trim", 0)
        if self.now_mb() <= most_mb:
            return
        collect()
        if self.now_mb() > self._least_mb + GROWN_MUCH_MB:
            self.give_back()
        self._last_mb = self.now_mb()

    def give_back(self) -> None:
        """All that can be, also of what was collected."""
        if "torch._dynamo" in sys.modules:
            sys.modules["torch._dynamo"].reset()
        gc.unfreeze()  # a measurement that a test still held when all was frozen is garbage now
        collect()
        gc.freeze()  # no later look at all that is left
        self._least_mb = self.now_mb()


def collect():
    gc.collect()
    call_glibc("malloc_trim", 0)


memory = Memory()


@pytest.fixture(scope="module", autouse=True)
def caches_of_one_file(request) -> Iterator[None]:
    """Empty what the tests of a file have kept, so that no worker grows from file to file."""
    yield
    for value in vars(request.module).values():
        if hasattr(value, "cache_clear") and value.__module__ == request.module.__name__:
            value.cache_clear()


def require_programs(*names: str) -> None:
    missing = [name for name in names if shutil.which(name) is None]
    if missing:
        pytest.skip(f"not installed: {', '.join(missing)}")


class VirtualMicrophone:
    """A capture device that hears what is played into it, and a hum of -126 dBFS.

    To PortAudio it is `virtual_mic`.
    """

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

    def hush(self) -> None:
        """Without the hum, the computer plays exact zeros."""
        self._run("hush")

    def hum(self) -> None:
        self._run("hum")


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


PATIENCE_MS = 120000
"""Five models that compile at once for the first time took over 30 s."""


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
def clock_shim(tmp_path_factory) -> Path:
    """A clock of the day that a file sets; libfaketime would also stretch every sleep."""
    if sys.platform != "linux" or shutil.which("cc") is None:
        pytest.skip("needs a C compiler and Linux")
    made = tmp_path_factory.mktemp("shim") / "set_clock.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-o", made, SHIM], check=True)
    return made


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


@pytest.fixture(scope="session")
def qapp(qapp):
    """The application of the tests looks as the program does."""
    from amt_monitor.window.application import application

    return application()
