"""What a row of readings is: its columns, their values at a time, what goes before and after.

The names stand in `__init__.pyi`, and are imported when they are first used: much is told of rows
without the compiled loops of meters.
"""

import lazy_loader

# Its module has the same name, and would be found in its place.
from amt_stream.meters.rows.header import header as header

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
