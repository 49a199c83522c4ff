"""Models: chains of stages under one name."""

from amt_stream.models.dau1997 import Dau1997
from amt_stream.models.glasberg2002 import (
    Glasberg2002,
    Glasberg2002Steady,
    glasberg2002_from_lines,
)
from amt_stream.models.king2019 import King2019
from amt_stream.models.modulation_spectrum import ModulationSpectrum
from amt_stream.models.moore2016 import Moore2016
from amt_stream.models.osses2021 import Osses2021
from amt_stream.models.paulick2024 import Paulick2024
from amt_stream.models.zwicker import (
    ZwickerStationary,
    ZwickerTimeVarying,
    exceeded,
    zwicker_from_levels,
    zwicker_stationary,
)
from amt_stream.stages.loudness import Glasberg2002Output, Moore2016Output
from amt_stream.stages.modulation_spectrum import ModulationSpectrumOutput
from amt_stream.stages.zwicker import ZwickerOutput

__all__ = [
    "Dau1997",
    "Glasberg2002",
    "Glasberg2002Output",
    "Glasberg2002Steady",
    "King2019",
    "ModulationSpectrum",
    "ModulationSpectrumOutput",
    "Moore2016",
    "Moore2016Output",
    "Osses2021",
    "Paulick2024",
    "ZwickerOutput",
    "ZwickerStationary",
    "ZwickerTimeVarying",
    "exceeded",
    "glasberg2002_from_lines",
    "zwicker_from_levels",
    "zwicker_stationary",
]
