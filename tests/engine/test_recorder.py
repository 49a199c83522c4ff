"""Frames as transitions: what torchrl makes of them, and where an episode ends."""

import subprocess
import sys
import tracemalloc
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch

from amt_stream.engine import Engine, Fault, Frames
from amt_stream.sessions.outputs import TransitionRecorder


class Loudness(NamedTuple):
    ltl: Any
    pattern: Any = None


def minus_ltl(transitions):
    return -transitions["next", "ltl"]


def frames(*ltl, start=0, **marks):
    """Rows of 1 ms from row `start` on; `fault` and `settling` for all of them."""
    index = np.arange(start, start + len(ltl))
    pattern = np.arange(2 * len(ltl) * 3).reshape(2, len(ltl), 3)
    return Frames(
        time_s=index / 1000,
        sample=48 * index,
        utc=index / 1000,
        values=Loudness(np.array(ltl, np.float32), pattern),
        fault=np.full(len(ltl), marks.get("fault", 0), np.uint8),
        settling=np.full(len(ltl), marks.get("settling", False)),
        since_s=np.full(len(ltl), np.inf),
        level_db=np.full((2, len(ltl)), 60.0, np.float32),
        calibrated=True,
        missed=marks.get("missed", 0),
        stretch=marks.get("stretch", 0),
    )


def recorded(*blocks, observe=("ltl",), **options):
    recorder = TransitionRecorder(observe, minus_ltl, **options)
    for block in blocks:
        recorder(block)
    return recorder


def numbers(tensor):
    return tensor.flatten().tolist()


def test_the_keys_and_shapes_of_a_stream():
    recorder = recorded(
        frames(1, 2, 3, 4),
        observe=lambda f: {"ltl": f.values.ltl, "pattern": np.moveaxis(f.values.pattern, 1, 0)},
        act=lambda row: -row["ltl"],
    )
    data = recorder.take(ended=True)
    assert data.batch_size == (3,)
    assert data["pattern"].shape == data["next", "pattern"].shape == (3, 2, 3)
    assert numbers(data["ltl"]) == [1, 2, 3]
    assert numbers(data["action"]) == [-1, -2, -3]
    assert numbers(data["next", "ltl"]) == [2, 3, 4]
    assert numbers(data["next", "reward"]) == [-2, -3, -4]
    for key in ("done", "truncated"):
        assert data["next", key].shape == (3, 1)
        assert numbers(data["next", key]) == [False, False, True]
    assert not data["next", "terminated"].any()
    assert data["next", "time_s"].dtype == torch.float64
    assert len(recorder) == 0


def test_n_step_rewards_end_with_the_stream():
    from torchrl.data import MultiStep

    recorder = recorded(frames(1, 2, 3, 4))
    first = recorder.take(ended=True)
    recorder(frames(16, 32, 64, start=4))
    both = torch.cat([first, recorder.take(ended=True)])
    assert numbers(both["collector", "traj_ids"]) == [0, 0, 0, 1, 1]
    data = MultiStep(gamma=0.5, n_steps=2)(both)
    # -2 - 3/2, -3 - 4/2, and -4 with nothing after it; then -32 - 64/2, and -64.
    assert numbers(data["next", "reward"]) == [-3.5, -5, -4, -64, -64]
    assert numbers(data["next", "ltl"]) == [3, 4, 4, 64, 64]
    assert numbers(data["steps_to_next_obs"]) == [2, 2, 1, 2, 1]
    assert numbers(data["next", "original_reward"]) == [-2, -3, -4, -32, -64]


