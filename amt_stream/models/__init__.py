"""Models: chains of stages under one name."""

from amt_stream.models.moore2016 import Moore2016
from amt_stream.stages.loudness import Moore2016Output

__all__ = ["Moore2016", "Moore2016Output"]
