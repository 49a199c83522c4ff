"""Take the pictures that the texts show: python tools/pictures.py [PART OF A TEST'S NAME]

Each is of a test that uses the window, the page or the terminal as a person does; docs/pictures
has them.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "docs" / "pictures"
TESTS = (
    "tests/apps/test_scripted_session.py",
    "tests/apps/test_shares_pane.py::test_shares_are_those_of_the_last_whole_second",
    "tests/apps/test_rating_pane.py::test_an_impulse_that_is_unchecked_counts_no_more",
    "tests/apps/test_stipa_pane.py::test_bands_and_category_are_those_of_the_sound",
    "tests/apps/test_stipa_dialog.py::test_what_is_played_here_is_heard",
    "tests/service/test_page.py::test_no_text_of_the_page_is_cut_or_lies_on_another",
    "tests/cli/test_terminal.py::test_what_a_text_shows_of_the_terminal",
    "tests/soak/test_state_pictures.py::test_each_state_is_told_apart_from_afar[light]",
)
PATIENT = "-o", "faulthandler_timeout=1500", "-o", "faulthandler_exit_on_timeout=false"


def main(part: str = "") -> int:
    """Take all pictures, or those of tests with `part` in their names."""
    tests = [test for test in TESTS if part in test]
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", "", *PATIENT]
    with tempfile.TemporaryDirectory() as taken:
        code = subprocess.run(
            [*command, *tests], cwd=ROOT, env={**os.environ, "AMT_PICTURES": taken}, check=False
        ).returncode
        for path in FOLDER.glob("*.png"):  # tests take others too
            if (new := Path(taken) / path.name).exists():
                path.write_bytes(new.read_bytes())
    return code


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
