"""Rows of readings: their columns, values, headers and summaries.

`__init__.pyi` lists the names, which are imported on first use, as much of the use of rows does not
need the compiled loops of meters.
"""

import lazy_loader

# Its module has the same name and would hide it.
from amt_stream.meters.rows.header import header as header

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
