"""Rows of a stream as transitions for reinforcement learning with torchrl."""

import math
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from amt_stream.core.importing import install
from amt_stream.core.words import counted
from amt_stream.engine.thread_check import thread_checked
from amt_stream.meters.frames import Fault, Frames, scalar_field

if TYPE_CHECKING:
    from tensordict import TensorDict

Observe = Callable[[Frames], Mapping[str, ArrayLike]]
"""Returns observations of n frames: name to array (n, ...)."""

Act = Callable[[dict[str, np.ndarray]], ArrayLike]
"""Chooses and carries out an action for one observation."""

Reward = Callable[["TensorDict"], Any]
"""Computes rewards, a tensor (T,) or (T, 1), from transitions with all other keys."""

UNHEARD = Fault.GAP | Fault.NON_FINITE | Fault.OFF
MARKS = ("time_s", "fault", "settling")
TAKEN = {*MARKS, "action", "collector", "next", "reward", "done", "terminated", "truncated"}


class _RowChoice:
    """Which rows are recorded, and which of them begin an episode.

    every: record one of this many rows

    Attributes: `left_out`, how many rows belong to no episode.
    """

    def __init__(self, every: int) -> None:
        self._every, self.left_out = every, 0
        # How many rows of the episode came; time and stretch of the last row; time between rows.
        self._at, self._time_s, self._stretch, self._step_s = 0, math.nan, 0, math.nan

    def of(self, frames: Frames) -> tuple[list[int], list[bool]]:
        """The rows to record, and whether each begins an episode."""
        self.left_out += frames.skipped
        at = self._at if self._follows(frames) else 0
        chosen, begins = [], []
        for i, fault in enumerate(frames.fault.tolist()):
            if fault & UNHEARD:
                self.left_out += 1
                at = 0
            else:
                if at % self._every == 0:
                    chosen.append(i)
                    begins.append(at == 0)
                at += 1
        self._at = at
        return chosen, begins

    def _follows(self, frames: Frames) -> bool:
        """Whether these rows directly follow the last recorded ones."""
        gap_s, self._time_s = float(frames.time_s[0]) - self._time_s, math.nan
        known_s = gap_s if math.isnan(self._step_s) else self._step_s
        step_s = float(frames.time_s[1] - frames.time_s[0]) if len(frames) > 1 else known_s
        self._step_s = step_s
        steady = all(abs(s - step_s) < 0.01 * step_s for s in (gap_s, known_s))
        anew, self._stretch = frames.stretch != self._stretch, frames.stretch
        return steady and not anew and not frames.missed

    def end(self, frames: Frames) -> None:
        """Let the next rows follow these, which were recorded."""
        self._time_s = float(frames.time_s[-1])


