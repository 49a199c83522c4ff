"""Inner hair cells, by the name of their module in torch_amt."""

from amt_stream.dsp.stages import IHCEnvelope, IHCPaulick2024

__all__ = ["IHCEnvelope", "IHCPaulick2024"]
