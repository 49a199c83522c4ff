"""Names of computers, which may take long to look up."""

import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any


class Abandoned(ThreadPoolExecutor):
    """Looks up names in threads that nobody waits for.

    A name server may be silent for half a minute, and the end of the program would wait for a
    usual executor.
    """

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()

        def run() -> None:
            if not future.set_running_or_notify_cancel():
                return
            try:
                future.set_result(fn(*args, **kwargs))
            except BaseException as error:
                future.set_exception(error)

        threading.Thread(target=run, name="names", daemon=True).start()
        return future