@pytest.mark.parametrize(
    "after",
    [
        [frames(8, 8, start=3, fault=Fault.GAP), frames(16, 32, 64, start=5)],
        [frames(8, start=3, fault=Fault.NON_FINITE), frames(16, 32, 64, start=4)],
        [frames(16, 32, 64, start=3, stretch=1)],
        [frames(16, 32, 64, start=3, missed=7, fault=Fault.OVERLOAD)],
        [frames(16, 32, 64, start=1003)],
        [frames(16, 32, 64, start=0)],
    ],
    ids=["gap", "non-finite", "reset", "rows missed", "time jumps", "another stream"],
)
def test_no_n_step_return_crosses(after):
    from torchrl.data import MultiStep

    recorder = recorded(frames(1), frames(2, 4, start=1), *after)
    data = recorder.take(ended=True)
    assert numbers(data["next", "done"]) == [False, True, False, True]
    data = MultiStep(gamma=0.5, n_steps=3)(data)
    # -2 - 4/2 and -4 before; -32 - 64/2 and -64 after.
    assert numbers(data["next", "reward"]) == [-4, -4, -64, -64]
    assert numbers(data["next", "ltl"]) == [4, 4, 64, 64]


def test_late_rows_are_right_and_go_on():
    data = recorded(frames(1, 2), frames(3, 4, start=2, fault=Fault.OVERLOAD)).take(ended=True)
    assert numbers(data["next", "done"]) == [False, False, True]
    assert numbers(data["fault"]) == [0, 0, Fault.OVERLOAD]


def test_left_out_rows_are_counted():
    recorder = recorded(frames(1, 2), frames(3, 4, 5, start=2, fault=Fault.GAP))
    assert recorder.left_out == 3
    assert len(recorder) == 2


def test_taken_piece_by_piece_the_replay_buffer_holds_what_multistep_gives_for_the_whole():
    from torchrl.data import LazyTensorStorage, MultiStep, ReplayBuffer
    from torchrl.envs import MultiStepTransform

    blocks = [frames(*range(n, n + 7), start=n) for n in range(0, 70, 7)]
    blocks[6] = frames(*range(42, 49), start=42, fault=Fault.GAP)
    whole = MultiStep(gamma=0.9, n_steps=4)(recorded(*blocks).take(ended=True))

    recorder = recorded(blocks[0])
    transform = MultiStepTransform(n_steps=4, gamma=0.9)
    buffer = ReplayBuffer(storage=LazyTensorStorage(100), transform=transform, batch_size=8)
    for block in blocks[1:]:
        recorder(block)
        buffer.extend(recorder.take())
    buffer.extend(recorder.take(ended=True))
    kept = buffer[:]
    assert len(kept) == len(whole) - 4  # the transform waits for what follows the last four
    for key in [("next", "reward"), ("next", "ltl"), "ltl", "steps_to_next_obs"]:
        torch.testing.assert_close(kept[key], whole[key][:-4])
    assert buffer.sample()["next", "reward"].shape == (8, 1)


def test_memory_is_bounded_and_the_oldest_rows_go():
    recorder = recorded(rows=100)
    block = 50
    recorder(frames(*range(block)))
    recorder.take()
    tracemalloc.start()
    for n in range(1, 200):
        recorder(frames(*range(n * block, (n + 1) * block), start=n * block))
        if n == 10:
            before = tracemalloc.get_traced_memory()[0]
    grown = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    assert grown < 2000
    assert len(recorder) == 100
    assert recorder.dropped == 200 * block - 48 - 100
    data = recorder.take(ended=True)
    # The transition held back by the first take, at whose end the dropped rows are; then the rest.
    assert numbers(data["ltl"]) == [48, *range(9900, 9999)]
    assert numbers(data["next", "done"]) == [True, *[False] * 98, True]
    assert numbers(data["collector", "traj_ids"]) == [0, *[1] * 99]


def test_one_row_in_so_many_is_kept_and_acted_on():
    heard = []

    def act(row):
        heard.append(row["ltl"].item())
        return [0.5, -0.5]

    blocks = [frames(*range(n, n + 7), start=n) for n in range(0, 35, 7)]
    data = recorded(*blocks, act=act, every=10).take(ended=True)
    assert heard == [0, 10, 20, 30]
    assert numbers(data["next", "ltl"]) == [10, 20, 30]
    assert numbers(data["action"]) == [0.5, -0.5] * 3


