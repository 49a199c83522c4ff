"""Address and login of an MQTT broker."""

import os
from dataclasses import dataclass, field, replace
from typing import Self

from amt_stream.service.transport import ServiceError, host_and_port, secret_in

USER, PASSWORD = "AMT_STREAM_MQTT_USER", "AMT_STREAM_MQTT_PASSWORD"
"""Environment variables of the login."""


@dataclass(frozen=True)
class Broker:
    """An MQTT broker; without a user, the login is anonymous."""

    host: str
    port: int
    tls: bool = False
    user: str | None = None
    password: str | None = field(default=None, repr=False)

    def __str__(self) -> str:
        return host_and_port(self.host, self.port)

    def with_login(self, path: str | None) -> Self:
        """A copy with the login of a file (user on the first line, password on the second).

        Without a file, the environment variables are used if set. Raises ServiceError.
        """
        if path is None:
            return replace(self, user=os.environ.get(USER), password=os.environ.get(PASSWORD))
        lines = secret_in(path).splitlines()
        if len(lines) != 2 or not lines[0]:
            raise ServiceError(
                f"{path} has {len(lines)} lines: write the user on one and the password on another"
            )
        return replace(self, user=lines[0], password=lines[1])