class _RowStore:
    """Rows that wait to be taken, for any thread; the oldest give way, counted in `dropped`.

    rows: capacity, allocated with the first row
    """

    def __init__(self, rows: int) -> None:
        self._rows, self.dropped = rows, 0
        self._lock = threading.Lock()
        self._columns: dict[str, np.ndarray] = {}
        # The newest rows taken, whose transitions are not known yet.
        self._held: dict[str, np.ndarray] = {}
        self._first = self._count = self._episode = 0
        # Whether rows were dropped since the last `take`, and whether that ended the episode.
        self._hole = self._cut = False

    def __len__(self) -> int:
        return self._count - self._first

    def append(self, columns: dict[str, np.ndarray], count: int) -> None:
        """Store so many rows. Raises ValueError for others than before."""
        with self._lock:
            if not self._columns:
                self._columns = {
                    name: np.zeros((self._rows, *value.shape[1:]), value.dtype)
                    for name, value in columns.items()
                }
            _same_layout(self._columns, columns)
            columns["begins"][0] |= self._cut
            self._cut = False
            places = np.arange(self._count, self._count + count)[-self._rows :] % self._rows
            for name, column in self._columns.items():
                column[places] = columns[name][-self._rows :]
            self._count += count
            excess = len(self) - self._rows
            if excess > 0:
                self._first += excess
                self.dropped += excess
                self._hole = True

    def take(self, ended: bool) -> tuple[dict[str, np.ndarray], NDArray[np.int64], int]:
        """The waiting rows, their episodes, and the number of transitions that may be taken."""
        with self._lock:
            if not self._columns:
                raise RuntimeError("nothing was recorded yet: let the engine run first")
            places = np.arange(self._first, self._count) % self._rows
            rows = {name: column[places] for name, column in self._columns.items()}
            if self._hole and self._held:
                # Earlier transitions end at the row held back, and do not span the dropped rows.
                rows["begins"][0] = True
                rows = {name: np.concatenate([self._held[name], rows[name]]) for name in rows}
            begins = rows["begins"]
            episode = self._episode + np.cumsum(begins) - begins[:1]
            kept = 0 if ended else min(2, len(self))
            self._held = {name: value[len(value) - kept :].copy() for name, value in rows.items()}
            if len(begins):
                self._episode = int(episode[-kept] if kept else episode[-1] + 1)
            self._first = self._count - kept
            self._hole, self._cut = False, self._cut or ended
        return rows, episode, max(0, len(begins) - (1 if ended else 2))


@thread_checked
class TransitionRecorder:
    """A sink that records rows of a stream as transitions for torchrl.

        recorder = TransitionRecorder(["ltl"], lambda t: -t["next", "ltl"], act=rider)
        with Engine(source, model, [recorder]) as engine:
            engine.wait()
        data = MultiStep(gamma=0.95, n_steps=5)(recorder.take(ended=True))

    A transition connects two consecutive recorded rows. An episode ends, truncated, at the end of
    the stream, at missing rows, and at a reset or swap of the model or a new calibration, so that
    no n-step return spans them. Rows with lost or non-finite samples, and rows within a gap, belong
    to no episode. Episodes are never `terminated`, as the sound continues after the recording.

    observe: function of `Frames`, or names of outputs with one number per frame, or "level_db"
    reward: called once for all transitions of `take`
    act: called immediately for each recorded row, in the sink's thread; the rows of a block come
        together, so `every` should span at least a block
    every: record one of this many rows
    rows: capacity, allocated with the first row; then the oldest rows are dropped, counted in
        `dropped`

    Raises ModuleNotFoundError without tensordict, and ValueError without rows or names.
    """

    def __init__(
        self,
        observe: Observe | Sequence[str],
        reward: Reward,
        *,
        act: Act | None = None,
        every: int = 1,
        rows: int = 100_000,
    ) -> None:
        try:
            import tensordict  # noqa: F401
        except ModuleNotFoundError as error:
            raise ModuleNotFoundError(
                "TransitionRecorder needs tensordict and torchrl, which are not installed: "
                f"{install('rl')}"
            ) from error
        if every < 1 or rows < 3:
            raise ValueError(f"every is {every}, rows is {rows}: give at least 1, and 3 rows")
        if not callable(observe):
            observe = _by_name(tuple(observe))
        self._observe, self._reward, self._act = observe, reward, act
        self.every, self.rows = every, rows
        self._microphone: str | None = None
        self._choice, self._store = _RowChoice(every), _RowStore(rows)

    def __len__(self) -> int:
        """Number of rows waiting for `take` [any-thread]."""
        return len(self._store)

    @property
    def dropped(self) -> int:
        """Number of rows that gave way to newer ones [any-thread]."""
        return self._store.dropped

    @property
    def left_out(self) -> int:
        """Number of rows that belong to no episode [any-thread]."""
        return self._choice.left_out

    def __call__(self, frames: Frames) -> None:
        """Record rows and act on them [sink-thread].

        Raises ValueError for frames of several microphones.
        """
        self._microphone = frames.microphone if self._microphone is None else self._microphone
        if frames.microphone != self._microphone:
            raise ValueError(
                f"a TransitionRecorder of {self._microphone!r} got frames of "
                f"{frames.microphone!r}: give it the frames of one microphone"
            )
        chosen, begins = self._choice.of(frames)
        seen = {name: _rows(name, value, frames) for name, value in self._observe(frames).items()}
        columns = {name: value[chosen] for name, value in seen.items()}
        for name in MARKS:
            columns[name] = getattr(frames, name)[chosen, None]
        if self._act is not None:
            rows = [{name: value[i] for name, value in seen.items()} for i in chosen]
            columns["action"] = _actions([self._act(row) for row in rows])
        columns["begins"] = np.array(begins, np.bool_)
        if chosen:
            self._store.append(columns, len(chosen))
        self._choice.end(frames)

    def take(self, ended: bool = False) -> "TensorDict":
        """Take the transitions so far as a TensorDict of batch size [T] [any-thread].

        Keys: the observations, `action`, the marks `time_s`, `fault` and `settling`; all but the
        action again under "next", with `reward`, `done`, `terminated` and `truncated` (T, 1); and
        ("collector", "traj_ids") (T,), the number of the episode.

        ended: whether the stream and its last episode have ended. Otherwise the newest transition
            is held back until it is known whether another one follows.

        Raises RuntimeError before the first row.
        """
        import torch
        from tensordict import TensorDict

        rows, episode, given = self._store.take(ended)
        begins = rows.pop("begins")
        start = np.flatnonzero(~begins[1:][:given])
        done = torch.from_numpy(np.append(begins[2:], True)[start, None])
        columns = {name: torch.from_numpy(value) for name, value in rows.items()}
        after = {name: value[start + 1] for name, value in columns.items() if name != "action"}
        after |= {"done": done, "terminated": torch.zeros_like(done), "truncated": done.clone()}
        transitions = TensorDict(
            {
                **{name: value[start] for name, value in columns.items()},
                "collector": {"traj_ids": torch.from_numpy(episode[start])},
                "next": after,
            },
            batch_size=[len(start)],
        )
        reward = torch.as_tensor(self._reward(transitions), dtype=torch.float32)
        if reward.numel() != len(start):
            raise ValueError(
                f"the reward of {counted(len(start), 'transition')} has the shape "
                f"{tuple(reward.shape)}: give one number for each"
            )
        transitions["next", "reward"] = reward.reshape(-1, 1)
        return transitions


