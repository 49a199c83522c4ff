"""Commands in forks of one process that has imported and compiled everything already.

A command begins at once so, where a program of its own would import for seconds. What is the same:
its file descriptors, environment, folder, signals, exit status, and how it ends; only that Python
does not take its modules apart, for which a fork copies them all and takes longer than for most
commands. Tests with a program of its own see that.
"""

import atexit
import contextlib
import ctypes
import gc
import io
import json
import os
import runpy
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import weakref
from collections.abc import Callable, Sequence
from pathlib import Path

ROOT = Path(__file__).parents[2]
WARM = ["meter", "--source", "demo", "--fast", "--duration", "0.1", "--format", "csv", "--model"]
MODELS = ["moore2016,gm2002,zwicker,bs1770,spl", "king2019"]
READY = b"!"
WIDTH = 16  # of the numbers that are reported, so that two stay two


class Command:
    """A command that runs in a fork, as `subprocess.Popen` has one: text comes out of it.

    options: "program" makes it one of Python, its first argument the file, and "code" one whose
        first argument is its text; "session" gives it one of its own, "terminal" makes its input
        the terminal of that, "nohup" has it ignore SIGHUP, ">&-" and "2>&-" close a stream as in
        a shell
    """

    returncode: int | None = None

    def __init__(
        self,
        server: socket.socket,
        arguments: Sequence[object],
        environment: dict[str, str],
        folder: Path,
        options: Sequence[str] = (),
        stdin: int | None = None,
        stdout: int | None = None,
        stderr: int | None = None,
    ) -> None:
        self._report, report = socket.socketpair()
        reading, writing = os.pipe()
        errors, its_errors = os.pipe()
        given = [os.open(os.devnull, os.O_RDONLY) if stdin is None else os.dup(stdin)]
        for end, its_own in ((stdout, writing), (stderr, its_errors)):
            given.append(os.dup(its_own if end is None else end))
        given.append(report.detach())
        request = [[*map(str, arguments)], environment, str(folder), [*options]]
        socket.send_fds(server, [json.dumps(request).encode()], given)
        for descriptor in (*given, writing, its_errors):
            os.close(descriptor)
        self.stdout = os.fdopen(reading, encoding="utf-8")
        self.stderr = os.fdopen(errors, encoding="utf-8")
        self.pid = int(self._report.recv(WIDTH))

    def __enter__(self) -> "Command":
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is not None:
            self.kill()
        self.wait()
        self.stdout.close()
        self.stderr.close()

    def send_signal(self, number: int) -> None:
        os.kill(self.pid, number)

    def kill(self) -> None:
        """End it at once, where it has not ended."""
        if self.poll() is None:
            self.send_signal(signal.SIGKILL)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def poll(self) -> int | None:
        with contextlib.suppress(TimeoutError):
            self.wait(0.001)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Its exit status, or minus the number of the signal that ended it."""
        if self.returncode is None:
            self._report.settimeout(timeout)
            self.returncode = int(self._report.recv(WIDTH))
            self._report.close()
        return self.returncode

    def communicate(self) -> tuple[str, str]:
        """All that it still writes, until its end."""
        errors = io.StringIO()
        reader = threading.Thread(target=lambda: errors.write(self.stderr.read()))
        reader.start()
        out = self.stdout.read()
        reader.join()
        self.wait()
        return out, errors.getvalue()


def start_server(
    asked: socket.socket, models: Sequence[str], folders: Sequence[Path] = (), **settings: str
) -> subprocess.Popen[bytes]:
    """Start this file as a program, which is told by `asked` what to fork; closes it here."""
    path = os.pathsep.join(map(str, (*folders, ROOT, ROOT / "apps")))
    with asked:
        return subprocess.Popen(
            [sys.executable, "-m", "tests.cli.forks", str(asked.fileno()), *models],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": path, **settings},
            pass_fds=[asked.fileno()],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
        )


SHARED = "PYTEST_FORKS"
"""The variable that says where `SharedForks` listen."""


class SharedForks:
    """The process in which each `Forks` of this process and of those that it starts is a fork.

    Else each worker would import all over again, and hold it all in memory of its own.
    """

    def __enter__(self) -> "SharedForks":
        self._folder = tempfile.TemporaryDirectory()
        os.environ[SHARED] = str(Path(self._folder.name) / "forks")
        listening = socket.socket(socket.AF_UNIX)
        listening.bind(os.environ[SHARED])
        listening.listen()
        self._server = start_server(listening, MODELS, XDG_CONFIG_HOME=self._folder.name)
        return self

    def __exit__(self, *_: object) -> None:
        del os.environ[SHARED]
        self._server.communicate(timeout=20)
        self._folder.cleanup()


class Forks:
    """The process that forks, in a `with` block.

    folders: where it looks for packages before those of the tree
    models: that it has run once
    """

    _server: subprocess.Popen[bytes] | None = None

    def __init__(self, *folders: Path, models: Sequence[str] = MODELS) -> None:
        self._folders, self._models = folders, models

    def __enter__(self) -> "Forks":
        if SHARED in os.environ and not self._folders:
            self._socket = socket.socket(socket.AF_UNIX)
            self._socket.connect(os.environ[SHARED])
        else:
            self._socket, theirs = socket.socketpair()
            self._server = start_server(theirs, self._models, self._folders)
        # Here, and not while a test has begun to play a sound.
        assert self._socket.recv(1) == READY, "its message is above"
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()
        if self._server:
            self._server.communicate(timeout=20)

    def begin(self, *arguments: object, environment=None, folder=ROOT, **given) -> Command:
        """Begin a command, with this process's environment unless one is given."""
        environment = dict(os.environ) if environment is None else environment
        return Command(self._socket, arguments, environment, folder, **given)

    def run(self, *arguments, stdin: bytes = b"", **given) -> subprocess.CompletedProcess:
        """Run a command until its end, with `stdin` in a pipe."""
        reading, writing = os.pipe()
        with self.begin(*arguments, stdin=reading, **given) as command:
            os.close(reading)
            writer = threading.Thread(target=write_all, args=(writing, stdin))
            writer.start()
            out, errors = command.communicate()
            writer.join()
        return subprocess.CompletedProcess(
            arguments, command.returncode, out.encode(), errors.encode()
        )


