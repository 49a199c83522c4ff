"""Files and command lines as nobody means them: each is done, or refused in a sentence.

`python -m tests.cli.fuzz KIND COUNT SEED FOLDER` tries so many, prints what went wrong, and
at the end how many were tried and refused. In a process of its own, as a library may crash; FOLDER
then holds what it crashed on.
"""

import contextlib
import io
import json
import math
import os
import random
import resource
import sqlite3
import sys
import time
import traceback
import unicodedata
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import soundfile

from amt_stream.cli.command import run_command
from amt_stream.cli.messages import Mistake
from amt_stream.cli.sounds.calibration_table import calibration_table
from amt_stream.core.device_store import CalibrationError
from amt_stream.core.safe_text import plain
from amt_stream.dsp.stage_settings import stage_types
from amt_stream.meters.calibration import Calibration, Record, read_records
from amt_stream.meters.correction import CorrectionError, read_correction
from amt_stream.meters.limits import KEYS
from amt_stream.meters.norms import norms_folder, read_norm
from amt_stream.meters.presets import (
    Preset,
    PresetError,
    load_preset,
    presets_folder,
    read_preset,
    rules,
)

SLOW_S = 20.0
"""For a machine that does other things besides."""

LONGEST_SENTENCE = 2000
FS = 48000
MEMORY = 8 << 30

HOSTILE = [
    "",
    " ",
    "-",
    "--",
    ".",
    "/",
    "/dev/zero",
    "\x1b[2J\x1b]0;owned\x07",
    "a\nb",
    "\u202egnp",
    "\udcff",
    "\U0010ffff",
    "n" * 300,
    "é" * 130,
    "1e309",
    "nan",
    "-inf",
    "9" * 400,
    "0x" + "f" * 9000,
    "-1",
    "0",
    "2147483648",
    "1.5",
    "%s%n{0}",
    "*",
    "[",
    "demo",
    "folder",
    "pipe",
    "loop",
    "good.wav",
    "cut.wav",
    "text.wav",
    "none.wav",
    "x.raw",
    "broken.toml",
]

Trial = Callable[[random.Random, Path], bool]
"""Try one thing in a folder; gives whether it was refused, raises what it should not."""


class Wrong(Exception):
    """What came was neither done nor refused as it should be."""


def mutated(rng: random.Random, content: bytes) -> bytes:
    """The same with some of its bytes changed, doubled, taken out or cut off."""
    found = bytearray(content)
    for _ in range(rng.choice((1, 1, 2, 4, 16))):
        if not found:
            break
        at = rng.randrange(min(len(found), rng.choice((64, 200, len(found)))))
        span = slice(at, at + rng.choice((1, 2, 4, 8, 64)))
        match rng.randrange(7):
            case 0:
                found[at] = rng.randrange(256)
            case 1:
                found[at] ^= 1 << rng.randrange(8)
            case 2:
                found[span] = bytes([rng.choice((0, 1, 0x7F, 0x80, 0xFF))]) * len(found[span])
            case 3:
                found[at:at] = found[span]
            case 4:
                del found[span]
            case 5:
                found[at:at] = rng.choice(HOSTILE).encode("utf-8", "surrogateescape")
            case 6:
                if rng.random() < 0.3:
                    del found[at:]
    return bytes(found)


def a_sentence(error: object) -> None:
    text = str(error)
    if not text or not harmless(plain(text)) or len(text) > LONGEST_SENTENCE:
        raise Wrong(f"no sentence: {text[:300]!r} ({len(text)} letters)")


def harmless(text: str) -> bool:
    """Whether a line does nothing to a terminal."""
    acting = {"Cc", "Cs", "Zl", "Zp"}
    turning = {"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"}
    return not any(
        unicodedata.category(c) in acting or unicodedata.bidirectional(c) in turning for c in text
    )


@contextlib.contextmanager
def refused_by(*kinds: type[Exception]) -> Iterator[list[bool]]:
    """Whether what is inside was refused by an error of these kinds, with a sentence."""
    refused = [False]
    try:
        yield refused
    except kinds as error:
        a_sentence(error)
        refused[0] = True


