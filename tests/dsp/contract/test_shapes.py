"""What does not fit is refused in a sentence, in one place, before it reaches a kernel."""

import pytest
import torch

import amt_stream as amt
from amt_stream import Chain, Rebuffer, Stage, Stream
from tests.dsp.contract.test_module_contract import CASES


@pytest.mark.parametrize(
    ("stage", "shape", "words"),
    [
        (amt.Moore2016SpecificLoudness, (1, 75), "takes 150 on axis -1, given 75 in shape"),
        (amt.Moore2016SpecificLoudness, (1, 151), r"give \(\.\.\., time, 150\)"),
        (amt.BinauralLoudness, (2, 2, 4, 450), "takes 150 on axis -1, given 450"),
        (amt.MonauralLoudness, (2, 6, 3, 150), "takes 1 or 2 on axis -3, given 6"),
        (amt.Excitation, (2, 3, 961), "takes 960 on axis -1, given 961"),
        (amt.SpatialSmoothing, (3, 72), "takes 73 or more on axis -1, given 72"),
        (amt.King2019ModulationFilterbank, None, "takes any number on axis -2, given none"),
        (amt.Moore2016AGC, (0, 3), "at least one sample"),
        (amt.EarFilter, (0, 3), "takes no empty axis"),
    ],
)
def test_a_shape_that_does_not_fit_is_refused_in_a_sentence(stage, shape, words):
    make = stage if shape else lambda: stage(8000)
    with pytest.raises(ValueError, match=words):
        make()(torch.ones(shape or (16,)))


def test_a_stream_is_not_made_for_a_shape_that_its_stage_refuses():
    with pytest.raises(ValueError, match="MonauralLoudness takes 1 or 2 on axis -3, given 6"):
        Stream(amt.MonauralLoudness(1), (2, 6, 150))
    chain = Chain(levels=amt.ThirdOctaveLevels(), loudness=amt.Moore2016SpecificLoudness())
    for refused in (chain.initial_state, chain.check_shape, lambda s: Stream(chain, s)):
        with pytest.raises(ValueError, match=r"SpecificLoudness takes 150 .* given 28"):
            refused((2,))
    with pytest.raises(ValueError, match=r"SpecificLoudness takes 150 .* given 28"):
        chain(torch.zeros(2, 48))
    door = Rebuffer(Stream(amt.Moore2016(), (1, 2)))
    with pytest.raises(ValueError, match=r"x\.expand\(-1, 2, -1\)"):
        door.push(torch.zeros(1, 1, 32))


def test_thirty_million_channels_end_no_process():
    x = torch.tensor(60.0).expand(1, 30_000_000)
    with pytest.raises(ValueError, match="takes 150 on axis -1, given 30000000"):
        amt.Moore2016SpecificLoudness()(x)


class Named(Stage):
    """A stage for two ears or one, and bands; says itself what to do."""

    fixed_axes = {-3: (1, 2), -1: 4}  # noqa: RUF012 - as an embedder would write it
    time_dim = out_time_dim = -2

    def initial_state(self, shape):
        return {}

    def step(self, x, state):
        return x, state


def test_the_layout_is_the_remedy_unless_the_stage_has_one():
    with pytest.raises(ValueError, match=r"given 3 in shape \(3, time, 4\): give \(\.\.\., 1 or 2"):
        Named()(torch.zeros(3, 5, 4))
    stage = Named()
    stage.shape_remedy = "ask again"
    with pytest.raises(ValueError, match=r"given 5 in shape .*: ask again"):
        stage(torch.zeros(2, 3, 5))
    assert stage(torch.zeros(7, 1, 3, 4)).shape == (7, 1, 3, 4)


@pytest.mark.cases(11)
@pytest.mark.parametrize("name", CASES)
def test_integers_count_as_their_values(name):
    """Integer PCM gives what the same numbers in float32 give, and no integers."""
    case = CASES[name]
    stage = case.make().float()
    scale = 1000 if case.signal.__name__ == "noise" else 1
    x = (scale * case.signal(*case.shape)).round().clamp(max=32767).to(torch.int16)
    parts = case.parts(x)
    given, expected = stage(*parts), case.make().float()(*(v.float() for v in parts))
    for a, b in zip(leaves(given), leaves(expected), strict=True):
        assert a.dtype == torch.float32
        assert a.equal(b)


@pytest.mark.cases(40)
@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("dtype", [torch.bool, torch.complex64])
def test_what_is_no_real_number_is_refused(name, dtype):
    case = CASES[name]
    parts = case.parts(torch.zeros(case.shape))
    with pytest.raises(TypeError, match="takes a real tensor, not torch"):
        case.make().float()(*(part.to(dtype) for part in parts))


def leaves(y):
    """The tensors of an output as called: a tensor, a list, or a tuple."""
    return [y] if isinstance(y, torch.Tensor) else [v for v in y if v is not None]


def test_a_frame_to_go_on_from_has_to_fit():
    with pytest.raises(ValueError, match=r"last frame of shape \(3,\), given \(4,\)"):
        amt.Moore2016AGC()(torch.zeros(2, 3), state=torch.zeros(4))
    with pytest.raises(ValueError, match=r"given \(3,\) and \(4,\): give two equal shapes"):
        amt.BinauralInhibition()(torch.zeros(3), torch.zeros(4))
