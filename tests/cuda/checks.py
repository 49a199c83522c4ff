"""What has to hold on a GPU, a row each: numbers as on the CPU, in time, in few launches."""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from math import ceil, inf, isfinite

import numpy as np
import torch

import amt_stream as amt
from amt_stream import Engine, HostedStream, Moore2016, SignalSource, Stage, Stream
from amt_stream.dsp.compute_device import computes_on_host
from amt_stream.dsp.streaming import fields, without
from amt_stream.meters.signals import Noise, demo_sound
from tests.dsp.contract.fake_device import Launches
from tests.dsp.contract.test_module_contract import CASES

FS, BLOCK = 48000, 480
BLOCK_MS = 1000 * BLOCK / FS
LOUDNESSES = (1.0, 2.0, 1e-3, 0.0, 1.0, 1e-5)
"""Factors on the input of one block after another: soft and loud ones, and silence."""

SINGLE, DOUBLE = 1e-5, 1e-9
"""How far from float64 on the CPU, re the largest number: in float32, and in float64."""

ROUNDING = 1e-15
"""Of the input in float64, to see how far rounding leads."""

TURNS = 500
"""Blocks of 10 ms at their real pace, or as many longer ones as last as long, for their times."""

LISTENERS = 64, 250, 1000

LEARNED = "Moore2016", "Glasberg2002", "ZwickerTimeVarying", "BS1770"
"""Models of which a gradient is computed."""

MODELS: dict[str, tuple[Callable[[], Stage], tuple[int, ...]]] = {
    "Moore2016": (partial(Moore2016, FS), (1, 2)),
    "Glasberg2002": (partial(amt.Glasberg2002, FS), (1, 1)),
    "ZwickerTimeVarying": (partial(amt.ZwickerTimeVarying, FS), (1, 1)),
    "BS1770": (partial(amt.BS1770, FS), (1, 2)),
    "SoundLevel": (partial(amt.SoundLevel, FS), (1, 2)),
    "Dau1997": (partial(amt.Dau1997, FS), (1,)),
    "Osses2021": (partial(amt.Osses2021, FS), (1,)),
    "Paulick2024": (partial(amt.Paulick2024, FS), (1,)),
    "King2019": (partial(amt.King2019, FS), (1,)),
    "ModulationSpectrum": (partial(amt.ModulationSpectrum, FS), (1,)),
    "ThirdOctaves": (partial(amt.ThirdOctaves, FS), (1, 2)),
    "Octaves": (partial(amt.Octaves, FS), (1, 2)),
    "NarrowBandSpectrum": (partial(amt.NarrowBandSpectrum, FS), (1, 2)),
    "ECMALoudness": (partial(amt.ECMALoudness, FS), (1, 1)),
    "ECMATonality": (partial(amt.ECMATonality, FS), (1, 1)),
    "ECMARoughness": (partial(amt.ECMARoughness, FS), (1, 1)),
    "ECMAFluctuation": (partial(amt.ECMAFluctuation, FS), (1, 1)),
    "ECMA418": (partial(amt.ECMA418, FS), (1, 2)),
    "DanielWeber": (partial(amt.DanielWeber, FS), (1, 1)),
}


@dataclass(frozen=True)
class Row:
    """What was found of one thing; None where it was not looked at.

    single, double: distance from float64 on the CPU re the largest number, in float32 and float64
    on_cpu: that of float32 on the CPU
    p50_ms, p99_ms: of a block of 10 ms at its real pace
    """

    name: str
    holds: bool
    single: float | None = None
    double: float | None = None
    on_cpu: float | None = None
    launches: int | None = None
    p50_ms: float | None = None
    p99_ms: float | None = None

    def told(self) -> str:
        """As a line of a table."""
        distances = ["" if v is None else f"{v:.1e}" for v in (self.single, self.double)]
        on_cpu = "" if self.on_cpu is None else f"{self.on_cpu:.1e}"
        times = ["" if v is None else f"{v:.2f}" for v in (self.p50_ms, self.p99_ms)]
        launches = "" if self.launches is None else str(self.launches)
        cells = [self.name, *distances, on_cpu, launches, *times, "yes" if self.holds else "NO"]
        return f"| {' | '.join(cells)} |"


