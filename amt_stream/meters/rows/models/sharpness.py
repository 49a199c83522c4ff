"""Sharpness of frames, from Zwicker's core loudness."""

from collections.abc import Mapping
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray

from amt_stream.dsp.functional.compiler.threads import one_thread
from amt_stream.dsp.functional.zwicker import loudness_pattern
from amt_stream.dsp.stages import Sharpness, ZwickerLoudness

Weighting = Literal["din", "aures", "bismarck"]


class SharpnessOfCores:
    """Sharpness from core loudness.

    weightings: of each sharpness by name
    """

    def __init__(self, weightings: Mapping[str, Weighting]) -> None:
        self._tables = ZwickerLoudness().tables()
        self._stages = {name: Sharpness(weighting) for name, weighting in weightings.items()}

    def __call__(self, core: NDArray[np.floating] | None) -> dict[str, NDArray[np.floating]]:
        """Each sharpness (channel, n) of cores (channel, n, 20); NaN without a value."""
        if core is None:
            raise ValueError(
                "sharpness needs core loudness, which these frames do not have: take them "
                "from ZwickerTimeVarying"
            )
        with torch.inference_mode():
            _, specific = loudness_pattern(torch.from_numpy(np.float32(core)), self._tables, True)
            assert specific is not None
            with one_thread(specific):
                found = {n: stage.transform(specific).numpy() for n, stage in self._stages.items()}
        return {name: np.where(acum == 0, np.nan, acum) for name, acum in found.items()}
