"""How tests come by one form of a function, or the other."""

from torch.autograd import forward_ad


def compiledly(f, *given):
    """`f(*given)`, compiled."""
    return f(*given)


def plainly(f, *given):
    """`f(*given)` in torch alone: tangents, of which a kernel knows nothing, might be there."""
    with forward_ad.dual_level():
        return f(*given)
