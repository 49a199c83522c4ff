"""The live path: sources, ring, engine, frames, history and health.

Names are imported on first use, so that listing devices needs no torch and reading a file no
PortAudio.
"""

import importlib
from typing import Any

_HOME = {
    "Engine": "runner",
    "Fault": "frames",
    "Frames": "frames",
    "History": "frames",
    "Health": "health",
    "SampleRing": "ring",
    "Source": "sources",
    "SourceError": "sources",
    "DeviceLost": "sources",
    "FileSource": "sources",
    "SignalSource": "sources",
    "StdinSource": "sources",
    "am_tone_source": "sources",
    "demo_source": "sources",
    "Tone": "signals",
    "Noise": "signals",
    "demo_sound": "signals",
    "InputDevice": "devices",
    "MicrophoneSource": "devices",
    "find_device": "devices",
    "list_devices": "devices",
}

__all__ = sorted(_HOME)  # noqa: PLE0605 - the names resolve in __getattr__


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'amt_stream.engine' has no attribute {name!r}")
    return getattr(importlib.import_module(f"amt_stream.engine.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return __all__
