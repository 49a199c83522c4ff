"""Runs work in a process beside the measurement."""

import threading
from collections.abc import Callable
from typing import Any

from pyqtgraph.Qt import QtCore

from amt_stream.core.processes import NoInterpreter
from amt_stream.core.words import rough_time
from amt_stream.core.worker import Message, WorkDone, Worker, WorkProgress


class WorkerRun(QtCore.QObject):
    """Runs a function in a `Worker`, whose messages become signals [main-thread].

    `came` has the percentage that is done and the remaining time in words; `done` has the result,
    `refused` a sentence. A canceled run emits nothing more.
    """

    came = QtCore.Signal(int, str)
    done = QtCore.Signal(object)
    refused = QtCore.Signal(str)
    _heard = QtCore.Signal(object, object)

    def __init__(self, parent: QtCore.QObject) -> None:
        super().__init__(parent)
        self.worker: Worker | None = None
        self._heard.connect(self._tell)

    def start(self, work: Callable[..., Any]) -> None:
        try:
            self.worker = Worker(work)
        except (OSError, NoInterpreter) as error:
            self.refused.emit(f"the work cannot be started: {error}")
            return
        listening = threading.Thread(target=self._listen, args=(self.worker,), daemon=True)
        listening.start()

    @property
    def running(self) -> bool:
        return self.worker is not None

    def cancel(self) -> None:
        """End the process; more than once does no harm."""
        worker, self.worker = self.worker, None
        if worker is not None:
            worker.end()

    def _listen(self, worker: Worker) -> None:
        for message in worker.messages():
            try:
                self._heard.emit(worker, message)
            except RuntimeError:  # the window is gone
                worker.end()

    def _tell(self, worker: Worker, message: Message) -> None:
        if worker is not self.worker:
            return
        if isinstance(message, WorkProgress):
            self.came.emit(round(100 * message.part), rough_time(message.left_s))
            return
        self.worker = None
        if isinstance(message, WorkDone):
            self.done.emit(message.result)
        else:
            self.refused.emit(message.why)
