"""Build what a release has of models as machine code: `make native`.

    python tools/native.py [MODEL ...]

Libraries for NativeModel go into amt_stream/native/prebuilt, the package of npm into build/npm.
With models, only theirs. The same sources give the same bytes, with the numba, llvmlite and Zig of
constraints.txt. Libraries of other sources are removed.
"""

import sys
from collections.abc import Sequence
from pathlib import Path

from amt_stream import __version__
from amt_stream.core.built_ahead import PREBUILT
from amt_stream.native.build import ZIG_TARGETS, Request, build_library
from amt_stream.native.prebuilt import library_name, linked, of_any_linux, store_library
from amt_stream.native.web_files import WASM, npm_archive, package_files, web_files

ROOT = Path(__file__).resolve().parent.parent

BUILT = [
    (model, fs, channels)
    for fs in (48000, 44100)
    for model, channels in (("moore2016", 2), ("zwicker", 1), ("zwicker", 2), ("gm2002", 2))
]
"""Models, sampling rates and channels, in blocks of 10 ms."""

WEB = {"moore2016": 1.0, "zwicker": 10.0, "gm2002": 1.0}
"""Models of two channels, and their blocks in ms: an AudioWorklet is called each 2.7 ms, and a long
block of a slow model would come too late."""

PACKAGE = ROOT / "build" / "npm" / f"amt-stream-{__version__}.tgz"


def main(models: Sequence[str]) -> None:
    requests = [
        Request(model, fs, channels, 0.01, (*ZIG_TARGETS,)) for model, fs, channels in BUILT
    ]
    names = {library_name(one, target) for one in requests for target in one.targets}
    for path in PREBUILT.glob("*.so"):
        if path.name not in names:
            path.unlink()
    for request in requests:
        if not models or request.model in models:
            libraries = linked(request, build_library(request), of_any_linux)
            for name, content in libraries.items():
                path = store_library(PREBUILT / name, content)
                print(f"{path.name}: {len(content) / 1e3:.0f} kB", flush=True)
    store_library(
        PACKAGE, npm_archive(web_package([one for one in WEB if not models or one in models]))
    )
    print(PACKAGE)


def web_package(models: Sequence[str]) -> dict[str, bytes]:
    """The files of the package, with the module and the page of each model."""
    whole: dict[str, bytes] = {}
    for model in models:
        request = Request(model, 48000, 2, WEB[model] * 1e-3, (WASM,))
        whole |= web_files(model, build_library(request))
    return whole | package_files(models)


if __name__ == "__main__":
    main(sys.argv[1:])
