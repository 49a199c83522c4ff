"""The list of inputs in the window."""

from pyqtgraph.Qt import QtCore, QtGui, QtWidgets

from amt_monitor.base.device_combo_box import DeviceComboBox


def test_the_wheel_over_the_closed_list_chooses_nothing(qtbot):
    choice, chosen = DeviceComboBox(), []
    qtbot.addWidget(choice)
    choice.addItem("another", "another")
    choice.chosen.connect(lambda: chosen.append(choice.device))
    wheel = QtGui.QWheelEvent(
        *(QtCore.QPointF(10, 10), QtCore.QPointF(10, 10)),
        *(QtCore.QPoint(), QtCore.QPoint(0, -120)),
        *(QtCore.Qt.MouseButton.NoButton, QtCore.Qt.KeyboardModifier.NoModifier),
        *(QtCore.Qt.ScrollPhase.NoScrollPhase, False),
    )
    QtWidgets.QApplication.sendEvent(choice, wheel)
    assert (choice.currentIndex(), chosen) == (0, [])


def test_a_long_name_ends_in_dots_where_it_has_no_room(qtbot):
    choice = DeviceComboBox()
    qtbot.addWidget(choice)
    choice.name_first("a microphone with a name that is far too long for a small window")
    drawn = []
    for width in (200, 900):
        choice.setMaximumWidth(width)
        choice.resize(width, 26)
        choice.show()
        qtbot.waitExposed(choice)
        drawn.append(choice.shown_text)
    assert drawn[0].endswith("…")
    assert f"{drawn[1]} (as started)" == choice.currentText()
    assert choice.fontMetrics().horizontalAdvance(drawn[0]) < 200


def test_what_is_played_is_listed_beside_the_microphones_and_told_apart(qtbot, virtual_mic):
    choice = DeviceComboBox()
    qtbot.addWidget(choice)
    choice.refresh()
    qtbot.waitUntil(lambda: choice.count() > 1, timeout=20000)
    entries = {choice.itemText(i): choice.itemData(i) for i in range(1, choice.count())}
    assert entries == {
        "virtual_mic": "virtual_mic",
        "VirtualMicrophone (default)": "default",
        "VirtualMicrophone": "VirtualMicrophone",
        "Monitor of VirtualSpeaker (what is played)": "Monitor of VirtualSpeaker",
    }
    choice.close_listing()


def test_the_box_names_the_device_and_the_list_says_what_it_stands_for(qtbot, virtual_mic):
    choice = DeviceComboBox()
    qtbot.addWidget(choice)
    choice.resize(600, 26)
    choice.name_first("VirtualMicrophone")
    assert choice.shown_text == "VirtualMicrophone"
    assert choice.itemText(0) == "VirtualMicrophone (as started)"
    choice.refresh()
    qtbot.waitUntil(lambda: choice.count() > 1, timeout=20000)
    choice.choose("default")
    assert choice.currentText() == "VirtualMicrophone (default)"
    assert choice.shown_text == "VirtualMicrophone"
    choice.close_listing()


def test_two_outputs_of_one_name_are_named_by_what_the_server_calls_them(qtbot, virtual_mic):
    from tests.conftest import pactl

    made = ["module-null-sink", "sink_properties=device.description=VirtualSpeaker"]
    pactl("load-module", *made, "sink_name=second")
    choice = DeviceComboBox()
    qtbot.addWidget(choice)
    try:
        choice.refresh()
        qtbot.waitUntil(lambda: choice.count() > 1, timeout=20000)
        named = [
            choice.itemData(i) for i in range(1, choice.count()) if "played" in choice.itemText(i)
        ]
        assert named == ["speaker.monitor", "second.monitor"]
    finally:
        choice.close_listing()
        virtual_mic.unplug()  # with all sinks of its kind
        virtual_mic.plug()
