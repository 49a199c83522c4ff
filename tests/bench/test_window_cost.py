"""What the whole program costs with its window on a screen: CPU seconds per second."""

import resource
import time
from pathlib import Path

import pytest

from amt_stream.engine import Engine, demo_source
from amt_stream.meters.presets import load_preset

WARM_MS, MEASURED_MS, SETTLED_MS = 6000, 20000, 1500


def window_cost(qtbot, folder, uncertainty_db=None):
    """CPU share of window, engine and demo source together, in words and as a number.

    In words also that of the window alone, seen and hidden, and the memory of the process. The X
    server is another process. With an uncertainty there is a band around the loudness.
    """
    from amt_monitor.main_window import MainWindow
    from amt_monitor.settings import Settings

    def make_engine(device):
        source = demo_source()
        preset = load_preset("moore2016").with_uncertainty(uncertainty_db)
        model = preset.models(source.fs, 2, specific_loudness=True)
        return Engine(source, model, **preset.engine_settings)

    window = MainWindow(make_engine, settings=Settings(folder / "monitor.json"))
    qtbot.addWidget(window)
    window.show()
    qtbot.waitUntil(lambda: window.shown is not None, timeout=60000)
    qtbot.wait(WARM_MS)
    drawn = []
    pane = window.docks["specific_loudness"].pane
    move = pane.move
    pane.move = lambda look: (drawn.append(None), move(look))
    cpu, seen, wall = cpu_shares(qtbot, MEASURED_MS)
    frames_per_s = len(drawn) / wall
    window.hide()
    qtbot.wait(SETTLED_MS)
    _, hidden, _ = cpu_shares(qtbot, MEASURED_MS // 2)
    health = window.measurement.engine.health
    assert health.overruns == 0
    words = (
        f"{window.width()} x {window.height()}, {frames_per_s:.1f} frames per second: "
        f"{100 * cpu:.1f} % of one core, of it window {100 * seen:.1f} %, hidden "
        f"{100 * hidden:.1f} %, engine {100 * health.load:.1f} %; {resident_mb()} MB of memory"
    )
    return words, cpu


def cpu_shares(qtbot, milliseconds):
    """Shares of a core that process and main thread take, and the seconds that it was measured."""
    cpu, main_thread, began = time.process_time(), time.thread_time(), time.monotonic()
    qtbot.wait(milliseconds)
    wall = time.monotonic() - began
    return (time.process_time() - cpu) / wall, (time.thread_time() - main_thread) / wall, wall


def resident_mb():
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return round(pages * resource.getpagesize() / 2**20)


@pytest.mark.bench
@pytest.mark.parametrize("uncertainty_db", [None, 1.0])
def test_cpu_of_window_and_engine(qtbot, tmp_path, uncertainty_db):
    words, _ = window_cost(qtbot, tmp_path, uncertainty_db)
    about = "" if uncertainty_db is None else f" with a band for {uncertainty_db:g} dB"
    print(f"\nwindow{about}, {words}")
