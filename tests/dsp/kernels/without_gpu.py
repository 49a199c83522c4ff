"""The kernels for a GPU, tried without one: programs of their own, which give JSON.

With TRITON_INTERPRET=1, which Triton reads when a kernel is made, `python -m
tests.dsp.kernels.without_gpu interpreted float64` runs each by the interpreter on one small shape
and gives how far it is from the plain form, re the largest number, in that dtype or several, and
how far a block of a model is that was captured with the kernels in it. `make cuda` runs them on
more rows and samples. Without it, `... compiled` compiles each for three kinds of GPU, in float64
for one of them, and gives what `cuobjdump` says of the machine code.
"""

import json
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
import triton
from torch.utils._pytree import tree_leaves
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from triton.runtime.interpreter import InterpretedFunction

from amt_stream import BS1770, HostedStream, Stream, ZwickerLoudness
from amt_stream.dsp.functional.adaptation import Loops, adaptation_loops
from amt_stream.dsp.functional.compiler import dispatch, gpu, gpu_kernels, gpu_loudness_kernels
from amt_stream.dsp.functional.excitation import Filters, lower_skirts
from amt_stream.dsp.functional.filters.direct_form import direct_form
from amt_stream.dsp.functional.filters.fir import windows
from amt_stream.dsp.functional.filters.first_order import first_order
from amt_stream.dsp.functional.filters.state_space import state_space
from amt_stream.dsp.functional.filters.svf import svf
from amt_stream.dsp.functional.group_skirts import Groups, group_skirts
from amt_stream.dsp.functional.loudness import agc
from amt_stream.dsp.functional.modulation import (
    Readout,
    band_pass_bank,
    band_passes,
    modulation_poles,
    one_pole_bank,
)
from amt_stream.dsp.functional.relaxation import relax
from amt_stream.dsp.functional.zwicker import loudness_pattern, third_octave_powers
from amt_stream.dsp.functional.zwicker_decay import decayed
from amt_stream.dsp.scales import erb, erb_number_to_hz
from amt_stream.dsp.stages.moore.excitation import CAMS, grouped
from tests.recorder import Recorder

ARCHITECTURES = (75, 90, 120)


def noise(*shape, seed=0):
    source = torch.Generator("cpu").manual_seed(seed)
    x = torch.randn(*shape, generator=source, dtype=torch.float64, device="cpu")
    return x.to(torch.get_default_device())


class Size(NamedTuple):
    """Of the sounds: more rows than a program has lanes, if there are 11 and three channels."""

    rows: int
    time: int


SMALL, FULL = Size(2, 4), Size(11, 30)


def loops(dtype, size):
    """Silence, soft and loud sound; channels that differ."""
    x = noise(size.rows, 3, size.time).square()
    x[:, :, 2:3] = 0
    floor, rates = torch.tensor([1e-3, 1e-4, 1e-3]), torch.tensor([0.02, 0.005, 0.001])
    overshoot = torch.tensor([[9.0, 8.0, 5.0], [2.0, 3.0, 4.0], [9.0, 9.0, 9.0]])
    begun = noise(size.rows, 3, 3, seed=1).square()
    zi = torch.stack([0.1 + begun, torch.zeros_like(begun)], -1)
    corr, mult = torch.tensor([0.1, 0.2, 0.3]), torch.tensor(100.0)
    x, zi, *tables = (t.to(dtype) for t in (x, zi, floor, rates, overshoot, corr, mult))
    free = Loops(tables[0], tables[1], None, *tables[3:])
    return [adaptation_loops(x, form, zi) for form in (Loops(*tables), free)]


def automatic_gain(dtype, size):
    x = noise(size.rows, size.time, 17).square().to(dtype)
    return agc(x, torch.tensor([0.3, 0.04], dtype=dtype), x[:, 0] / 2)


def relaxation(dtype, size):
    x = noise(4 * size.rows, size.time).to(dtype)
    rate = (0.1 * noise(*x.shape, seed=1).square()).clamp(max=1)
    return relax(x, rate.to(dtype), x[:, 0])


def low_passes(dtype, size):
    x, zi = noise(size.rows, 5, size.time).to(dtype), noise(size.rows, 5, 2, seed=1).to(dtype)
    g = torch.tensor([0.1, 0.2, 0.3, 0.01, 0.001], dtype=dtype)
    plain = first_order(x, g, zi, False, True)
    return plain, first_order(x, g[3], zi, True, False)


def banks(dtype, size):
    x = noise(size.rows, 4, size.time).to(dtype)
    center, width = torch.tensor([5.0, 20.0]).double(), torch.tensor([5.0, 10.0]).double()
    low, scale = torch.tensor([0.01], dtype=dtype), torch.tensor([2.0, 0.7], dtype=dtype)
    counts = torch.tensor([3, 2, 1, 3])
    readout = Readout(scale, torch.tensor([False, True]), counts)
    zi = noise(size.rows, 4, 1, 2).to(dtype), noise(size.rows, 4, 2, 2, seed=1).to(dtype)
    complex_ones = type(modulation_poles(center, width, 1000.0))(
        *(t.to(dtype) for t in modulation_poles(center, width, 1000.0))
    )
    found = band_passes(center / 300, width / 300)
    real_ones = type(found)(*(t.to(dtype) for t in found))
    four = noise(size.rows, 4, 2, 2, 2, seed=2).to(dtype)
    return [
        one_pole_bank(x, low, complex_ones, readout, zi),
        band_pass_bank(x, low, real_ones, readout, (zi[0], four)),
        band_pass_bank(x, low[:0], real_ones, readout, (zi[0][..., :0, :], four)),
    ]


