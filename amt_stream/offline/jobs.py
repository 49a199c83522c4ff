"""The same work on many items: here, in several processes at once, or on a cluster."""

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
"""As often is an item tried whose process is lost meanwhile, killed or crashed."""


class WorkerLost(RuntimeError):
    """An item took every process along that tried it."""

    def __init__(self) -> None:
        super().__init__(
            f"the process that worked on it was lost {TRIES} times: it was killed, for want of "
            "memory perhaps, or it crashed; try fewer at once"
        )


def refuse_jobs(jobs: object) -> None:
    """Raise ValueError for what is no number of processes."""
    if isinstance(jobs, bool) or not isinstance(jobs, int) or jobs < 1:
        raise ValueError(f"jobs is {jobs!r}: give a whole number of processes, 1 or more")


def each(
    function: Callable[[Item], Found], items: Sequence[Item], jobs: int, ahead: int = 0
) -> Generator[Found]:
    """What `function` gives for each item, in their order, by so many processes at once.

    With one job everything happens here. What is given and what comes back is pickled. `ahead` is
    how many items more wait for a process that is done. Raises WorkerLost.
    """
    held: dict[int, Found] = {}
    told = 0
    for place, found in as_done(function, items, jobs, ahead):
        if isinstance(found, WorkerLost):
            raise found
        held[place] = found
        while told in held:
            yield held.pop(told)
            told += 1


def as_done(
    function: Callable[[Item], Found], items: Sequence[Item], jobs: int, ahead: int = 0
) -> Iterator[tuple[int, Found | WorkerLost]]:
    """The same as soon as each is done, with its place; WorkerLost stands for what cannot be had.

    Where a process is lost, others take its place, and do again what was not done: one by one, so
    that no item is blamed for what another does to its process.
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
                except BrokenProcessPool:  # while it had nothing to do
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
    # A child that was forked would have torch's locks, and not the threads that hold them.
    return ProcessPoolExecutor(max(1, min(jobs, items)), get_context("spawn"), _prepare)


def on_ray(
    function: Callable[[Item], Found], items: Sequence[Item], address: str = "auto"
) -> Iterator[tuple[int, Found | WorkerLost]]:
    """The same as `as_done` on a cluster of Ray, one core an item: pip install "amt_stream[ray]".

    Every machine of it has this package, and the same files under the same paths. What a machine or
    a process was at that is lost, another does again.

    address: of a cluster; "auto" is the one that RAY_ADDRESS names, or that runs here; "local" is
        made here, for this call
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
                except RayTaskError:  # what the function raised
                    raise
                except RayError:
                    found = WorkerLost()
                yield place, found


def _in_folder(folder: str, function: Callable[[Item], Found], item: Item) -> Found:
    """What a function gives, where names of files mean what they mean to whoever asks."""
    os.chdir(folder)
    _prepare()
    return function(item)


def _prepare() -> None:
    from amt_stream.dsp.functional.threads import work_alone

    work_alone()
