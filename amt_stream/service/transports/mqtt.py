"""Messages to an MQTT broker, for home automation and other subscribers."""

import asyncio
import contextlib
import logging
import os
import socket
import ssl
import time
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple, Self

from amt_stream.core.safe_text import sentence
from amt_stream.core.words import counted
from amt_stream.service.message import MAIN, Message, Thinned
from amt_stream.service.transports import transport
from amt_stream.service.transports.home_assistant import Sensors, discovery
from amt_stream.service.transports.stdio import asked_in

if TYPE_CHECKING:
    from aiomqtt import Client

USER, PASSWORD = "AMT_STREAM_MQTT_USER", "AMT_STREAM_MQTT_PASSWORD"
"""Environment variables of the login."""

ROWS_WAIT, ALL_WAIT = 1000, 2000
ROOM_S = 0.005
FIRST_S, LONGEST_S = 0.5, 60.0
"""Shortest and longest time between two attempts to connect; it doubles each time."""

CONNECT_S = 5.0
KEEPALIVE_S = 20
LAST_S = 0.7
LOGIN_REFUSED = (134, 135)
"""Reason codes: bad user name or password, not authorized."""
LONGEST_COMMAND = 1 << 14
MOST_HEARD = 1000
"""Messages that may wait: commands, and sensors that the broker keeps."""
UNFIT = str.maketrans(dict.fromkeys("#+/\0", "_"))
"""Characters of a name that a topic cannot have."""


@dataclass(frozen=True)
class Broker:
    """An MQTT broker; without a user, the login is anonymous."""

    host: str
    port: int
    tls: bool = False
    user: str | None = None
    password: str | None = field(default=None, repr=False)

    def __str__(self) -> str:
        return transport.host_and_port(self.host, self.port)

    def with_login(self, path: str | None) -> Self:
        """A copy with the login of a file (user on the first line, password on the second).

        Without a file, the environment variables are used if set. Raises ServiceError.
        """
        if path is None:
            return replace(self, user=os.environ.get(USER), password=os.environ.get(PASSWORD))
        lines = transport.secret_in(path).splitlines()
        while len(lines) > 2 and not lines[-1]:
            lines.pop()
        if len(lines) != 2 or not lines[0]:
            raise transport.ServiceError(
                f"{path} has {counted(len(lines), 'line')}: write the user on one and the password "
                "on another"
            )
        return replace(self, user=lines[0], password=lines[1])


def topic_of(name: str) -> str:
    """The default prefix of the topics of a station or a computer of this name."""
    return f"amt/{name.translate(UNFIT)}"


def problem(broker: Broker, error: Exception) -> str:
    """Why there is no connection, as the end of a sentence about the broker."""
    if getattr(getattr(error, "rc", None), "value", None) in LOGIN_REFUSED:
        refused = "refuses this user and password"
        return refused if broker.user else "wants a user and password: give --mqtt-login FILE"
    return transport.refused_certificate(error) or f"does not answer: {str(error) or 'timeout'}"


class Post(NamedTuple):
    """A message for a topic; `sure`: QoS 1; `retained`: for later subscribers."""

    topic: str
    text: str
    sure: bool = True
    retained: bool = False