def third_octaves(dtype, size):
    x = noise(size.rows, 12 * size.time).to(dtype)
    poles = torch.tensor([-1.8, 0.9]).repeat(3)[:, None] * torch.linspace(0.9, 1, 12)
    gain, weight = torch.linspace(0.5, 1, 12), torch.linspace(0.01, 0.1, 12)
    poles, gain, weight = poles.double(), gain.double(), weight.double()
    return [
        third_octave_powers(x, poles, gain, weight, noise(size.rows, 9, 12, seed=1)),
        third_octave_powers(x, poles, gain, None, noise(size.rows, 6, 12, seed=1)),
    ]


def decay(dtype, size):
    core = noise(2, size.time, 21).square().to(dtype)
    coefficients = torch.tensor([0.99, 0.02, 0.98, 0.01, 0.97, 0.95]).double()
    begun = torch.tensor([True, False])
    return decayed(core, coefficients, noise(2, 3, 21, seed=1).square(), begun)


def gradient_of_decay(dtype, size):
    """Rising, falling and equal values; rows that begin, and those that go on."""
    with torch.inference_mode(False), torch.enable_grad():
        core, zi = noise(2, size.time, 21).square().to(dtype), noise(2, 3, 21, seed=1).square()
        core[:, 2] *= 0.01
        coefficients = torch.tensor([0.99, 0.02, 0.98, 0.01, 0.97, 0.95]).double()
        given = core.requires_grad_(), zi.requires_grad_()
        y = decayed(core, coefficients, zi, torch.tensor([True, False]))
        slopes = noise(2, size.time, 21, seed=2).to(dtype), noise(2, 3, 21, seed=3)
        return torch.autograd.grad(y, given, slopes)


def pattern(dtype, size):
    core = noise(1, size.time, 20, seed=3).square().to(dtype)
    core[:, 2:3] = 0
    core[:, :, 4] *= 20
    tables = ZwickerLoudness(True).to(dtype).tables()
    samples = loudness_pattern(core, tables, True)
    return samples if size == SMALL else [samples, loudness_pattern(core, tables)]


def skirts(dtype, size):
    f, fc = torch.linspace(20, 2000, 40), torch.linspace(100, 3000, 33)
    x = noise(size.rows, 40, seed=1).square()
    below = torch.searchsorted(f, fc)
    filters = Filters(f.to(dtype), fc.to(dtype), (4 / erb(fc)).to(dtype), below)
    return lower_skirts(x.to(dtype), (60 + 10 * x).to(dtype), filters)


def skirts_of_groups(dtype, _):
    """Loud and soft frames: flat skirts, where components go one by one, and short ones."""
    f, fc = np.arange(40.0, 1500.0, 15.0), erb_number_to_hz(CAMS[:40])
    tables = {k: torch.as_tensor(v) for k, v in grouped(f, fc, 0.25).items()}
    groups = Groups(*(tables[name] for name in Groups._fields))
    groups = Groups(*(t.to(dtype) if t.is_floating_point() else t for t in groups))
    x = noise(3, len(f), seed=1).square() * torch.tensor([[1e-3], [1e4], [1e12]])
    density = noise(3, len(groups.middle), seed=2).square() * torch.tensor([[1e-3], [1e5], [1e13]])
    # Apart, or the loud ones would hide what the soft ones differ by.
    return [group_skirts(*(v[n].to(dtype) for v in (x, density)), groups) for n in range(3)]


def sections(dtype, size):
    """Of first and of second order."""
    x, a = (
        noise(size.rows, 7, size.time).to(dtype),
        torch.tensor([[1, -1.6, 0.7], [1, 0.3, 0.1]], dtype=dtype),
    )
    b, zi = noise(2, 3, seed=1).to(dtype), noise(size.rows, 7, 2, 2, seed=2).to(dtype)
    once = b[:, :2].contiguous(), a[:, :2] / 2 + 0.5
    return [direct_form(x, b, a, zi), direct_form(x, *once, zi[..., :1])]


def variable_sections(dtype, size):
    x, zi = noise(size.rows, 7, size.time).to(dtype), noise(size.rows, 7, 2, 2, seed=1).to(dtype)
    g, k = noise(7, 2, seed=2).square().to(dtype), (1 + noise(7, 2, seed=3).square()).to(dtype)
    return svf(x, g, k, noise(7, 2, 3, seed=4).to(dtype), zi)


