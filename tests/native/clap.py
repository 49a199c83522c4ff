"""A host of CLAP plug-ins, and what it hears of one."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np

from tests.native.library import FLAGS, HOST

SOURCE = Path(__file__).with_name("clap_host.c")
PAGE = Path(__file__).parents[2] / "docs" / "native.md"


def plugin_of(folder, model, home):
    """Compile the plug-in of a model as the page says, and install it for a user's hosts."""
    page = PAGE.read_text(encoding="utf-8")
    (shown,) = re.findall(r"^```\n(cc [^`]+ ~/\.clap)\n```$", page, re.MULTILINE)
    lines = shown.replace("x86-64-v3", HOST).replace("zwicker", model)
    subprocess.run(
        ["sh", "-ec", lines], cwd=folder, env=os.environ | {"HOME": str(home)}, check=True
    )
    return home / ".clap" / f"{model}.clap"


def host_of(folder, out, *options):
    """Compile the host."""
    command = [shutil.which("cc"), *FLAGS, *options, "-I", str(folder), "-pthread", str(SOURCE)]
    subprocess.run([*command, "-ldl", "-lm", "-o", str(out)], check=True)
    return out


def heard(host, plugin, sound, block, *gains):
    """What a plug-in says of itself, and its values (block, column) of a sound (channel, time).

    gains: "SAMPLE:GAIN"
    """
    command = [str(one) for one in (host, plugin, block, *gains)]
    content = np.ascontiguousarray(sound.T, np.float32).tobytes()
    done = subprocess.run(command, input=content, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()
    about, _, rows = done.stdout.decode().partition("\n\n")
    rows = np.array([line.split() for line in rows.splitlines()], np.float32)
    return about.splitlines(), rows[:, 1:]
