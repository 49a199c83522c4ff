"""What a desktop is told of the application."""

import numpy as np

from amt_monitor.window.application import application
from tools.icon import ICONS, drawn


def pixels(image):
    image = image.convertToFormat(image.Format.Format_RGBA8888)
    bits = image.constBits()
    if hasattr(bits, "setsize"):  # PyQt6 tells no length
        bits.setsize(image.sizeInBytes())
    return np.frombuffer(bits, np.uint8).reshape(image.height(), image.width(), 4).copy()


def test_the_application_has_a_name_and_an_icon(qapp):
    app = application()
    assert app is qapp
    assert (app.applicationName(), app.desktopFileName()) == ("amt-monitor", "amt-monitor")
    shown = app.windowIcon().pixmap(256, 256).toImage()
    difference = pixels(shown).astype(int) - pixels(drawn())
    assert np.abs(difference).max() <= 2, "the PNG is not of the SVG: python tools/icon.py"
    assert (ICONS / "amt-monitor.png").exists()
    assert len(np.unique(pixels(shown).reshape(-1, 4), axis=0)) > 4
