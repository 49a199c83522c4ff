"""How far the run of an engine has come, told between its threads."""

import threading


class Course:
    """From `ready` to `gone`; every thread of an engine looks here [any-thread].

    ready: the models are warm, or never will be
    ended: nothing more comes from the source
    stopping: somebody wants the end
    done: no frames and no events come any more
    gone: the engine's thread has nothing left to do
    played: the source has ended by itself, and all of it was heard
    """

    def __init__(self) -> None:
        self.error: BaseException | None = None
        self.played = False
        self.ready, self.ended = threading.Event(), threading.Event()
        self.stopping, self.done = threading.Event(), threading.Event()
        self.gone = threading.Event()

    def fail(self, error: BaseException) -> None:
        """End, and say why."""
        self.error = error
        self.ended.set()

    @property
    def is_over(self) -> bool:
        return self.stopping.is_set() or self.done.is_set()
