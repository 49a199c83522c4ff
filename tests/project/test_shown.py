"""What texts show as code: it runs here or in the test that is named, or the reason is told."""

import contextlib
import re
import shlex
import shutil
from pathlib import Path

import numpy as np
import pytest
import soundfile

from amt_stream import Engine, SignalSource
from amt_stream.cli.command import build_parser
from amt_stream.meters.calibration import Calibration
from amt_stream.meters.presets import Preset, load_preset
from amt_stream.meters.specification import RowSettings
from amt_stream.meters.table import Sound, Table

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
PAGES.remove(ROOT / "docs" / "index.md")  # its blocks are the contents of the site
PAGES += sorted(path for path in (ROOT / "apps").rglob("*.md"))


def shown():
    """Each block of code: its page, its language, its lines."""
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        for kind, code in re.findall(r"^```(\w*)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
            yield page.name, kind, code


BLOCKS = {(page, code.partition("\n")[0]): (kind, code) for page, kind, code in shown()}

QUIET = "--source tone.wav --fast --quiet --model spl"
ADDED = {  # to a line that is typed, where it would hear a microphone, or open a port that is taken
    "amt-stream analyze 'archive/**/*.wav'": "",
    "amt-stream analyze tone.wav": "",
    "amt-stream meter --model spl --format csv": "--source tone.wav --fast",
    "amt-stream meter --event": "--source tone.wav --fast --format csv --full-scale-db 100",
    "amt-stream serve --web --event": "--web 0 --source tone.wav --fast --full-scale-db 100",
    "amt-stream meter --log night --log-sound": f"{QUIET} --duration 1",
    "amt-stream meter --log night --restore": f"{QUIET} --log-sound",
    "amt-stream meter --log night --log-sound --restore": QUIET,
    "amt-stream verify night": "",
    "amt-stream replay night": "",
    "amt-stream serve --web": "--web 0 --source tone.wav --fast --model spl",
    "amt-stream serve --web --model": "--web 0 --source tone.wav --fast",
    "amt-stream serve --lsl": "--source tone.wav --fast",
    "amt-stream serve --stdio": "--source tone.wav --fast --model spl",
    "amt-stream run station": "--web 0 --source tone.wav --fast --no-wait",
}

LINES = [  # blocks of lines that are typed
    ("archives.md", "amt-stream analyze 'archive/**/*.wav' --model spl --calibrations levels.csv"),
    ("events.md", "amt-stream meter --event"),
    ("rows.md", "amt-stream analyze tone.wav --model spl --csv-dialect excel"),
    ("measuring.md", "amt-stream meter --log night --log-sound"),
    ("measuring.md", "amt-stream serve --web"),
    ("README.md", "amt-stream serve --web --stdio"),
    ("obs.md", "amt-stream serve --web --model moore2016,bs1770"),
    ("obs.md", "amt-stream serve --web --model bs1770 --limit"),
    ("lab.md", "amt-stream serve --lsl"),
]

PYTHON = [  # blocks that run here, after what makes the things that they name
    ("archives.md", "import pandas"),
    ("calibration.md", "from amt_stream import measure"),
    ("events.md", "import json, soundfile"),
    ("learning.md", "# Noise that is to be 1 sone loud."),
    ("learning.md", "# A gain that makes a tone as loud as noise."),
    ("sessions.md", "from amt_stream.sessions import"),
    ("sessions.md", "from amt_stream.sessions.report import"),
]

PRESETS = [  # tables of a preset
    ("events.md", "[[events]]"),
    ("rows.md", "[model]"),
    ("rows.md", "[[limits]]"),
    ("station.md", "description ="),
    ("unattended.md", "[model]"),
]

ELSEWHERE = {  # what does not run here, with the test that does it, or why none can
    ("README.md", "make meter"): "tests/project/test_bootstrap.py; `make test` is this run",
    ("README.md", "uv tool install"): "takes packages from an index; tests/project/test_wheel.py",
    ("README.md", "amt-stream devices"): "a calibrator and a window; tests/cli/test_calibrate.py",
    ("first_evening.md", "amt-stream"): "a calibrator and a window; tests/cli/test_calibrate.py",
    ("measuring.md", "amt-stream analyze film.wav"): "a film; tests/cli/test_layouts.py",
    ("measuring.md", "amt-stream serve --osc"): "other machines; tests/service/test_together.py",
    ("measuring.md", "amt-stream analyze machine.wav"): "tests/meters/test_annoyance.py",
    ("measuring.md", "ffmpeg -i"): "tests/cli/test_pipes.py",
    ("station.md", "make station"): "tests/soak/test_station.py",
    ("native.md", "amt-stream export zwicker"): "tests/native/test_web.py",
    ("native.md", "amt-stream export zwicker --c zwicker -c 1 --t"): "tests/soak/test_native.py",
    ("native.md", "$ amt-stream export zwicker"): "tests/native/test_c.py",
    ("native.md", "#include"): "tests/native/test_c.py",
    ("native.md", "c++ -O2"): "tests/native/test_c.py",
    ("native.md", "use std::ffi"): "tests/native/test_c.py",
    ("native.md", "rustc -O"): "tests/native/test_c.py",
    ("native.md", "cc -O2 -shared -fPIC -fvisibility=hidden \\"): "tests/native/test_lv2.py",
    ("native.md", "cc -O2 -shared -fPIC -fvisibility=hidden -D"): "tests/native/test_clap.py",
    ("native.md", "import { readFile }"): "tests/native/test_web.py",
    ("native.md", "from amt_stream.native"): "tests/native/test_model.py",
    ("rating.md", "amt-stream meter --model rating"): "tests/meters/test_rating.py",
    ("rating.md", "from amt_stream.meters.frames"): "tests/meters/test_rating.py",
    ("tonal_machine.md", "amt-stream meter --model rating"): "tests/apps/test_rating_pane.py",
    ("tonal_machine.md", "amt-stream meter --model rating,spl"): "tests/meters/test_rating.py",
    ("announcement.md", "amt-stream meter --model stipa"): "tests/apps/test_stipa_dialog.py",
    ("announcement.md", "amt-stream stipa"): "tests/cli/test_stipa.py",
    ("stipa.md", "amt-stream stipa"): "a loudspeaker; tests/cli/test_stipa.py",
    ("rating.md", "amt-stream analyze fan.wav"): (
        "a fan and its impulses; tests/cli/test_without_impulses.py"
    ),
    ("rating.md", "amt-stream bs4142"): "tests/cli/test_bs4142.py",
    ("partial.md", "amt-stream analyze alarm.wav"): "tests/cli/test_partial.py",
    ("partial.md", "amt-stream meter --model partial"): "tests/cli/test_partial.py",
    ("sessions.md", "openssl genpkey"): "tests/sessions/test_verify.py, with keys that it makes",
    ("README.md", "$ amt-stream"): "tests/project/test_documents.py, with what they print",
    ("measuring.md", "$ amt-stream"): "tests/project/test_documents.py, with what they print",
    ("accuracy.md", "$ amt-stream"): "tests/project/test_documents.py, with what they print",
    ("adding.md", "# "): "tests/project/test_adding.py",
    ("architecture.md", " source's own thread"): "a drawing",
    ("contributing.md", "make setup"): "tests/project/test_bootstrap.py",
    ("embedding.md", "import torch"): "tests/cli/test_export.py has such a program",
    ("embedding.md", '<script type="module"'): "tests/service/test_page.py",
    ("embedding.md", "install -m 600"): "a broker with a login; tests/service/test_mqtt.py",
    ("embedding.md", "trigger:"): "Home Assistant's own; tests/service/test_mqtt.py has the sensor",
    ("embedding.md", "import rclpy"): "no ROS among the tests; tests/service/test_embedding.py",
    ("station.md", "sudo"): "systemd and another user; tests/service/test_run.py runs a station",
    ("station.md", "groups:"): "Prometheus's own; tests/service/test_metrics.py has its metrics",
    ("obs.md", "openssl rand"): "other machines; tests/service/test_page.py has such tokens",
    ("lab.md", "import pyxdf"): "needs a file of LabRecorder; tests/service/test_lsl.py",
    ("wire.md", "import json"): "a meter that runs; tests/service/test_page.py has such clients",
    ("wire.md", "[[inputs.mqtt_consumer]]"): "Telegraf's own; tests/service/test_mqtt.py has rows",
    ("plugin.md", "from fractions import Fraction"): "tests/meters/test_plugin.py",
    ("native.md", "amt-stream export moore2016 --c"): "tests/native and tests/soak/test_native.py",
    ("gpu.md", "live = Stream("): "needs a GPU; tests/cuda/checks.py",
    ("gpu.md", "live = HostedStream("): "needs a GPU; tests/cuda/checks.py",
}


def begins(known, page, first):
    """The longest of the known beginnings that a block has."""
    found = [one for one in known if one[0] == page and first.startswith(one[1])]
    return max(found, key=lambda one: len(one[1]), default=None)


def block(page, beginning):
    (found,) = [
        code
        for (of, first), (_, code) in BLOCKS.items()
        if (of, beginning) == begins([(page, beginning)], of, first)
    ]
    return found


def test_each_block_is_told_from_others_by_its_first_line():
    assert len(BLOCKS) == len([*shown()])


def test_every_block_runs_or_says_why_not():
    programs = ("README.md", "measuring.md", "python.md")  # tests/project/test_documents.py
    run_there = [key for key, (kind, _) in BLOCKS.items() if key[0] in programs and kind]
    known = [*LINES, *PYTHON, *PRESETS, *ELSEWHERE]
    met = {key: begins(known, *key) for key in BLOCKS if key not in run_there}
    assert [key for key, one in met.items() if one is None] == []
    apart = {begins(ELSEWHERE, page, line) for page, *_, line in typed_lines()}
    assert set(known) - set(met.values()) - apart == set()
    for reason in ELSEWHERE.values():
        for path in re.findall(r"tests/\S+\.py", reason):
            assert (ROOT / path).is_file(), reason


def typed_lines():
    """Page, beginning of the block and line of all that `LINES` has."""
    for page, beginning in LINES:
        yield from ((page, beginning, line) for line in block(page, beginning).splitlines())


TYPED = re.compile(r"^(?:\$ )?(amt-stream .*)|`(amt-stream [^`]+)`", re.MULTILINE)


@pytest.mark.parametrize("page", [p.name for p in PAGES if TYPED.search(p.read_text("utf-8"))])
def test_every_command_in_a_text_is_one(page, capsys):
    """Also those in its sentences: command, options and their values are what may be typed."""
    text = next(one for one in PAGES if one.name == page).read_text(encoding="utf-8")
    for typed in ("".join(found) for found in TYPED.findall(text)):
        _, *words = shlex.split(typed, comments=True)
        if words[1:] in ([], ["--help"]):  # its name, or what ends at once
            words = [words[0], "--help"]
        with contextlib.suppress(SystemExit):
            build_parser().parse_args(words)
        assert not capsys.readouterr().err, typed


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Where a block runs: a second of a soft tone and one of a loud one, and a table of levels."""
    t = np.arange(2 * 48000) / 48000
    tone = np.where(t < 1, 1e-4, 0.7) * np.sin(2 * np.pi * 1000 * t)
    soundfile.write(tmp_path / "tone.wav", np.stack([tone, tone], 1), 48000)
    (tmp_path / "archive" / "june").mkdir(parents=True)
    shutil.copy(tmp_path / "tone.wav", tmp_path / "archive" / "june")
    (tmp_path / "levels.csv").write_text("file,channel,full_scale_db\n,,100\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def typed(forks, folder, line, *more):
    """What a line prints, with what is added to it."""
    (_, added) = max(
        (one for one in ADDED.items() if line.startswith(one[0])), key=lambda one: len(one[0])
    )
    words = shlex.split(line, comments=True)[1:] + shlex.split(added) + [*more]
    done = forks.run(*words, folder=folder)
    told = done.stderr.decode()
    assert done.returncode == 0, f"{line}: {told}"
    assert "Traceback" not in told
    return done.stdout.decode()


@pytest.mark.parametrize(("page", "beginning"), LINES)
def test_what_is_typed_runs(forks, folder, page, beginning):
    """Line after line, as they stand."""
    said = [
        typed(forks, folder, line)
        for of, start, line in typed_lines()
        if (of, start) == (page, beginning) and begins(ELSEWHERE, page, line) is None
    ]
    assert said


def parts(forks, folder):
    analyze = block("archives.md", "amt-stream analyze").strip()
    typed(forks, folder, analyze, "--format", "parquet")
    return {}


def kept_sound(forks, folder):
    typed(forks, folder, block("events.md", "amt-stream meter").splitlines()[0])
    (file,) = (folder / "sounds").glob("*-laf_85.flac")
    shown_name = re.search(r'SoundFile\("(.+?)"\)', block("events.md", "import json"))[1]
    file.rename(folder / shown_name)
    return {}


def a_measurement(forks, folder):
    source = SignalSource(duration=0.5, paced=False)
    preset = Preset(("spl",))
    sound = Sound(source.name, source.fs, (1, 2), [Calibration(100.0, source="test")], 0.5)
    models = preset.models(source.fs, source.channels)
    table = Table(preset, models, sound, RowSettings(100))
    return {"Engine": Engine, "source": source, "models": models, "table": table}


def a_log(forks, folder):
    exec(block("sessions.md", "from amt_stream.sessions import"), a_measurement(forks, folder))
    return {}


def a_response(forks, folder):
    (folder / "7001234.txt").write_text("20 -1\n1000 0\n10000 2.1\n")
    return {}


GIVEN = {
    "# Noise that is to be 1 sone loud.": lambda forks, folder: {},
    "# A gain that makes a tone as loud as noise.": lambda forks, folder: {},
    "import pandas": parts,
    "from amt_stream import measure": a_response,
    "import json, soundfile": kept_sound,
    "from amt_stream.sessions import": a_measurement,
    "from amt_stream.sessions.report import": a_log,
}


@pytest.mark.parametrize(("page", "beginning"), PYTHON)
def test_python_runs(forks, folder, page, beginning):
    names = GIVEN[beginning](forks, folder)
    exec(compile(block(page, beginning), page, "exec"), names)
    match names:
        case {"sound": sound, "distance": distance}:
            assert distance > 0
            assert 0 < sound.grad.abs().max() < np.inf
        case {"optimizer": _, "distance": distance}:
            assert distance < 0.01
        case {"rows": rows}:
            assert len(rows) == 201
        case {"measured": measured, "response": response}:
            assert response.in_words() in block(page, beginning)
            assert "correction" in measured.header["calibration"][0]
        case {"about": about}:
            assert about["event"]["begin_sample"] == pytest.approx(48000, abs=4800)
        case {"page": page}:
            assert "Main hall" in page
        case {"verify": verify}:
            assert verify("night").word == "intact"


@pytest.mark.parametrize(("page", "beginning"), PRESETS)
def test_tables_are_a_preset(folder, page, beginning):
    code = block(page, beginning)
    head = "" if "[model]" in code else '[model]\nname = "spl"\n'
    (folder / "own.toml").write_text(head + code)
    preset = load_preset(str(folder / "own.toml"))
    assert preset.models(48000, 2)
    assert {"[[events]]": preset.triggers, "[[limits]]": preset.limits}.get(beginning, True)


def test_a_block_that_nothing_runs_is_seen(monkeypatch):
    monkeypatch.setitem(BLOCKS, ("rows.md", "new"), ("", "new\n"))
    with pytest.raises(AssertionError, match="new"):
        test_every_block_runs_or_says_why_not()
