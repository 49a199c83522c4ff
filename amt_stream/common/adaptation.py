"""Adaptation loops, under their torch_amt module name."""

from amt_stream.dsp.stages import AdaptLoop

__all__ = ["AdaptLoop"]
