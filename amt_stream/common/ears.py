"""Headphone, outer ear and middle ear, under their torch_amt module name."""

from amt_stream.dsp.stages import HeadphoneFilter, MiddleEarFilter, OuterMiddleEarFilter

__all__ = ["HeadphoneFilter", "MiddleEarFilter", "OuterMiddleEarFilter"]
