"""Files and folders that are dropped onto a window."""

from pathlib import Path

from pyqtgraph.Qt import QtCore, QtGui, QtWidgets

from amt_stream.sessions.chain import CHAIN
from amt_stream.sessions.reading import ROWS_IN

SOUND, KEPT = "sound", "kept"


def dropped_kind(path: Path) -> str:
    """SOUND, KEPT (a log, or a file of rows), or "" for neither."""
    if path.is_dir():
        return KEPT if (path / CHAIN).is_file() else ""
    if not path.is_file():
        return ""
    return KEPT if path.suffix in ROWS_IN else SOUND


class FileDropFilter(QtCore.QObject):
    """Accepts one file or folder that is dropped onto a widget.

    `dropped` has the path and its kind [main-thread].
    """

    dropped = QtCore.Signal(object, str)

    def __init__(self, widget: QtWidgets.QWidget) -> None:
        super().__init__(widget)
        widget.setAcceptDrops(True)
        widget.installEventFilter(self)

    def eventFilter(self, watched: QtCore.QObject | None, event: QtCore.QEvent | None) -> bool:
        if isinstance(event, QtGui.QDropEvent):
            found = path_of(event.mimeData())
            if found is None or not dropped_kind(found):
                event.ignore()
            else:
                event.acceptProposedAction()
                # Dropping is also a kind of moving and entering: only the last event is the drop.
                if event.type() == QtCore.QEvent.Type.Drop:
                    self.dropped.emit(found, dropped_kind(found))
            return True
        return super().eventFilter(watched, event)


def path_of(data: QtCore.QMimeData | None) -> Path | None:
    """The one local file that is dragged; None for anything else."""
    urls = data.urls() if data is not None and data.hasUrls() else []
    if len(urls) != 1 or not urls[0].isLocalFile():
        return None
    return Path(urls[0].toLocalFile())
