"""A measurement controlled by commands, and its transports."""

import asyncio
import logging
import socket
import threading
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from amt_stream.core.compiling import compiling
from amt_stream.core.errors import Refusal
from amt_stream.core.json_types import JsonMap
from amt_stream.engine.run_state import EngineEnded
from amt_stream.engine.thread_check import thread_checked
from amt_stream.meters.calibration import Calibration, utc_now
from amt_stream.meters.frames import impulse_event
from amt_stream.meters.needed_models import refuse_no_impulses
from amt_stream.meters.presets import Preset, load_preset
from amt_stream.meters.rows import RowsOfEach
from amt_stream.meters.rows.models.rating import RatingReadings
from amt_stream.meters.table import Table
from amt_stream.service.commands import Asked, CommandRefused, command_in, id_of, understood
from amt_stream.service.dispatcher import Dispatcher
from amt_stream.service.engine_data import engine_data, faults_of
from amt_stream.service.identity import Identity
from amt_stream.service.message import RUNNING, WAITING, Message, event_message
from amt_stream.service.publisher import Publisher, Tap
from amt_stream.service.specific import specific
from amt_stream.service.transports.transport import Transport
from amt_stream.sessions import SessionLog
from amt_stream.sessions.events import SoundKeeper, keeper_in, tables_of_files

if TYPE_CHECKING:
    from amt_stream.engine.engine import Engine
    from amt_stream.engine.health import Health
    from amt_stream.engine.sinks.sink_thread import Sink

log = logging.getLogger("amt_stream")

STATE_S = 1.0
"""Time between state messages; each change is also sent immediately."""

LOOK_S = 0.05
LAST_S = 2.0
LATE_S = 5.0
"""Without a row for this long, or for three steps of rows, the station has a fault."""

DISK_S = 10.0
Made = tuple["Engine", Table]
Await = Callable[[str, float], None]
"""Called with why a device is missing, "" once it is there, and the seconds to wait.

It waits until the next try, and raises if the measurement was stopped.
"""
Make = Callable[[Preset, Callable[[Table], "Sink"], Await], Made]
"""Makes an engine and its table of rows from a preset, with a sink for those rows."""


class NotWanted(Refusal):
    """The measurement was stopped while it waited for its device."""


