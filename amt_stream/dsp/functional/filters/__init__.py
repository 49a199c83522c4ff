"""Linear filters: `f(x, coefficients, zi) -> (y, zf)`, as all of `functional`."""
