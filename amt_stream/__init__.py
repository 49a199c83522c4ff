"""Streaming auditory models: stateful block-processing stages, a live engine, loudness meters.

Names are imported on first use, so that `import amt_stream` stays free of torch.
"""

import importlib
from typing import Any

__version__ = "0.1.0"

_HOME = {
    "audfiltbw": "scales",
    "erb2fc": "scales",
    "erbrate2f": "scales",
    "erbspacebw": "scales",
    "f2erb": "scales",
    "f2erbrate": "scales",
    "fc2erb": "scales",
    "gaindb": "scales",
    "zwicker_phon": "scales",
    "Stage": "streaming",
    "State": "streaming",
    "Stream": "streaming",
    "Chain": "compose",
    "Delay": "compose",
    "Parallel": "compose",
    "PointwiseModule": "pointwise",
    "Rebuffer": "compose",
    "aligned": "compose",
    "check_stage": "testing",
    "AdaptLoop": "stages",
    "BinauralInhibition": "stages",
    "BinauralLoudness": "stages",
    "BS1770": "stages",
    "BS1770Output": "stages",
    "BrokenStickCompression": "stages",
    "DRNLFilterbank": "stages",
    "EarFilter": "stages",
    "Excitation": "stages",
    "FastKing2019ModulationFilterbank": "stages",
    "FastModulationFilterbank": "stages",
    "ButterworthFilter": "stages",
    "IIRFilter": "stages",
    "SOSFilter": "stages",
    "Gain": "stages",
    "FastDRNLFilterbank": "stages",
    "GammatoneFilterbank": "stages",
    "HeadphoneFilter": "stages",
    "IHCEnvelope": "stages",
    "IHCPaulick2024": "stages",
    "King2019ModulationFilterbank": "stages",
    "LoudnessIntegration": "stages",
    "MiddleEarFilter": "stages",
    "ModulationFilterbank": "stages",
    "MonauralLoudness": "stages",
    "Moore2016AGC": "stages",
    "Moore2016BinauralLoudness": "stages",
    "Moore2016SpecificLoudness": "stages",
    "Moore2016TemporalIntegration": "stages",
    "OuterMiddleEarFilter": "stages",
    "PowerCompression": "stages",
    "Resample": "stages",
    "RunningSpectrum": "stages",
    "SoundLevel": "stages",
    "SoundLevelOutput": "stages",
    "SpatialSmoothing": "stages",
    "SpecificLoudness": "stages",
    "CoreLoudness": "stages",
    "ThirdOctaveLevels": "stages",
    "ZwickerLoudness": "stages",
    "Dau1997": "models",
    "Osses2021": "models",
    "King2019": "models",
    "Paulick2024": "models",
    "ModulationSpectrum": "models",
    "ModulationSpectrumOutput": "models",
    "Glasberg2002": "models",
    "Glasberg2002Output": "models",
    "glasberg2002_from_lines": "models",
    "Moore2016": "models",
    "Moore2016Output": "models",
    "ZwickerOutput": "models",
    "ZwickerTimeVarying": "models",
    "zwicker_from_levels": "models",
    "zwicker_stationary": "models",
    "Calibration": "calibration",
    "Engine": "engine",
    "FileSource": "engine",
    "MicrophoneSource": "engine",
    "SignalSource": "engine",
    "StdinSource": "engine",
}

_MODULES = (
    "analysis",
    "calibration",
    "calibrator",
    "compose",
    "design",
    "engine",
    "frames",
    "functional",
    "models",
    "outputs",
    "pointwise",
    "presets",
    "rows",
    "scales",
    "stages",
    "streaming",
    "testing",
)

__all__ = ["__version__", *sorted(_HOME)]  # noqa: PLE0604 - the names resolve in __getattr__


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(f"amt_stream.{name}")
    if name not in _HOME:
        raise AttributeError(f"module 'amt_stream' has no attribute {name!r}")
    return getattr(importlib.import_module(f"amt_stream.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME, *_MODULES})
