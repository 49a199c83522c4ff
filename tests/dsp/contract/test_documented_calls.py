"""Each class of the documented interface, made and called by the documented names."""

import inspect

import pytest
import torch

import amt_stream as amt

B, N, F, T = 2, 3, 5, 64
FS = 16000


def tensor(*shape):
    return torch.rand(shape, generator=torch.Generator().manual_seed(1))


LOUD = {"learnable": False}
TYPED = {**LOUD, "dtype": torch.float32}
PAIR = {"left": tensor(B, 150), "right": tensor(B, 150)}
CALLS = {
    "BrokenStickCompression": (
        {"knee_db": 30.0, "exponent": 0.3, "dboffset": 100.0, "num_channels": None, **LOUD},
        {"x": tensor(B, T, F)},
    ),
    "PowerCompression": (
        {"knee_db": 30.0, "exponent": 0.3, "dboffset": 100.0, "num_channels": None, **LOUD},
        {"x": tensor(T)},
    ),
    "SpecificLoudness": (
        {"fs": 32000, "f_min": 50.0, "f_max": 15000.0, "erb_step": 0.25, **LOUD},
        {"excitation": tensor(B, N, 150)},
    ),
    "Moore2016SpecificLoudness": (TYPED, {"excitation_db": tensor(B, 150)}),
    "SpatialSmoothing": (
        {"kernel_width": 18.0, "sigma": 0.08, **TYPED},
        {"specific_loudness": tensor(B, 150)},
    ),
    "BinauralInhibition": (
        {"p": 1.5978, **TYPED},
        {"left_smoothed": PAIR["left"], "right_smoothed": PAIR["right"]},
    ),
    "Moore2016BinauralLoudness": (
        {"kernel_width": 18.0, "sigma": 0.08, "p": 1.5978, **TYPED},
        {"specific_loud_left": PAIR["left"], "specific_loud_right": PAIR["right"]},
    ),
    "LoudnessIntegration": (
        {"fs": 32000, **LOUD},
        {"specific_loudness": tensor(B, N, 150), "return_stl": True},
    ),
    "Moore2016AGC": (
        {"attack_alpha": 0.045, "release_alpha": 0.033, **TYPED},
        {"x": tensor(N, F), "state": tensor(F)},
    ),
    "Moore2016TemporalIntegration": (
        {
            "stl_attack": 0.045,
            "stl_release": 0.033,
            "ltl_attack": 0.01,
            "ltl_release": 0.00133,
            **TYPED,
        },
        {"inst_spec_loud": tensor(N, 150), "return_intermediate": True},
    ),
    "ModulationFilterbank": (
        {
            "fs": FS,
            "fc": [500.0, 900.0],
            "Q": 2.0,
            "max_mfc": 150.0,
            "lp_cutoff": 2.5,
            "att_factor": 1.0,
            "use_upper_limit": False,
            "preset": None,
            "filter_type": "efilt",
            **TYPED,
        },
        {"x": tensor(B, 2, T)},
    ),
    "FastModulationFilterbank": (
        {"fs": FS, "fc": [500.0, 900.0], "tolerance": 2, **TYPED},
        {"x": tensor(2, T)},
    ),
    "King2019ModulationFilterbank": (
        {"fs": FS, "mflow": 2.0, "mfhigh": 150.0, "qfactor": 1.0, "nmod": None, **TYPED},
        {"x": tensor(B, F, T)},
    ),
    "FastKing2019ModulationFilterbank": (
        {"fs": FS, "nmod": 3, "ir_length_ratio": 1.0, **TYPED},
        {"x": tensor(B, F, T)},
    ),
    "GammatoneFilterbank": (
        {
            "fc": (200.0, 2000.0),
            "fs": FS,
            "n": 4,
            "betamul": None,
            "implementation": "sos",
            **TYPED,
        },
        {"x": tensor(B, T)},
    ),
    "IHCEnvelope": (
        {"fs": FS, "cutoff": None, "order": 1, "method": "dau1996", **TYPED},
        {"x": tensor(B, F, T)},
    ),
    "IHCPaulick2024": ({"fs": FS, **TYPED}, {"x": tensor(B, F, T)}),
    "AdaptLoop": (
        {
            "fs": FS,
            "tau": None,
            "limit": 10.0,
            "minspl": 0.0,
            "minlvl_per_channel": None,
            "preset": None,
            **TYPED,
        },
        {"x": tensor(B, F, T)},
    ),
    "DRNLFilterbank": (
        {
            "fc": (250.0, 4000.0),
            "fs": FS,
            "n_channels": 5,
            "subject": "NH",
            "model": "paulick2024",
            **LOUD,
            "dtype": torch.float64,
        },
        {"x": tensor(B, T)},
    ),
    "FastDRNLFilterbank": (
        {"fc": (250.0, 4000.0), "fs": FS, "n_channels": 5, "ir_length": 4096, **LOUD},
        {"x": tensor(B, T)},
    ),
    "OuterMiddleEarFilter": (
        {
            "fs": FS,
            "compensation_type": "tfOuterMiddle1997",
            "field_type": "free",
            "flow": 20.0,
            "fhigh": 4000.0,
            "order": 64,
            **TYPED,
        },
        {"x": tensor(B, T)},
    ),
    "HeadphoneFilter": (
        {"fs": FS, "order": 64, "phase_type": "minimum", "compensate_delay": True, **TYPED},
        {"x": tensor(B, T)},
    ),
    "MiddleEarFilter": (
        {
            "fs": FS,
            "filter_type": "lopezpoveda2001",
            "order": 64,
            "phase_type": "minimum",
            "normalize_gain": True,
            "compensate_delay": True,
            **TYPED,
        },
        {"x": tensor(B, T)},
    ),
    "ERBIntegration": (
        {"fs": 32000, "f_min": 50.0, "f_max": 15000.0, "erb_step": 0.25, **LOUD},
        {"psd": tensor(B, N, 1025), "freqs": torch.arange(1025) * 15.625},
    ),
    "ExcitationPattern": (
        {"fs": 32000, "f_min": 50.0, "f_max": 15000.0, "erb_step": 0.25, **LOUD},
        {"x": tensor(B, N, 150)},
    ),
    "Moore2016ExcitationPattern": (
        {
            "erb_lower": 1.75,
            "erb_upper": 39.0,
            "erb_step": 0.25,
            "spreading_limit_octaves": 4.0,
            **TYPED,
        },
        {"freqs": 1000 * tensor(B, 7), "levels": 60 * tensor(B, 7)},
    ),
    "SOSFilter": ({"sos": [[1.0, 0, 0, 1, -0.5, 0]], **LOUD}, {"x": tensor(F, T)}),
    "IIRFilter": ({"b": [1.0], "a": [1.0, -0.5], **LOUD}, {"x": tensor(T)}),
    "ButterworthFilter": (
        {"order": 2, "cutoff": 100.0, "fs": FS, "btype": "low", **TYPED},
        {"x": tensor(B, F, T)},
    ),
    "Dau1997": (
        {"fs": FS, "flow": 300.0, "fhigh": 900.0, "return_stages": True, **TYPED},
        {"x": tensor(B, T)},
    ),
    "King2019": (
        {"fs": FS, "flow": 300.0, "fhigh": 900.0, "modbank_nmod": 2, **TYPED},
        {"x": tensor(B, T)},
    ),
    "Osses2021": (
        {"fs": FS, "flow": 300.0, "fhigh": 900.0, "phase_type": "minimum", **TYPED},
        {"x": tensor(B, T)},
    ),
}


@pytest.mark.parametrize("name", CALLS)
def test_made_and_called_by_the_documented_names(name):
    made, given = CALLS[name]
    stage = getattr(amt, name)(**made)
    y = stage(**given)
    outputs = y if isinstance(y, list | tuple) else [y]
    assert all(v.isfinite().all() for v in outputs if isinstance(v, torch.Tensor))
    assert stage.learnable is False
    # By place too: the order in which the documentation has them.
    order = [p for p in inspect.signature(stage.forward).parameters if p in given]
    assert order == list(given)
