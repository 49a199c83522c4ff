"""Models: chains of stages under one name."""

from amt_stream.models.moore2016 import Moore2016
from amt_stream.models.zwicker import (
    ZwickerStationary,
    ZwickerTimeVarying,
    exceeded,
    zwicker_from_levels,
    zwicker_stationary,
)
from amt_stream.stages.loudness import Moore2016Output
from amt_stream.stages.zwicker import ZwickerOutput

__all__ = [
    "Moore2016",
    "Moore2016Output",
    "ZwickerOutput",
    "ZwickerStationary",
    "ZwickerTimeVarying",
    "exceeded",
    "zwicker_from_levels",
    "zwicker_stationary",
]
