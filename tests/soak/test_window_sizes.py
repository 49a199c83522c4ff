"""Nothing is cut in the usual layouts of the window, on screens that are scaled too."""

import os
import subprocess
import sys

import pytest

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