@thread_checked
class Station:
    """Begins, controls and ends measurements, one at a time, and sends their messages.

        station = Station(make, preset, [Web(8765)])
        await station.serve(lambda: False)

    Unless stated otherwise, methods run in one event loop. Engines are made and ended in threads,
    so that clients do not wait for them.

    make: makes a new engine and its table from a preset
    identity: name and labels of the station, which all messages have; the table has its own
    opened: called once all transports are open
    tap: called with all frames [sink-thread]
    """

    def __init__(
        self,
        make: Make,
        preset: Preset,
        transports: Sequence[Transport],
        *,
        identity: Identity | None = None,
        opened: Callable[[], None] = lambda: None,
        tap: Tap | None = None,
    ) -> None:
        self._make, self._transports = make, tuple(transports)
        self.preset = preset
        self._opened, self._tap = opened, tap
        self._named = {} if identity is None else identity.fields
        self._dispatcher = Dispatcher(self._transports, self._named)
        self._engine: Engine | None = None
        self.table: Table | None = None
        """Of the current or last measurement."""
        self._publisher: Publisher | None = None
        self._state = "stopped"
        self.error = ""
        """Why the measurement failed."""
        self._away = ""
        """Why the expected device is missing."""
        self._not_wanted = threading.Event()
        self._over: Callable[[], bool] = lambda: False
        self._reported_at, self._device_state = 0.0, ""
        self._since = utc_now()
        self.trouble = ""
        """Another fault, such as a failed check."""
        self._order = asyncio.Lock()

    @property
    def newest(self) -> tuple[Message, ...]:
        """What a new client gets first: the header, the state and the newest rows."""
        return self._dispatcher.newest(self.state)

    def specific(self) -> list[Message]:
        """Specific loudness of the newest frames, of each model that gives it."""
        return [] if self._engine is None or self._state not in RUNNING else specific(self._engine)

    @property
    def why(self) -> list[str]:
        """The faults of the station, as sentences."""
        return self._faults(None if self._engine is None else self._engine.health)

    def _faults(self, health: "Health | None") -> list[str]:
        faults = []
        if self._state == WAITING:
            faults.append(f"waiting for the microphone: {self._away}")
        elif self._state not in (*RUNNING, "starting"):
            faults.append(f"no measurement is running: {self._state}")
        faults += [self.error] if self.error else []
        faults += [compiling.note] if self._state == "starting" and compiling.note else []
        if self._engine is not None and health is not None and self._state in RUNNING:
            faults += faults_of(self._engine, health)
        late_s = time.monotonic() - self._dispatcher.heard_at
        if self._state in RUNNING and late_s > max(LATE_S, 3 * self._step_s):
            faults.append(f"no row for {late_s:.0f} s")
        faults += self._dispatcher.notes
        faults += [self.trouble] if self.trouble else []
        return list(dict.fromkeys(faults))

    @property
    def _step_s(self) -> float:
        return 0.0 if self.table is None else self.table.rows.step_ms / 1000

    async def serve(self, over: Callable[[], bool]) -> None:
        """Open the transports and measure until `over`, or until the sound ends.

        Raises the error of a transport or of the first measurement, and closes both.
        """
        opened: list[Transport] = []
        self._over = over
        try:
            for transport in self._transports:
                await transport.open(self)
                opened.append(transport)
            self._opened()
            async with self._order:
                await self._begin(self.preset)
            await self._follow()
        finally:
            async with self._order:
                await self._end("stopped")
            for transport in reversed(opened):
                await transport.close()

    async def _follow(self) -> None:
        while not self._over():
            await asyncio.sleep(LOOK_S)
            if self._order.locked():
                continue
            if self._state in RUNNING and self._is_over():
                async with self._order:
                    await self._end("failed" if self._failure else "ended")
                return
            self._tell_in_time()

    def _tell_in_time(self) -> None:
        """Send the state once a second, and at once when the device's has changed."""
        engine, now = self._engine, time.monotonic()
        device = "" if engine is None else engine.device_state
        if now > self._reported_at + STATE_S or device != self._device_state:
            self._reported_at, self._device_state = now, device
            self._dispatcher.send(self.state)

    def _is_over(self) -> bool:
        engine, publisher = self._engine, self._publisher
        assert engine is not None
        assert publisher is not None
        return engine.error is not None or publisher.done.is_set() or engine.wait(0)

    async def reload(self, preset: Preset) -> None:
        """Continue with another preset; if that fails, continue as before and raise."""
        async with self._order:
            engine, table = self._engine, self.table
            if engine is None or table is None:
                raise CommandRefused("no measurement has begun yet")
            # Check the preset before the measurement ends.
            layouts = table.sound.layouts(preset.names)
            await asyncio.to_thread(preset.models, engine.source.fs, layouts)
            before, running = self.preset, self._state in RUNNING
            self.preset = preset
            if not running:
                return
            await self._end("starting")
            try:
                await self._begin(preset)
            except (Refusal, ValueError):
                await self._begin(before)
                raise

    def tell(self, kind: str, text: str) -> None:
        """Report an event in order with the rows, if a measurement is running."""
        if self._engine is not None and self._state in RUNNING:
            with suppress(EngineEnded):
                self._engine.tell(kind, text)

    @property
    def running(self) -> bool:
        """Whether a measurement is running."""
        return self._state in RUNNING

    async def answer(self, asked: object, looks_only: bool = False) -> Message:
        """Do what a command asks for; the reply says so, or in a sentence why it was not done.

        looks_only: the client may only ask for `status`
        """
        reply: dict[str, object] = {"command": command_in(asked), "id": id_of(asked)}
        reply |= {"done": False, "error": ""}
        try:
            command = understood(asked)
            if looks_only and command.command != "status":
                raise CommandRefused(
                    f"{command.command} needs the token for commands; this one is for viewing"
                )
            if command.command == "replay":
                # Not in order with the others, as it waits for a disk.
                reply["path"] = str(await self._replay(command.arguments.get("seconds")))
            else:
                await self._do_in_order(command)
            reply["done"] = True
        except Refusal as refusal:
            reply["error"] = str(refusal)
        except (TypeError, ValueError) as error:
            reply["error"] = str(error)
        except Exception as error:  # the client gets the error, and the measurement continues
            log.exception("%s failed", reply["command"])
            reply["error"] = f"the command failed: {error}"
        state = self.state.content if reply["command"] == "status" else {"state": self._state}
        return Message("reply", {**reply, **state, "error": reply["error"]})

    async def _do_in_order(self, asked: Asked) -> None:
        """Do commands one after the other; while the device is missing, do not wait for it."""
        if self._state != WAITING:
            async with self._order:
                if (waits := ACTIONS[asked.command](self, asked.arguments)) is not None:
                    await waits
        elif asked.command == "stop":
            self._not_wanted.set()
            async with self._order:
                await self._end("stopped")  # the device may have appeared just before
        elif asked.command != "status":
            raise CommandRefused(f"no measurement yet, waiting for the microphone: {self._away}")

    async def _stop(self) -> None:
        self._running()
        await self._end("stopped")

    def _running(self) -> "Engine":
        if self._engine is None or self._state not in RUNNING:
            raise CommandRefused("no measurement is running: send start first")
        return self._engine

    async def _start(self, name: str | None) -> None:
        if self._state in RUNNING:
            raise CommandRefused("a measurement is running: send stop first")
        preset = self.preset if name is None else await asyncio.to_thread(load_preset, name)
        await self._begin(preset)

    async def _begin(self, preset: Preset) -> None:
        """Make an engine and start it, unless `stop` comes while it waits for the device.

        Raises if it cannot begin.
        """
        self._not_wanted.clear()
        self._enter("starting")
        loop = asyncio.get_running_loop()
        making = asyncio.ensure_future(asyncio.to_thread(self._made, loop, preset))
        try:
            while not making.done():
                if self._over():
                    self._not_wanted.set()
                self._tell_in_time()
                await asyncio.wait([making], timeout=LOOK_S)
            engine, table = making.result()
        except NotWanted:
            self._enter("stopped")
            return
        except BaseException as error:
            self._not_wanted.set()
            self.error = str(error)
            self._enter("failed")
            raise
        self.preset, self._engine, self.table = preset, engine, table
        self._dispatcher.heard_at = time.monotonic()
        self._enter("measuring")

    def _made(self, loop: asyncio.AbstractEventLoop, preset: Preset) -> Made:
        """[any-thread]"""
        host = socket.gethostname()

        def sink_of(table: Table) -> Publisher:
            self._publisher = Publisher(
                table, partial(self._dispatcher.post, loop), host, self._tap
            )
            return self._publisher

        self._dispatcher.forget()
        self.error = ""
        engine, table = self._make(preset, sink_of, partial(self._await, loop))
        self._dispatcher.live = engine.source.live
        engine.start()
        return engine, table

    def _await(self, loop: asyncio.AbstractEventLoop, away: str, seconds: float) -> None:
        """[any-thread]"""
        loop.call_soon_threadsafe(self._tell_away, away)
        if self._not_wanted.wait(seconds):
            raise NotWanted(away)

    def _tell_away(self, away: str) -> None:
        state = WAITING if away else "starting"
        if (state, away) != (self._state, self._away):
            self._away = away
            self._enter(state)

    async def _end(self, state: str) -> None:
        """End the measurement, if one is running, after sending its last messages."""
        engine, publisher = self._engine, self._publisher
        if engine is None or publisher is None or self._state not in RUNNING:
            return
        self.error = self._failure

        def stop() -> None:
            engine.stop()
            publisher.finished.wait(LAST_S)
            for sink in engine.sinks:
                # The engine does not wait for a slow disk; here there is time.
                if isinstance(sink, SessionLog | SoundKeeper):
                    sink.close(DISK_S)

        await asyncio.to_thread(stop)
        keeper, reported = keeper_in(engine.sinks), engine.events
        for event in () if keeper is None else keeper.last_events:
            if event not in reported:
                self._dispatcher.send(event_message(event).with_fields(self._named))
        self._enter(state)

    @property
    def _failure(self) -> str:
        error = None if self._engine is None else self._engine.error
        return "" if error is None else str(error) or type(error).__name__

    def _pause(self, paused: bool) -> None:
        engine = self._running()
        (engine.pause if paused else engine.unpause)()
        self._enter("paused" if paused else "measuring")

    def _count_impulse(self, counts: bool, time_s: float, **of: Any) -> None:
        name = "take_in" if counts else "leave_out"
        refuse_no_impulses(self.preset, name)
        engine, table = self._running(), self.table
        assert table is not None
        each = table.rows.of if isinstance(table.rows, RowsOfEach) else {"": table.rows}
        rows = [each[one] for one in [of.get("microphone")] if one in each] or each.values()
        rated = (r for one in rows for r in one.readings.values() if isinstance(r, RatingReadings))
        if not any(one.has_impulse(time_s) for one in rated):
            raise CommandRefused(
                f"{name}: no impulse that can be left out began at {time_s:g} s: give the "
                "impulse_s of a row; of each half hour the 16 most prominent can be left out"
            )
        engine.tell_event(impulse_event(counts, time_s, **of))

    def _calibrate(self, full_scale_db: float, microphone: str | None = None) -> None:
        engine, table = self._running(), self.table
        assert table is not None
        calibration = Calibration(float(full_scale_db), "given over the wire", utc_now())
        for one in (table, *tables_of_files(engine.sinks)):
            one.calibrate(calibration, microphone)
        engine.calibrate(calibration, microphone=microphone, keep_corrections=True)

    async def _replay(self, seconds: float | None) -> Path:
        keeper = keeper_in(self._running().sinks)
        if keeper is None:
            raise CommandRefused("no sound is held in memory: start with --event-folder PATH")
        return await asyncio.to_thread(keeper.replay, seconds)

    async def _swap(self, settings: Mapping[str, str]) -> None:
        engine, table = self._running(), self.table
        assert table is not None
        preset = self.preset.with_settings(settings)

        def swap() -> None:
            models = table.models_with(settings)
            begin = engine.prepared(models)
            for one in (table, *tables_of_files(engine.sinks)):
                one.swap(settings, models)
            begin()  # after the tables, as events need their headers

        await asyncio.to_thread(swap)
        self.preset = preset

    def _enter(self, state: str) -> None:
        self._state, self._since = state, utc_now()
        self._dispatcher.send(self.state)

    @property
    def state(self) -> Message:
        """The message of the current state."""
        engine = self._engine
        health = None if engine is None else engine.health
        content: dict[str, object] = {"state": self._state, "since_utc": self._since, **self._named}
        content |= {
            "error": self.error,
            "why": self._faults(health),
            "preset": self.preset.where,
            **engine_data(engine, health),
        }
        content["transports"] = self._dispatcher.states
        return Message("state", content)


Action = Callable[[Station, JsonMap], Awaitable[None] | None]

ACTIONS: Mapping[str, Action] = {
    "start": lambda station, arguments: station._start(arguments.get("preset")),
    "status": lambda station, arguments: None,
    "stop": lambda station, arguments: station._stop(),
    "pause": lambda station, arguments: station._pause(True),
    "unpause": lambda station, arguments: station._pause(False),
    "reset_filters": lambda station, arguments: station._running().reset_filters(**arguments),
    "reset_readings": lambda station, arguments: station._running().reset_readings(**arguments),
    "undo_reset": lambda station, arguments: station._running().undo_reset(**arguments),
    "mark": lambda station, arguments: station._running().mark(**arguments),
    "leave_out": lambda station, of: station._count_impulse(False, **of),
    "take_in": lambda station, of: station._count_impulse(True, **of),
    "calibrate": lambda station, arguments: station._calibrate(**arguments),
    "swap": lambda station, arguments: station._swap(arguments["settings"]),
}
"""The functions of all commands except `replay`, which waits for a disk out of order."""
