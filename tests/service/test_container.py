"""The image of a station: what its Containerfile says, as far as that shows without building it.

`tests/soak/test_container.py` builds it.
"""

import json
import re
import shlex
import subprocess
import sys
from fnmatch import fnmatch
from pathlib import Path, PurePosixPath

import pytest

from amt_stream.cli.commands.run import options_of
from tests.service.served import ROOT, Served, is_row

CONTAINERFILE = ROOT / "docs" / "unattended" / "Containerfile"
TOKEN = "0123456789abcdef0123"


def instructions():
    """Each as its name and the rest of its line, in their order."""
    text = re.sub(r"^\s*#.*\n", "", CONTAINERFILE.read_text(), flags=re.MULTILINE)
    lines = re.sub(r"\\\n\s*", " ", text).splitlines()
    return [tuple(line.split(maxsplit=1)) for line in lines if line.strip()]


def of(name):
    return [rest for instruction, rest in instructions() if instruction == name]


def ignored(path):
    """As .containerignore says of a path in the clone: the last line that fits decides."""
    found = False
    for line in (ROOT / ".containerignore").read_text().splitlines():
        pattern = line.removeprefix("!").removeprefix("**/")
        if not pattern or line.startswith("#"):
            continue
        places = [path, *PurePosixPath(path).parents]
        names = [one.name if "**" in line else str(one) for one in map(PurePosixPath, places)]
        if any(fnmatch(name, pattern) and name.count("/") == pattern.count("/") for name in names):
            found = not line.startswith("!")
    return found


def test_it_builds_without_an_argument_with_known_versions_and_not_as_root():
    assert all("=" in rest for rest in of("ARG"))
    (installs,) = [rest for rest in of("RUN") if "uv pip install" in rest]
    assert re.search(r"pip install \S+ uv==[\d.]+ ", installs)
    assert "--constraints constraints.txt --build-constraints constraints.txt" in installs
    names = [name for name, _ in instructions()]
    compiling = names.index("RUN", names.index("USER"))
    assert "meter" in instructions()[compiling][1]  # kernels are those of the user
    assert of("USER") == ["amt"]
    assert "useradd --create-home --groups audio amt" in of("RUN")[0]


def test_what_is_kept_lies_in_the_volume():
    (volume,), (folder,) = of("VOLUME"), of("WORKDIR")
    assert volume == folder
    (environment,) = of("ENV")
    assert PurePosixPath(environment.removeprefix("XDG_CONFIG_HOME=")).is_relative_to(volume)
    (command,) = map(json.loads, of("CMD"))
    asked = options_of(command[0], command[1:])
    assert (asked.listen, asked.web, asked.restore) == ("0.0.0.0", 8765, "or-anew")
    for path in (asked.log, asked.token_file):
        assert not Path(path).is_absolute()


def test_only_what_is_copied_goes_to_whoever_builds():
    copied = [word for rest in of("COPY") for word in shlex.split(rest)[:-1]]
    for path in copied:
        assert (ROOT / path).exists()
        assert not ignored(path)
    assert not ignored("amt_stream/cli/commands/run.py")
    for path in (".venv/bin/python", ".git/config", "tests/data/x", "docs/a.png", "apps/embed.py"):
        assert ignored(path), path
    assert ignored("amt_stream/engine/__pycache__/ring.pyc")


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    folder = tmp_path_factory.mktemp("station")
    (folder / "token").write_text(TOKEN + "\n")
    (folder / "token").chmod(0o600)
    asked = ["--web", "0", "--token-file", str(folder / "token"), "--source", "demo"]
    with Served(*asked, "--model", "spl") as one:
        one.folder, one.port = folder, re.search(r":(\d+)/", one.address)[1]
        one.until(is_row)
        yield one


def test_the_health_check_is_that_of_a_running_station(served):
    (told,) = of("HEALTHCHECK")
    _, *arguments = json.loads(told[told.index("[") :])
    arguments = [argument.replace(":8765/", f":{served.port}/") for argument in arguments]

    def healthy():
        check = [sys.executable, *arguments]
        return subprocess.run(check, check=False, capture_output=True, cwd=served.folder)

    assert healthy().returncode == 0
    served.ask("stop")
    served.until(lambda message: message.get("state", {}).get("state") == "stopped")
    ill = healthy()
    assert ill.returncode != 0
    assert b"503" in ill.stderr
