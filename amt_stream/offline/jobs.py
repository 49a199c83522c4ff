"""Parallel work on many items, in processes or on a cluster."""

import contextlib
import logging
import os
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context
from typing import Any, TypeVar

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
        from amt_stream.dsp.functional.threads import flushing_denormals

        with flushing_denormals():
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


def on_ray(
    function: Callable[[Item], Found], items: Sequence[Item], address: str = "auto"
) -> Iterator[tuple[int, Found | WorkerLost]]:
    """`as_done` on a Ray cluster, one core per item: pip install "amt_stream[ray]".

    Every machine needs this package, and the same files at the same paths. Items of a lost machine
    or process are repeated elsewhere.

    address: address of the cluster; "auto" is that of RAY_ADDRESS, or the one on this computer;
        "local" starts one for this call
    """
    import ray
    from ray.exceptions import RayError, RayTaskError

    with contextlib.ExitStack() as stack:
        if not ray.is_initialized():
            if address == "local":
                os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
            ray.init(address, logging_level=logging.ERROR, log_to_driver=False)
            stack.callback(ray.shutdown)
        task: Any = ray.remote(num_cpus=1, max_retries=TRIES - 1)(_in_folder)
        folder, shared = os.getcwd(), ray.put(function)  # noqa: PTH109 (a text for another machine)
        at_once = 2 * max(1, round(ray.cluster_resources().get("CPU", 1)))
        left = iter(enumerate(items))
        running: dict[Any, int] = {}
        while True:
            for place, item in left:
                running[task.remote(folder, shared, item)] = place
                if len(running) >= at_once:
                    break
            if not running:
                return
            for done in ray.wait([*running])[0]:
                place = running.pop(done)
                try:
                    found = ray.get(done)
                except RayTaskError:  # an error of the function
                    raise
                except RayError:
                    found = WorkerLost()
                yield place, found


def _in_folder(folder: str, function: Callable[[Item], Found], item: Item) -> Found:
    """The result of a function, run in the caller's working directory."""
    os.chdir(folder)
    _prepare()
    return function(item)


def _prepare() -> None:
    from amt_stream.dsp.functional.threads import work_alone

    work_alone()
