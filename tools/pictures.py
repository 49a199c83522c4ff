"""Take the pictures of the window and the page that the texts show: python tools/pictures.py

Each is of a test that uses them as a person does; docs/pictures has them.
"""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "docs" / "pictures"
TESTS = (
    "tests/apps/test_scripted_session.py",
    "tests/apps/test_shares_pane.py::test_shares_are_those_of_the_last_whole_second",
    "tests/service/test_page.py::test_no_text_of_the_page_is_cut_or_lies_on_another",
)


def main() -> int:
    FOLDER.mkdir(exist_ok=True)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", "", *TESTS]
    return subprocess.run(
        command, cwd=ROOT, env={**os.environ, "AMT_PICTURES": str(FOLDER)}, check=False
    ).returncode


if __name__ == "__main__":
    sys.exit(main())
