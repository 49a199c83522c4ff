"""Work in another process: its progress, its result, why there is none, and its end."""

import os
import subprocess
import sys
import time
from functools import partial

from amt_stream.core.errors import Refusal
from amt_stream.core.worker import WorkDone, Worker, WorkProgress, WorkRefused
from amt_stream.core.worker_process import BEAT_S


def summed(upto, report):
    print("this is not a message")
    for done in range(upto):
        time.sleep(1.1 * BEAT_S)
        report(done + 1, upto)
    return sum(range(upto))


def refusing(report):
    raise Refusal("there is nothing to sum")


def failing(report):
    return int([])


def killed(report):
    os.kill(os.getpid(), 9)


def endless(report):
    for done in range(10**6):
        time.sleep(BEAT_S)
        report(done + 1, 10**6)


def test_progress_and_the_result_come_as_values():
    *progress, done = Worker(partial(summed, 3)).messages()
    assert done == WorkDone(3)
    assert [one.part for one in progress] == [1 / 3, 2 / 3, 1.0]
    assert all(isinstance(one, WorkProgress) for one in progress)
    assert progress[0].left_s > progress[2].left_s == 0.0


def test_a_refusal_comes_as_its_sentence_and_a_fault_with_its_kind():
    assert [*Worker(refusing).messages()] == [WorkRefused("there is nothing to sum")]
    assert [*Worker(failing).messages()] == [
        WorkRefused(
            "TypeError: int() argument must be a string, a bytes-like object or a real number, "
            "not 'list'"
        )
    ]


def test_a_process_that_is_killed_is_a_refusal():
    assert [*Worker(killed).messages()] == [WorkRefused("its process ended with status -9")]


def test_nothing_comes_after_the_end():
    worker = Worker(endless)
    messages = worker.messages()
    assert isinstance(next(messages), WorkProgress)
    worker.end()
    worker.end()
    assert not worker.running
    assert [*messages] == []


PARENT = """
import os
from amt_stream.core.worker import Worker
from tests.core.test_worker import endless
next(Worker(endless).messages())
os._exit(0)
"""


def test_work_ends_with_the_program_that_wanted_it():
    with subprocess.Popen([sys.executable, "-c", PARENT], stderr=subprocess.PIPE) as parent:
        # The worker has this pipe too: it is read to the end when both processes have ended.
        assert parent.stderr.read() == b""
