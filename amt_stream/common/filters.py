"""Digital filters from given coefficients, under their torch_amt module name.

Its design functions are absent: use scipy.
"""

from amt_stream.dsp.stages import ButterworthFilter, IIRFilter, SOSFilter

__all__ = ["ButterworthFilter", "IIRFilter", "SOSFilter"]
