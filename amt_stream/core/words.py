"""Counts in sentences."""


def counted(count: int, one: str, several: str = "") -> str:
    """As "1 sample" or "2 samples".

    several: the plural, by default with an s
    """
    return f"{count} {one}" if count == 1 else f"{count} {several or one + 's'}"


def times(count: int) -> str:
    return "once" if count == 1 else "never" if not count else f"{count} times"
