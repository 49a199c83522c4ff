"""Modulation filterbanks, under their torch_amt module name."""

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
