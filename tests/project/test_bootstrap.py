"""Set-up does no more than it may: what it runs, what it refuses, what it skips the second time."""

import ast
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tools import bootstrap

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "tools" / "bootstrap.py"
linux_only = pytest.mark.skipif(sys.platform != "linux", reason="only Linux has system packages")

# What apt-get 2.6 on Debian 12 printed for `--simulate install pulseaudio pulseaudio-utils` ...
ON_A_PIPEWIRE_DESKTOP = """\
The following packages will be REMOVED:
  pipewire-alsa pipewire-audio
The following NEW packages will be installed:
  libasound2-plugins pulseaudio pulseaudio-utils
0 upgraded, 3 newly installed, 2 to remove and 133 not upgraded.
Remv pipewire-audio [0.3.65-3+deb12u1]
Remv pipewire-alsa [0.3.65-3+deb12u1]
Inst libasound2-plugins (1.2.7.1-1 Debian:12.15/oldstable [amd64])
Inst pulseaudio-utils (16.1+dfsg1-2+b1 Debian:12.15/oldstable [amd64])
Inst pulseaudio (16.1+dfsg1-2+b1 Debian:12.15/oldstable [amd64])
Conf libasound2-plugins (1.2.7.1-1 Debian:12.15/oldstable [amd64])
Conf pulseaudio-utils (16.1+dfsg1-2+b1 Debian:12.15/oldstable [amd64])
Conf pulseaudio (16.1+dfsg1-2+b1 Debian:12.15/oldstable [amd64])
"""
# ... and without PipeWire.
ON_A_BARE_MACHINE = """\
The following NEW packages will be installed:
  libasound2-plugins pulseaudio pulseaudio-utils
0 upgraded, 3 newly installed, 0 to remove and 133 not upgraded.
Inst libasound2-plugins (1.2.7.1-1 Debian:12.15/oldstable [amd64])
Inst pulseaudio-utils (16.1+dfsg1-2+b1 Debian:12.15/oldstable [amd64])
Inst pulseaudio (16.1+dfsg1-2+b1 Debian:12.15/oldstable [amd64])
Conf libasound2-plugins (1.2.7.1-1 Debian:12.15/oldstable [amd64])
"""


def test_it_is_one_short_file_of_standard_library_python():
    text = SOURCE.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 175
    tree = ast.parse(text, feature_version=(3, 7))  # an old Python must reach its clear sentence
    imported = {
        name.split(".")[0]
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in (
            [a.name for a in node.names] if isinstance(node, ast.Import) else [node.module]
        )
    }
    assert imported <= set(sys.stdlib_module_names)


def test_a_plan_that_removes_packages_is_seen():
    assert bootstrap.removed(ON_A_PIPEWIRE_DESKTOP) == ["pipewire-audio", "pipewire-alsa"]
    assert bootstrap.removed(ON_A_BARE_MACHINE) == []


def test_present_tells_what_is_there_from_what_is_not():
    assert bootstrap.present("ensurepip")
    assert bootstrap.present(Path(shutil.which("git")).name)
    assert not bootstrap.present("no-such-program-or-library")
    assert not bootstrap.present("alsa-lib/no-such-file.so")


@pytest.fixture
def commands(tmp_path, monkeypatch):
    """An apt-get and a sudo that only write down their arguments; gives those of apt-get."""
    folder, log = tmp_path / "bin", tmp_path / "log"
    folder.mkdir()
    log.touch()

    def add(name, script):
        (folder / name).write_text(f'#!/bin/sh\necho "{name} $*" >> {log}\n{script}\n')
        (folder / name).chmod(0o755)

    add("apt-get", "true")
    add("sudo", 'shift; exec "$@"')
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    monkeypatch.delenv("SETUP_NO_SYSTEM", raising=False)

    def run():
        return [line for line in log.read_text().splitlines() if line.startswith("apt-get")]

    run.add = add
    return run


INSTALL = "apt-get install --no-install-recommends first second"
NEEDS = "first=no-such-program second=no-such-library"


