"""`check_stage` passes a right stage and catches each kind of defect, seeded one by one."""

from fractions import Fraction

import pytest
import torch

from amt_stream.dsp.streaming import Stage, with_time
from amt_stream.dsp.testing import check_stage


class Smoother(Stage):
    """Mean of pairs, then a one-pole low-pass: a stage with a ratio, a block and a state."""

    block_size = 2
    ratio = Fraction(1, 2)

    def __init__(self):
        super().__init__()
        self.a = torch.nn.Parameter(torch.tensor(0.3))

    def initial_state(self, shape):
        return {"z": self.state_like("z", shape)}

    def out_shape(self, shape):
        return shape

    def step(self, x, state):
        z, outputs = state["z"], []
        for pair in x.unfold(-1, 2, 2).mean(-1).unbind(-1):
            z = z + self.a * (pair - z)
            outputs.append(z)
        return torch.stack(outputs, -1), {"z": z}


X = torch.randn(3, 2, 61, generator=torch.Generator().manual_seed(0))


def test_a_right_stage_passes():
    def reference(x):
        pairs = torch.nn.functional.pad(x, (0, x.shape[-1] % 2)).unfold(-1, 2, 2).mean(-1)
        n = pairs.shape[-1]
        a = torch.tensor(0.3, dtype=torch.float32).double()
        k = torch.arange(n)[:, None] - torch.arange(n)[None, :]
        weights = torch.where(k >= 0, a * (1 - a) ** k.clamp(min=0), 0)
        return pairs @ weights.T

    check_stage(Smoother, X, reference=reference)


class ForgottenState(Smoother):
    def step(self, x, state):
        y, _ = super().step(x, state)
        return y, state


class StateOffByOne(Smoother):
    def step(self, x, state):
        y, after = super().step(x, state)
        return y, {"z": y[..., -2] if y.shape[-1] > 1 else state["z"]} if after else after


class BatchLeak(Smoother):
    def step(self, x, state):
        y, after = super().step(x, state)
        return y - 1e-6 * y.mean(0, keepdim=True), after


class WholeBlockNormalization(Smoother):
    def step(self, x, state):
        y, after = super().step(x, state)
        return y / y.abs().amax(-1, keepdim=True).clamp(min=1e-9), after


class LookAhead(Smoother):
    """Hears the sample after its block; needs a block of 4 to have one at hand."""

    block_size = 4

    def step(self, x, state):
        y, after = super().step(x, state)
        ahead = x.unflatten(-1, (-1, 4))[..., 3]
        y = y.clone()
        y[..., ::2] += 1e-6 * ahead
        return y, after


class ChangedInput(Smoother):
    def step(self, x, state):
        y, after = super().step(x, state)
        if not x.requires_grad:
            x.mul_(0.5)
        return y, after


class StateInPythonAttribute(Smoother):
    last = 0.0

    def step(self, x, state):
        y, after = super().step(x, state)
        y = y + self.last
        self.last = 1e-3 * y[..., -1:].detach()
        return y, after


