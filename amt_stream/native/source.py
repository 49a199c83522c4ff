"""A plan as C source and as JSON."""

import json
from importlib.resources import files

from amt_stream import __version__
from amt_stream.meters.accumulators import limit_state
from amt_stream.native.plan import HostPlan

LIMIT_FUNCTIONS = "LIMIT_BEGIN", "LIMIT_TAKE", "LIMIT_VERDICT"
LIMIT_PLACES = (
    *("SIGN", "THRESHOLD", "AMBER_FROM", "HYSTERESIS", "HOLD_S", "AT_END", "STEP_S", "COUNTED"),
    *("RISES", "RULES"),
    *("LAST", "TIMES", "COUNTED_S", "UNJUDGED_S", "WORST", "WORST_S", "STATE"),
)
"""What amt.c needs of the rules and the state of a limit."""


def runtime() -> dict[str, str]:
    """The C sources that are the same for all models, by the name of the file."""
    folder = files(__package__) / "c"
    return {one.name: one.read_text(encoding="utf-8") for one in folder.iterdir()}


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
        **{name: f"{plan.model}_kernel_{name.lower()}" for name in LIMIT_FUNCTIONS},
        **{f"LIMIT_{name}": getattr(limit_state, name) for name in LIMIT_PLACES},
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
    lines += ["};", "static const limit_column limit_columns[] = {"]
    lines += [f"    {{{one.about.counted:d}, {one.about.rises:d}}}," for one in plan.columns]
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
    about |= {"stage": json.loads(plan.about_stage)} if plan.about_stage else {}
    return json.dumps(about, indent=1) + "\n"


def lv2_manifest(plan: HostPlan) -> str:
    """What an LV2 host reads of the plug-in: the manifest of a bundle with MODEL.so."""
    uri, stereo = f"urn:amt-stream:{plan.model}-{plan.channels}-{plan.fs}", plan.channels == 2
    sides = (
        ("; lv2:designation pg:left", "; lv2:designation pg:right")
        if stereo
        else [""] * plan.channels
    )
    ports, groups = [], ""
    for way in ("In", "Out"):
        # GStreamer takes channels only as a group.
        group, kind = f"{uri}#{way.lower()}", "Stereo" if stereo else "Discrete"
        groups += f'<{group}> a pg:{kind}Group, pg:{way}putGroup; lv2:symbol "{way.lower()}" .\n'
        for k in range(plan.channels):
            about = f"lv2:{way}putPort, lv2:AudioPort; pg:group <{group}>{sides[k]}"
            ports.append((about, f"{way.lower()}_{k + 1}", ""))
    ends = "lv2:minimum {:.4f}; lv2:maximum {:.1f}"
    gain = f"lv2:default 1.0; {ends.format(1e-4, 1e4)}; lv2:portProperty pprop:logarithmic"
    ports.append(
        (f"lv2:InputPort, lv2:ControlPort; {gain}", "gain", f" in {plan.input_unit} for full scale")
    )
    for name, unit in (*((one.name, one.unit) for one in plan.columns), ("invalid", "samples")):
        of = ends.format(*((-200, 200) if unit[:1] in ("d", "L") else (0, 1e9)))  # as in plugin.h
        ports.append((f"lv2:OutputPort, lv2:ControlPort; {of}", name, f" in {unit}"))
    listed = " ,\n        ".join(
        f'[ a {about}; lv2:index {k}; lv2:symbol "{name}"; lv2:name "{name}{more}" ]'
        for k, (about, name, more) in enumerate(ports)
    )
    return f"""@prefix doap: <http://usefulinc.com/ns/doap#> .
@prefix lv2: <http://lv2plug.in/ns/lv2core#> .
@prefix pg: <http://lv2plug.in/ns/ext/port-groups#> .
@prefix pprop: <http://lv2plug.in/ns/ext/port-props#> .

{groups}
<{uri}>
    a lv2:Plugin , lv2:AnalyserPlugin ;
    lv2:binary <{plan.model}.so> ;
    doap:name "{plan.model}, {plan.channels} ch, {plan.fs} Hz" ;
    doap:license <http://opensource.org/licenses/MIT> ;
    lv2:optionalFeature lv2:hardRTCapable ;
    lv2:port
        {listed} .
"""
