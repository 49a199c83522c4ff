"""What every meter can do."""


class Pausable:
    """A meter that can be made to count nothing for a while; what feeds it goes on."""

    paused = False

    def pause(self) -> None:
        """Count nothing until `resume`."""
        self.paused = True

    def resume(self) -> None:
        """Go on after a pause."""
        self.paused = False
