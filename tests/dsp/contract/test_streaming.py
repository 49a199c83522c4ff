"""Stream, Chain, Parallel, Rebuffer and aligned: what they promise beside the numbers."""

import copy
import doctest
import io
import subprocess
import sys
from fractions import Fraction

import numpy as np
import pytest
import torch

import amt_stream
from amt_stream import (
    BS1770,
    Chain,
    Delay,
    EarFilter,
    Moore2016,
    Moore2016AGC,
    Parallel,
    Rebuffer,
    Resample,
    Stage,
    Stream,
)
from amt_stream.dsp.contract import rows_of
from amt_stream.dsp.stream import aligned
from amt_stream.dsp.streaming import fields, joined, with_time
from amt_stream.meters import catalog


class Mean(Stage):
    """Running mean with a memory in float64, and a gain that can be learned."""

    keeps_double = ("sum", "scale")

    def __init__(self):
        super().__init__()
        self.register_table("scale", torch.tensor([1 / 3]).double().numpy())
        self.gain = torch.nn.Parameter(torch.tensor(2.0))

    def initial_state(self, shape):
        return {"sum": self.state_like("sum", shape)}

    def step(self, x, state):
        total = state["sum"][..., None] + x.cumsum(-1)
        return (self.gain * self.scale * total).to(self.dtype), {"sum": total[..., -1]}


def test_float64_states_and_tables_stay_so():
    live = Stream(Mean(), (2,)).float()
    assert live.state["sum"].dtype == torch.float64
    assert live.stage.scale.dtype == torch.float64
    assert live(torch.ones(2, 3)).dtype == torch.float32
    chained = Stream(Chain(a=Delay(1), mean=Mean()), (2,)).double().float()
    assert chained.state["mean/sum"].dtype == torch.float64
    assert chained.state["a/past"].dtype == torch.float32


def test_tables_keep_their_design_precision_through_float32():
    exact = EarFilter().double().partitions
    there_and_back = EarFilter().float().double().partitions
    assert torch.equal(exact, there_and_back)
    assert not torch.equal(exact, exact.float().double())


def test_half_precision_is_refused_and_changes_nothing():
    live = Stream(EarFilter(), (2,))
    for convert in (live.half, live.bfloat16, live.stage.half):
        with pytest.raises(TypeError, match="need float32 or float64"):
            convert()
    assert live.stage.partitions.dtype == torch.float32


def test_tables_come_back_from_the_meta_device():
    with torch.device("meta"):
        stage = EarFilter()
    assert torch.equal(stage.to_empty(device="cpu").partitions, EarFilter().partitions)


def test_a_checkpoint_of_a_stage_holds_its_parameters_only():
    assert list(Mean().state_dict()) == ["gain"]
    assert list(Moore2016(48000).state_dict()) == []


def test_state_stays_where_it_is():
    live = Stream(Moore2016(48000), (1, 2))
    before = {key: value.data_ptr() for key, value in live.state.items()}
    with torch.inference_mode():
        live(torch.randn(1, 2, 480))
    live.reset()
    live(torch.randn(1, 2, 480))
    assert before == {key: value.data_ptr() for key, value in live.state.items()}


def test_a_stream_made_in_inference_mode_runs_outside_it():
    stage = Mean()
    with torch.inference_mode():
        live = Stream(stage, (2,))
    live(torch.ones(2, 3)).sum().backward()
    assert live.stage.gain.grad is not None


def test_gradients_end_at_the_edge_of_a_block():
    live = Stream(Mean(), (2,))
    first = torch.ones(2, 3, requires_grad=True)
    live(first)
    live(torch.ones(2, 3)).sum().backward()
    assert first.grad is None
    assert live.stage.gain.grad is not None


def test_reset_of_some_rows():
    live = Stream(Delay(2), (3,))
    live(torch.ones(3, 2))
    live.reset(torch.tensor([False, True, False]))
    assert live(torch.zeros(3, 2)).tolist() == [[1, 1], [0, 0], [1, 1]]
    with pytest.raises(ValueError, match=r"boolean mask of shape \(3,\)"):
        live.reset(torch.tensor([0, 1, 0]))


