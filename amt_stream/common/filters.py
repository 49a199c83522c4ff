"""Filters of any coefficients, by the name of their module in torch_amt.

Its functions for design are not offered: scipy has them.
"""

from amt_stream.dsp.stages import ButterworthFilter, IIRFilter, SOSFilter

__all__ = ["ButterworthFilter", "IIRFilter", "SOSFilter"]
