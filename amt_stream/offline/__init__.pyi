from . import analysis as analysis
from . import benchmark as benchmark
from . import jobs as jobs
from . import match as match
from . import measure as measure
from . import selftest as selftest
from . import split as split
from . import whole_sound as whole_sound
