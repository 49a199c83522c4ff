"""Inner hair cells, under their torch_amt module name."""

from amt_stream.dsp.stages import IHCEnvelope, IHCPaulick2024

__all__ = ["IHCEnvelope", "IHCPaulick2024"]