def write_all(descriptor: int, data: bytes) -> None:
    """Write and close; whoever does not read to the end is left with what it has."""
    with contextlib.suppress(BrokenPipeError), os.fdopen(descriptor, "wb") as pipe:
        pipe.write(data)


def warm_up(models: Sequence[str]) -> int:
    """Import and run what commands need; gives how many threads torch would have."""
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # OpenMP's pool is not in a fork, which would wait for it for ever
    import amt_stream.cli.commands.analyze
    import amt_stream.cli.commands.selftest  # noqa: F401
    from amt_stream.cli.command import run_command
    from amt_stream.cli.ending import ending

    for some in models:
        with contextlib.redirect_stderr(io.StringIO()) as said:
            assert run_command([*WARM, some]) == 0, said.getvalue()
    ending.__init__()  # of a process in which nothing has begun
    sys.stdout.flush()
    for finalizer in weakref.finalize._registry:  # that take torch's modules apart: 37 ms a fork
        finalizer.atexit = False
    gc.freeze()
    take_huge_pages()
    return threads


HUGE_PAGE = 1 << 21
MADV_COLLAPSE = 25


def take_huge_pages() -> None:
    """Have what all forks share lie in pages of 2 MB: a fork then takes 4 ms instead of 18."""
    with contextlib.suppress(OSError, AttributeError):  # not on Linux
        maps = Path("/proc/self/maps").read_text(encoding="utf-8").splitlines()
        for place, rights, *_, name in (f"{line} ".split(" ", 5) for line in maps):
            if rights == "rw-p" and name.strip() in ("", "[heap]"):
                begin, end = (int(address, 16) for address in place.split("-"))
                begin = -(-begin // HUGE_PAGE) * HUGE_PAGE
                length = ctypes.c_size_t(max(0, end - begin) // HUGE_PAGE * HUGE_PAGE)
                # A kernel that cannot, or has no such page left, refuses, and all is as before.
                ctypes.CDLL(None).madvise(ctypes.c_void_p(begin), length, MADV_COLLAPSE)


def serve_all(listening: socket.socket, threads: int) -> None:
    """Serve by a fork whoever connects, until the process that has started this one ends."""
    while sys.stdin not in select.select([listening, sys.stdin], [], [])[0]:
        asked, _ = listening.accept()
        with asked:
            if os.fork() == 0:
                listening.close()
                serve(asked, threads)
                os._exit(0)


def serve(asked: socket.socket, threads: int) -> None:
    """Fork whatever is asked for, until nobody can ask; tell its process and then its status."""
    ended, ending = os.pipe()
    os.set_blocking(ending, False)
    signal.set_wakeup_fd(ending, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    reports: dict[int, int] = {}
    asked.send(READY)
    while True:
        ready, _, _ = select.select([asked, ended], [], [])
        if ended in ready:
            os.read(ended, 1 << 10)
            for child in [*reports]:
                pid, status = os.waitpid(child, os.WNOHANG)
                if pid:
                    tell(reports[child], os.waitstatus_to_exitcode(status))
                    os.close(reports.pop(child))
        if asked in ready:
            request, given, *_ = socket.recv_fds(asked, 1 << 20, 4)
            if not request:
                return
            *standard, report = given
            child = os.fork()
            if not child:
                signal.set_wakeup_fd(-1)
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                for descriptor in (asked.detach(), ended, ending, report, *reports.values()):
                    os.close(descriptor)
                run(request, standard, threads)
            for descriptor in standard:
                os.close(descriptor)
            reports[child] = report
            tell(report, child)


def tell(report: int, number: int) -> None:
    with contextlib.suppress(BrokenPipeError):
        os.write(report, f"{number:{WIDTH}}".encode())


def run(request: bytes, standard: list[int], threads: int) -> None:
    """Be the command, with these for its standard input, output and error; does not return."""
    arguments, environment, folder, options = json.loads(request)
    for place, descriptor in enumerate(standard):
        os.dup2(descriptor, place)
        os.close(descriptor)
    for place, option in ((1, ">&-"), (2, "2>&-")):
        if option in options:
            os.close(place)
    if "session" in options:
        os.setsid()
    if "terminal" in options:
        import fcntl
        import termios

        fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    if "nohup" in options:
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
    begins = {"program": run_program, "code": run_code}
    kind = next((option for option in options if option in begins), "")
    become(begins.get(kind, run_main), arguments, environment, folder, threads)


def run_main(arguments: list[str]) -> None:
    from amt_stream.cli import main

    sys.exit(main(arguments))


def run_program(arguments: list[str]) -> None:
    """As `python FILE ARGUMENT ...` does."""
    sys.argv = arguments
    sys.path.insert(0, str(Path(arguments[0]).parent))
    runpy.run_path(arguments[0], run_name="__main__")
    sys.exit()


def run_code(arguments: list[str]) -> None:
    """As `python -c CODE ARGUMENT ...` does."""
    code, *rest = arguments
    sys.argv = ["-c", *rest]
    exec(compile(code, "<string>", "exec"), {"__name__": "__main__"})
    sys.exit()


def become(
    begins: Callable[[list[str]], None],
    arguments: list[str],
    environment: dict[str, str],
    folder: str,
    threads: int,
) -> None:
    """Be what begins so, as if Python had started with it; does not return."""
    import torch

    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    time.tzset()
    torch.set_num_threads(threads)
    encoding, _, errors = environment.get("PYTHONIOENCODING", "").partition(":")
    letters = {"encoding": encoding or None, "closefd": False}
    sys.stdin = os.fdopen(0, **letters)
    sys.stdout = sys.stderr = None  # as Python has it where they are closed
    with contextlib.suppress(OSError):
        sys.stdout = os.fdopen(1, "w", errors=errors or None, **letters)
    with contextlib.suppress(OSError):
        sys.stderr = os.fdopen(2, "w", 1, errors="backslashreplace", **letters)
    try:
        begins(arguments)
    except SystemExit as ended:
        if isinstance(ended.code, int | None):
            end(ended)
        raise


def end(ended: SystemExit) -> None:
    """End as Python does, but for its modules; returns where that cannot be."""
    threading._shutdown()
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        try:
            if stream is not None:
                stream.flush()
        except (OSError, ValueError):
            return  # Python says so, and has a status for it
    os._exit(ended.code or 0)


if __name__ == "__main__":
    with socket.socket(fileno=int(sys.argv[1])) as asked:
        threads = warm_up(sys.argv[2:])
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # no fork is waited for
        listens = asked.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN)
        (serve_all if listens else serve)(asked, threads)
