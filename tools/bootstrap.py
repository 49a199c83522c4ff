"""Set up what is missing, then run one of VERBS."""

import ctypes.util
import hashlib
import importlib.util
import os
import re
import shutil
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from subprocess import DEVNULL, PIPE
from threading import Lock

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
VENV_PYTHON = VENV / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
STAMP = VENV / "amt_stream.stamp"
CONSTRAINTS = ROOT / "constraints.txt"
UNTIMED = ["-o", "faulthandler_timeout=900", "-o", "faulthandler_exit_on_timeout=false"]
"""Long runs say after a while where they are, and go on."""
VERBS = {  # verb: extras to install, and what the environment's Python is started with
    "meter": ("app", ["-m", "amt_stream.cli", "meter"]),
    "test": ("app,dev,rl", ["-m", "pytest", "-n", "4"]),
    "check": ("app,dev,rl", ["tools/check.py"]),
    "soak": ("app,dev,rl", ["-m", "pytest", "-sm", "soak", *UNTIMED]),
    "bench": ("app,dev,peers,rl", ["-m", "pytest", "-s", "-m", "bench", "tests/bench"]),
    "cuda": ("dev", ["-m", "tests.cuda"]),
    "frozen": ("app-pyside,frozen,lsl,serve", ["tools/frozen/build.py"]),
    "conformance": ("docs", ["tools/conformance.py"]),
    "native": ("native", ["tools/native.py"]),
    "station": ("native,release", ["tools/station/build.py"]),
    "release": ("native,release", ["tools/release.py"]),
    "docs": ("app,dev,docs,rl", ["tools/docs.py"]),
    "setup": ("app,dev,rl", []),
}
# Debian package=the library, program or file that shows it is there. Only Linux needs any of them.
SOUND = "libportaudio2=portaudio"
WINDOW = (
    "libgl1=GL libegl1=EGL libglib2.0-0=glib-2.0 libfontconfig1=fontconfig libdbus-1-3=dbus-1 "
    "libxkbcommon0=xkbcommon libxkbcommon-x11-0=xkbcommon-x11 libxcb-cursor0=xcb-cursor "
    "libxcb-icccm4=xcb-icccm libxcb-keysyms1=xcb-keysyms libxcb-shape0=xcb-shape"
)
TEST_PEERS = "xvfb=Xvfb chromium=chromium nodejs=node ffmpeg=ffmpeg mosquitto=*/*/mosquitto.service"
ONE_AT_A_TIME = Lock()
TEST_TOOLS = (
    "pulseaudio=pulseaudio pulseaudio-utils=pactl alsa-utils=amixer "
    "libasound2-plugins=alsa-lib/libasound_module_pcm_pulse.so gcc=gcc g++=c++ "
    "libc6-dev=*/crt1.o lv2-dev=lv2/core.lv2 lilv-utils=lv2apply"
)
SOAK_TOOLS = (
    "wine=wine wine64=wine/wine64 jalv=jalv jackd2=jackd gstreamer1.0-tools=gst-launch-1.0 "
    "gstreamer1.0-plugins-base=*/libgstrawparse.so gstreamer1.0-plugins-bad=*/libgstlv2.so"
)


def say(text):
    """Tell the user; standard output belongs to the readings."""
    print(f"[set-up] {text}", file=sys.stderr, flush=True)


def call(command, env=None):
    """Exit status of a command that cannot ask anything."""
    return subprocess.call(command, stdin=DEVNULL, stdout=sys.stderr, env=env)


def present(what):
    """True if the library, program, file or (ensurepip) module is on this machine."""
    if what == "ensurepip":
        return importlib.util.find_spec(what) is not None
    if "/" in what:
        return any(any(Path("/usr").glob(f"{lib}/{what}")) for lib in ("lib*", "lib/*"))
    return bool(shutil.which(what) or ctypes.util.find_library(what))


def removed(plan):
    """Names of the packages that a plan of `apt-get --simulate` takes away."""
    return re.findall(r"^(?:Remv|Purg) (\S+)", plan, re.MULTILINE)


def install_system(needs):
    """Install what `needs` names and this machine lacks; if that may not be, say what to type."""
    if sys.platform != "linux":
        return
    missing = [need.split("=")[0] for need in needs.split() if not present(need.split("=")[1])]
    with ONE_AT_A_TIME:
        reason = install_packages(missing) if missing else ""
    if reason:
        say(f"going on without {', '.join(missing)}: {reason}")


