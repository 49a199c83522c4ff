"""Take the pictures of the window that the texts show: python tools/pictures.py

Each is of the test that uses the window as a person does; docs/pictures has them.
"""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "docs" / "pictures"
TEST = "tests/apps/test_scripted_session.py"


def main() -> int:
    FOLDER.mkdir(exist_ok=True)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", TEST]
    return subprocess.run(
        command, cwd=ROOT, env={**os.environ, "AMT_PICTURES": str(FOLDER)}, check=False
    ).returncode


if __name__ == "__main__":
    sys.exit(main())