def _by_name(names: tuple[str, ...]) -> Observe:
    def observe(frames: Frames) -> dict[str, ArrayLike]:
        return {
            name: frames.level_db.T if name == "level_db" else scalar_field(frames.values, name)
            for name in names
        }

    return observe


def _rows(name: str, value: ArrayLike, frames: Frames) -> np.ndarray:
    """An observation as float32 (n, ...), with at least one number per frame."""
    rows = np.asarray(value)
    if name in TAKEN or rows.shape[:1] != (len(frames),):
        raise ValueError(
            f"the observation {name!r} has the shape {rows.shape} for "
            f"{counted(len(frames), 'frame')}: give (frame, ...), and a name that is not one of "
            f"{', '.join(sorted(TAKEN))}"
        )
    return _single(rows)


def _actions(given: list[ArrayLike]) -> np.ndarray:
    return (
        _single(np.stack([np.asarray(action) for action in given])) if given else np.zeros((0, 1))
    )


def _single(rows: np.ndarray) -> np.ndarray:
    if np.issubdtype(rows.dtype, np.floating):
        rows = rows.astype(np.float32)
    return rows[:, None] if rows.ndim == 1 else rows


def _same_layout(have: dict[str, np.ndarray], given: dict[str, np.ndarray]) -> None:
    was = {name: value.shape[1:] for name, value in have.items()}
    now = {name: value.shape[1:] for name, value in given.items()}
    if was != now:
        raise ValueError(
            f"the recorder began with rows of {was} and got {now}: make a new recorder for "
            "another model"
        )
