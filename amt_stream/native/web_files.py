"""A model as WebAssembly: its module, the package of JavaScript around it, and a page."""

import base64
import gzip
import io
import json
import tarfile
import tempfile
from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path

from amt_stream import __version__
from amt_stream.meters import catalog
from amt_stream.meters.state_signs import SIGNS
from amt_stream.native.build import link, zig

WASM = "wasm32"
SCRIPTS = "index.js", "index.d.ts", "model.js", "worklet.js"
"""The same for all models."""

_EXPORTED = (
    *("about", "columns", "create", "reset", "set_gain", "process", "invalid", "save", "load"),
    *("limit_begin", "limit_take", "limit_result"),
)
_OPTIONS = (
    *("-target", "wasm32-wasi", "-mexec-model=reactor", "-std=c11", "-O2", "-DAMT_NO_MALLOC"),
    *("-msimd128", "-mbulk-memory", "-Wl,--strip-all", "-Wl,-z,stack-size=65536"),
    *(f"-Wl,--export=amt_{name}" for name in _EXPORTED),
    "-Wl,--export=__heap_base",
)


def web_files_of(model: str) -> tuple[str, ...]:
    """Names of the files of a model, besides those that are the same for all models."""
    return f"{model}.wasm", f"{model}.html"


def web_files(model: str, made: Mapping[str, bytes]) -> dict[str, bytes]:
    """Files of a package with one model, of those of `build_library`.

    Raises NotBuilt if Zig is not installed or cannot link it.
    """
    with tempfile.TemporaryDirectory(prefix="amt-stream-web-") as name:
        folder = Path(name)
        for file, content in made.items():
            (folder / file).write_bytes(content)
        link(folder, model, WASM, [*zig(), *_OPTIONS], "whole.wasm")
        module = (folder / "whole.wasm").read_bytes()
    page = _page(model, made[f"{model}.json"], module)
    return package_files([model]) | dict(zip(web_files_of(model), (module, page), strict=True))


def package_files(models: Sequence[str]) -> dict[str, bytes]:
    """The files of the package, for these models, without theirs."""
    about = {
        "name": "amt-stream",
        "version": __version__,
        "description": "Loudness models that run live, as WebAssembly and AudioWorklet",
        "license": "MIT",
        "type": "module",
        "types": "./index.d.ts",
        "exports": {
            ".": {"types": "./index.d.ts", "default": "./index.js"},
            "./worklet.js": "./worklet.js",
            **{f"./{model}.wasm": f"./{model}.wasm" for model in models},
        },
    }
    package = {"package.json": (json.dumps(about, indent=2) + "\n").encode()}
    return package | {name: _content(name).encode() for name in SCRIPTS}


def npm_archive(files: Mapping[str, bytes]) -> bytes:
    """The package as npm installs it from a file: the same bytes for the same files."""
    whole = io.BytesIO()
    with (
        gzip.GzipFile(fileobj=whole, mode="wb", mtime=0) as compressed,
        tarfile.open(fileobj=compressed, mode="w") as archive,
    ):
        for name, content in sorted(files.items()):
            entry = tarfile.TarInfo(f"package/{name}")
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    return whole.getvalue()


def _page(model: str, about: bytes, module: bytes) -> bytes:
    """A page that needs no other file, so that it works from a disk and without a network."""
    class_of_model = _content("model.js").replace("export class", "class")
    worklet = _content("worklet.js").replace('import { Model } from "./model.js";\n', "")
    parts = {
        "ABOUT": json.dumps(json.loads(about)),
        "METHOD": json.dumps(catalog.entry(model).method),
        "SIGNS": json.dumps({name: sign.glyph for name, sign in SIGNS.items()}),
        "WORKLET": json.dumps(class_of_model + worklet),
        "WASM": base64.b64encode(module).decode(),
    }
    page = _content("page.html")
    for name, text in parts.items():
        page = page.replace(f"/*{name}*/", text)
    return page.encode()


def _content(name: str) -> str:
    return (files(__package__) / "web" / name).read_text(encoding="utf-8")