def presets() -> Trial:
    texts = [path.read_bytes() for path in presets_folder().glob("*.toml")]
    chain = b'[model]\nname = "chain"\n'
    for name in stage_types():
        chain += f'[[model.stages]]\ntype = "{name}"\nlearnable = true\n'.encode()
    texts += [chain, b'[model]\nname = "chain"\n[[model.stages]]\ntype = "torch.nn.PReLU"\n'] * 2
    for path in norms_folder().glob("*.toml"):
        limits = path.read_bytes().partition(b"\n\n")[2]
        texts.append(b'[model]\nname = "spl"\n' + limits)
    keys = [*rules(), "model.stages.type", "x.y.z", *KEYS]

    def value(rng: random.Random) -> str:
        return rng.choice(
            [
                "[" * 1000 + "]" * 1000,
                "{a = " * 1000 + "1" + "}" * 1000,
                "9" * rng.choice((20, 400, 5000)),
                "0x" + "f" * rng.choice((20, 400, 9000)),
                "nan",
                "inf",
                "-1e400",
                "true",
                "1979-05-27T07:32:00Z",
                '"' + rng.choice(HOSTILE).replace("\\", "/").replace('"', "'") + '"',
                '["moore2016", "moore2016"]',
                "[[], {}]",
                "'''" + "x" * 5000 + "'''",
            ]
        )

    def trial(rng: random.Random, folder: Path) -> bool:
        content = rng.choice(texts)
        if rng.random() < 0.5:
            line = f"\n{rng.choice(keys)} = {value(rng)}\n".encode("utf-8", "surrogateescape")
            content = line + content if rng.random() < 0.5 else content + line
        if rng.random() < 0.7:
            content = mutated(rng, content)
        path = folder / "mine.toml"
        path.write_bytes(content)
        with refused_by(PresetError, ValueError) as refused:
            read_preset(path)
            load_preset(str(path))
        with refused_by(PresetError):
            read_norm(path)
        if not refused[0] and b"chain" in content:
            with refused_by(PresetError, ValueError) as refused:
                read_preset(path).models(FS, 2)
        return refused[0]

    return trial


def sounds() -> Trial:
    x = 0.1 * np.random.default_rng(0).standard_normal(4800)
    seeds = []
    # One without a header, and one that writes a second file into the current folder.
    for format in sorted(soundfile.available_formats().keys() - {"RAW", "SD2"}):
        for subtype in soundfile.available_subtypes(format):
            for fs in (48000, 8000):
                file = io.BytesIO()
                with contextlib.suppress(soundfile.LibsndfileError, ValueError, TypeError):
                    if soundfile.check_format(format, subtype):
                        soundfile.write(file, x, fs, format=format, subtype=subtype)
                        seeds.append((format.lower(), file.getvalue()))
                        break

    def trial(rng: random.Random, folder: Path) -> bool:
        ending, content = rng.choice(seeds)
        path = folder / f"sound.{ending}"
        path.write_bytes(mutated(rng, content))
        shape = ["--summary"] if rng.random() < 0.5 else []
        shape += ["--replace-invalid"] if rng.random() < 0.5 else []
        try:
            return said("analyze", str(path), "--model", "bs1770", *shape) != 0
        finally:
            path.unlink()

    return trial


