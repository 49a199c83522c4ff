"""A measurement on the wire: its rows go out over any number of transports, commands come in."""

from amt_stream.service.commands import COMMANDS, Asked, CommandRefused, understood
from amt_stream.service.message import Message
from amt_stream.service.station import Station
from amt_stream.service.transport import Transport

__all__ = ["COMMANDS", "Asked", "CommandRefused", "Message", "Station", "Transport", "understood"]
