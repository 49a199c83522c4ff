"""Slow work in a thread, so that the window stays responsive."""

import threading
from collections.abc import Callable
from typing import Any

from pyqtgraph.Qt import QtCore

from amt_stream.core.errors import Refusal
from amt_stream.core.safe_text import sentence


class BackgroundTask(QtCore.QObject):
    """Runs one function at a time; `done` has its result, `refused` a sentence [main-thread].

    A result is dropped if `run` is called again before it comes.

    done, refused: also connected to these signals
    """

    done = QtCore.Signal(object)
    refused = QtCore.Signal(str)
    _ended = QtCore.Signal(int, object, str)

    def __init__(
        self,
        parent: QtCore.QObject,
        done: Callable[[Any], object] = lambda _: None,
        refused: Callable[[str], object] = lambda _: None,
    ) -> None:
        super().__init__(parent)
        self._asked = 0
        self._ended.connect(self._tell)
        self.done.connect(done)
        self.refused.connect(refused)

    def run(self, work: Callable[[], Any]) -> None:
        self._asked += 1
        # A daemon, so that a disk that hangs does not keep the program alive.
        given = (work, self._asked)
        threading.Thread(target=self._work, args=given, name="background", daemon=True).start()

    def _work(self, work: Callable[[], Any], number: int) -> None:
        found, refusal = None, ""
        try:
            found = work()
        except (Refusal, OSError, ValueError) as error:
            refusal = sentence(error) or type(error).__name__
        try:
            self._ended.emit(number, found, refusal)
        except RuntimeError:  # the window is gone
            return

    def _tell(self, number: int, found: object, refusal: str) -> None:
        if number != self._asked:
            return
        if refusal:
            self.refused.emit(refusal)
        else:
            self.done.emit(found)