def calibrations() -> Trial:
    record = Record("mic", 1, 94.0, -26.0, 1000.0, "2026-11-21T09:00:00Z", 0.25)
    line = "".join(f"{key}: {value!r}, " for key, value in record.to_dict().items())
    good = ("{" + line.replace("'", '"') + '"date": "now"}\n').encode()
    kept = (
        b'{"device": "mic", "channel": 1, "reference_db_spl": 94.0, "measured_dbfs": -26.0, '
        b'"frequency_hz": 1000.0, "date": "2026-11-21T09:00:00Z"}\n'
    )
    table = b"file,channel,full_scale_db\na.wav,1,94\n,2,100.5\nb.wav,,120\n"
    table_2 = b"channel,full_scale_db,file\n1,94,a.wav\n2,100\n"
    values = [
        "[" * 2000 + "]" * 2000,
        '{"a":' * 2000 + "1" + "}" * 2000,
        "9" * 400,
        "9" * 5000,
        "1e999",
        "NaN",
        "-Infinity",
        '"\\ud800"',
        '"\\u001b[2J"',
        "null",
        "true",
        "[]",
        '"' + "x" * 5000 + '"',
    ]

    def trial(rng: random.Random, folder: Path) -> bool:
        path = folder / "given"
        if rng.random() < 0.5:
            content = rng.choice((kept, good)) * rng.choice((1, 1, 3))
            if rng.random() < 0.6:
                old = rng.choice((b"1", b"94.0", b"-26.0", b"1000.0", b'"mic"', b'"date"'))
                content = content.replace(old, rng.choice(values).encode(), 1)
        else:
            content = rng.choice((table, table_2))
            if rng.random() < 0.6:
                old = rng.choice((b"1", b"94", b"a.wav", b"100.5", b",", b"\n"))
                content = content.replace(old, rng.choice(values).encode(), 1)
        path.write_bytes(mutated(rng, content) if rng.random() < 0.7 else content)
        with refused_by(CalibrationError, Mistake) as refused:
            if b"full_scale_db\n" in content:
                found = list(calibration_table(path).values())
            else:
                found = [record.calibration for record in read_records(path)]
            for one in found:
                if not 0 <= Calibration(one.full_scale_db_spl).full_scale_db_spl <= 250:
                    raise Wrong("a level that cannot be")
        return refused[0]

    return trial


def corrections() -> Trial:
    good = [
        b'"Sens Factor =-1.2dB, SERNO: 1"\n20\t-1.3\n1000\t0\n20000\t2.1\n',
        b"* Hz dB\n20,0;-1,3\n1000;0\n20000;2,1\n",
        "20 -1.3\n1000 0\n".encode("utf-16"),
    ]
    values = [b"nan", b"inf", b"1e999", b"-1e4", b"", b"9" * 5000, b"1e-320", b"\0", b","]

    def trial(rng: random.Random, folder: Path) -> bool:
        path = folder / "given"
        content = rng.choice(good)
        if rng.random() < 0.6:
            content = content.replace(
                rng.choice((b"20", b"1000", b"2.1", b"\n")), rng.choice(values)
            )
        path.write_bytes(mutated(rng, content) if rng.random() < 0.7 else content)
        with refused_by(CorrectionError) as refused:
            found = read_correction(path, rng.random() < 0.5)
            if not np.isfinite(found.at(1000.0).gains).all() or not found.in_words():
                raise Wrong("a response that is none")
        return refused[0]

    return trial


