"""`amt-stream export`: a streaming model with its state as a torch program, or as a library."""

import inspect
import io
import json
from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

from amt_stream import __version__
from amt_stream.cli.files import not_to_write, refuse_no_folder, write_bytes
from amt_stream.cli.messages import Mistake, say
from amt_stream.cli.options.sounds import ExportOptions
from amt_stream.core.importing import refuse_without_torch
from amt_stream.core.json_types import JsonDict
from amt_stream.core.settings import PresetError
from amt_stream.dsp.stage_settings import stage_types
from amt_stream.meters import catalog
from amt_stream.meters.presets import load_preset

if TYPE_CHECKING:
    from amt_stream.dsp.streaming import Stage

ABOUT = "amt_stream.json"
"""The description of the program, an extra file inside the export."""


def run_export(args: ExportOptions) -> int:
    """Write the program, or the files of a library, and say how to use them."""
    refuse_without_torch("export")
    library = args.c or args.wasm
    if bool(library) == bool(args.out):
        both = ", not both" * bool(library)
        raise Mistake(f"give a file to write, or --c or --wasm and a folder{both}")
    return _library(args) if library else _program(args)


def _library(args: ExportOptions) -> int:
    from amt_stream.core.built_ahead import NotBuilt
    from amt_stream.native.build import Request, build_library
    from amt_stream.native.targets import files_of
    from amt_stream.native.web_files import WASM, web_files, web_files_of

    if args.shape is not None:
        raise Mistake("--shape is for a torch program: with --c and --wasm, give --channels")
    catalog.entry(args.what)
    targets = dict.fromkeys([*(args.targets if args.c else ()), *([WASM] if args.wasm else ())])
    own = [Path(args.c, name) for name in files_of(args.what, args.targets) if args.c]
    own += [Path(args.wasm, name) for name in web_files_of(args.what) if args.wasm]
    if refusal := next(filter(None, (not_to_write(path, args.force) for path in own)), ""):
        raise Mistake(refusal)
    for folder in filter(None, (args.c, args.wasm)):
        refuse_no_folder(Path(folder), "--c and --wasm need")
    say(f"compiling {args.what}: this takes up to two minutes")
    request = Request(args.what, args.fs, args.channels, args.block_ms * 1e-3, (*targets,))
    try:
        made = build_library(request)
        web = web_files(args.what, made) if args.wasm else {}
    except NotBuilt as error:
        raise Mistake(str(error)) from error
    if args.c:
        unasked = {f"{args.what}-{WASM}.o"} - {*files_of(args.what, args.targets)}
        _write(args.c, {name: made[name] for name in made.keys() - unasked})
        say(
            f"{args.c}: amt.h is the manual; this builds the example: cc -O2 "
            f"-DAMT_PLAN='\"{args.what}_plan.h\"' example.c amt.c amt_numba.c "
            f"{args.what}-{args.targets[0]}.o -lm -o meter"
        )
    if args.wasm:
        _write(args.wasm, web)
        say(
            f"{args.wasm}: open {args.what}.html in a browser; index.d.ts is the manual of index.js"
        )
    return 0


def _write(folder: str, files: Mapping[str, bytes]) -> None:
    try:
        Path(folder).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise Mistake(f"{folder} cannot be written: {error.strerror}") from error
    for name, content in files.items():
        write_bytes(Path(folder, name), content)


def _program(args: ExportOptions) -> int:
    import torch

    from amt_stream.dsp.stream import Stream

    out = Path(args.out)
    if refusal := not_to_write(out, args.force):
        raise Mistake(refusal)
    if not out.parent.is_dir():
        raise Mistake(f"{out} cannot be written: there is no folder {out.parent}")
    shape = args.shape or (1, args.channels)
    try:
        stage = _stage(args.what, args.fs)
        live = Stream(stage, shape)
        block = stage.block_size * max(1, round(args.block_ms * 1e-3 * args.fs / stage.block_size))
        sound = torch.zeros(*_with_time(stage, shape, block))
        with torch.no_grad():
            outputs = live(sound)
            live.reset()
            program = torch.export.export(live, (sound,), strict=False)
    except (TypeError, ValueError) as error:
        raise Mistake(f"{args.what} cannot be exported: {error}") from error
    about = _about(args.what, stage, args.fs, tuple(sound.shape), outputs)
    whole = io.BytesIO()
    torch.export.save(program, whole, extra_files={ABOUT: json.dumps(about, indent=1)})
    write_bytes(out, whole.getvalue())
    say(
        f"{out}: {about['stage']} in blocks of {block} samples, {about['shape']}; experimental. "
        "Load it with torch.export.load after from amt_stream.dsp.stages import *"
    )
    return 0


def _stage(what: str, fs: int) -> "Stage":
    """The stage with this name and its default arguments, or the one model of a preset."""
    kind = stage_types().get(what)
    if kind is not None:
        given = {"fs": fs} if "fs" in inspect.signature(kind).parameters else {}
        try:
            stage: Any = kind(**given)
        except TypeError as error:
            raise Mistake(
                f"{error}: give the arguments in a preset with a chain of this stage"
            ) from error
        return stage
    try:
        preset = load_preset(what)
    except PresetError as error:
        raise Mistake(f"{what} is neither a stage nor a preset: {error}") from error
    if len(preset.names) > 1:
        raise Mistake(f"{what} has several models, {preset.where}: export each separately")
    return preset.model(fs)


def _with_time(stage: "Stage", shape: tuple[int, ...], block: int) -> list[int]:
    """The shape with the time axis inserted."""
    whole = list(shape)
    whole.insert(len(shape) + 1 + stage.time_dim, block)
    return whole


def _about(what: str, stage: "Stage", fs: int, shape: tuple[int, ...], outputs: Any) -> JsonDict:
    fields = getattr(outputs, "_fields", ("value",))
    values = outputs if hasattr(outputs, "_fields") else (outputs,)
    return {
        "program": "amt_stream",
        "version": __version__,
        "exported": what,
        "stage": type(stage).__name__,
        "fs": fs,
        "shape": list(shape),
        "input_unit": getattr(stage, "input_unit", None),
        "ratio": str(Fraction(stage.ratio)),
        "latency": str(Fraction(stage.latency)),
        "outputs": {
            name: None if value is None else list(value.shape)
            for name, value in zip(fields, values, strict=True)
        },
    }
