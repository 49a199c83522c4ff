"""A large number: its caption is a third of it, nothing of it is cut, its name can be heard."""

import pytest
from pyqtgraph.Qt import QtCore

from amt_monitor.base.big_number import SMALLEST_CAPTION, SMALLEST_UNIT, BigNumber
from amt_monitor.base.theme import theme
from amt_stream.meters.rows.captions import caption_of
from amt_stream.views.settling_words import ABOUT, AFTER_GAP, AGAIN, SETTLING, UNCOUNTED


@pytest.fixture
def number(qtbot):
    one = BigNumber("ltl_sone", caption_of("ltl_sone"), spare="00:00:00")
    qtbot.addWidget(one)
    return one


@pytest.mark.parametrize("room", [(130, 40), (300, 90), (500, 300), (1800, 400)])
def test_it_fills_its_room_and_no_more(qtbot, number, room):
    number.resize(QtCore.QSize(*room).expandedTo(number.minimumSizeHint()))
    number.show()
    number.show_note("00:00:00")
    qtbot.waitExposed(number)
    labels = number.words, number.symbol, number.digits, number.unit, number.note
    for label in labels:
        assert number.rect().contains(label.geometry()), label.text()
        assert label.fontMetrics().horizontalAdvance(label.text()) <= label.width(), label.text()
    size = number.digits.font().pixelSize()
    assert number.words.font().pixelSize() == max(SMALLEST_CAPTION, round(0.2 * size))
    assert number.unit.font().pixelSize() == max(SMALLEST_UNIT, round(0.28 * size))
    needed = number.extent(size + 2)
    assert needed.width > number.width() or needed.height > number.height()
    for one in labels:
        for other in labels:
            assert one is other or not one.geometry().intersects(other.geometry())


def test_a_digit_more_moves_the_unit_alone(qtbot, number):
    number.resize(400, 120)
    number.show()
    where, lefts = number.digits.geometry(), {}
    room = number.rect()
    for text in ("0.052", "9.99", "10.0", "123", "4.56"):
        number.show_text(text)
        wide = number.digits.fontMetrics().horizontalAdvance(text)
        assert number.digits.geometry().topLeft() == where.topLeft()
        assert wide <= number.digits.width()
        assert room.contains(number.unit.geometry())
        assert 0 <= number.unit.x() - wide <= where.height() / 2, "close behind"
        lefts.setdefault(len(text), []).append(number.unit.x())
    assert len(lefts) == 3
    assert all(max(each) - min(each) <= 1 for each in lefts.values())


def test_a_level_far_below_full_scale_has_room(qtbot):
    one = BigNumber("momentary_lufs", caption_of("momentary_lufs"))
    qtbot.addWidget(one)
    one.set_size(60)
    one.resize(one.minimumSizeHint())
    one.show_text("-173.4")
    assert one.rect().contains(one.unit.geometry())


def test_an_old_number_says_its_age(number):
    number.doubt("second", False, "12 s old")
    assert "12 s old" in number.digits.toolTip()


def test_it_can_be_heard(number):
    number.show_text("68.3")
    assert number.digits.accessibleName() == "Loudness, long-term, 68.3 sone"
    assert "0.75 s" in number.digits.accessibleDescription()
    assert "0.75 s" in number.toolTip()


def test_doubt_is_grey_and_hatched(number):
    number.doubt("second", True)
    ink = number.digits.palette().color(number.digits.foregroundRole()).name()
    assert ink == theme.colors.second
    assert number.digits.autoFillBackground()
    number.doubt(None, False)
    assert not number.digits.autoFillBackground()


def test_it_says_in_one_word_that_it_is_uncalibrated(number):
    number.doubt(None, True)
    number.resize(number.minimumSizeHint())
    number.show()
    number.show_text("88.88")
    word = number.uncalibrated
    assert word.text() == "uncalibrated"
    assert word.fontMetrics().horizontalAdvance(word.text()) <= word.width()
    assert number.rect().contains(word.geometry())


def test_while_the_microphone_is_lost_the_last_reading_has_room(qtbot, number):
    number.resize(number.minimumSizeHint())
    number.show()
    number.show_text("88.88")
    number.lose("88.88")
    assert (number.text, number.words.text(), number.symbol.text()) == ("---", "LTL", "last 88.88")
    wide = number.symbol.fontMetrics().horizontalAdvance(number.symbol.text())
    assert wide <= number.symbol.width()
    number.lose("")
    assert (number.words.text(), number.symbol.text()) == ("Loudness, long-term", "LTL")


@pytest.mark.parametrize("room", [(170, 60), (250, 90), (420, 120), (900, 300)])
@pytest.mark.parametrize("why", [SETTLING, AFTER_GAP, AGAIN])
def test_it_says_why_it_is_settling_where_there_is_room(qtbot, number, room, why):
    number.resize(QtCore.QSize(*room).expandedTo(number.minimumSizeHint()))
    number.show()
    qtbot.waitExposed(number)
    before = number.words.text(), number.symbol.text()
    number.doubt("second", False, why)
    said = number.symbol.text()
    if why in UNCOUNTED or room[0] >= 250:
        assert said.endswith(why), "the long name gives way to the reason"
    assert "LTL" in f"{number.words.text()} {said}"
    for label in (number.words, number.symbol):
        assert label.fontMetrics().horizontalAdvance(label.text()) <= label.width(), label.text()
        assert number.rect().contains(label.geometry())
    assert ABOUT[why] in number.digits.toolTip()
    assert why in number.digits.accessibleName()
    number.doubt(None, False)
    assert (number.words.text(), number.symbol.text()) == before
    assert ABOUT[why] not in number.digits.toolTip()