def commands() -> Trial:
    counts = ["1", "2", "1,2", "2,1", "each", "3"]
    some: dict[str, list[str]] = {
        "--model": ["spl", "bs1770", "spl,bs1770", "zwicker", "dau1997"],
        "--field": ["free", "diffuse", "eardrum"],
        "--full-scale-db": ["94", "100", "0"],
        "--calibration-uncertainty": ["0.5"],
        "--microphone-uncertainty": ["1"],
        "--preset": ["broadcast", "workplace", "broken.toml"],
        "--columns": ["laf_db", "*", "*_lufs", "laeq_15min_db", "laeq_0s_db"],
        "--from": ["0", "0.05", "7"],
        "--to": ["0.1", "0.05"],
        "--target": ["-23"],
        "--step-ms": ["1", "10", "1000"],
        "--channels": counts,
        "--format": ["csv", "jsonl"],
        "--level": ["94"],
    }
    flags = ["--dual-mono", "--help", "--version", "--nothing"]
    own: dict[str, dict[str, list[str]]] = {
        "analyze": {
            "--out": ["out.csv", "out", "out.parquet", "out.json", "-"],
            "--calibrations": ["table.csv"],
            "--calibrator": ["good.wav"],
            "--jobs": ["1", "0"],
        },
        "meter": {
            "--samplerate": ["8000", "44100"],
            "--blocksize": ["1", "480"],
            "--pcm": ["s16le"],
        },
        "calibrate": {"--frequency": ["1000"], "--pcm": ["f32le"], "--timeout": ["3"]},
        "selftest": {"--report": ["good.wav", "folder", "loop"]},
    }
    own_flags = {
        "analyze": ["--summary", "--force", "--replace-invalid"],
        "meter": ["--terminal"],
        "calibrate": [],
        "selftest": ["--force"],
    }

    def line(rng: random.Random) -> list[str]:
        command = rng.choices(("analyze", "meter", "calibrate", "selftest"), (6, 4, 1, 1))[0]
        words = [command]
        options = some | own[command]
        for name in rng.sample(list(options), rng.choice((0, 1, 1, 2, 4))):
            good = rng.random() < 0.9
            words += [name, rng.choice(options[name]) if good else rng.choice(HOSTILE)]
        words += [f for f in (*flags, *own_flags[command]) if rng.random() < 0.05]
        sources = ["good.wav"] * 40 + ["cut.wav"] * 5 + HOSTILE
        if command == "analyze":
            words += [rng.choice(sources) for _ in range(rng.choice((1, 1, 1, 2, 3)))]
        elif command == "meter":
            words += ["--source", rng.choice([*sources, "demo", "am-tone", "-"]), "--fast"]
            words += ["--duration", "0.1"]
            if "--terminal" not in words and rng.random() < 0.9:
                words += ["--format", "csv"]
        elif command == "calibrate":
            words += ["--source", rng.choice(sources)]
        else:
            words += ["--model", rng.choice(["none", *HOSTILE])]  # a real one takes 20 s
        if rng.random() < 0.1:
            words.insert(rng.randrange(len(words) + 1), rng.choice(HOSTILE))
        return [word.replace("\0", "") for word in words]

    def trial(rng: random.Random, folder: Path) -> bool:
        _furnish(folder)
        os.chdir(folder)
        (folder / "pcm").write_bytes(rng.randbytes(rng.choice((0, 1, 9600))))
        given = os.open(folder / "pcm", os.O_RDONLY)
        os.dup2(given, 0)
        os.close(given)
        words = line(rng)
        # A device would be waited for.
        if "mic" in words or any(word.startswith(("-d", "--device", "-l")) for word in words):
            return False
        try:
            return said(*words) != 0
        except Exception as error:
            raise Wrong(f"{words}: {error!r}") from error

    return trial


def _furnish(folder: Path) -> None:
    """Put there what command lines name."""
    if not (folder / "good.wav").exists():
        x = 0.1 * np.sin(2 * np.pi * 1000 * np.arange(9600) / FS)
        soundfile.write(folder / "good.wav", np.stack([x, x], 1), FS, subtype="PCM_16")
        (folder / "cut.wav").write_bytes((folder / "good.wav").read_bytes()[:20000])
        (folder / "text.wav").write_text("no sound")
        (folder / "x.raw").write_bytes(bytes(1000))
        (folder / "broken.toml").write_text("[[[")
        (folder / "table.csv").write_text("file,channel,full_scale_db\n,,100\n")
        (folder / "folder").mkdir()
        os.mkfifo(folder / "pipe")
        (folder / "loop").symlink_to("loop")