class Mqtt:
    """Publishes under one topic, and reconnects when the broker is gone.

    topic: prefix of all topics
    every_s: seconds of sound between rows, 0 for every row
    commands: whether commands at TOPIC/command are accepted, from all that the broker lets publish
    found_at: discovery prefix, such as "homeassistant"; "" for no discovery
    if_there: whether a broker that has never answered is neither a fault nor counts as missed rows
    """

    def __init__(
        self,
        broker: Broker,
        topic: str,
        *,
        every_s: float = 1.0,
        commands: bool = False,
        found_at: str = "homeassistant",
        if_there: bool = False,
    ) -> None:
        self.name = f"mqtt {broker}"
        self.note = ""
        self.missed = 0
        self._broker, self._topic, self._sensors = broker, topic, Sensors(found_at, topic)
        self._every_s, self._commands = every_s, commands
        self._thinned: dict[str, Thinned] = {}
        self._waiting: deque[Post | None] = deque()
        self._more = asyncio.Event()
        self._connected = False
        self._wanted = not if_there
        self._state: tuple[object, ...] = ()
        self._state_at = 0.0
        self._wire: transport.Wire | None = None
        self._run: asyncio.Task[None] | None = None

    async def open(self, wire: transport.Wire) -> None:
        """Begin to connect; the broker may appear later."""
        try:
            import aiomqtt  # noqa: F401
        except ModuleNotFoundError as error:
            raise transport.missing("MQTT needs aiomqtt") from error
        if type(asyncio.get_running_loop()).add_reader is asyncio.AbstractEventLoop.add_reader:
            words = (
                "MQTT does not run in Python's event loop on Windows: use another transport, such "
                "as --udp to a program that publishes"
            )
            if self._wanted:
                raise transport.ServiceError(words)
            logging.getLogger("amt_stream").warning(words)
            return
        self._wire = wire
        self._run = asyncio.create_task(self._keep_connected(), name="MQTT")

    def send(self, message: Message) -> None:
        content = message.content
        if message.kind == "row":
            self._send_row(message)
        elif message.kind == "state":
            # The state comes each second, too often for a retained message.
            device = (content["health"] or {}).get("device_state")
            new, now = (content["state"], content["error"], device), time.monotonic()
            if new != self._state or now - self._state_at >= self._every_s:
                self._state, self._state_at = new, now
                self._publish(message)
        else:
            self._publish(message)
            if message.kind == "header":
                self._thinned.clear()
                self._announce(content)

    async def drain(self) -> None:
        while self._connected and len(self._waiting) > ROWS_WAIT // 2:
            await asyncio.sleep(ROOM_S)

    async def close(self) -> None:
        """Publish the end of the service, if connected, and disconnect."""
        if self._run is None:
            return
        self._put(None)
        with contextlib.suppress(TimeoutError, asyncio.CancelledError):
            await asyncio.wait_for(self._run, LAST_S if self._connected else 0)

    def _send_row(self, message: Message) -> None:
        thinned = self._thinned.setdefault(message.microphone, Thinned(self._every_s))
        row = thinned.take(message)
        if row is None:
            return
        if not self._connected or len(self._waiting) >= ROWS_WAIT:
            self.missed += self._wanted
            thinned.lose()
            return
        self._put(Post(self._topic_of(message.microphone), row.text, sure=False))

    def _topic_of(self, row: str) -> str:
        return f"{self._topic}/{row.translate(UNFIT) or MAIN}/row"

    def _publish(self, message: Message) -> None:
        """Queue a message that is not a row; the newest header and state are sent on connection."""
        retained = message.kind in ("header", "state", "summary")
        if self._connected or not retained:
            self._put(Post(f"{self._topic}/{message.kind}", message.text, retained=retained))

    def _announce(self, header: Mapping[str, object]) -> None:
        if self._sensors.every and self._connected:
            told = discovery(header, self._topic, self._topic_of, self._every_s)
            for topic, text in self._sensors.announced(told).items():
                self._put(Post(topic, text, retained=True))

    def _put(self, post: Post | None) -> None:
        if post is None or len(self._waiting) < ALL_WAIT:
            self._waiting.append(post)
            self._more.set()
        else:
            self.missed += self._wanted

    async def _keep_connected(self) -> None:
        """Connect, and reconnect whenever the connection breaks, until `close`."""
        from aiomqtt import MqttError

        wait_s = FIRST_S
        while True:
            try:
                await self._reach()
                async with self._client() as client:
                    self._connected, self._wanted = True, True
                    self.note, wait_s = "", FIRST_S
                    await self._talk(client)
                return
            except (MqttError, OSError, ValueError) as error:  # ValueError: an invalid host name
                note = sentence(f"the MQTT broker {self._broker} {problem(self._broker, error)}")
                self.note = note if self._wanted else ""
            finally:
                self._connected = False
            await asyncio.sleep(wait_s)
            wait_s = min(2 * wait_s, LONGEST_S)

    async def _reach(self) -> None:
        """Try to connect first. Raises OSError if there is no answer.

        The library would wait in a thread, and the program could not end before it.
        """
        broker, loop = self._broker, asyncio.get_running_loop()
        known = loop.run_in_executor(
            transport.Abandoned(), socket.getaddrinfo, broker.host, broker.port
        )
        await asyncio.wait_for(known, CONNECT_S)
        way = asyncio.open_connection(broker.host, broker.port)
        _, writer = await asyncio.wait_for(way, CONNECT_S)
        writer.close()

    def _client(self) -> "Client":
        from aiomqtt import Client, Will

        broker = self._broker
        quiet = logging.getLogger(__name__)
        quiet.propagate, quiet.handlers = False, [logging.NullHandler()]
        return Client(
            broker.host,
            broker.port,
            username=broker.user,
            password=broker.password,
            tls_context=ssl.create_default_context() if broker.tls else None,
            will=Will(f"{self._topic}/availability", "offline", qos=1, retain=True),
            keepalive=KEEPALIVE_S,
            max_queued_incoming_messages=MOST_HEARD,
            logger=quiet,
        )

    async def _talk(self, client: "Client") -> None:
        """Exchange messages until `close`. Raises MqttError when the connection breaks."""
        assert self._wire is not None
        if self._commands:
            await client.subscribe(f"{self._topic}/command", qos=1)
        if self._sensors.every:
            await client.subscribe(self._sensors.every, qos=1)
        self._put(Post(f"{self._topic}/availability", "online", retained=True))
        for message in self._wire.newest:
            if message.kind != "row":
                self._publish(message)
            if message.kind == "header":
                self._announce(message.content)
        # Receiving also detects a broken connection while nothing is sent.
        tasks = [asyncio.create_task(self._tell(client)), asyncio.create_task(self._hear(client))]
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _tell(self, client: "Client") -> None:
        while True:
            while not self._waiting:
                self._more.clear()
                await self._more.wait()
            post = self._waiting[0]
            if post is None:
                await client.publish(f"{self._topic}/availability", "offline", 1, retain=True)
                return
            # A message that was not sent stays in the queue for the next connection.
            await client.publish(post.topic, post.text, int(post.sure), retain=post.retained)
            self._waiting.popleft()
            await asyncio.sleep(0)  # the library may not have yielded

    async def _hear(self, client: "Client") -> None:
        """Answer commands, except retained ones, which would be repeated at every start.

        Sensors that the broker keeps of an earlier run are removed if they are gone.
        """
        assert self._wire is not None
        async for message in client.messages:
            text, topic = message.payload, str(message.topic)
            if self._sensors.is_one(topic):
                if text and message.retain and self._sensors.is_gone(topic):
                    self._put(Post(topic, "", retained=True))
                continue
            if message.retain or not isinstance(text, bytes):
                continue
            asked = asked_in(text if len(text) <= LONGEST_COMMAND else text[:100])
            reply = await self._wire.answer(asked)
            self._put(Post(f"{self._topic}/reply", reply.text))