def systems_of_one_state(dtype, size):
    x, zi = noise(size.rows, 4, size.time).to(dtype), noise(size.rows, 4, 1, seed=1).to(dtype)
    a, b, c, d = (noise(4, 1, seed=n).tanh().to(dtype) for n in range(2, 6))
    return state_space(x, a[..., None], b, c, d[:, 0], zi)


def sums_of_windows(dtype, size):
    x, bank = noise(size.rows, 10 + size.time).to(dtype), noise(4, 9, seed=1).to(dtype)
    return [windows(x, bank, 1), windows(x, bank[:1], 1), windows(x[:, :12], bank, 3)]


CASES = {
    "adapt": loops,
    "agc": automatic_gain,
    "bank": banks,
    "decayed": decay,
    "decayed_backward": gradient_of_decay,
    "direct_form": sections,
    "first_order": low_passes,
    "first_state": systems_of_one_state,
    "pattern": pattern,
    "group_skirts": skirts_of_groups,
    "relax": relaxation,
    "skirts": skirts,
    "svf": variable_sections,
    "third_octaves": third_octaves,
    "windows": sums_of_windows,
}


def replace_words_once():
    """Triton replaces the words of its language at a launch, and anew at each call in it.

    For a function that stands beside the kernels once is enough, and takes a quarter less time.
    """
    anew = InterpretedFunction.__call__

    def called(function, *given, **named):
        if function.fn.__module__ in {gpu_kernels.__name__, gpu_loudness_kernels.__name__}:
            return function.rewrite()(*given, **named)
        return anew(function, *given, **named)

    InterpretedFunction.__call__ = called


BOTH = torch.float32, torch.float64


def distances(case, size=SMALL, device="cpu", dtypes=BOTH):
    """Of the kernels in these dtypes from the plain form in float64, re the largest."""
    plain = tree_leaves(case(torch.float64, size))
    gpu.DEVICES.add(device)
    found = []
    for dtype in dtypes:
        far = 0.0
        with torch.device(device):
            y = tree_leaves(case(dtype, size))
        for a, b in zip(y, plain, strict=True):
            if a is not None and b.numel():
                far = max(far, ((a.cpu() - b).abs().max() / b.abs().max()).item())
        found.append(far)
    gpu.DEVICES.discard("cpu")
    return found


def captured():
    """How far a captured block of a model is from the model, with the kernels in its graph."""
    model = BS1770(8000)
    x = [noise(1, 2, model.block_size, seed=n).float() for n in range(3)]
    plain = Stream(model, (1, 2))
    expected = [plain(v) for v in x]
    gpu.DEVICES.add("cpu")
    device = Recorder()
    live = HostedStream(model, (1, 2), device)
    assert live.capture(model.block_size)
    found = [live(v) for v in x]
    assert device.replays == len(x)
    far = 0.0
    for a, b in zip(tree_leaves(found), tree_leaves(expected), strict=True):
        far = max(far, ((a - b).abs().max() / b.abs().max()).item())
    return far


def kind(v):
    """What Triton calls the type of an argument."""
    if not isinstance(v, torch.Tensor):
        return "i32"
    words = {torch.float32: "fp32", torch.float64: "fp64", torch.int64: "i64", torch.bool: "i1"}
    return "*" + words[v.dtype]


def machine_code(name, given, constants, architecture):
    """What `cuobjdump` says of a kernel, as one compiles it for these arguments."""
    kernel = gpu.kernel_named(name)
    constants = {"LANES": gpu.LANES, "num_warps": 1} | constants
    warps = constants.pop("num_warps")
    names = [n for n in kernel.arg_names if n not in constants]
    signature = dict(zip(names, map(kind, given), strict=True))
    signature |= dict.fromkeys(constants, "constexpr")
    made = triton.compile(
        ASTSource(kernel, signature, constants),
        target=GPUTarget("cuda", architecture, 32),
        options={"num_warps": warps},
    )
    tool = Path(triton.__file__).parent / "backends/nvidia/bin/cuobjdump"
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(made.asm["cubin"])
        file.flush()
        command = [str(tool), "-res-usage", file.name]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout


ALL = {torch.float32: ARCHITECTURES, torch.float64: ARCHITECTURES[1:2]}


def compiled(case):
    """Machine code of each kernel that a case launches; in float64 for the middle one alone."""
    launches = {}

    def launch(kernel, grid, *given, **constants):
        for architecture in ALL[dtype]:
            key = architecture, kernel, *map(kind, given), *constants.items()
            launches[key] = kernel, given, constants, architecture

    gpu._launch = launch
    gpu.DEVICES.add("cpu")
    for dtype in ALL:
        case(dtype, SMALL)
    gpu.DEVICES.discard("cpu")
    return [machine_code(*each) for each in launches.values()]


if __name__ == "__main__":
    dispatch._KINDS = ()  # so that the plain form runs where a compiled one would
    form, *dtypes = sys.argv[1:]
    of = compiled
    if form == "interpreted":
        replace_words_once()
        of = partial(distances, dtypes=[getattr(torch, name) for name in dtypes])
    with torch.inference_mode():
        told = {name: of(case) for name, case in CASES.items()}
        if form == "interpreted":
            told["captured"] = captured()
    json.dump(told, sys.stdout)
