from .build import NotBuilt as NotBuilt
from .library import FailedModel as FailedModel
from .library import NativeColumn as NativeColumn
from .library import NativeInfo as NativeInfo
from .model import NativeModel as NativeModel
from .model import UnfittingState as UnfittingState
