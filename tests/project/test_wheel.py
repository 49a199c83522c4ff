"""The wheel alone, with no source tree in sight, has all that the meter needs."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def installed(tmp_path_factory) -> Path:
    """A folder with the installed wheel; its dependencies come from this environment."""
    wheels, folder = tmp_path_factory.mktemp("wheels"), tmp_path_factory.mktemp("installed")
    build = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(wheels)]
    subprocess.run([*build, str(ROOT)], check=True)
    (wheel,) = wheels.glob("*.whl")
    pip = [sys.executable, "-m", "pip", "install", "--no-deps", "--no-index"]
    subprocess.run([*pip, "--target", str(folder), str(wheel)], check=True)
    return folder


@pytest.fixture
def run(installed, tmp_path):
    """Run a command in an empty folder, the wheel before an editable install of the source."""

    def run(*command):
        environment = {**os.environ, "PYTHONPATH": str(installed), "PYTHONSAFEPATH": "1"}
        return subprocess.run(
            command,
            check=False,
            cwd=tmp_path,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
        )

    return run


def test_package_presets_and_window_come_from_the_wheel(run, installed):
    program = """
import importlib.util, pathlib, amt_stream, amt_stream.meters.norms, amt_stream.meters.presets
print(amt_stream.__file__)
print(importlib.util.find_spec("amt_monitor").origin)
print(*sorted(pathlib.Path(amt_stream.meters.presets.presets_folder()).glob("*.toml")))
print(*amt_stream.meters.norms.shipped_norms())
"""
    done = run(sys.executable, "-c", program)
    assert done.returncode == 0, done.stderr
    package, window, presets, norms = done.stdout.splitlines()
    assert Path(package) == installed / "amt_stream" / "__init__.py"
    assert Path(window) == installed / "amt_monitor" / "__init__.py"
    names = [path.name for path in sorted((ROOT / "presets").glob("*.toml"))]
    assert presets.split() == [str(installed / "amt_stream" / "_presets" / name) for name in names]
    assert names
    assert norms.split() == sorted(p.stem for p in (ROOT / "presets" / "limits").glob("*.toml"))


def test_the_wheel_carries_nothing_else(installed):
    folders = {path.name for path in installed.iterdir() if not path.name.endswith(".dist-info")}
    assert folders == {"amt_stream", "amt_monitor", "bin"}
    for name in ("py.typed", "__init__.pyi", "engine/__init__.pyi"):
        assert (installed / "amt_stream" / name).exists(), name
    assert {path.stem for path in (installed / "bin").iterdir()} == {"amt-stream", "amt-monitor"}
    for name in ("amt-monitor.png", "amt-monitor.svg"):
        assert (installed / "amt_monitor" / "icons" / name).exists(), name
    for name in ("OFL.txt", "Inter-Regular.ttf", "Inter-Medium.ttf", "Inter-SemiBold.ttf"):
        assert (installed / "amt_monitor" / "fonts" / name).exists(), name


def test_the_installed_meter_measures_the_demo_sound(run, installed, monkeypatch):
    """Also where the extra `app` was left out, and a display would show its window."""
    without_qt = (
        "import runpy, sys; sys.modules['pyqtgraph'] = None; del sys.argv[0]; "
        "runpy.run_path(sys.argv[0], run_name='__main__')"
    )
    # Of a model with few kernels: none of them is compiled yet.
    command = [installed / "bin" / "amt-stream", "meter", "--source", "demo", "--model", "spectrum"]
    monkeypatch.setenv("DISPLAY", ":0")
    done = run(sys.executable, "-c", without_qt, *command, "--duration", "1")
    assert done.returncode == 0, done.stderr
    assert "the window is not installed" in done.stderr
    assert "Strongest line 1000 Hz" in done.stdout


@pytest.mark.skipif(sys.platform != "linux", reason="a desktop entry is for Linux")
def test_the_desktop_starts_the_program_that_was_installed(run, installed, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    script = installed / "bin" / "amt-monitor"
    done = run(sys.executable, script, "--install-desktop")
    assert done.returncode == 0, done.stderr
    entry = (tmp_path / "applications" / "amt-monitor.desktop").read_text(encoding="utf-8")
    assert f'Exec="{script}"\n' in entry
    assert done.stderr.count("wrote ") == 2