@pytest.mark.parametrize(
    ("x", "error", "words"),
    [
        (torch.zeros(2, 2, 48), ValueError, r"made for shape \(1, 2\) .* given \(2, 2\)"),
        (torch.zeros(1, 2, 50), ValueError, "multiples of 48 .* given 50: put a Rebuffer"),
        (torch.zeros(1, 2, 0), ValueError, "multiples of 48"),
        (torch.zeros(1, 2, 48, dtype=torch.complex64), TypeError, "takes a real tensor"),
        (torch.zeros(1, 1, 48), ValueError, r"x\.expand\(-1, 2, -1\)"),
    ],
)
def test_a_wrong_block_is_refused(x, error, words):
    live = Stream(Moore2016(48000), (1, 2))
    with pytest.raises(error, match=words):
        live(x)


def test_a_state_dict_of_another_shape_is_refused():
    saved = Stream(Delay(2), (3,)).state_dict()
    with pytest.raises(RuntimeError, match="size mismatch"):
        Stream(Delay(2), (4,)).load_state_dict(saved)


def pickled(module):
    file = io.BytesIO()
    torch.save(module, file)
    file.seek(0)
    return torch.load(file, weights_only=False)


@pytest.mark.parametrize("again", [copy.deepcopy, pickled])
def test_a_stream_can_be_copied_in_mid_sound(again):
    x = torch.randn(1, 2, 960) * 0.01
    live = Stream(Moore2016(48000), (1, 2))
    live(x)
    twin = again(live)
    assert torch.equal(live(x).stl, twin(x).stl)


RESUME = """
import sys, torch
from amt_stream import Moore2016, Rebuffer, Stream
door = Rebuffer(Stream(Moore2016(44100).double(), (1, 2)).double())
door.load_state_dict(torch.load(sys.argv[1]))
x = torch.load(sys.argv[2])
with torch.no_grad():
    torch.save(tuple(door.push(x))[:4], sys.argv[3])
"""


def test_a_saved_stream_goes_on_in_a_new_process(tmp_path, forks):
    x = 0.02 * torch.randn(1, 2, 22050, dtype=torch.float64)
    door = Rebuffer(Stream(Moore2016(44100).double(), (1, 2)))
    cut = 10007  # in the middle of a block
    with torch.no_grad():
        door.push(x[..., :cut])
        torch.save(door.state_dict(), tmp_path / "state.pt")
        expected = door.push(x[..., cut:])
    torch.save(x[..., cut:], tmp_path / "rest.pt")
    files = [tmp_path / name for name in ("state.pt", "rest.pt", "out.pt")]
    done = forks.run(RESUME, *files, options=["code"])
    assert done.returncode == 0, done.stderr
    for a, b in zip(torch.load(files[2]), expected, strict=False):
        assert (a - b).abs().amax() <= 1e-10 * b.abs().amax()


def test_chain_adds_latencies_at_the_rate_where_they_arise():
    chain = Chain(resample=Resample(44100, 32000), wait=Delay(32))
    assert chain.ratio == Fraction(320, 441)
    assert chain.latency == Fraction(441, 5) + 32 * Fraction(441, 320)
    assert chain.block_size == 441
    nested = Chain(inner=chain, wait=Delay(1))
    assert nested.latency == chain.latency + Fraction(441, 320)
    assert list(nested.initial_state((2,))) == [
        "inner/resample/past",
        "inner/wait/past",
        "wait/past",
    ]


class Frames(Stage):
    """Every fourth sample, as a frame."""

    block_size = 4
    ratio = Fraction(1, 4)
    latency = Fraction(3)

    def initial_state(self, shape):
        return {}

    def step(self, x, state):
        return x[..., ::4], state


def test_what_does_not_fit_together_is_refused():
    both = Parallel(a=Delay(0), b=Delay(1))
    with pytest.raises(ValueError, match="which only the last stage may do"):
        Chain(both=both, more=Delay(1))
    with pytest.raises(ValueError, match="time on axis -2, the stage before it puts it on axis -1"):
        Chain(a=Delay(1), b=Delay(1, time_dim=-2))
    with pytest.raises(TypeError, match="'a' is a float, not a Stage or a torch module"):
        Chain(a=0.5)
    with pytest.raises(ValueError, match="at least one stage"):
        Chain()
    with pytest.raises(ValueError, match="align them by time"):
        Parallel(a=Delay(0), b=Frames())
    with pytest.raises(
        ValueError, match=r"'b' would have to wait 1/2 outputs: insert a Delay\(2\)"
    ):
        Parallel(a=Chain(d=Delay(6), f=Frames()), b=Chain(d=Delay(4), f=Frames()))
    with pytest.raises(ValueError, match="returns a NamedTuple: put it last in a Chain"):
        Parallel(a=both, b=Delay(0))
    with pytest.raises(ValueError, match="0 or more samples, given -1"):
        Delay(-1)


