"""Adaptation, by the name of its module in torch_amt."""

from amt_stream.dsp.stages import AdaptLoop

__all__ = ["AdaptLoop"]
