"""The module layout of torch_amt, so that code written for torch_amt needs only a new prefix.

`from torch_amt.common.loudness import Moore2016AGC` becomes `from amt_stream.common.loudness import
Moore2016AGC`, the same class as `amt_stream.Moore2016AGC`. New code imports from `amt_stream`.
"""

from amt_stream.common import adaptation, ears, filterbanks, filters, ihc, loudness, modulation
from amt_stream.common.adaptation import *  # noqa: F403
from amt_stream.common.ears import *  # noqa: F403
from amt_stream.common.filterbanks import *  # noqa: F403
from amt_stream.common.filters import *  # noqa: F403
from amt_stream.common.ihc import *  # noqa: F403
from amt_stream.common.loudness import *  # noqa: F403
from amt_stream.common.modulation import *  # noqa: F403

__all__ = ["adaptation", "ears", "filterbanks", "filters", "ihc", "loudness", "modulation"]
__all__ += adaptation.__all__
__all__ += ears.__all__
__all__ += filterbanks.__all__
__all__ += filters.__all__
__all__ += ihc.__all__
__all__ += loudness.__all__
__all__ += modulation.__all__
