"""How numbers are written."""


def sone_text(sone: float) -> str:
    """Three digits or so: 0.052, 1.00, 12.3, 123."""
    decimals = 3 if sone < 0.0995 else 2 if sone < 9.995 else 1 if sone < 99.95 else 0
    return f"{sone:.{decimals}f}"