@linux_only
def test_it_simulates_then_prints_the_line_then_installs(commands, capfd):
    bootstrap.install_system(NEEDS)
    assert commands() == [f"{INSTALL} --simulate", f"{INSTALL} --no-remove --yes"]
    assert f"{INSTALL} --no-remove --yes\n" in capfd.readouterr().err


@linux_only
def test_what_is_there_is_left_alone(commands, capfd):
    bootstrap.install_system("git=git")
    assert commands() == []
    assert capfd.readouterr().err == ""


@linux_only
def test_a_removal_stops_it(commands, capfd):
    commands.add("apt-get", f"cat <<'END'\n{ON_A_PIPEWIRE_DESKTOP}END")
    bootstrap.install_system(NEEDS)
    assert commands() == [f"{INSTALL} --simulate"]
    assert "would remove pipewire-audio, pipewire-alsa" in capfd.readouterr().err


@linux_only
def test_pulseaudio_never_goes_beside_pipewire(commands, capfd):
    commands.add("pipewire-pulse", "true")
    bootstrap.install_system("pulseaudio=no-such-program")
    assert commands() == []
    assert "PulseAudio is not installed beside PipeWire" in capfd.readouterr().err


@linux_only
def test_setup_no_system_leaves_the_system_alone(commands, capfd, monkeypatch):
    monkeypatch.setenv("SETUP_NO_SYSTEM", "1")
    bootstrap.install_system(NEEDS)
    assert commands() == []
    assert f"going on without first, second: on Debian or Ubuntu, type: sudo {INSTALL}\n" in (
        capfd.readouterr().err
    )


@linux_only
def test_unknown_packages_refresh_the_lists_once(commands, capfd):
    commands.add("apt-get", "exit 100")
    bootstrap.install_system(NEEDS)
    simulate = f"{INSTALL} --simulate"
    assert commands() == [simulate, "apt-get update", simulate]
    assert "going on without first, second" in capfd.readouterr().err


@linux_only
def test_a_real_apt_get_that_would_remove_a_package_is_refused(tmp_path, monkeypatch):
    if not shutil.which("apt-get"):
        pytest.skip("not installed: apt-get")
    about = "Version: 1\nArchitecture: all\nMaintainer: none\nDescription: none\n"
    offered = f"Package: newcomer\n{about}Conflicts: resident\nSize: 1\nFilename: ./none.deb\n"
    (tmp_path / "Packages").write_text(f"{offered}SHA256: {'0' * 64}\n")
    status = f"Package: resident\nStatus: install ok installed\n{about}"
    (tmp_path / "status").write_text(status)
    for folder in ("lists/partial", "cache/archives/partial", "parts"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "sources.list").write_text(f"deb [trusted=yes] file:{tmp_path} ./\n")
    (tmp_path / "apt.conf").write_text(
        f'Dir::State::status "{tmp_path}/status"; Dir::State::lists "{tmp_path}/lists";\n'
        f'Dir::Cache "{tmp_path}/cache"; Dir::Etc::SourceList "{tmp_path}/sources.list";\n'
        f'Dir::Etc::SourceParts "{tmp_path}/parts"; APT::Sandbox::User "root";\n'
    )
    monkeypatch.setenv("APT_CONFIG", str(tmp_path / "apt.conf"))
    monkeypatch.delenv("SETUP_NO_SYSTEM", raising=False)
    subprocess.run(["apt-get", "update"], check=True, stdout=subprocess.DEVNULL)
    plan = subprocess.run(
        ["apt-get", "install", "--simulate", "newcomer"],
        check=True,
        capture_output=True,
        text=True,
    )
    assert bootstrap.removed(plan.stdout) == ["resident"]


