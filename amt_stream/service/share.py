"""An address as a QR code in the terminal, for a phone."""

import io

from amt_stream.service.transports.transport import missing


def square(address: str) -> str:
    """The QR code as lines of half blocks. Raises ServiceError if the library is missing."""
    try:
        import segno
    except ModuleNotFoundError as error:
        raise missing("--share needs segno") from error
    lines = io.StringIO()
    segno.make(address, micro=False).terminal(lines, compact=True, border=2)
    return lines.getvalue()
