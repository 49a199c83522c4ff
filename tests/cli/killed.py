"""What a process is killed at: in a file of its own, as that process imports all of it."""

import os
import signal


def killed_once(path):
    """Ends its own process where the file is not there yet; gives the process that did it."""
    if path is None:
        os.kill(os.getpid(), signal.SIGKILL)
    if not path.exists():
        path.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return path.name
