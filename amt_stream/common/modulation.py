"""Modulation filterbanks, by the name of their module in torch_amt."""

from amt_stream.dsp.stages import (
    FastKing2019ModulationFilterbank,
    FastModulationFilterbank,
    King2019ModulationFilterbank,
    ModulationFilterbank,
)

__all__ = [
    "FastKing2019ModulationFilterbank",
    "FastModulationFilterbank",
    "King2019ModulationFilterbank",
    "ModulationFilterbank",
]
