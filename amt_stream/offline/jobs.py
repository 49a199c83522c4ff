"""Parallel work on many items, in processes."""

from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context
from typing import TypeVar

from amt_stream.core.importing import has_torch

Item = TypeVar("Item")
Found = TypeVar("Found")

TRIES = 3
"""Number of attempts for an item whose process was killed or crashed."""


class WorkerLost(RuntimeError):
    """Every process that worked on an item was lost."""

    def __init__(self) -> None:
        super().__init__(
            f"its process was lost {TRIES} times: it was killed, perhaps for lack of memory, or "
            "it crashed; use fewer processes"
        )


def refuse_jobs(jobs: object) -> None:
    """Raise ValueError for an invalid number of processes."""
    if isinstance(jobs, bool) or not isinstance(jobs, int) or jobs < 1:
        raise ValueError(f"jobs is {jobs!r}: give a whole number of processes, 1 or more")


def each(
    function: Callable[[Item], Found], items: Sequence[Item], jobs: int, ahead: int = 0
) -> Generator[Found]:
    """Yield `function` of each item, in order, computed by a number of processes.

    With one job everything runs in this process. Arguments and results are pickled.

    ahead: number of further items queued for the processes

    Raises WorkerLost.
    """
    held: dict[int, Found] = {}
    number = 0
    for place, found in as_done(function, items, jobs, ahead):
        if isinstance(found, WorkerLost):
            raise found
        held[place] = found
        while number in held:
            yield held.pop(number)
            number += 1


def as_done(
    function: Callable[[Item], Found], items: Sequence[Item], jobs: int, ahead: int = 0
) -> Iterator[tuple[int, Found | WorkerLost]]:
    """Yield index and result of each item as soon as it is done; a lost one gives a WorkerLost.

    If a process is lost, new processes repeat its unfinished items one by one, so that one item
    does not affect the others.
    """
    refuse_jobs(jobs)
    if min(jobs, len(items)) <= 1:
        yield from enumerate(map(function, items))
        return
    left = list(range(len(items)))[::-1]
    tries = [0] * len(items)
    pool = _pool(jobs, len(left))
    running: dict[Future[Found], int] = {}
    try:
        while left or running:
            while left and len(running) < jobs + ahead:
                alone = tries[left[-1]] > 0
                if alone and running:
                    break
                place = left.pop()
                if tries[place] == TRIES:
                    yield place, WorkerLost()
                    continue
                tries[place] += 1
                try:
                    running[pool.submit(function, items[place])] = place
                except BrokenProcessPool:  # an idle process was lost
                    left.append(place)
                    tries[place] -= 1
                    break
                if alone:
                    break
            lost = []
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                place = running.pop(future)
                if isinstance(future.exception(), BrokenProcessPool):
                    lost.append(place)
                else:
                    yield place, future.result()
            if lost or (left and not running):
                left += [*lost, *running.values()]
                running.clear()
                pool.shutdown()
                pool = _pool(jobs, len(left))
    finally:
        pool.shutdown(cancel_futures=True)


def _pool(jobs: int, items: int) -> ProcessPoolExecutor:
    # A forked child would have torch's locks without the threads that hold them.
    return ProcessPoolExecutor(max(1, min(jobs, items)), get_context("spawn"), _prepare)


def _prepare() -> None:
    if not has_torch():
        return
    from amt_stream.dsp.functional.compiler.threads import work_alone

    work_alone()