def test_the_remedy_a_parallel_names_works():
    mended = Parallel(
        a=Chain(d=Delay(6), f=Frames()), b=Chain(fit=Delay(2), d=Delay(4), f=Frames())
    )
    y = mended(torch.arange(40.0).expand(2, -1))
    assert torch.equal(y.a, y.b)


def test_rebuffer_hands_on_a_fixed_number_of_blocks():
    door = Rebuffer(Stream(Delay(1), (1,)), blocks=5)
    assert door.push(torch.arange(4.0)[None]) is None
    assert door.push(torch.arange(4.0, 12.0)[None]).shape == (1, 10)
    assert door.flush().tolist() == [[9.0, 10.0, 11.0]]
    with pytest.raises(ValueError, match=r"made for shape \(1,\) .* given \(2,\)"):
        door.push(torch.zeros(2, 4))
    with pytest.raises(ValueError, match="at least 1 block"):
        Rebuffer(Stream(Delay(1), (1,)), blocks=0)
    with pytest.raises(ValueError, match=r"takes a whole number, .* given 1\.5"):
        Delay(1.5)


@pytest.mark.parametrize(
    ("build", "said"),
    [
        (
            lambda: Stream(torch.nn.ReLU(), (1,)),
            r"Stream takes a Stage, given ReLU: a plain torch m",
        ),
        (lambda: Stream(Stream(Delay(1), (1,)), (1,)), "given Stream: give its stage"),
        (lambda: Stream(Delay(1), 2), r"Stream of Delay takes a shape .* given 2: give a sequence"),
        (
            lambda: Rebuffer(Delay(1)),
            r"Rebuffer takes a Stream, given Delay: give Stream\(stage, sh",
        ),
        (lambda: aligned(3, torch.zeros(1, 2)), r"aligned takes a Stage, given int: give a Stage"),
        (lambda: aligned(Delay(1), np.zeros((1, 2))), r"not ndarray: give torch\.from_numpy\(x\)"),
        (lambda: Delay(1)(np.zeros((1, 2))), r"takes a real tensor, not ndarray: give torch"),
        (lambda: Delay(1)([[0.0, 1.0]]), r"takes a real tensor, not list: give torch\.tensor\(x\)"),
    ],
)
def test_what_cannot_be_run_is_refused_with_what_to_give(build, said):
    with pytest.raises(TypeError, match=said):
        build()


def lengths_of_blocks(door, chunks):
    """How many samples each call of the stream was given."""
    seen = []
    handle = door.live.stage.register_forward_hook(lambda _, args, y: seen.append(len(args[0][0])))
    y = torch.cat([y for chunk in chunks if (y := door.push(chunk)) is not None], -1)
    handle.remove()
    return seen, y


def test_rebuffer_hands_on_together_the_short_blocks_that_a_chunk_completes():
    """More than 2048 samples would not be short, and gradients end at the edge of each block."""
    x = torch.arange(3000.0)[None]
    for chunks, expected in ((x[:, :100].split(25, -1), [20, 30, 20, 30]), ([x], [2040, 960])):
        door = Rebuffer(Stream(Delay(10), (1,)), 10)
        with torch.no_grad():
            seen, y = lengths_of_blocks(door, chunks)
        assert seen == expected
        assert torch.equal(y[:, 10:], x[:, : y.shape[-1] - 10])
    seen, _ = lengths_of_blocks(Rebuffer(Stream(Delay(10), (1,)), 10), x[:, :100].split(25, -1))
    assert seen == [10] * 10


