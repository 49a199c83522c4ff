"""A widget on the screen."""


def expose(qtbot, widget, *size):
    """Show a widget in this size (width, height in pixels, or a QSize) until it can be seen."""
    qtbot.addWidget(widget)
    widget.resize(*size)
    widget.show()
    qtbot.waitExposed(widget)
    return widget