@pytest.fixture
def checkout(tmp_path):
    """A copy of what set-up reads, with an environment whose Python only records its arguments."""
    (tmp_path / "tools").mkdir()
    shutil.copy(SOURCE, tmp_path / "tools")
    for name in ("pyproject.toml", "constraints.txt"):
        shutil.copy(ROOT / name, tmp_path)
    log, python = tmp_path / "log", tmp_path / ".venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    answer = 'case "$*" in *--version) ;; *) exit "${STATUS:-0}" ;; esac'
    apart = f'echo "$PIP_CONSTRAINT $PIP_BUILD_CONSTRAINT" > {tmp_path}/apart'
    python.write_text(f'#!/bin/sh\necho "$*" >> {log}\n{apart}\n{answer}\n')
    python.chmod(0o755)

    offline = {"SETUP_NO_SYSTEM": "1", "PIP_NO_INDEX": "1"}

    def run(*arguments, status=0, **more):
        log.write_text("")
        done = subprocess.run(
            [sys.executable, tmp_path / "tools" / "bootstrap.py", *arguments],
            check=False,
            capture_output=True,
            text=True,
            env={**os.environ, **offline, **more, "STATUS": str(status)},
        )
        return done, [line for line in log.read_text().splitlines() if "--version" not in line]

    return run


@linux_only
def test_the_second_start_runs_no_pip(checkout, tmp_path):
    done, (pip, meter) = checkout("meter", "--terminal")
    assert pip.endswith(f"install --no-compile --editable {tmp_path}[app]")
    assert "installing Python packages" in done.stderr
    assert meter == "-m amt_stream.cli meter --terminal"
    assert done.stdout == ""
    assert checkout("meter")[1] == ["-m amt_stream.cli meter"]


@linux_only
def test_what_builds_the_package_is_constrained_too(checkout, tmp_path):
    checkout("setup")
    same = (tmp_path / "constraints.txt").as_uri()
    assert (tmp_path / "apart").read_text() == f"{same} {same}\n"


@linux_only
def test_setup_ends_by_saying_what_to_type(checkout):
    done, _ = checkout("setup")
    assert done.stderr.splitlines()[-1].startswith("[set-up] ready: type .venv/bin/amt-stream ")
    assert done.stdout == ""


@linux_only
def test_where_python_may_not_keep_what_it_compiles_set_up_compiles_once(checkout):
    _, (pip, compiles) = checkout("setup", PYTHONDONTWRITEBYTECODE="1")
    assert "install" in pip
    assert compiles == "-c from amt_stream import *"
    assert checkout("setup", PYTHONDONTWRITEBYTECODE="1")[1] == []


@linux_only
@pytest.mark.parametrize("name", ["pyproject.toml", "constraints.txt"])
def test_a_changed_requirement_runs_pip_again(checkout, tmp_path, name):
    checkout("setup")
    assert checkout("setup")[1] == []
    with (tmp_path / name).open("a") as file:
        file.write("# changed\n")
    assert len(checkout("setup")[1]) == 1
    assert checkout("setup")[1] == []


@linux_only
def test_the_tests_add_their_tools_and_the_meter_keeps_them(checkout):
    checkout("meter")
    assert "[app,dev,rl]" in checkout("setup")[1][0]
    assert checkout("meter")[1] == ["-m amt_stream.cli meter"]


@linux_only
def test_a_failed_installation_is_said_and_taken_up_again(checkout):
    done, ran = checkout("meter", status=1)
    assert done.returncode == 1
    assert "pip could not install the packages" in done.stderr
    assert len(ran) == 1
    assert len(checkout("meter")[1]) == 2


@linux_only
@pytest.mark.soak  # makes an environment
def test_an_environment_left_without_pip_is_made_again(checkout, tmp_path):
    python = tmp_path / ".venv" / "bin" / "python"
    python.write_text("#!/bin/sh\nexit 1\n")
    done, _ = checkout("setup")
    assert "making .venv" in done.stderr
    assert "pip could not install the packages" in done.stderr  # offline, the real one cannot
    assert python.resolve() == Path(sys.executable).resolve()


@linux_only
def test_the_exit_status_of_the_program_passes_through(checkout):
    checkout("setup")
    assert checkout("test", status=5)[0].returncode == 5


def test_an_unknown_verb_is_refused(checkout):
    done, ran = checkout("metre")
    assert done.returncode == 1
    verbs = "meter|test|check|soak|bench|cuda|frozen|conformance|native|station|release|docs|setup"
    assert done.stderr.startswith(f"usage: bootstrap.py {verbs} ")
    assert ran == []
