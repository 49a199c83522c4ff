"""Streaming does not grow memory: every exported stage, for a second and for ten minutes."""

import ctypes
import gc
from itertools import pairwise, repeat
from math import ceil

import pytest
import torch

from amt_stream import ECMA418, Rebuffer, Stage, Stream
from amt_stream.dsp import fused
from amt_stream.dsp.streaming import fields, without
from tests.dsp.contract.test_module_contract import CASES, STAGES
from tests.soak.memory import resident_mb
from tests.torch_threads import torch_threads

TEN_MINUTES = 60_000  # blocks of 10 ms


class MallInfo(ctypes.Structure):
    """What glibc's mallinfo2 tells."""

    _fields_ = [
        (name, ctypes.c_size_t)
        for name in (
            *("arena", "ordblks", "smblks", "hblks", "hblkhd"),
            *("usmblks", "fsmblks", "uordblks", "fordblks", "keepcost"),
        )
    ]


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    """As the engine's thread has it; more of them only wait for each other."""
    with torch_threads(1):
        yield


@pytest.fixture(autouse=True, scope="module")
def what_was_there_before():
    """Put aside for the garbage collector, which would else look through it at each count."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


def in_use():
    """Bytes that C and C++ hold, tensors too, and how many Python objects can hold others."""
    mallinfo2 = ctypes.CDLL(None).mallinfo2
    mallinfo2.restype = MallInfo
    gc.collect()
    told = mallinfo2()
    return told.uordblks + told.hblkhd, len(gc.get_objects())


def ten_ms(name, **options):
    """A running stage and 10 ms for it: sound at its rate, else at 16 kHz, or ten frames."""
    case = CASES[name]
    stage = case.make(**options).float()
    rate = (stage.fs or 16000) if stage.time_dim == -1 else 1000
    shape = list(case.shape)
    shape[stage.time_dim] = ceil(rate / 100 / stage.block_size) * stage.block_size
    x = case.signal(*shape).float()
    return Stream(stage, without(shape, stage.time_dim)), x


def grown(live, x):
    """How much more is `in_use` after 30 blocks than before them: the least of three times.

    A leak shows each time, a cache that is filled late does not.
    """
    told = []
    for _ in range(4):
        for _ in repeat(None, 30):
            live(x)
        told.append(in_use())
    return tuple(min(b - a for a, b in pairwise(v)) for v in zip(*told, strict=True))


# Of 30 blocks. The smallest tensor left behind by each would be 12 kB and 30 objects; what was seen
# is 3 kB and none.
MOST_BYTES, MOST_OBJECTS = 6000, 10


@pytest.fixture
def outputs_one_by_one(monkeypatch):
    """Outputs that are allocated together would wait, in numbers that need not divide 30."""
    monkeypatch.setattr(fused, "TOGETHER", 0)


@pytest.mark.cases(12)
@pytest.mark.usefixtures("outputs_one_by_one")
@pytest.mark.parametrize("name", STAGES)
def test_a_second(name):
    with torch.no_grad():
        byte_count, objects = grown(*ten_ms(name))
    assert byte_count < MOST_BYTES
    assert objects < MOST_OBJECTS


@pytest.mark.parametrize("name", ["Moore2016AGC", "HeadphoneFilter", "LoudnessIntegration"])
def test_a_second_of_learning(name):
    """No graph outlives its block."""
    live, x = ten_ms(name, learnable=True)

    def learn(x):
        live.zero_grad()
        sum(v.sum() for v in fields(live(x))).backward()

    byte_count, objects = grown(learn, x)
    assert byte_count < MOST_BYTES
    assert objects < MOST_OBJECTS


class Hoarder(Stage):
    """Keeps what it must not: something small of each block."""

    def __init__(self, keep):
        super().__init__()
        self.keep, self.hoard = keep, []

    def initial_state(self, shape):
        return {}

    def step(self, x, state):
        self.hoard.append(self.keep(x))
        return x + 0, state


def test_a_tensor_a_block_would_be_seen():
    byte_count, objects = grown(Stream(Hoarder(lambda x: x[..., 0] + 0), ()), torch.zeros(160))
    assert byte_count > MOST_BYTES
    assert objects > MOST_OBJECTS


def test_a_number_a_block_would_be_seen():
    _, objects = grown(Stream(Hoarder(lambda x: [x.shape[-1]]), ()), torch.zeros(160))
    assert objects > MOST_OBJECTS


@pytest.fixture(scope="module")
def growth(record):
    """Mebibytes by which each stage let the process grow, the worst of which is recorded."""
    seen = {}
    yield seen
    if seen:
        worst = max(seen, key=seen.get)
        record(
            f"resident memory from half a minute to ten minutes, {len(seen)} stages, 10 ms blocks",
            f"worst {seen[worst]:+.2f} MiB ({worst})",
        )


def resident_growth(push, x, blocks):
    """Mebibytes by which the process grows in so many blocks, from a twentieth of them on."""
    with torch.no_grad():
        for _ in repeat(None, blocks // 20):
            push(x)
        gc.collect()
        early = resident_mb()
        for _ in repeat(None, blocks * 19 // 20):
            push(x)
        gc.collect()
    return resident_mb() - early


@pytest.mark.soak
@pytest.mark.parametrize("name", STAGES)
def test_ten_minutes(growth, name):
    """Resident memory, from half a minute on: 1 MiB is 18 bytes a block."""
    growth[name] = resident_growth(*ten_ms(name), TEN_MINUTES)
    assert growth[name] < 1


@pytest.mark.soak
def test_an_hour_of_a_hearing_model(record):
    """All metrics of ECMA-418-2, with blocks that are joined."""
    x = 0.02 * torch.randn(2, 480, generator=torch.Generator().manual_seed(0))
    growth = resident_growth(Rebuffer(Stream(ECMA418(), (2,))).push, x, 6 * TEN_MINUTES)
    record("resident memory in an hour of ECMA418, two ears, 10 ms blocks", f"{growth:+.2f} MiB")
    assert growth < 1
