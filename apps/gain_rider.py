"""A gain rider learns to keep long-term loudness at a target, from what the recorder gives it.

python apps/gain_rider.py        pink noise of changing level; needs amt_stream[rl]
"""

import copy
import logging
from collections.abc import Callable, Iterator
from functools import partial

import numpy as np
import torch
from tensordict import TensorDict
from torch import Tensor, nn
from torch.optim import Adam, Optimizer
from torchrl.data import LazyTensorStorage, MultiStep, ReplayBuffer
from torchrl.envs import MultiStepTransform

from amt_stream.dsp.models import Moore2016
from amt_stream.dsp.scales import sone_to_phon
from amt_stream.engine import Engine, Frames, Noise, SignalSource
from amt_stream.sessions.outputs import TransitionRecorder

FS, STEP_MS, TARGET_PHON = 32000, 100, 70.0
CHANGES_DB = (0.0, -4.0, -1.0, 1.0, 4.0)
LEVELS_DB = (45.0, 65.0, 55.0, 75.0)
SOUND = [
    Noise("pink", level_db=level_db, start=4.0 * i, duration=4.0, period=16.0)
    for i, level_db in enumerate(LEVELS_DB)
]
Move = Callable[[Tensor], int]


class Ridden(SignalSource):
    """A sound behind a gain that moves while it plays."""

    gain_db = 0.0

    def blocks(self) -> Iterator[np.ndarray]:
        for block in super().blocks():
            yield block * np.float32(10.0 ** (self.gain_db / 20.0))


def distance(frames: Frames) -> dict[str, np.ndarray]:
    """Short- and long-term loudness level above the target, in tens of phon."""
    sone = np.stack([frames.values.stl, frames.values.ltl], axis=-1)
    return {"distance": (sone_to_phon(sone) - TARGET_PHON) / 10.0}


def minus_phon(transitions: TensorDict) -> Tensor:
    phon: Tensor = -10.0 * transitions["next", "distance"][:, 1].abs()
    return phon


def ride(move: Move, seconds: float = 32.0) -> TensorDict:
    """The transitions of a round in which `move` chooses the change of the gain every 100 ms."""
    source = Ridden(SOUND, FS, seconds, paced=False)

    def act(row: dict[str, np.ndarray]) -> int:
        choice = move(torch.from_numpy(row["distance"]))
        source.gain_db = float(np.clip(source.gain_db + CHANGES_DB[choice], -30.0, 30.0))
        return choice

    recorder = TransitionRecorder(distance, minus_phon, act=act, every=STEP_MS)
    model = Moore2016(FS, accuracy="coarse")
    # Nothing is paced: the short queue keeps the sound within a few blocks of the rider.
    slack_s = STEP_MS / 1000
    with Engine(
        source, model, [recorder], block_ms=STEP_MS, run_in="callback", sink_slack_s=slack_s
    ) as engine:
        engine.wait()
    return recorder.take(ended=True)


def best_or_any(value: nn.Module, chance: float, seen: Tensor) -> int:
    by_chance = float(torch.rand(())) < chance
    return int(torch.randint(len(CHANGES_DB), ()) if by_chance else value(seen).argmax())


def learn(value: nn.Module, buffer: ReplayBuffer, optimizer: Optimizer, steps: int = 400) -> None:
    """Q-learning: n discounted rewards as they came, then what the best move is worth."""
    for step in range(steps):
        if step % 50 == 0:
            before = copy.deepcopy(value)
        batch = buffer.sample()
        best = before(batch["next", "distance"]).amax(1, keepdim=True).detach()
        goal = batch["next", "reward"] / 10.0 + batch["gamma"][:, None] * best
        worth = value(batch["distance"]).gather(1, batch["action"])
        optimizer.zero_grad()
        torch.autograd.backward(nn.functional.smooth_l1_loss(worth, goal))
        optimizer.step()


def main() -> None:
    logging.getLogger("torchrl").setLevel(logging.WARNING)
    torch.set_num_threads(1)  # everything here is small
    torch.manual_seed(0)
    ahead = {"gamma": 0.9, "n_steps": 3}
    storage, transform = LazyTensorStorage(10_000), MultiStepTransform(**ahead)
    buffer = ReplayBuffer(storage=storage, transform=transform, batch_size=128)
    value = nn.Sequential(nn.Linear(2, 128), nn.Tanh(), nn.Linear(128, len(CHANGES_DB)))
    optimizer = Adam(value.parameters(), 5e-3)
    moves: dict[str, Move] = {"gain left alone": lambda seen: 0}
    for name, chance in {"by chance": 1.0, "learning": 0.3, "more": 0.1, "learned": 0.0}.items():
        moves[name] = partial(best_or_any, value, chance)
    for name, move in moves.items():
        data = ride(move)
        one, several = data["next", "reward"], MultiStep(**ahead)(data)["next", "reward"]
        print(f"{name:15} {-one.mean():5.1f} phon off, over 3 steps {-several.mean():5.1f}")
        buffer.extend(data)
        learn(value, buffer, optimizer)


if __name__ == "__main__":
    main()
