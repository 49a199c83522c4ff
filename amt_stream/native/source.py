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


LEVEL_END, VALUE_END = 200.0, 1e9
"""Ends of range of what a plug-in shows, as plugin.h has them."""


def lv2_manifest(plan: HostPlan) -> str:
    """What an LV2 host reads of the plug-in: the manifest of a bundle with MODEL.so."""
    uri = f"urn:amt-stream:{plan.model}-{plan.channels}-{plan.fs}"
    ports = [
        _lv2_port(
            f"{way}_{k + 1}",
            f"{way}_{k + 1}",
            f"a lv2:{way.capitalize()}putPort, lv2:AudioPort",
            *_lv2_group(uri, way, k, plan.channels),
        )
        for way in ("in", "out")
        for k in range(plan.channels)
    ]
    gain = "lv2:default 1.0", "lv2:minimum 0.0001", "lv2:maximum 10000.0", _LOGARITHMIC
    name = f"{plan.input_unit} for full scale"
    ports.append(_lv2_port("gain", name, "a lv2:InputPort, lv2:ControlPort", *gain))
    for name, unit in (*((one.name, one.unit) for one in plan.columns), ("invalid", "samples")):
        level = unit.startswith(("d", "L"))
        least, most = (-LEVEL_END, LEVEL_END) if level else (0.0, VALUE_END)
        ends = f"lv2:minimum {least:.1f}", f"lv2:maximum {most:.1f}"
        ports.append(
            _lv2_port(name, f"{name} in {unit}", "a lv2:OutputPort, lv2:ControlPort", *ends)
        )
    listed = " ,\n        ".join(f"[ {port}; lv2:index {k} ]" for k, port in enumerate(ports))
    kind = "StereoGroup" if plan.channels == 2 else "DiscreteGroup"
    groups = [
        f'<{uri}#{way}> a pg:{kind}, pg:{way.capitalize()}putGroup ; lv2:symbol "{way}" .\n'
        for way in ("in", "out")
    ]
    return f"""@prefix doap: <http://usefulinc.com/ns/doap#> .
@prefix lv2: <http://lv2plug.in/ns/lv2core#> .
@prefix pg: <http://lv2plug.in/ns/ext/port-groups#> .
@prefix pprop: <http://lv2plug.in/ns/ext/port-props#> .

{"".join(groups) * (plan.channels > 1)}
<{uri}>
    a lv2:Plugin , lv2:AnalyserPlugin ;
    lv2:binary <{plan.model}.so> ;
    doap:name "{plan.model}, {plan.channels} ch, {plan.fs} Hz" ;
    doap:license <http://opensource.org/licenses/MIT> ;
    lv2:optionalFeature lv2:hardRTCapable ;
    lv2:port
        {listed} .
"""


_LOGARITHMIC = "lv2:portProperty pprop:logarithmic"


def _lv2_port(symbol: str, name: str, *about: str) -> str:
    return "; ".join((*about, f'lv2:symbol "{symbol}"', f'lv2:name "{name}"'))


def _lv2_group(uri: str, way: str, channel: int, channels: int) -> list[str]:
    """What makes a port one of several channels, which GStreamer takes in no other way."""
    place = [f"lv2:designation pg:{('left', 'right')[channel]}"] if channels == 2 else []
    return [f"pg:group <{uri}#{way}>", *place] if channels > 1 else []