HEAD = (
    "| what | float32 | float64 | float32 on the CPU | launches | p50 ms | p99 ms | holds |\n"
    "|---|---|---|---|---|---|---|---|"
)


def hosted(stage, x, device):
    """A captured stream of `stage` on a GPU for blocks like `x`, and whether it is captured.

    device: of the host, something that stands for a GPU; None for CUDA
    """
    if device is None:
        stage = stage.to("cuda")
    live = HostedStream(stage, without(x.shape, stage.time_dim), device)
    return live, live.capture(x.shape[stage.time_dim])


def given(live, x):
    """All that a stream gives of loud and soft parts and silence, over twice its latency."""
    count = len(LOUDNESSES) + 2 * ceil(live.stage.latency / x.shape[live.stage.time_dim])
    factors = [LOUDNESSES[n * len(LOUDNESSES) // count] for n in range(count)]
    with torch.no_grad():
        return [fields(live((loudness * x).to(live.stage.dtype))) for loudness in factors]


def distance(got, expected):
    """The largest difference re the largest number, of each output; what is infinite is the same.

    Infinite where one is a number and the other is none, and where nothing but 0 is expected.
    """
    far, some = 0.0, False
    for a, b in zip(zip(*got, strict=True), zip(*expected, strict=True), strict=True):
        a, b = (torch.stack([v.double() for v in block]) for block in (a, b))
        sane = b.isfinite()
        if not torch.equal(a.isfinite(), sane):
            return inf
        difference = (a - b)[sane].abs()
        peak = b[sane].abs().amax().item() if sane.any() else 0.0
        if peak:
            far, some = max(far, difference.amax().item() / peak), True
    return far if some else inf


def of_stage(name, device=None):
    """A stage, in float32 and float64, by its case in the contract of modules."""
    case = CASES[name]
    return of_numbers(Row(name, True), case.make, case.input(case.make().double()), device)


def of_numbers(row, make, x, device=None):
    """What `make` makes gives the numbers of the CPU, by a captured graph."""
    plain = make().double()
    shape = without(x.shape, plain.time_dim)
    expected = given(Stream(plain, shape), x)
    on_cpu = distance(given(Stream(make().float(), shape), x), expected)
    rounded = x.double() * (1 + ROUNDING * torch.randn_like(x.double()))
    moved = distance(given(Stream(plain, shape), rounded), expected)
    found, held = {}, row.holds
    for kind, dtype in (("single", torch.float32), ("double", torch.float64)):
        live, captured = hosted(make().to(dtype), x, device)
        found[kind] = distance(given(live, x), expected)
        held &= captured or computes_on_host(live.stage)
    # Where rounding alone leads further, as loops do and differences of near numbers, no further
    # than on the CPU; another order of sums may lead further by chance, short products by far more.
    held &= isfinite(on_cpu) and isfinite(moved)
    held &= found["double"] <= max(DOUBLE, 4 * moved)
    held &= found["single"] <= max(SINGLE, 10 * on_cpu)
    return replace(row, holds=held, on_cpu=on_cpu, **found)


def of_model(name, turns=TURNS, device=None):
    """A model at 48 kHz: its numbers, launches, and times at the real pace."""
    make, shape = MODELS[name]
    x = noise(*shape, length(make))
    row = of_numbers(Row(name, True), lambda: make().float(), x, device)
    model = make().float()
    if computes_on_host(model):  # an engine leaves it there
        live = Stream(model, shape)
    else:
        row = replace(row, launches=launches(model, x, device))
        live, _ = hosted(make().float(), x, device)
    turns = max(1, turns * BLOCK // x.shape[-1])
    return in_time(row, live, x, turns)


def of_listeners(count, turns=TURNS, device=None):
    """So many listeners with two ears each at once; alike, they read alike."""
    x = noise(1, 2, BLOCK).repeat(count, 1, 1)
    live, captured = hosted(Moore2016(FS), x, device)
    heard = given(live, x)
    apart = distance(heard, [[v[:1].expand_as(v) for v in y] for y in heard])
    held = captured and apart <= SINGLE
    return in_time(Row(f"Moore2016, {count} listeners", held, single=apart), live, x, turns)


def of_kernel(name, device="cuda"):
    """A kernel gives the numbers of the plain form on the CPU."""
    from tests.dsp.kernels.without_gpu import CASES, FULL, distances  # imports Triton

    single, double = distances(CASES[name], FULL, device)
    held = single <= SINGLE and double <= DOUBLE
    return Row(f"kernel {name}", held, single=single, double=double)


def of_gradient(name, device="cuda"):
    """The gradient of all that a model gives of 0.2 s is that of the CPU."""
    make, shape = MODELS[name]
    found = []
    for where in ("cpu", device):
        x = noise(*shape, FS // 5).double().to(where).requires_grad_()
        y = fields(make().double().to(where)(x))
        torch.stack([v.sum() for v in y if v.requires_grad]).sum().backward()
        found.append([[x.grad.cpu()]])
    far = distance(found[1], found[0])
    return Row(f"{name}, gradient", far <= DOUBLE, double=far)


def in_time(row, live, x, turns):
    """The same with times at the real pace: an idle GPU slows its clock, which is part of it."""
    block_s = x.shape[live.stage.time_dim] / FS
    times = []
    due = time.perf_counter()
    for _ in range(turns):
        due += block_s
        time.sleep(max(0.0, due - time.perf_counter()))
        began = time.perf_counter()
        live(x)
        times.append(time.perf_counter() - began)
    p50, p99 = (1000 * t for t in np.percentile(times, (50, 99)))
    return replace(row, holds=row.holds and p99 < 1000 * block_s, p50_ms=p50, p99_ms=p99)


def launches(stage, x, device):
    """How much a device is given to do for a block."""
    live = Stream(stage if device is not None else stage.to("cuda"), without(x.shape, -1))
    there = x.to(live.stage.device)
    with torch.no_grad():
        live(there)
        with Launches() as counted:
            live(there)
    return counted.count


def of_engine(run_in, device="cuda"):
    """An engine with its models there reads as one on the CPU."""
    read = []
    for where in ("cpu", device):
        source = SignalSource([*demo_sound(), Noise(level_db=50.0)], FS, 1.0, paced=False)
        engine = Engine(source, Moore2016(FS), device=where, run_in=run_in, ladder=())
        with engine:
            assert engine.wait(60), engine.error
        read.append(engine.history.read())
    names = ("stl", "ltl")
    expected = [[torch.from_numpy(read[0][name].copy()) for name in names]]
    far = distance([[torch.from_numpy(read[1][name].copy()) for name in names]], expected)
    told = [event for event in engine.events if event.kind == "compute"]
    words = {"engine": "its own thread", "callback": "the callback"}
    return Row(f"Engine, {words[run_in]}", far <= SINGLE and not told, single=far)


def noise(*shape):
    return 0.02 * torch.randn(shape, generator=torch.Generator().manual_seed(0))


def length(make):
    """Samples of 10 ms, or of one of the model's blocks where those are longer."""
    block = make().block_size
    return max(1, BLOCK // block) * block


def rows() -> Iterator[Row]:
    """All of them."""
    from tests.dsp.kernels.without_gpu import CASES as KERNELS

    yield from map(of_stage, CASES)
    yield from map(of_kernel, KERNELS)
    yield from map(of_model, MODELS)
    yield from map(of_listeners, LISTENERS)
    yield from map(of_gradient, LEARNED)
    yield from map(of_engine, ("engine", "callback"))
