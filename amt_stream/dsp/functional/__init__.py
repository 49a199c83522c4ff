"""Recurrences and transforms, `f(x, coefficients, zi) -> (y, zf)`: the only per-sample loops.

Each has a plain torch form, the reference, which runs on any device and under autograd, and a
compiled form for the CPU. `dispatch.compiled` chooses between them after `shapes` has checked the
tensors.
"""
