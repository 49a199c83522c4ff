"""Write docs/performance.md and its pictures from docs/performance.json, as `make bench` does.

The figures are kept in the tree, so that page and pictures need no quiet machine, and a test
compares the page with them.
"""

import json
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

Line = dict[str, Any]

ROOT = Path(__file__).resolve().parent.parent
NUMBERS = ROOT / "docs" / "performance.json"
PAGE = ROOT / "docs" / "performance.md"
PICTURES = ROOT / "docs" / "pictures"
COLORS = ["#3b0f7a", "#8c2981", "#de4968", "#f59e55", "#0a66c2"]
COLORS += ["#2a9d8f", "#6c757d", "#c81e2b", "#5aa9f0", "#7a5c00"]
MARKS = "os^vDPX*hp"

TEXT = """# Speed

For people who choose a computer, a block length or a number of microphones.

A cost is CPU seconds of the thread per second of sound on one core: 0.04 is 4 % of a core.
The sound is white noise at 48 kHz; resampler and ear filter are included.
Values are medians. `make bench` measured them on {date}, and wrote this page, its pictures and
[the same figures as JSON](performance.json).
The machine: {machine}; its load average was {load:.1f} at the end; load raises costs.
A fixed loop of arithmetic takes {loop_s:.4f} s there; `amt-stream bench` times the same models
on your machine, gives them in units of that loop too, and with `--start` the start of a process.
A processor with AVX-512, on which the loop took 0.0140 s, took 0.017 for `moore2016`, 0.004 for
`zwicker` and 0.002 for `spl` in blocks of 10 ms (2026-11-27).

## Length of the blocks

One listener: two ears for `moore2016`, one channel for the others.

![Cost of each model against the length of the blocks](pictures/cost_by_block.svg)

{by_block}

A computer that sleeps between blocks takes two to three times that, because its caches are cold;
`Health.load` shows what it takes on yours.
In float64, with blocks of 10 ms: {doubles}.

## Listeners

Several listeners in one stream, blocks of 10 ms; the cost of all of them together.
Where it comes near 1, divide them among processes.

![Cost of each model against the number of listeners](pictures/cost_by_listeners.svg)

{by_listeners}

## Models together

One model more in each line, stereo, blocks of 10 ms, as the engine runs them.
Rows are one every 10 ms.

![Cost against the number of models](pictures/cost_by_models.svg)

{together}

## Hours of history

Milliseconds that the history of the window, 1280 x 280, needs to add and paint two rows,
after eight hours with ten rows a second.

![Cost of the history against the hours that it shows](pictures/cost_by_history.svg)

{history}

## Beside others

The same sound, in the same run, each program as it is installed.
The others process a whole sound at once; ours goes block by block, 10 ms each,
and so does the library that [`export --c`](native.md) writes, called from Python.
Their cost is CPU time of the process with one thread of PyTorch, the lower of two runs.
All figures were measured here; none is quoted from the other projects.

![Cost of other programs and of ours](pictures/cost_of_others.svg)

{peers}

## Stages

The parts of each model, one listener, blocks of 10 ms.

{stages}

## Latency

Frames lag the sound by 44 ms (42 ms at 32 kHz, up to 50 ms below 44.1 kHz): half of the longest
analysis window, the ear filter (11 ms) and the resampler.
`Health.latency_s` adds the latency of the device.
"""


def kept() -> dict[str, list[Line]]:
    """The figures, by part."""
    parts: dict[str, list[Line]] = json.loads(NUMBERS.read_text(encoding="utf-8"))
    return parts