def test_rows_after_a_failure_begin_an_episode():
    failing = [False, True, False]

    def act(row):
        if failing.pop(0):
            raise ValueError("no action")
        return 0.0

    recorder = recorded(frames(1, 2), act=act, every=2)
    with pytest.raises(ValueError, match="no action"):
        recorder(frames(3, 4, start=2))
    recorder(frames(5, 6, start=4))
    assert len(recorder.take(ended=True)) == 0


def test_what_cannot_be_recorded_is_refused():
    with pytest.raises(ValueError, match="every is 0"):
        TransitionRecorder(["ltl"], minus_ltl, every=0)
    with pytest.raises(ValueError, match="'ltl' has the shape \\(2, 3\\) for 3 frames"):
        recorded(frames(1, 2, 3), observe=lambda f: {"ltl": np.zeros((2, len(f)))})
    with pytest.raises(ValueError, match="'action' has"):
        recorded(frames(1), observe=lambda f: {"action": f.values.ltl})
    with pytest.raises(RuntimeError, match="nothing was recorded"):
        recorded().take()
    wide = recorded(frames(1), observe=lambda f: {"ltl": np.zeros((len(f), len(f)))})
    with pytest.raises(ValueError, match="make a new recorder"):
        wide(frames(1, 2, start=1))
    one_number = TransitionRecorder(["ltl"], lambda transitions: 0.0)
    one_number(frames(1, 2, 3))
    with pytest.raises(ValueError, match="reward of 2 transitions"):
        one_number.take(ended=True)


@pytest.mark.parametrize("run_in", ["engine", "callback"])
def test_a_stream_with_a_gap_a_reset_and_a_swap(scripted, power_meter, noise, until, run_in):
    from torchrl.data import MultiStep

    """Four stretches of 40 ms; the model has never settled."""
    recorder = TransitionRecorder(["stl", "ltl", "level_db"], minus_ltl)
    x = noise(1920)

    def heard(ms: int) -> None:
        until(lambda: len(recorder) + recorder.left_out >= ms)

    def script(deliver) -> None:
        deliver(x)
        deliver(x, lost=480)
        heard(90)
        engine.reset_filters()
        deliver(x)
        heard(130)
        engine.swap(power_meter())
        deliver(x)

    engine = Engine(scripted(script, live=False), power_meter(), [recorder], run_in=run_in)
    with engine:
        assert engine.wait(60), engine.error
    data = recorder.take(ended=True)
    ids = data["collector", "traj_ids"]
    assert ids.unique().tolist() == [0, 1, 2, 3]
    assert int(data["next", "done"].sum()) == 4
    assert recorder.left_out >= 10
    assert data["level_db"].shape == (len(data), 2)
    n_step = MultiStep(gamma=0.9, n_steps=3)(data)
    for k in range(4):
        r = data["next", "reward"][ids == k].flatten().double()
        by_hand = r + 0.9 * torch.cat([r[1:], r.new_zeros(1)])
        by_hand += 0.81 * torch.cat([r[2:], r.new_zeros(2)])
        got = n_step["next", "reward"][ids == k].flatten().double()
        torch.testing.assert_close(got, by_hand, rtol=1e-6, atol=0)
        if k in (2, 3):  # the model began anew with this very row
            x0 = data["stl"][ids == k][0]
            torch.testing.assert_close(data["ltl"][ids == k][0], 0.05 * x0)


def test_without_the_extra_one_sentence_says_what_to_install():
    program = """
import sys
sys.modules["tensordict"] = None
from amt_stream.sessions.outputs import TransitionRecorder
try:
    TransitionRecorder(["ltl"], len)
except ImportError as error:
    print(error)
"""
    done = subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, text=True
    )
    assert done.stdout == (
        "TransitionRecorder needs tensordict and torchrl, which are not installed: "
        'pip install "amt_stream[rl]"\n'
    )


def test_the_recorder_is_imported_without_torch():
    program = "import sys, amt_stream.sessions.outputs as outputs; "
    program += "print({'tensordict', 'torch'} & set(sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, text=True
    )
    assert done.stdout == "set()\n"
