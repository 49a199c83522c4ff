"""The image of a station, built as its Containerfile says, and what is in it at work.

Where the image that it begins with cannot be fetched, Debian's own Python stands in for it, and a
wheel of torch in the folder that PIP_FIND_LINKS names, if one is there.
"""

import os
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.service.served import ROOT
from tests.service.test_container import CONTAINERFILE, of

pytestmark = pytest.mark.soak

CERTIFICATES = "/etc/ssl/certs/ca-certificates.crt"
STANDS_IN = "python3,python3-pip,ca-certificates"


class Buildah:
    """Images and containers in a folder of their own, without a daemon."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        (folder / "wheels").mkdir()

    def __call__(self, *arguments: object, check: bool = True) -> str:
        command = ["buildah", "--storage-driver", "vfs", "--root", self._folder / "images"]
        command += ["--runroot", self._folder / "run", *arguments]
        done = subprocess.run([*map(str, command)], check=False, capture_output=True, text=True)
        assert not check or done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
        return done.stdout.strip() if done.returncode == 0 else ""

    def stand_in(self, name: str) -> None:
        """An image of that name, of Debian's packages."""
        root = self._folder / "debian"
        mirrored = [
            "debootstrap",
            "--variant=minbase",
            f"--include={STANDS_IN}",
            "bookworm",
            str(root),
        ]
        subprocess.run(mirrored, check=True, capture_output=True)
        (root / "usr/bin/python").symlink_to("python3")
        for mark in root.glob("usr/lib/python3*/EXTERNALLY-MANAGED"):
            mark.unlink()
        container = self("from", "scratch")
        self("add", container, root, "/")
        settings = [f"SSL_CERT_FILE={CERTIFICATES}", "UV_SYSTEM_CERTS=1"]
        settings += self._wheel_of_torch()
        for setting in settings:
            self("config", "--env", setting, container)
        self("commit", container, name)

    def _wheel_of_torch(self) -> list[str]:
        """The setting by which uv takes it, where there is one for that Python."""
        folder = Path(os.environ.get("PIP_FIND_LINKS", "/nowhere"))
        override = self._folder / "wheels" / "override.txt"
        for wheel in folder.glob("torch-*+cpu-cp311-*"):
            shutil.copy(wheel, override.parent)
            override.write_text(f"torch @ file:///wheels/{wheel.name}\n")
        return [f"UV_OVERRIDE=/wheels/{override.name}"] if override.exists() else []

    def build(self, name: str) -> None:
        volumes = [f"{self._folder / 'wheels'}:/wheels:ro", f"{CERTIFICATES}:{CERTIFICATES}:ro"]
        given = [word for one in volumes for word in ("--volume", one)]
        options = ["--isolation", "chroot", "--pull-never", "--format", "docker"]
        self("bud", *options, *given, "--tag", name, "--file", CONTAINERFILE, ROOT)


def test_the_image_builds_and_measures(tmp_path):
    for program in ("buildah", "debootstrap"):
        if shutil.which(program) is None or os.geteuid() != 0:
            pytest.skip(f"{program} is not installed, or this is not root")
    buildah = Buildah(tmp_path)
    (base,) = of("FROM")
    if not buildah("pull", base, check=False):
        buildah.stand_in(base)
    buildah.build("station")
    container = buildah("from", "--pull-never", "localhost/station")
    root = Path(buildah("mount", container))
    (package,) = root.glob("usr/local/lib/python3*/*-packages/amt_stream")
    # What a layer cuts off: else compiled kernels would not know their sources.
    assert not [one for one in package.rglob("*.py") if one.stat().st_mtime_ns % 10**9]
    assert not (root / "source/.venv").exists()
    kernels = {one.name for one in (root / "home/amt").rglob("*.nbc")}
    assert kernels
    run = ["run", "--isolation", "chroot", container, "--"]
    ids = buildah(*run, "python", "-c", "import os; print(os.getuid(), 29 in os.getgroups())")
    assert ids == "1000 True"
    (compiles,) = [rest for rest in of("RUN") if "--fast" in rest]
    measured = buildah(*run, *shlex.split(compiles.partition(">")[0]))
    assert "ltl_phon" in measured
    assert {one.name for one in (root / "home/amt").rglob("*.nbc")} == kernels  # none is new
    buildah("rm", container)