class LostTail(Smoother):
    def whole(self, x):
        return super().whole(x[..., : x.shape[-1] // 2 * 2])


class Float32State(Smoother):
    def initial_state(self, shape):
        return {"z": torch.zeros(shape)}

    def step(self, x, state):
        y, after = super().step(x, {"z": state["z"].double()})
        return y, {"z": after["z"].float()}


class RoundedState(Smoother):
    def step(self, x, state):
        y, after = super().step(x, state)
        return y, {"z": after["z"].float().to(y.dtype)}


class StateKeyAppears(Smoother):
    def step(self, x, state):
        y, after = super().step(x, state)
        return y, {**after, "new": y[..., -1]}


class StateOverwritten(Smoother):
    def step(self, x, state):
        y, after = super().step(x, state)
        state["z"].copy_(after["z"].detach())
        return y, after


class WrongRatio(Smoother):
    ratio = Fraction(1, 1)


class CutGradient(Smoother):
    def step(self, x, state):
        return super().step(x, {"z": state["z"].detach()})


class ForgottenAxis(Smoother):
    """Has a weight for each of two bands, and does not say so."""

    def step(self, x, state):
        y, after = super().step(x, state)
        return y * torch.tensor([1.0, 2.0], dtype=y.dtype)[:, None], after


class AxisNotRefused(Smoother):
    """Says that it fixes an axis, and takes any."""

    fixed_axes = {-2: 2}  # noqa: RUF012 - as an embedder would write it

    def checked(self, x):
        return x.to(self.dtype)


class AxisRefusedBySurprise(Smoother):
    """Refuses, in a form of its own, an axis of which it says nothing."""

    def initial_state(self, shape):
        if shape[-1] != 2:
            raise ValueError("two, please")
        return super().initial_state(shape)


class FormsApart(Smoother):
    """Another form than the one for gradients, right only for the bands it was tried with."""

    def step(self, x, state):
        y, after = super().step(x, state)
        if not torch.is_grad_enabled():
            y = torch.cat([y[..., :2, :], 2 * y[..., 2:, :]], -2)
        return y, after


class SwallowedNaN(Smoother):
    def step(self, x, state):
        return super().step(x.nan_to_num(0.0), state)


class SwallowedNaNLater(Smoother):
    """The next state forgets it, though it holds of every other sample what this one holds."""

    def step(self, x, state):
        return super().step(x, {"z": state["z"].nan_to_num(0.0)})


class NaNInOtherRows(Smoother):
    def step(self, x, state):
        y, after = super().step(x, state)
        return y + 0 * y.sum(0, keepdim=True), after


@pytest.mark.parametrize(
    ("defect", "rule"),
    [
        (ForgottenState, "differ from the whole"),
        (StateOffByOne, "differ from the whole"),
        (BatchLeak, "a row affects another row"),
        (WholeBlockNormalization, "differ from the whole"),
        (LookAhead, "depend on later input"),
        (ChangedInput, "step changes its input"),
        (StateInPythonAttribute, "differ"),
        (LostTail, "outputs where ratio"),
        (Float32State, "in a float64 stage"),
        (RoundedState, "differ from the whole"),
        (StateKeyAppears, "state keys"),
        (StateOverwritten, "step changes the given state"),
        (WrongRatio, "outputs where ratio"),
        (CutGradient, "gradients"),
        (ForgottenAxis, r"shape \(3, 2\) without time, declares \(3, 1\)"),
        (AxisNotRefused, "check_shape refuses it, and it is accepted"),
        (AxisRefusedBySurprise, "fixed_axes allows it, and it fails with ValueError: two, please"),
        (FormsApart, "axis -2 is 3: with and without gradients differ"),
        (SwallowedNaN, "NaN is swallowed"),
        (SwallowedNaNLater, "NaN is swallowed: .* in a later block"),
        (NaNInOtherRows, "NaN in a row reaches another row"),
    ],
)
def test_each_defect_is_caught(defect, rule):
    with pytest.raises(AssertionError, match=rule):
        check_stage(defect, X)


class Late(Stage):
    """A symmetric average over five samples that claims `latency`."""

    def __init__(self, latency):
        super().__init__()
        self.latency = Fraction(latency)

    def initial_state(self, shape):
        return {"past": self.state_like("past", with_time(shape, -1, 4))}

    def step(self, x, state):
        joined = torch.cat([state["past"], x], -1)
        return joined.unfold(-1, 5, 1).mean(-1), {"past": joined[..., -4:]}


def test_latency_of_a_linear_phase_stage():
    check_stage(lambda: Late(2), X, linear_phase=True)
    with pytest.raises(AssertionError, match="latency is 1 outputs off"):
        check_stage(lambda: Late(1), X, linear_phase=True)


def test_reference_that_differs_is_reported():
    with pytest.raises(AssertionError, match="reference"):
        check_stage(lambda: Late(2), X, reference=lambda x: x)


def test_too_small_an_input_is_refused():
    with pytest.raises(ValueError, match="8 blocks"):
        check_stage(Smoother, X[..., :15])
    with pytest.raises(ValueError, match="two rows"):
        check_stage(Smoother, X[:1])