@pytest.mark.parametrize("name", catalog.names())
def test_blocks_handed_on_together_give_the_same_bits(name):
    model = catalog.entry(name).build(48000)
    shape = 1, rows_of(model, 1)
    x = 0.02 * torch.randn(*shape, 9600, generator=torch.Generator().manual_seed(0))
    door, live = Rebuffer(Stream(model, shape)), Stream(model, shape)
    with torch.inference_mode():
        outputs = [y for chunk in x.split(240, -1) if (y := door.push(chunk)) is not None]
        whole = x[..., : x.shape[-1] // model.block_size * model.block_size]
        expected = map(live, whole.split(model.block_size, -1))
        got, expected = (joined(*some, dims=model.out_time_dim) for some in (outputs, expected))
    assert all(map(torch.equal, fields(got), fields(expected)))


def test_rebuffer_returns_no_view_of_what_it_holds():
    door = Rebuffer(Stream(Delay(0), (1,)), blocks=4)
    door.push(torch.ones(1, 2))
    y = door.push(torch.ones(1, 3))
    door.push(torch.zeros(1, 2))
    assert torch.all(y == 1)


def test_aligned_takes_out_the_latency():
    x = torch.arange(10.0)[None]
    assert torch.equal(aligned(Delay(4), x), x)
    click = torch.zeros(1, 2, 24000)
    click[..., 12000] = 1.0
    y = aligned(Moore2016(48000), click)
    assert y.stl.shape == (1, 500)
    # A click at 250 ms: instantaneous loudness, and so the rise of STL, is greatest there.
    assert int(y.stl[0].diff().argmax()) + 1 == 250


FRESH = """
import sys
import amt_stream
assert not {"torch", "sounddevice"} & set(sys.modules)
assert amt_stream.dsp.scales.sone_to_phon(1.0, "iso532-3") == 40
assert callable(amt_stream.meters.rows.header)
assert "torch" not in sys.modules
assert amt_stream.dsp.stages.Gain.__name__ == "Gain"
assert amt_stream.Moore2016 is amt_stream.dsp.models.Moore2016
assert {"Moore2016", "erb2fc"} <= set(dir(amt_stream))
"""


def test_names_and_submodules_are_found_in_a_fresh_process_without_importing_torch_early():
    subprocess.run([sys.executable, "-c", FRESH], check=True)
    with pytest.raises(AttributeError, match="Moore2017"):
        amt_stream.Moore2017  # noqa: B018


def test_the_example_of_the_model_runs():
    assert doctest.testmod(amt_stream.dsp.models.moore2016).attempted > 0


@pytest.mark.parametrize("shape", [(1, 2, 0), (0, 2, 480)])
def test_nothing_at_all_is_refused(shape):
    with pytest.raises(ValueError, match=r"at least one sample|no empty axis"):
        Moore2016(48000)(torch.zeros(shape))


def test_plain_torch_around_a_stage():
    stage = Moore2016(32000, specific_loudness=True)
    assert with_time((2, 3), -2, 7) == (2, 7, 3)
    assert stage.out_time_dim.specific_loudness == -2
    text = repr(stage)
    assert "EarFilter(fs=32000, field='free', phase='mixed')" in text
    assert "Resample" not in text
    assert isinstance(stage.train().eval().requires_grad_(False), Moore2016)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"field": "far"}, "field is 'far': give free, diffuse or eardrum"),
        ({"ear_filter": "zero"}, "ear_filter is 'zero': give mixed or linear"),
        ({"accuracy": "rough"}, "accuracy is 'rough': give exact, reference or coarse"),
        ({"constants": "ansi"}, "constants is 'ansi': give iso or author"),
        ({"fs": 44056}, "nearest rates that work are 44050 and 44080 Hz"),
    ],
)
def test_an_unknown_option_of_the_model_is_refused(options, words):
    with pytest.raises(ValueError, match=words):
        Moore2016(**options)


@pytest.mark.parametrize("kind", [Chain, Parallel])
def test_stages_of_several_dtypes_work_in_the_widest(kind):
    whole = kind(a=Moore2016AGC(), b=Moore2016AGC(learnable=True, dtype=torch.float64))
    assert {m.dtype for m in whole.modules()} == {torch.float64}
    live = Stream(whole, (2, 3))
    assert {v.dtype for v in live.state.values()} == {torch.float64}
    assert fields(live(torch.ones(2, 4, 3)))[-1].dtype == torch.float64


def test_what_stays_float64_comes_back_from_the_meta_device():
    stage = Mean().to("meta").to_empty(device="cpu")
    assert stage.scale.equal(Mean().scale)
    live = Stream(Mean(), (2,)).to("meta").float().to_empty(device="cpu")
    assert live.state["sum"].dtype == torch.float64


def test_a_step_from_the_input_before_the_beginning_is_no_peak():
    live = Stream(Chain(meter=BS1770(layout="mono")), (1,))
    live(torch.full((1, 480), 0.5))
    live.begin_now()
    assert live(torch.full((1, 480), -0.5)).true_peak.max() == pytest.approx(0.5, abs=2e-3)