def said(*words: str) -> int:
    """Run a command line; gives its status once what it said is as it should be."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            status = run_command(words)
        except SystemExit as ended:
            status = ended.code if isinstance(ended.code, int) else -1
    told = err.getvalue()
    if status not in (0, 1, 2):
        raise Wrong(f"the status is {status}: {told[-300:]!r}")
    if status and not told.endswith("\n"):
        raise Wrong(f"the status is {status} and nothing was said: {told[-300:]!r}")
    for text in told.splitlines():
        if not harmless(text) or len(text) > LONGEST_SENTENCE or "Traceback" in text:
            raise Wrong(f"said: {text[:300]!r} ({len(text)} letters)")
    if status and "amt-stream" not in told.splitlines()[-1]:
        raise Wrong(f"said: {told[-300:]!r}")
    return status


def emptied(folder: Path) -> Path:
    """A folder without files; made if it is not there."""
    folder.mkdir(exist_ok=True)
    for path in folder.iterdir():
        path.unlink()
    return folder


def sessions() -> Trial:
    from amt_stream.cli.commands.verify import lines
    from amt_stream.sessions import Session, SessionError, verify

    made = {format: _session(format) for format in ("sqlite", "csv", "jsonl")}

    def trial(rng: random.Random, folder: Path) -> bool:
        place = emptied(folder / "night")
        files = made[rng.choice(list(made))]
        name = rng.choice(list(files))
        changed = mutated(rng, files[name])
        for each, content in files.items():
            (place / each).write_bytes(changed if each == name else content)
        with refused_by(SessionError) as refused:
            verdict = verify(place)
            lines(verdict)
            closed = name.endswith((".csv", ".json", ".jsonl")) and name != "chain.jsonl"
            if closed and changed != files[name] and verdict.word == "intact" and not verdict.open:
                raise Wrong(f"{name} was changed and is called intact")
        with refused_by(SessionError):
            session = Session(place)
            list(session.rows())
            session.events()
        return refused[0]

    return trial


JUNK: list[Any] = [None, 3, -1, -1e300, math.nan, math.inf, 10**400, 1 << 63, 1e18, True, [], {}]
JUNK += ["", "5", "x" * 3000, "99999-01-01T00:00:00Z", "-0001-01-01", "\ud800", [None], {"a": 1}]


def results() -> Trial:
    """Sessions and files of rows in which one value was edited: a page, or a sentence."""
    from amt_stream.core.errors import Refusal
    from amt_stream.sessions.compare import compare, comparison_page
    from amt_stream.sessions.replay import replay_session
    from amt_stream.sessions.report import report_page
    from amt_stream.sessions.results import read_results

    made = {format: _session(format, "wav") for format in ("sqlite", "csv", "jsonl")}

    def trial(rng: random.Random, folder: Path) -> bool:
        place = emptied(folder / "night")
        files = made[rng.choice(list(made))]
        name = rng.choice([one for one in files if not one.endswith((".wav", ".state"))])
        for each, content in files.items():
            (place / each).write_bytes(content)
        _edit(rng, place / name)
        alone = name.startswith("rows-")
        with refused_by(Refusal) as refused:
            report_page(read_results(place / name if alone and rng.random() < 0.5 else place))
        with refused_by(Refusal):
            comparison_page(compare(place, place))
        with refused_by(Refusal):
            replay_session(place)
        return refused[0]

    return trial


def _edit(rng: random.Random, path: Path) -> None:
    """Put something else in place of one value of a file, or of one everywhere; or leave little."""
    junk = rng.choice(JUNK)
    if path.suffix == ".sqlite":
        with contextlib.closing(sqlite3.connect(path)) as connection, connection:
            table = rng.choice(("rows", "events"))
            columns = [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]
            some = "" if rng.random() < 0.5 else f" WHERE id % 7 = {rng.randrange(7)}"
            fits = isinstance(junk, float) or junk in (None, 3, -1, "", "5")
            value = junk if fits else rng.choice([b"\xff\0", "x" * 3000, "\x1b[2J"])
            connection.execute(
                f"UPDATE {table} SET '{rng.choice(columns[2:])}' = ?{some}", (value,)
            )
        return
    text = path.read_text()
    if rng.random() < 0.1:
        path.write_text(text[: rng.choice((0, 1, rng.randrange(len(text)), len(text) - 1))])
        return
    if path.suffix == ".json":
        path.write_text(json.dumps(_edited(rng, json.loads(text), junk)))
        return
    lines = text.splitlines()
    at = rng.randrange(len(lines))
    if path.suffix == ".jsonl":
        lines[at] = json.dumps(_edited(rng, json.loads(lines[at]), junk))
    else:
        cells = lines[at].split(",")
        cells[rng.randrange(len(cells))] = ascii(junk)
        lines[at] = ",".join(cells)
    path.write_text("\n".join([*lines, ""]))


def _edited(rng: random.Random, value: Any, junk: Any) -> Any:
    """Nested data with something else somewhere in it, or without it."""
    if not value or not isinstance(value, dict | list) or rng.random() < 0.05:
        return junk
    found: Any = value.copy()
    at = rng.choice([*found] if isinstance(found, dict) else range(len(found)))
    if rng.random() < 0.1:
        del found[at]
    else:
        found[at] = _edited(rng, found[at], junk)
    return found


def _session(format: str, sound: str = "") -> dict[str, bytes]:
    """The files of a session by name, of half a second, a mark and a gap."""
    import tempfile

    from amt_stream.engine import Engine, PushSource
    from amt_stream.meters.limits import Limit
    from amt_stream.meters.specification import RowSettings
    from amt_stream.meters.table import Sound, Table
    from amt_stream.sessions import SessionLog, SoundLog

    preset, calibration = Preset(("spl",), limits=(Limit("laf_db", 70.0),)), Calibration(100.0)
    model = preset.models(FS, 2)
    table = Table(preset, model, Sound("a sound", FS, (1, 2), [calibration], None), RowSettings(10))
    kind, more = (
        (SoundLog, {"fs": FS, "channels": 2, "sound": sound}) if sound else (SessionLog, {})
    )
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "night"
        source = PushSource(FS, 2, live=False, calibration=calibration)
        told = {"engine": {"block_ms": 10}, "source": {"kind": "PushSource", "picked": None}}
        with (
            kind(path, table, format=format, settings=told, **more) as log,
            Engine(source, model, [log]) as engine,
            source,
        ):
            source.push(np.full((24000, 2), 0.1, np.float32))
            engine.mark("here")
            source.push(np.full((2400, 2), 0.1, np.float32), lost=4800)
            source.close()
            engine.wait(60)
        return {each.name: each.read_bytes() for each in path.iterdir() if each.is_file()}


def snapshots() -> Trial:
    import tempfile

    from amt_stream.sessions.files import SessionError
    from amt_stream.sessions.snapshot import (
        SNAPSHOT,
        Saved,
        of_bytes,
        read_snapshot,
        write_snapshot,
    )

    state = {"version": "1", "position": 2**40, "held": np.zeros((0, 2)), "y": np.arange(12.0)}
    with tempfile.TemporaryDirectory() as name:
        write_snapshot(Path(name), Saved(3, 480, {"rows": {"step_ms": 100}}, state, state))
        good = (Path(name) / SNAPSHOT).read_bytes()

    def trial(rng: random.Random, folder: Path) -> bool:
        content = mutated(rng, good)
        (folder / SNAPSHOT).write_bytes(content)
        with refused_by(SessionError) as refused:
            read_snapshot(folder)
            if content != good:
                raise Wrong("a snapshot was changed and is read")
        with refused_by(ValueError, TypeError, KeyError):
            of_bytes(content)
        return refused[0]

    return trial


KINDS = {
    "presets": presets,
    "sounds": sounds,
    "calibrations": calibrations,
    "corrections": corrections,
    "commands": commands,
    "sessions": sessions,
    "results": results,
    "snapshots": snapshots,
}


def main(kind: str, count: str, seed: str, folder: str) -> int:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM"):
        os.environ.pop(name, None)
    os.environ["XDG_CONFIG_HOME"] = folder
    warnings.simplefilter("ignore")
    trial, faults, refused = KINDS[kind](), 0, 0
    place = Path(folder).resolve()
    for number in range(int(count)):
        rng = random.Random(f"{seed} {kind} {number}")
        began = time.process_time()
        try:
            refused += trial(rng, place)
        except Exception:
            faults += 1
            print(f"{kind} {number}: {traceback.format_exc()[-1500:]}", flush=True)
        took = time.process_time() - began
        if took > SLOW_S:
            faults += 1
            print(f"{kind} {number}: took {took:.1f} s", flush=True)
    print(f"{count} tried, {refused} refused, {faults} wrong", flush=True)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
