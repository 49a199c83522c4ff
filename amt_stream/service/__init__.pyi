from .commands import COMMANDS as COMMANDS
from .commands import Asked as Asked
from .commands import CommandRefused as CommandRefused
from .commands import understood as understood
from .message import Message as Message
from .station import Station as Station
from .transports.transport import Transport as Transport
