"""Recurrences and transforms, `f(x, coefficients, zi) -> (y, zf)`: the only per-sample loops.

Each has a plain torch form, which is the reference and runs on any device and under autograd, and a
compiled form for the CPU. `dispatch.compiled` chooses between them, once `shapes` has found that
the tensors fit together.
"""
