"""An address as a QR code, for a telephone to read off a terminal."""

import io

from amt_stream.service.transport import ServiceError


def square(address: str) -> str:
    """Lines of half blocks; raises ServiceError where the library is missing."""
    try:
        import segno
    except ModuleNotFoundError as error:
        raise ServiceError(
            '--share needs segno, which is not installed: pip install "amt_stream[serve]"'
        ) from error
    lines = io.StringIO()
    segno.make(address, micro=False).terminal(lines, compact=True, border=2)
    return lines.getvalue()
