"""Playing a test signal in a loop."""

import tempfile
from pathlib import Path
from typing import Self

import numpy as np
from numpy.typing import NDArray

from amt_stream.engine.devices.capture_process import CaptureProcess
from amt_stream.engine.sources import SourceError

OPEN_S = 10.0


class Player:
    """Repeats a sound on an output until it is closed, in a process of its own.

    samples: (time,) as fractions of full scale; outputs of two channels play it on both
    device: the output, by a part of its name; None for the default

    Raises SourceError if the output cannot be opened.
    """

    def __init__(self, samples: NDArray[np.float32], fs: int, device: str | None = None) -> None:
        self._process = CaptureProcess()
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "sound.f32"
            np.asarray(samples, np.float32).tofile(path)
            try:
                self._process.ask("play", timeout=OPEN_S, path=str(path), fs=fs, device=device)
            except SourceError as error:
                self.close()
                where = "the default output" if device is None else f"the output {device!r}"
                raise SourceError(
                    f"{where} does not play at {fs} Hz: {error}; write the signal to a file and "
                    "play that"
                ) from error

    @property
    def interruptions(self) -> int:
        """How often the sound had a pause, as the computer was too slow.

        Raises SourceError if the player has ended.
        """
        return int(self._process.ask("interruptions")["count"])

    def close(self) -> None:
        """Stop the sound."""
        self._process.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
