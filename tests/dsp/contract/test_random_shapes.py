"""Random shapes for every exported stage and every function: no crash, and both forms agree.

The same with 2000 shapes for each is in `tests/soak/test_shapes.py`.
"""

import importlib
import inspect
import pkgutil

import pytest
import torch

from amt_stream.dsp import functional
from amt_stream.dsp.functional.banded import banded
from amt_stream.dsp.functional.excitation import lower_skirts
from amt_stream.dsp.functional.filters.direct_form import direct_form
from amt_stream.dsp.functional.filters.fir import fir
from amt_stream.dsp.functional.group_skirts import group_skirts
from amt_stream.dsp.functional.loudness import agc
from amt_stream.dsp.functional.relaxation import relax
from amt_stream.dsp.functional.spectrum import running_spectrum
from amt_stream.dsp.stages import Excitation
from tests.dsp.contract import random_shapes
from tests.dsp.contract.random_shapes import FUNCTIONS
from tests.dsp.contract.test_module_contract import CASES

ONE_FORM = {
    *("band_passes", "blocks", "cached_njit", "host_loop", "cascade_blocks", "first_order_gain"),
    *(
        "ending",
        "fit",
        "fit_state",
        "framed",
        "group_delay",
        "held_maximum",
        "in_bands",
        "kernel_named",
        "lanes_of",
        "last_axes",
        "make_ready",
        "masked_threshold",
        "partial_specific_loudness",
        "modulation_poles",
        "one_poles",
        "per_frame",
        "plan_rows",
    ),
    *(
        "run",
        "signal_axes",
        "state_space",
        "states",
        "svf_blocks",
        "whole_blocks",
    ),
    *("flushing_denormals", "keep_memory", "whole_frames", "work_alone"),
    *("by_parts", "differentiable", "possible", "serves", "svf_sections"),
    *("band_blocks", "filled_up", "refuse_short_products", "windows"),
    *("high_rate_gains", "neighbors", "weighting"),
}
"""Functions in torch or Python alone, which cannot read beyond an array."""


CALLED_WITH_WHAT_FITS = {
    *("cascade", "pole_cascade"),
    *("direct_form_in_place", "gammatone_sum_in_place", "envelopes_in_place"),
    *("roughness_in_place", "fluctuation_in_place", "tonal_and_noise_in_place"),
}
"""Compiled gradients and parts, which look at no shapes: those above them in FUNCTIONS, or the
stages, did. A trial of one of those finds these too. Those in place take what `Stream` has checked.
"""


def public_functions():
    run_by = (
        *(".ahead", ".dispatch", ".elementary", ".operators", ".tiles"),
        *(".private_numba", ".private_torch"),
    )
    for found in pkgutil.walk_packages(functional.__path__, "amt_stream.dsp.functional."):
        if found.name.endswith(run_by):
            continue
        module = importlib.import_module(found.name)
        for name, value in vars(module).items():
            own = inspect.isfunction(value) and value.__module__ == module.__name__
            if own and not name.startswith(("_", "plain_")):
                yield name


def test_every_public_function_is_tried_or_has_one_form():
    known = {*FUNCTIONS, *ONE_FORM, *CALLED_WITH_WHAT_FITS}
    assert set(public_functions()) == known, "FUNCTIONS of random_shapes.py, or ONE_FORM here"


def tried(forks, count, trace, *names, seed=1):
    """What a process that tries `count` shapes for each name found wrong."""
    done = forks.run(random_shapes.__file__, count, seed, trace, *names, options=["program"])
    *faults, last = done.stdout.decode().splitlines() or [""]
    at = trace.read_text(encoding="utf-8").splitlines()[-1:]
    assert done.returncode == 0, f"ended with {done.returncode} at {at}\n{done.stderr.decode()}"
    return faults, last


@pytest.mark.parametrize("names", [list(CASES), list(FUNCTIONS)], ids=["stages", "functions"])
def test_random_shapes_end_no_process_and_all_forms_agree(forks, tmp_path, names):
    faults, last = tried(forks, 5, tmp_path / "trace", *names)
    assert not faults, "\n".join(faults)
    trials, taken = (int(word) for word in last.split() if word.isdigit())
    assert trials > 2 * len(names)
    assert taken > trials / 5


F64 = torch.float64


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: fir(torch.ones(2, 3), torch.ones(4), torch.ones(2, 4)), r"zi has .*give \(2, 3\)"),
        (lambda: fir(torch.ones(3), torch.ones(4, dtype=F64), torch.ones(3)), "taps is .*float64"),
        (lambda: fir(torch.ones(3).half(), torch.ones(1), torch.ones(0)), "x is torch.float16"),
        (lambda: agc(torch.ones(3), torch.ones(2), torch.ones(3)), "give it 2 axes or more"),
        (lambda: agc(torch.ones(0, 3), torch.ones(2), torch.ones(3)), "1 or more on each axis"),
        (lambda: relax(torch.ones(3), torch.ones(4), torch.ones(())), "rate has shape"),
        (
            lambda: running_spectrum(*[torch.ones(2)] * 3, (1, 2), (16, 16), 2, torch.ones(2)),
            r"halves are \(1, 2\): give them in descending order",
        ),
        (
            lambda: direct_form(*(torch.ones(n) for n in ((9,), (2, 3), (2, 3), (1, 2)))),
            r"b has shape \(2, 3\): give \(1, 3\)",
        ),
    ],
)
def test_a_refusal_names_function_argument_and_what_fits(call, words):
    with pytest.raises(ValueError, match=words):
        call()


def test_indices_beyond_a_table_are_refused():
    """By their values, as a kernel takes them for places in an array."""
    stage, groups = Excitation("reference"), Excitation("coarse").groups()
    x, filters = torch.ones(1, 960), stage.filters()
    density = torch.ones(1, groups.middle.shape[0])
    for given in (x, x.clone().requires_grad_()):
        for by in (10_000, -10_000):
            wrong = filters._replace(components_below=filters.components_below + by)
            with pytest.raises(ValueError, match="are not numbers of 960 components"):
                lower_skirts(given, x, wrong)
        for wrong_groups in (
            groups._replace(ends=groups.ends + 1),
            groups._replace(ends=groups.ends.flip(0)),
            groups._replace(above=groups.above + 10_000),
            groups._replace(above=groups.above - 10_000),
            groups._replace(center=groups.center.flip(0)),
        ):
            with pytest.raises(ValueError, match="groups are not those of 960 components"):
                group_skirts(given, density, wrong_groups)
    for blocks in (stage.levels_blocks + 1000, -stage.levels_blocks, stage.levels_blocks.flip(1)):
        for given in (x, x.clone().requires_grad_()):
            with pytest.raises(ValueError, match="blocks are not those of a matrix"):
                banded(given, stage.levels, blocks, 960)
