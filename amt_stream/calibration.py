"""From fractions of full scale to pascal, and where the number came from."""

import math
from dataclasses import dataclass

REFERENCE_PA = 20e-6


@dataclass(frozen=True)
class Calibration:
    """Level in dB SPL of a full-scale sine (peak 1.0), with its origin and date."""

    full_scale_db_spl: float
    source: str = "given by the user"
    date: str | None = None
    calibrated: bool = True

    def __post_init__(self) -> None:
        level = self.full_scale_db_spl
        if not (math.isfinite(level) and 0.0 <= level <= 250.0):
            raise ValueError(
                f"full_scale_db_spl is {level}: give the level of a full-scale sine, "
                "0 to 250 dB SPL"
            )

    @property
    def pascal_per_unit(self) -> float:
        """Pascal that a sample of 1.0 stands for: the peak of the full-scale sine."""
        return math.sqrt(2.0) * REFERENCE_PA * 10.0 ** (self.full_scale_db_spl / 20.0)


UNCALIBRATED = Calibration(100.0, source="nominal: not calibrated", calibrated=False)
