"""The saved position and state of an engine."""

from collections.abc import Mapping

from amt_stream import __version__
from amt_stream.core.saved_state import Resumable, Unfitting
from amt_stream.engine.clock import ClockReading
from amt_stream.engine.measurement import Measurement


class Standing(Resumable):
    """Saved state of an engine: its models' states, and when that was.

    epoch: UTC of the first sample
    """

    kept = ("version", "fs", "epoch", "moment", "models")

    def __init__(self, fs: int, models: Mapping[str, Measurement]) -> None:
        self.version, self.fs, self.models = __version__, int(fs), dict(models)
        self.epoch, self.moment = 0.0, ClockReading()

    def load_state_dict(self, state: Mapping[str, object]) -> None:
        """Raises Unfitting for the state of another version, rate or model."""
        for name, mine in (("version", self.version), ("fs", self.fs)):
            was = state.get(name)
            if was != mine:
                raise Unfitting(f"the {name} was {was!r:.40}, and is {mine!r}: go on with the same")
        super().load_state_dict(state)
        if len({one.position.sample for one in self.models.values()}) > 1:
            raise Unfitting("the models of the state are at different samples")
