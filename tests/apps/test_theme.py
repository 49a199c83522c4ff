"""Themes: what is written can be read in each, and a window takes another one while it runs."""

import pytest
from pyqtgraph.Qt import QtGui, QtWidgets

from amt_monitor.base.theme import CONTRAST_DARK, CONTRAST_LIGHT, DARK, LIGHT, theme
from amt_monitor.base.widgets import DialogButtons, ask_text
from amt_monitor.panes.reading_pane import pane_of
from amt_monitor.plot.level_bar import LevelBar, LevelBarScale
from amt_monitor.window.application import FAMILY
from tests.apps.expose import expose, pixels

THEMES = {
    "light": LIGHT,
    "dark": DARK,
    "contrast, light": CONTRAST_LIGHT,
    "contrast, dark": CONTRAST_DARK,
}
ON_PAPER = (
    *("ink", "second", "accent", "right", "ltl", "stl", "level", "average"),
    *("green", "amber", "red"),
)
LINES = ("outline", "stl")  # nothing is written in them: WCAG 2.2, 1.4.11


@pytest.fixture(autouse=True)
def as_it_was(qapp):
    before = theme.choice
    yield
    theme.choose(before)


def luminance(color):
    """Relative, as of WCAG 2.2."""
    parts = [int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [v / 12.92 if v <= 0.04045 else ((v + 0.055) / 1.055) ** 2.4 for v in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one, other):
    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("name", THEMES)
def test_what_is_written_can_be_read(name):
    colors = THEMES[name]
    least = 10.0 if name.startswith("contrast") else 4.5
    for role in set(ON_PAPER) - set(LINES):
        assert contrast(getattr(colors, role), colors.paper) >= least, role
    for role in LINES:
        assert contrast(getattr(colors, role), colors.paper) >= 3.0, role
    for role in ("ink", "second"):
        assert contrast(getattr(colors, role), colors.ground) >= least, role
    # A filled button, and an inverse banner.
    for role in ("accent", "ink"):
        assert contrast(colors.paper, getattr(colors, role)) >= least, role
    # Digits, those that settle too, and those on a hatched ground.
    assert contrast(colors.ink, colors.paper) >= max(7.0, least)
    assert contrast(colors.second, colors.paper) >= min(6.5, least)
    assert contrast(colors.ink, colors.grid) >= 4.5


@pytest.mark.parametrize("name", THEMES)
def test_the_slow_curve_and_the_fast_one_differ_in_lightness(name):
    colors = THEMES[name]
    assert contrast(colors.ltl, colors.stl) >= 2.0, name


def test_no_two_meanings_share_a_color():
    for name, colors in THEMES.items():
        meanings = [getattr(colors, role) for role in ON_PAPER]
        both = {colors.ink} & {colors.ltl}  # in high contrast
        assert len(set(meanings)) == len(meanings) - len(both), name


@pytest.mark.parametrize("weight", [400, 500, 600])
def test_digits_of_the_bundled_font_are_as_wide_as_each_other(qapp, weight):
    font = QtWidgets.QApplication.font()
    assert QtGui.QFontInfo(font).family() == FAMILY
    font.setWeight(QtGui.QFont.Weight(weight))
    font.setPixelSize(100)
    metrics = QtGui.QFontMetricsF(font)
    assert QtGui.QFontInfo(font).weight() == weight
    assert len({metrics.horizontalAdvance(one) for one in "0123456789+"}) == 1
    assert all(metrics.inFont(one) for one in "aé±·°µ≥λЖ●▲■\N{MINUS SIGN}")


def test_all_is_painted_anew_in_another_theme(qtbot):
    pane, bar = (
        pane_of("moore2016", ["ltl_sone", "ltl_phon"]),
        LevelBar("b", "left", LevelBarScale(0, 10, (0, 10))),
    )
    pane.body.addWidget(bar, 1)
    expose(qtbot, pane, 400, 300)
    pane.show_readings({"ltl_sone": 1.0, "ltl_phon": 40.0})
    bar.set_level(5.0)
    pane.doubt(grey=True, uncalibrated=True)
    for choice, colors in (("dark", DARK), ("light", LIGHT)):
        theme.choose(choice)
        asked = {getattr(colors, role) for role in ("paper", "grid", "second", "accent", "amber")}
        qtbot.waitUntil(lambda asked=asked: asked <= pixels(pane), timeout=5000)
    theme.choose("dark")
    gone = {LIGHT.paper, LIGHT.second, LIGHT.accent, LIGHT.grid}
    qtbot.waitUntil(lambda: not gone & pixels(pane))


def test_the_theme_of_the_desktop_is_followed(qtbot):
    hints = QtGui.QGuiApplication.styleHints()
    theme.choose("system")
    assert theme.colors in (LIGHT, DARK)
    with qtbot.waitSignal(theme.changed):
        hints.colorSchemeChanged.emit(hints.colorScheme())
    theme.choose("contrast")
    assert theme.colors in (CONTRAST_LIGHT, CONTRAST_DARK)
    ground = QtWidgets.QApplication.palette().window().color().name()
    assert ground == theme.colors.ground


def test_a_theme_that_there_is_not_is_refused(qapp):
    with pytest.raises(ValueError, match="no theme 'blue': choose one of system, light, dark"):
        theme.choose("blue")


def test_buttons_of_dialogs_have_no_icons_that_dark_hides(qtbot):
    names = QtWidgets.QDialogButtonBox.StandardButton
    dialog = QtWidgets.QDialog()
    qtbot.addWidget(dialog)
    box = DialogButtons(dialog, names.Ok | names.Close)
    QtWidgets.QVBoxLayout(dialog).addWidget(box)
    dialog.show()
    assert len(box.buttons()) == 2
    assert all(button.icon().isNull() for button in box.buttons())


def test_no_dialog_has_a_red_cross_on_cancel(qtbot):
    """The desktop without settings, as under Xvfb, has a tick on OK and a cross on Cancel."""
    over, file = QtWidgets.QWidget(), QtWidgets.QFileDialog()
    qtbot.addWidget(over)
    qtbot.addWidget(file)
    ask_text(over, "Marker", "Note", lambda text: None)
    note = over.findChild(QtWidgets.QInputDialog)
    file.setOption(file.Option.DontUseNativeDialog)
    for dialog in (note, file):
        with qtbot.waitActive(dialog):
            dialog.open()
            dialog.activateWindow()
        buttons = dialog.findChild(QtWidgets.QDialogButtonBox).buttons()
        assert len(buttons) == 2
        qtbot.waitUntil(lambda own=buttons: all(one.icon().isNull() for one in own))
        dialog.close()
