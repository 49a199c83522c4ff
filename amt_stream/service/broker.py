"""Where an MQTT broker is, and who one is there."""

import os
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Self

from amt_stream.core.files import NotThatFile, secret_text
from amt_stream.service.transport import ServiceError, host_and_port

USER, PASSWORD = "AMT_STREAM_MQTT_USER", "AMT_STREAM_MQTT_PASSWORD"
"""Variables of the environment."""


@dataclass(frozen=True)
class Broker:
    """One broker; without a user one is anybody there."""

    host: str
    port: int
    tls: bool = False
    user: str | None = None
    password: str | None = field(default=None, repr=False)

    def __str__(self) -> str:
        return host_and_port(self.host, self.port)

    def with_login(self, path: str | None) -> Self:
        """By a file with the user on its first line and the password on its second.

        Without one by the environment, if it says anything. Raises ServiceError.
        """
        if path is None:
            return replace(self, user=os.environ.get(USER), password=os.environ.get(PASSWORD))
        try:
            lines = secret_text(Path(path)).splitlines()
        except NotThatFile as error:
            raise ServiceError(f"{path} {error}") from error
        except UnicodeDecodeError as error:
            raise ServiceError(f"{path} is no text in UTF-8") from error
        if len(lines) != 2 or not lines[0]:
            raise ServiceError(f"{path} has {len(lines)} lines: write user and password, one each")
        return replace(self, user=lines[0], password=lines[1])
