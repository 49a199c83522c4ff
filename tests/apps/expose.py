"""A widget on the screen."""


def expose(qtbot, widget, *size):
    """Show a widget in this size (width, height in pixels, or a QSize) until it can be seen."""
    qtbot.addWidget(widget)
    widget.resize(*size)
    widget.show()
    qtbot.waitExposed(widget)
    return widget


def pixels(widget):
    """The colors of all pixels of a widget."""
    picture = widget.grab().toImage()
    size = picture.width(), picture.height()
    return {picture.pixelColor(x, y).name() for x in range(size[0]) for y in range(size[1])}
