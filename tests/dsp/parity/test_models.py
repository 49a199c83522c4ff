"""The chains from sound to modulation filters: their stages, shapes and streaming."""

import pytest
import torch

from amt_stream import Dau1997, King2019, Osses2021, Paulick2024, check_stage
from tests.dsp.noise import noise
from tests.dsp.parity.golden import close, golden

MODELS = [Dau1997, King2019, Osses2021, Paulick2024]
FS = 44100


def small(cls, **more):
    """A model of few bands; the minima of Paulick et al. stand for 50."""
    if cls is Paulick2024:
        more = {"n_channels": 4, "adaptation_kwargs": {"preset": None}, **more}
    return cls(fs=FS, **{"flow": 500.0, "fhigh": 700.0, **more})


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_dau1997_stages(dtype):
    """The file was made with impulse responses cut at e^-10, hence the tolerances of its index."""
    model, given, expected, par = golden("model_dau1997", dtype=dtype, return_stages=True)
    y, stages = model(given["x"])
    close(model.fc.float(), par["fc"])
    close(stages["filterbank"].float(), expected["filterbank"], 2e-4)
    close(stages["ihc"].float(), expected["ihc"], 2e-4)
    close(stages["adaptation"].float(), expected["adaptation"], 1e-3)
    assert [v.shape for v in y] == [expected[f"ch{i}"].shape for i in range(7)]
    for got, band in zip(model.modulation(stages["adaptation"]), y, strict=True):
        assert torch.equal(got, band)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_king2019_stages(dtype):
    """The file's float32 recursion drifts in its lowest modulation bands."""
    model, given, expected, par = golden("model_king2019", dtype=dtype, return_stages=True)
    y, stages = model(given["x"])
    close(model.fc.float(), par["fc"])
    close(model.mfc.float(), par["mfc"])
    close(stages["gtone_response"].float(), expected["gtone"], 2e-4)
    close(stages["compressed_response"].float(), expected["compressed"], 2e-3)
    close(stages["ihc"].float(), expected["ihc"], 2e-3)
    close(stages["adapted_response"].float(), expected["adapted"], 1e-3)
    close(y.float(), expected["y"], 5e-3)


@pytest.mark.cases(2)
@pytest.mark.parametrize(
    ("learnable", "cls"),
    [
        *((False, cls) for cls in MODELS),
        *((True, cls) for cls in (Dau1997, King2019)),
        *(pytest.param(True, cls, marks=pytest.mark.soak) for cls in (Osses2021, Paulick2024)),
    ],
)
def test_contract(learnable, cls):
    """Of chains that learn two here: each stage of the others has a test that learns."""
    check_stage(lambda: small(cls, learnable=learnable), 0.1 * noise(2, 77))


def test_contract_with_a_lower_output_rate():
    check_stage(lambda: small(King2019, subfs=FS // 3), 0.1 * noise(2, 78))


@pytest.mark.parametrize("cls", MODELS)
def test_rows_equal_single_sounds(cls):
    model = small(cls)
    x = 0.1 * noise(3, 400).float()
    together = model(x)
    for i, row in enumerate(x):
        alone = model(row)
        for a, b in (
            zip(together, alone, strict=True) if cls is not King2019 else [(together, alone)]
        ):
            torch.testing.assert_close(a[i], b)


def test_documented_shapes():
    x = torch.zeros(2, 1000)
    y = King2019(fs=16000)(x)
    assert y.shape == (2, 1000, 31, 5)
    y, stages = Dau1997(fs=16000, fhigh=4000.0, return_stages=True)(x)
    assert list(stages) == ["filterbank", "ihc", "adaptation"]
    assert y[0].shape == (2, 8, 1000)
    y, stages = Osses2021(fs=16000, fhigh=4000.0, return_stages=True)(x)
    assert list(stages) == ["headphone", "middleear", "filterbank", "ihc", "adaptation"]
    assert [v.shape[-2] for v in y][:2] == [4, 5]
    y, stages = Paulick2024(return_stages=True)(x)
    assert list(stages) == ["outerear", "drnl", "ihc", "adaptation", "resampled"]
    assert len(y) == 50
    assert y[-1].shape == (2, 8, 250)


def test_king2019_around_one_frequency():
    model = King2019(fs=FS, basef=1000.0)
    assert model.num_channels == 5
    assert model.fc[2].item() == pytest.approx(1000)
    assert torch.diff(model.fc).min() > 100


def test_latency_is_that_of_the_filters_that_delay():
    assert small(Dau1997).latency == small(King2019).latency == small(Osses2021).latency == 0
    assert small(Osses2021, phase_type="linear").latency > 0
    assert small(Paulick2024).latency == 265  # 6 ms, on a whole sample


def test_parts_take_arguments_of_their_own():
    model = Dau1997(fs=FS, fhigh=1000.0, adaptation_kwargs={"preset": "osses2021"})
    assert model.adaptation.limit.item() == 5
    with pytest.raises(ValueError, match="compression_type is 'root': give brokenstick or power"):
        King2019(fs=FS, compression_type="root")
    with pytest.raises(ValueError, match="40 bands, and adaptation loops with minima for 50"):
        Paulick2024(n_channels=40)
    with pytest.raises(ValueError, match="fs is 22050 Hz: give a multiple of 4"):
        Paulick2024(fs=22050)


@pytest.mark.parametrize("cls", MODELS)
def test_gradients_reach_every_parameter(cls):
    model = small(cls, learnable=True, flow=900.0, fhigh=1200.0)
    y = model(0.1 * noise(600).float())
    total = sum(v.square().mean() for v in y)
    total.backward()
    for name, p in model.named_parameters():
        assert p.grad is not None, name
        assert torch.isfinite(p.grad).all(), name