def install_packages(packages):
    """Install if that asks for no password and removes nothing; gives the reason if it did not."""
    install = ["apt-get", "install", "--no-install-recommends", *packages]
    if "pulseaudio" in packages and shutil.which("pipewire-pulse"):
        # apt-get may see no conflict, yet the two would compete for the user's audio.
        return "PulseAudio is not installed beside PipeWire."
    sudo = [] if os.geteuid() == 0 else ["sudo", "-n"]
    allowed = os.environ.get("SETUP_NO_SYSTEM") != "1" and shutil.which("apt-get")
    if not allowed or (sudo and not (shutil.which("sudo") and call([*sudo, "true"]) == 0)):
        return f"on Debian or Ubuntu, type: sudo {' '.join(install)}"
    command, update = [*sudo, *install, "--no-remove", "--yes"], [*sudo, "apt-get", "update"]
    for attempt in (1, 2):
        plan = subprocess.run([*install, "--simulate"], check=False, stdout=PIPE, text=True)
        if removed(plan.stdout):
            return f"{' '.join(install)} would remove {', '.join(removed(plan.stdout))}."
        if plan.returncode == 0:
            say(" ".join(command))
            if call(command) == 0:
                return ""
        if attempt == 1:
            say(f"the package lists are empty or old: {' '.join(update)}")
            call(update)
    return "apt-get could not install them; its message is above."


def install_python(extras):
    """Make the environment hold at least `extras`; nothing is run when the stamp says it does."""
    inputs = [(ROOT / "pyproject.toml").read_bytes(), CONSTRAINTS.read_bytes(), bytes(ROOT)]
    digest = hashlib.sha256(b"\0".join(inputs)).hexdigest()
    usable = STAMP.exists() and VENV_PYTHON.exists()
    stamped, installed = STAMP.read_text().split() if usable else ("", extras)
    extras = ",".join(sorted({*extras.split(","), *installed.split(",")}))
    if (stamped, installed) == (digest, extras):
        return
    STAMP.unlink(missing_ok=True)  # so that an interrupted installation is taken up again
    pip = [str(VENV_PYTHON), "-m", "pip", "--disable-pip-version-check"]
    if not VENV_PYTHON.exists() or call([*pip, "--version"]):  # none, or one left half made
        install_system(f"python3.{sys.version_info.minor}-venv=ensurepip")
        say("making .venv")
        if call([sys.executable, "-m", "venv", "--clear", str(VENV)]):
            sys.exit("Python could not make .venv; its message above says what is missing.")
    say("installing Python packages into .venv: once, and PyTorch is large")
    # In the environment, for the pip that builds the package; an address, as blanks end a path.
    same = dict.fromkeys(("PIP_CONSTRAINT", "PIP_BUILD_CONSTRAINT"), CONSTRAINTS.as_uri())
    install = [*pip, "install", "--no-compile"]  # Python compiles what it imports, a small part
    if call([*install, "--editable", f"{ROOT}[{extras}]"], {**os.environ, **same}):
        sys.exit("pip could not install the packages; its message is above.")
    if os.environ.pop("PYTHONDONTWRITEBYTECODE", ""):  # with it each start would compile anew
        call([str(VENV_PYTHON), "-c", "from amt_stream import *"])
    STAMP.write_text(f"{digest} {extras}\n")


def main(verb="", *arguments):
    if sys.version_info < (3, 11):  # noqa: UP036 - any Python may run this file
        sys.exit(f"amt_stream needs Python 3.11 or newer; this is {sys.version.split()[0]}.")
    if verb not in VERBS:
        sys.exit(f"usage: bootstrap.py {'|'.join(VERBS)} [ARGUMENT ...]")
    extras, command = VERBS[verb]
    if verb in ("meter", "frozen"):
        screen = os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
        needs = [f"{SOUND} {WINDOW}" if screen else SOUND]
    else:
        os.chdir(ROOT)  # the microphone apart: where it is refused, the others still go in
        needs = [f"{SOUND} {WINDOW} {TEST_PEERS}", TEST_TOOLS]
        needs += [SOAK_TOOLS] if verb == "soak" else []
    with ThreadPoolExecutor(1) as beside:  # apt-get and pip both wait for downloads
        system = [beside.submit(install_system, one) for one in needs]
        install_python(extras)
        for one in system:
            one.result()
    if not command:
        meter = VENV_PYTHON.relative_to(ROOT).with_name("amt-stream")
        sys.exit(say(f"ready: type {meter} --help, or make meter ARGS=--help, or make test"))
    command = [str(VENV_PYTHON), *command, *arguments]
    if os.name == "nt":  # exec would give the prompt back while the program still runs
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl+C is the program's to answer
        sys.exit(subprocess.call(command))
    os.execv(command[0], command)


if __name__ == "__main__":
    main(*sys.argv[1:])