def keep(part: str, lines: Sequence[Line], **of: str) -> None:
    """Put new lines in the place of those of a part that have these values; then write the page."""
    parts = kept() if NUMBERS.exists() else {}
    old = parts.get(part, []) if of else []
    others = [one for one in old if any(one[key] != value for key, value in of.items())]
    parts[part] = [*others, *lines]
    texts = (
        f"{json.dumps(name)}: [\n" + ",\n".join(json.dumps(one) for one in parts[name]) + "\n]"
        for name in sorted(parts)
    )
    NUMBERS.write_text("{\n" + ",\n".join(texts) + "\n}\n", encoding="utf-8")
    if {"machine", "models", "together", "history", "peers"} <= set(parts):
        PAGE.write_text(markdown(parts), encoding="utf-8")
        draw(parts)


def table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Lines of a table in Markdown, with an empty one after it."""
    lines = [columns, ["---"] * len(columns), *rows]
    return [*(f"| {' | '.join(row)} |" for row in lines), ""]


def wholes(lines: Sequence[Line], **wanted: object) -> list[Line]:
    """The lines of whole models in float32 that have these values."""
    wanted = {"stage": "", "dtype": "float32", **wanted}
    return [one for one in lines if all(one[key] == value for key, value in wanted.items())]


def models_of(lines: Sequence[Line]) -> list[str]:
    return list(dict.fromkeys(one["model"] for one in lines))


def span(hours: float) -> str:
    return f"{hours:g} h" if hours >= 1 else f"{60 * hours:.0f} min"


def cell(lines: Sequence[Line]) -> str:
    return f"{lines[0]['median']:.3f}" if lines else ""


def grid(lines: Sequence[Line], key: str, **fixed: object) -> list[str]:
    """A row for each model, and a column for each block length or number of streams."""
    values = sorted({one[key] for one in wholes(lines, **fixed)})
    words = "{:g} ms" if key == "block_ms" else "{}"
    rows = (
        [f"`{name}`", *(cell(wholes(lines, model=name, **fixed, **{key: v})) for v in values)]
        for name in models_of(lines)
    )
    return table(["model", *map(words.format, values)], rows)


def stage_rows(lines: Sequence[Line]) -> Iterable[Sequence[str]]:
    for name in models_of(lines):
        stages = [one for one in lines if one["model"] == name and one["stage"]]
        for one in stages:
            yield f"`{name}`", one["stage"], f"{one['median']:.4f}", f"{one['state_bytes']}"


def peer_rows(lines: Sequence[Line]) -> Iterable[Sequence[str]]:
    for one in lines:
        theirs, ours, native = one["their_cost"], one["our_cost"], one["c_cost"]
        program = f"{one['program']} {one['version']}"
        in_c = "" if native is None else f"{native:.3g}"
        yield program, one["task"], f"{theirs:.3g}", f"`{one['ours']}` {ours:.3g}", in_c


def together_rows(lines: Sequence[Line]) -> Iterable[Sequence[str]]:
    for count, one in enumerate(lines, 1):
        last = f"{count}: {'and ' if count > 1 else ''}`{one['models'][-1]}`"
        yield last, f"{one['median']:.3f}", f"{one['with_rows']:.3f}"


def markdown(parts: dict[str, list[Line]]) -> str:
    """The page."""
    (machine,), models = parts["machine"], parts["models"]
    doubles = wholes(models, dtype="float64")
    tables = {
        "by_block": grid(models, "block_ms", streams=1),
        "by_listeners": grid(models, "streams", block_ms=10),
        "together": table(["models", "models only", "with rows"], together_rows(parts["together"])),
        "history": table(
            ["shown", "ms"], ([span(h["shown_h"]), f"{h['ms']:.2f}"] for h in parts["history"])
        ),
        "peers": table(["program", "task", "cost", "ours", "in C"], peer_rows(parts["peers"])),
        "stages": table(["model", "stage", "cost", "bytes of state"], stage_rows(models)),
    }
    return TEXT.format(
        date=machine["date"],
        machine=machine["machine"],
        loop_s=machine["loop_s"],
        load=machine["load"],
        doubles=", ".join(f"`{one['model']}` {one['median']:.3f}" for one in doubles),
        **{name: "\n".join(lines).rstrip() for name, lines in tables.items()},
    )


def draw(parts: dict[str, list[Line]]) -> None:
    """The pictures: the same ones from the same figures."""
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "amt_stream"
    from matplotlib import pyplot

    models = parts["models"]

    def picture(name: str, size: tuple[float, float], plot: Callable[[Any], None]) -> None:
        figure, axes = pyplot.subplots(figsize=size, layout="constrained")
        plot(axes)
        axes.spines[["top", "right"]].set_visible(False)
        figure.savefig(PICTURES / f"{name}.svg", metadata={"Date": None})
        pyplot.close(figure)

    def by(key: str, label: str, **fixed: object) -> Callable[[Any], None]:
        def plot(axes: Any) -> None:
            for number, name in enumerate(models_of(models)):
                again, place = divmod(number, len(COLORS))
                style = f"{MARKS[place]}{('-', ':', '--')[again]}"
                lines = sorted(wholes(models, model=name, **fixed), key=lambda one: one[key])
                places, costs = ([one[k] for one in lines] for k in (key, "median"))
                axes.loglog(places, costs, style, color=COLORS[place], label=name, markersize=5)
            axes.set_xticks(places, [f"{value:g}" for value in places], minor=False)
            axes.minorticks_off()
            axes.set_xlabel(label)
            axes.set_ylabel("cores")
            axes.axhline(1, color="#999999", linestyle=":")
            axes.grid(color="#eeeeee")
            axes.legend(loc="center left", bbox_to_anchor=(1, 0.5), frameon=False)

        return plot

    def together(axes: Any) -> None:
        lines = parts["together"]
        counts = range(1, len(lines) + 1)
        axes.plot(
            counts, [one["with_rows"] for one in lines], "o-", color=COLORS[0], label="with rows"
        )
        axes.plot(
            counts, [one["median"] for one in lines], "s-", color=COLORS[3], label="models only"
        )
        axes.set_xticks(
            counts, [f"+ {one['models'][-1]}"[2 * (not i) :] for i, one in enumerate(lines)]
        )
        axes.tick_params(axis="x", rotation=30)
        axes.set_ylim(bottom=0)
        axes.set_ylabel("cores")
        axes.legend(frameon=False)

    def history(axes: Any) -> None:
        lines = parts["history"]
        axes.bar(
            [span(one["shown_h"]) for one in lines],
            [one["ms"] for one in lines],
            color=COLORS[0],
        )
        axes.set_ylabel("ms for two rows")

    def others(axes: Any) -> None:
        lines = parts["peers"]
        places = range(len(lines))
        costs = {key: [one[f"{key}_cost"] for one in lines] for key in ("their", "our")}
        axes.hlines(places, costs["our"], costs["their"], color="#cccccc")
        axes.plot(costs["their"], places, "s", color=COLORS[3], label="theirs")
        axes.plot(costs["our"], places, "o", color=COLORS[0], label="ours")
        axes.plot([one["c_cost"] for one in lines], places, "d", color=COLORS[1], label="ours in C")
        axes.set_yticks(places, [f"{one['program']}\n{one['task']}" for one in lines])
        axes.set_xscale("log")
        axes.invert_yaxis()
        axes.set_xlabel("CPU seconds per second of sound")
        axes.axvline(1, color="#999999", linestyle=":")
        axes.legend(frameon=False)

    picture("cost_by_block", (8, 5), by("block_ms", "length of the blocks (ms)", streams=1))
    picture("cost_by_listeners", (8, 5), by("streams", "listeners", block_ms=10))
    picture("cost_by_models", (8, 3.5), together)
    picture("cost_by_history", (6, 2.8), history)
    picture("cost_of_others", (8, 0.6 * len(parts["peers"]) + 1), others)


def main() -> int:
    parts = kept()
    PAGE.write_text(markdown(parts), encoding="utf-8")
    draw(parts)
    print(PAGE)
    return 0


if __name__ == "__main__":
    sys.exit(main())
