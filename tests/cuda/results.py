"""What `make cuda` has left, and of which source."""

import hashlib
from pathlib import Path

ROOT = Path(__file__).parents[2]
RESULTS = Path(__file__).with_name("RESULTS.md")
SOURCES = ("*.py", "functional/**/*.py", "stages/**/*.py", "models/**/*.py")


def source_hash(package=ROOT / "amt_stream" / "dsp"):
    """One number of all that runs on a GPU."""
    digest = hashlib.sha256()
    for path in sorted(path for pattern in SOURCES for path in package.glob(pattern)):
        digest.update(path.relative_to(package).as_posix().encode() + b"\0")
        digest.update(path.read_bytes() + b"\0")
    return digest.hexdigest()
