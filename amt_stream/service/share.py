"""An address as a QR code, for a telephone to read off a terminal."""

import io

from amt_stream.service.transport import missing


def square(address: str) -> str:
    """Lines of half blocks; raises ServiceError where the library is missing."""
    try:
        import segno
    except ModuleNotFoundError as error:
        raise missing("--share needs segno") from error
    lines = io.StringIO()
    segno.make(address, micro=False).terminal(lines, compact=True, border=2)
    return lines.getvalue()
