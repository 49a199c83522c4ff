"""Headphone, outer and middle ear, by the name of their module in torch_amt."""

from amt_stream.dsp.stages import HeadphoneFilter, MiddleEarFilter, OuterMiddleEarFilter

__all__ = ["HeadphoneFilter", "MiddleEarFilter", "OuterMiddleEarFilter"]
