"""Adaptation, by the name of its module in torch_amt."""

from amt_stream.stages import AdaptLoop

__all__ = ["AdaptLoop"]
