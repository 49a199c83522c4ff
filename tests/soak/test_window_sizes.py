"""Nothing is cut in the usual layouts of the window, on screens that are scaled too."""

import os
import subprocess
import sys

import pytest

from tests.apps.conftest import open_window  # noqa: F401 (a fixture)
from tests.apps.texts import LAYOUTS as MEASURED
from tests.apps.texts import THEMES, engine_of, faults_in

pytestmark = pytest.mark.soak

LAYOUTS = {
    "moore2016": ["--model", "moore2016"],
    "five": ["--model", "moore2016,gm2002,zwicker,bs1770,spl"],
    "levels": ["--model", "spl,bs1770"],
    "king2019": ["--preset", "king2019"],
}


@pytest.mark.parametrize("scale", ["1", "1.5", "2"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_nothing_is_cut(xvfb, tmp_path, record, layout, scale):
    command = [sys.executable, "-m", "tests.apps.sizes", str(tmp_path), "1024x600"]
    done = subprocess.run(
        [*command, "--source", "am-tone", *LAYOUTS[layout]],
        env=os.environ | {"QT_SCALE_FACTOR": scale, "QT_QPA_PLATFORM": "xcb"},
        check=False,
        capture_output=True,
        text=True,
        timeout=250,
    )
    count = len(done.stdout.splitlines())
    record(f"window of 1024 x 600, {layout}, scale {scale}", f"{count} texts cut")
    assert done.returncode == 0, done.stdout + done.stderr


SIZES = [
    *((800, 520), (820, 560), (899, 599), (900, 600), (1024, 600), (1024, 768), (1152, 720)),
    *((1280, 720), (1280, 800), (1366, 768), (1600, 900), (1920, 1080)),
]


@pytest.mark.parametrize("layout", MEASURED)
def test_no_text_lies_on_another(qtbot, open_window, record, layout):  # noqa: F811
    window = open_window(engine_of(layout))
    window.first_start.skip.click()
    faults, count = faults_in(qtbot, window, SIZES, THEMES)
    record(
        f"texts of a window, {layout}",
        f"{count} in {len(SIZES)} sizes and {len(THEMES)} themes, {len(faults)} cut or covered",
    )
    assert not faults
