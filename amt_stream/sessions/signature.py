"""A signature of the last hash of a session, with the user's key (Ed25519, RFC 8032).

A hash chain alone cannot show that its end was removed. The signature can, and has its time.
"""

import base64
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from amt_stream.core.files import NotThatFile, small_content, small_text, whole_text_file
from amt_stream.core.importing import install
from amt_stream.meters.calibration import rfc3339
from amt_stream.sessions.files import SessionError, as_session_error

SIGNATURE = "signature.json"


def sign(folder: Path, head: str, private_key: Path) -> str:
    """Sign the last hash with the key in a PEM file, and return the time in UTC.

    Raises SessionError if the key is invalid, or the signature cannot be written.
    """
    key = _key(private_key, "private")
    utc = rfc3339(datetime.now(UTC))
    signature = base64.b64encode(key.sign(_signed(head, utc))).decode()
    with (
        as_session_error(folder / SIGNATURE, "written"),
        whole_text_file(folder / SIGNATURE) as file,
    ):
        json.dump({"head": head, "utc": utc, "signature": signature}, file)
    return utc


def signed(folder: Path, public_key: Path) -> tuple[str, str]:
    """The signed hash and its time. Raises SessionError if the key did not sign it."""
    from cryptography.exceptions import InvalidSignature

    key = _key(public_key, "public")
    path = folder / SIGNATURE
    try:
        about: dict[str, str] = json.loads(small_content(path))
        head, utc = str(about["head"]), str(about["utc"])
        key.verify(base64.b64decode(about["signature"]), _signed(head, utc))
    except NotThatFile as error:
        raise SessionError(f"{path} {error}: the session was not signed") from error
    except (KeyError, TypeError, ValueError, RecursionError, InvalidSignature) as error:
        raise SessionError(f"{path} is not a signature by the key in {public_key}") from error
    return head, utc


def _signed(head: str, utc: str) -> bytes:
    return f"amt_stream session\n{head}\n{utc}\n".encode()


def _key(path: Path, kind: str) -> Any:
    try:
        from cryptography.exceptions import UnsupportedAlgorithm
        from cryptography.hazmat.primitives import serialization
        from cryptography.hazmat.primitives.asymmetric import ed25519
    except ModuleNotFoundError as error:
        raise SessionError(
            f"a signature needs the package cryptography: {install('sign')}"
        ) from error
    try:
        data = small_text(path).encode()
        if kind == "private":
            key: object = serialization.load_pem_private_key(data, None)
            right = isinstance(key, ed25519.Ed25519PrivateKey)
        else:
            key = serialization.load_pem_public_key(data)
            right = isinstance(key, ed25519.Ed25519PublicKey)
    except NotThatFile as error:
        raise SessionError(f"{path} {error}") from error
    except UnsupportedAlgorithm:
        right = False
    except (TypeError, ValueError) as error:  # TypeError: a key with a password
        raise SessionError(
            f"{path} has no {kind} key in PEM without a password: {error}"
        ) from error
    if not right:
        raise SessionError(
            f"{path} has a {kind} key of another kind: make one of Ed25519 (openssl genpkey "
            "-algorithm ed25519)"
        )
    return key
