"""What the whole program costs with its window on a screen: CPU seconds per second."""

import time

import pytest

from amt_stream.engine import Engine, demo_source
from amt_stream.meters.presets import load_preset

WARM_MS, MEASURED_MS = 6000, 20000


def window_cost(qtbot, folder, uncertainty_db=None):
    """CPU share of window, engine and demo source together, in words and as a number.

    The X server is another process. With an uncertainty there is a band around the loudness.
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
    cpu, main_thread, began = time.process_time(), time.thread_time(), time.monotonic()
    qtbot.wait(MEASURED_MS)
    wall = time.monotonic() - began
    cpu, main_thread = time.process_time() - cpu, time.thread_time() - main_thread
    health = window.measurement.engine.health
    assert health.overruns == 0
    words = (
        f"{window.width()} x {window.height()}, {len(drawn) / wall:.1f} frames per second: "
        f"{100 * cpu / wall:.1f} % of one core, of it window {100 * main_thread / wall:.1f} %, "
        f"engine {100 * health.load:.1f} %"
    )
    return words, cpu / wall


@pytest.mark.bench
@pytest.mark.parametrize("uncertainty_db", [None, 1.0])
def test_cpu_of_window_and_engine(qtbot, tmp_path, uncertainty_db):
    words, _ = window_cost(qtbot, tmp_path, uncertainty_db)
    about = "" if uncertainty_db is None else f" with a band for {uncertainty_db:g} dB"
    print(f"\nwindow{about}, {words}")
