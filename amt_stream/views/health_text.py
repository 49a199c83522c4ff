"""The health of the measurement, in words."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from amt_stream.core.safe_text import plain
from amt_stream.core.words import counted, times
from amt_stream.meters import frames
from amt_stream.meters.state_signs import AWAY

if TYPE_CHECKING:
    from amt_stream.engine import Engine, Health


class HealthLine(NamedTuple):
    """One line; `wrong` where it reports a problem."""

    what: str
    words: str
    wrong: bool = False


DEVICE = {
    "waiting": "no sound yet",
    "running": "receiving sound",
    "stalled": "no sound at the moment",
    "lost": "lost: continues when the device is back",
    "silent": "silent: continues when it gives more than exact zeros",
    "ended": "ended",
    "stopped": "stopped",
}


def health_lines(engine: "Engine") -> list[HealthLine]:
    """All lines [any-thread]."""
    return [HealthLine(one.what, plain(one.words), one.wrong) for one in _lines(engine)]


def _lines(engine: "Engine") -> Iterator[HealthLine]:
    health, source = engine.health, engine.source
    fs = source.fs
    if health.note:
        yield HealthLine("Note", health.note, True)
    layout = source.description.layout
    known = f": {layout}" if layout.said or source.channels > 2 else ""
    channels = counted(source.channels, "channel")
    yield HealthLine("Input", f"{source.name}, {fs} Hz, {channels}{known}")
    for note in engine.heard.notes if engine.heard is not None else ():
        yield HealthLine("Channels", note)
    described = source.description
    if described.encoding:
        yield HealthLine("Encoding", described.encoding)
    if described.length_words:
        yield HealthLine("Length", described.length_words, True)
    state = health.device_state
    yield HealthLine("Device", DEVICE.get(state, state), state in ("stalled", *AWAY))
    yield HealthLine("Heard", f"{health.samples / fs:.1f} s, {counted(health.samples, 'sample')}")
    yield _count("Lost", health.lost_samples, "sample", "lost", fs)
    if health.dropped_samples:
        yield HealthLine("Of these", _causes(health, fs), True)
    yield _count("Clipped", health.clipped, "sample", "at full scale or above", fs)
    yield _count("Not a number", health.non_finite, "sample", "that were not a number", fs)
    late = health.late_callbacks
    yield HealthLine(
        "Late", f"sound came late {times(late)}" if late else "sound came in time", late > 0
    )
    if health.silent and state not in AWAY:
        yield HealthLine("Silence", "digital silence only: is the input muted?", True)
    yield HealthLine("Delay", f"{1000 * health.latency_s:.0f} ms from the sound to its number")
    yield HealthLine(
        "Load",
        f"{100 * health.load:.0f} % of one core, at most {100 * health.load_max:.0f} %",
        health.overloaded,
    )
    if health.processor_used is not None:
        yield HealthLine("Processor", _processor(health), health.overloaded)
    if health.slow_because:
        yield HealthLine("Too slow", f"because {health.slow_because}", True)
    if health.behind_s and source.can_wait:
        words = f"{health.behind_s:.1f} s behind real time: nothing is lost"
        yield HealthLine("Played", words, True)
    yield HealthLine(
        "Block time",
        f"half of the blocks take {100 * health.block_share_median:.0f} % of their time or less, "
        f"the slowest of a hundred {100 * health.block_share_p99:.0f} %",
    )
    yield HealthLine("Waiting", f"{health.queue_s:.2f} s of sound", health.queue_s > 1.0)
    full = health.overruns
    words = f"buffer overrun, {times(full)}" if full else "no overrun"
    yield HealthLine("Room", words, full > 0)
    broken = health.broken_frames
    words = f"no result in {counted(broken, 'frame')} of valid sound" if broken else "all valid"
    yield HealthLine("Models", words, broken > 0)
    if source.live:
        yield HealthLine("Its clock", _clock(health.clock_ppm, health.clock_ppm_uncertainty))
    yield HealthLine("Computed on", engine.device)
    yield from _outputs(engine)
    for name, one in health.microphones.items():
        wrong = one.lost_samples + one.non_finite + one.broken_frames > 0
        words = f"{counted(one.lost_samples, 'sample')} lost, {one.clipped} clipped"
        words += ", exact zeros at the moment" if one.silent else ""
        words += ", no sound at the moment" if one.missing and not one.silent else ""
        yield HealthLine(
            f"Microphone {name}" if name else "Microphone", words, wrong or one.missing
        )


def _causes(health: "Health", fs: int) -> str:
    """Who lost the samples that are lost."""
    dropped = health.dropped_samples
    lost = {frames.DEVICE: health.lost_samples - dropped, frames.BUFFER: dropped}
    return frames.missing_words({cause: samples / fs for cause, samples in lost.items()})


def _processor(health: "Health") -> str:
    """What the computer left to the models in the last second."""
    shares = {
        "had a core": health.processor_used,
        "waited for one": health.processor_waited,
        "were stopped": health.stopped,
    }
    words = ", ".join(f"{what} {100 * s:.0f} %" for what, s in shares.items() if s is not None)
    words = f"the models {words} of the last second"
    if health.throttled:
        words += f"; limited by the system {times(health.throttled)}"
    if health.stolen:
        words += f"; {100 * health.stolen:.0f} % of the computer taken by its host"
    return words


def _outputs(engine: "Engine") -> Iterator[HealthLine]:
    health = engine.health
    missed, failed = health.sink_missed, health.sink_errors
    words = f"{counted(missed, 'row')} missed, {times(failed)} failed"
    yield HealthLine("Outputs", words, missed + failed > 0)
    for sink in engine.sinks:
        if note := getattr(sink, "note", ""):
            yield HealthLine(type(sink).__name__, str(note))


def _count(what: str, count: int, one: str, how: str, fs: int) -> HealthLine:
    words = f"{counted(count, one)} {how}"
    if count:
        words += f" ({count / fs:.3g} s)"
    return HealthLine(what, words, count > 0)


def _clock(ppm: float | None, uncertainty: float | None) -> str:
    if ppm is None or uncertainty is None:
        return "unknown until 20 s have passed"
    fast = "fast" if ppm >= 0 else "slow"
    return f"{abs(ppm):.1f} ± {uncertainty:.1f} ppm {fast}, by the clock of the computer"
