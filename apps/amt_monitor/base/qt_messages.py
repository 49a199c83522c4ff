"""Messages of Qt, and its end of the program, as one sentence."""

import logging
import os
import sys
from typing import Any

from pyqtgraph.Qt import QtCore

from amt_stream.core.safe_text import sentence

log = logging.getLogger("amt_stream.qt")
PLATFORM = "qt.qpa."
"""The category of messages about the screen, such as that there is none at this address."""

_about_screen: list[str] = []


def hear_qt() -> None:
    """Receive the messages of Qt, which would go to standard error [main-thread].

    Without a screen Qt aborts the program: then the program ends with one sentence and status 1.
    """
    QtCore.qInstallMessageHandler(_hear)


def _hear(kind: Any, context: Any, text: str | None) -> None:
    text, kinds = text or "", QtCore.QtMsgType
    if kind == kinds.QtFatalMsg:
        why = "; ".join(_about_screen) or text
        words = f"the window cannot open: {why}: `amt-stream meter --terminal` needs no screen"
        print(f"amt-monitor: {sentence(words)}", file=sys.stderr, flush=True)
        os._exit(1)
    if kind in (kinds.QtWarningMsg, kinds.QtCriticalMsg) and context.category.startswith(PLATFORM):
        _about_screen[:] = [*_about_screen[-2:], text.strip(" .")]
    log.debug("%s", text)
