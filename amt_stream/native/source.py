"""A plan as C source and as JSON."""

import json
from importlib.resources import files

from amt_stream import __version__
from amt_stream.native.plan import HostPlan

RUNTIME = "amt.h", "amt.c", "amt_numba.h", "amt_numba.c", "example.c"


def runtime() -> dict[str, str]:
    """The C sources that are the same for all models, by the name of the file."""
    folder = files(__package__) / "c"
    return {name: (folder / name).read_text(encoding="utf-8") for name in RUNTIME}


def plan_header(plan: HostPlan, scratch: int) -> str:
    """The C header that makes `amt.c` run this plan; scratch: bytes that its kernels allocate."""
    defined = {
        "FS": plan.fs,
        "CHANNELS": plan.channels,
        "BLOCK": plan.block,
        "FRAMES": plan.frames,
        "COLUMNS": len(plan.columns),
        "ROWS": plan.length,
        "STATE": len(plan.state),
        "BEGUN": len(plan.initial),
        "WORK": plan.work,
        "OUTPUT": plan.outputs,
        "SCRATCH": scratch,
        "GIVES": int(plan.gives),
        "LATENCY_S": repr(plan.latency_s),
        "SETTLE_S": repr(plan.settle_s),
        "TAIL_S": repr(plan.tail_s),
        "DIGEST": f"UINT64_C({plan.digest})",
        "KERNELS": f"{plan.model}_kernels",
        "TABLES": f"{plan.model}_tables",
        "INITIAL": f"{plan.model}_initial",
        "ENTRY": f"{plan.model}_entry",
        "MODEL": json.dumps(plan.model),
        "VERSION": json.dumps(f"amt_stream {__version__}"),
        "INPUT_UNIT": json.dumps(plan.input_unit),
    }
    lines = [f"/* The plan of {plan.model}, written by amt_stream {__version__}. */"]
    lines += [f"#define PLAN_{name} {value}" for name, value in defined.items()]
    lines += ["static const plan_row rows[] = {"]
    for one in plan.rows:
        sizes = ", ".join(map(str, one.sizes))
        lines.append(
            f"    {{{one.row}, {one.segment}, {one.value}, {{{sizes}}}}}, /* {one.name} */"
        )
    lines += ["};", "static const amt_column columns[] = {"]
    lines += [f'    {{"{one.name}", "{one.unit}"}},' for one in plan.columns]
    places = ", ".join(str(one.place) for one in plan.columns)
    lines += ["};", f"static const int32_t column_places[] = {{{places}}};"]
    return "\n".join(lines) + "\n"


def plan_description(plan: HostPlan) -> str:
    """What a host needs to know of a model before it loads it, as JSON."""
    import llvmlite
    import numba

    about = {
        "amt": 1,
        "model": plan.model,
        "version": __version__,
        "fs": plan.fs,
        "channels": plan.channels,
        "block": plan.block,
        "frames_per_block": plan.frames,
        "frame_s": plan.frame_s,
        "latency_s": plan.latency_s,
        "settle_s": plan.settle_s,
        "tail_s": plan.tail_s,
        "input_unit": plan.input_unit,
        "columns": [{"name": one.name, "unit": one.unit} for one in plan.columns],
        "state": f"{plan.digest:016x}",
        "built_with": {"numba": numba.__version__, "llvmlite": llvmlite.__version__},
        "licence": "MIT",
    }
    return json.dumps(about, indent=1) + "\n"
