"""Zwicker's model in C: the frames of the model in Python, however the sound is cut."""

import json
import re
import shutil
import subprocess
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest
import soundfile

from amt_stream.cli.command import run_command
from amt_stream.meters import catalog
from amt_stream.native.build import ZIG_TARGETS, Request
from amt_stream.native.library import Library
from amt_stream.native.machine import MACHINES
from amt_stream.native.plan import NotNative, host_plan
from amt_stream.native.prebuilt import library_name, linked, of_any_linux
from amt_stream.native.targets import TARGETS
from tests.native.library import (
    FS,
    HOST,
    ZWICKER,
    Instance,
    compiled,
    goes_on,
    recovers,
    refuses_damage,
    units_of,
    worst,
)

ROOT = Path(__file__).parents[2]
ARGUMENT = -4
ALLOWED = {"memcpy", "memset", "log10", "log10f", "powf", "pow", "log2", "log2f", "exp2"}
ELF, COFF, MACH_O = b"\x7fELF", b"\x64\x86", b"\xcf\xfa\xed\xfe"
BEGINS = ELF, ELF, ELF, COFF, MACH_O, b"\0asm"
RUNTIME = {"NRT_MemInfo_alloc_aligned", "NRT_incref", "NRT_decref", "numba_attempt_nocopy_reshape"}


def in_shell(lines, folder):
    """What lines that are typed in a folder print."""
    done = subprocess.run(
        ["sh", "-ec", lines], cwd=folder, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("step", [1, 480, 1000])
def test_its_frames_are_those_of_python(library, sound, right, step):
    frames = Instance(library).whole(sound, step)
    assert worst(frames, right) < 4e-7
    np.testing.assert_array_equal(frames, Instance(library).whole(sound, FS))


def test_another_processor_gives_the_same(folder, tmp_path, sound, right):
    slow = Library(compiled(folder, "zwicker", "x86-64", tmp_path / "slow.so"))
    assert worst(Instance(slow).whole(sound, FS), right) < 4e-7


def test_it_says_what_it_is(folder, library):
    about = json.loads((folder / "zwicker.json").read_text())
    info = library.info
    assert (info.model, info.input_unit, info.fs, info.channels) == ("zwicker", "pascal", FS, 1)
    assert (info.block, info.frames_per_block) == (480, 5)
    assert about["frame_s"] == info.frame_s == 0.002
    assert about["settle_s"] == info.settle_s == catalog.entry("zwicker").build(FS).settle_s
    assert about["columns"] == [asdict(one) for one in info.columns] == units_of(ZWICKER)
    assert about["state"].isalnum()


def test_a_saved_state_goes_on_within_a_block(library, sound):
    goes_on(library, sound, 20001)


def test_a_damaged_state_is_refused_and_nothing_changes(library, sound):
    refuses_damage(library, sound, 500)


def test_a_reset_one_is_as_new(library, sound):
    one = Instance(library)
    one.whole(sound[:, :10001], 100)
    one.c.amt_reset(one.at)
    assert one.save() == Instance(library).save()


def test_it_takes_no_more_than_there_is_room_for(library, sound):
    one, parts, at = Instance(library), [], 0
    while at < sound.shape[1]:
        frames, used = one.process(sound[:, at : at + 1500], room=7)
        assert len(frames) <= 7
        assert used or frames.size
        parts.append(frames)
        at += used
    np.testing.assert_array_equal(np.concatenate(parts), Instance(library).whole(sound, FS))
    full, used = one.process(sound[:, :2000], room=0)
    assert (len(full), used) == (0, 479)
    with pytest.raises(AssertionError, match=str(ARGUMENT)):
        one.process(sound[:, :10], room=-1)


def test_samples_that_are_no_numbers_count_as_0_and_are_counted(library, sound):
    wrong, zeros = sound.copy(), sound.copy()
    wrong[:, [5, 700, 701]] = np.nan, np.inf, -np.inf
    zeros[:, [5, 700, 701]] = 0
    one, other = Instance(library), Instance(library)
    np.testing.assert_array_equal(one.whole(wrong, 333), other.whole(zeros, 333))
    assert (one.c.amt_invalid(one.at), other.c.amt_invalid(other.at)) == (3, 0)


@pytest.mark.parametrize("absurd", [1.1e12, -1e15, 3e38])
def test_absurd_samples_count_as_0_too(library, sound, absurd):
    """A single one of 1e15 made all frames after it NaN."""
    wrong, zeros = sound.copy(), sound.copy()
    wrong[0, 700], zeros[0, 700] = absurd, 0
    one, other = Instance(library), Instance(library)
    np.testing.assert_array_equal(one.whole(wrong, FS), other.whole(zeros, FS))
    assert one.c.amt_invalid(one.at) == 1


def test_after_the_largest_sample_it_recovers(library):
    recovers(library)


@pytest.mark.parametrize("gain", [0.0, -1.0, np.nan, np.inf])
def test_with_a_gain_that_is_none_all_samples_are_invalid(library, sound, gain):
    one = Instance(library)
    one.c.amt_set_gain(one.at, gain)
    one.whole(sound, FS)
    assert one.c.amt_invalid(one.at) == FS


def test_a_gain_is_that_of_a_louder_sound(library, sound):
    one = Instance(library)
    one.c.amt_set_gain(one.at, 4.0)
    louder = Instance(library).whole(4 * sound, FS)
    np.testing.assert_array_equal(one.whole(sound, FS), louder)


def test_silence_after_sound_ends_in_silence(library, sound):
    one = Instance(library)
    one.process(sound)
    frames = one.whole(np.zeros((1, 10 * FS), np.float32), FS)
    assert frames[-1, 0] == 0


def test_objects_ask_for_nothing_but_mathematics_and_hold_no_path(folder):
    said = subprocess.run(
        ["nm", "-u", f"zwicker-{HOST}.o"], cwd=folder, capture_output=True, text=True, check=True
    )
    needed = {line.split()[-1] for line in said.stdout.splitlines()}
    assert needed <= ALLOWED | RUNTIME
    for target, begin in zip(TARGETS, BEGINS, strict=True):
        content = (folder / f"zwicker-{target}.o").read_bytes()
        assert content.startswith(begin)
        assert not any(word in content for word in (b"/home", b"/work", b"/tmp", b".py", b"numba/"))


def test_the_example_reads_a_sound_from_a_pipe(folder, sound, right):
    program = compiled(folder, "zwicker", HOST, folder / "meter", main="example.c")
    done = subprocess.run([program], input=sound.tobytes(), capture_output=True, check=True)
    title, *lines = done.stdout.decode().splitlines()
    assert title.startswith("time_s,n_sone,n_phon,nmax_sone,nmax_phon,n1_phon")
    rows = np.array([[float(part) for part in line.split(",")] for line in lines])
    np.testing.assert_allclose(rows[:, 0], np.arange(len(right)) * 0.002)
    np.testing.assert_allclose(rows[:, 1:], right, rtol=1e-6, atol=1e-8)


@pytest.mark.cases(2)
@pytest.mark.parametrize("gain", ["twenty", "0", "-1", "nan", "2x"])
def test_the_example_refuses_what_is_no_gain(folder, sound, gain):
    program = compiled(folder, "zwicker", HOST, folder / "meter", main="example.c")
    done = subprocess.run([program, gain], input=sound.tobytes(), capture_output=True, check=False)
    assert (done.returncode, done.stdout) == (2, b"")
    assert done.stderr.decode() == f"the gain is {gain}: give a number above 0, such as 20\n"


@pytest.mark.parametrize(
    "language",
    ["cpp", pytest.param("rust", marks=pytest.mark.soak)],
)
def test_the_programs_of_the_page_print_the_highest_loudness(
    language, folder, sound, right, tmp_path
):
    page = (ROOT / "docs" / "native.md").read_text(encoding="utf-8")
    (program,) = re.findall(rf"```{language}\n(.+?)```", page, re.DOTALL)
    compiler, suffix = {"cpp": ("c++ -O2 ", "cpp"), "rust": ("rustc -O ", "rs")}[language]
    runtime, build = (
        re.search(rf"^{re.escape(begin)}.+", page, re.MULTILINE)[0].replace("x86-64-v3", HOST)
        for begin in ("cc -O2 -c", compiler)
    )
    work = tmp_path / "library"
    shutil.copytree(folder, work)
    (work / f"loudest.{suffix}").write_text(program)
    soundfile.write(work / "sound.wav", sound[0] / 20, FS, subtype="FLOAT")
    (run,) = re.findall(r"^ffmpeg .+ \./loudest$", page, re.MULTILINE)
    said = in_shell(f"{runtime}\n{build}\n{run}", work)
    assert said == f"{right[:, 0].max():.3f} sone\n"


def test_the_example_measures_what_ffmpeg_decodes(folder, tmp_path):
    """As typed in the page, which shows what it prints; the tone of ffmpeg 9 is rounded anew."""
    page = (ROOT / "docs" / "native.md").read_text(encoding="utf-8")
    (shown,) = re.findall(r"^```\n(\$ amt-stream export zwicker .+?)^```$", page, re.M | re.S)
    export, _, *typed = re.findall(r"^\$ (.+)", shown, re.MULTILINE)
    assert export == "amt-stream export zwicker --c zwicker -c 1"  # so is the folder
    shutil.copytree(folder, tmp_path / "zwicker")
    said = in_shell("\n".join(typed).replace("x86-64-v3", HOST), tmp_path / "zwicker")
    printed = re.sub(r"(?m)^\$ .+\n", "", shown)
    tables = (np.array([x.split(",") for x in text.split()], float) for text in (said, printed))
    np.testing.assert_allclose(*tables, rtol=1e-5)


def test_two_models_share_a_program(folder, tmp_path):
    """As two builds of one, since each has its own names; one is that of the model, as in amt.h."""
    (tmp_path / "two.c").write_text(
        '#define AMT_NAME zwicker\n#include "amt.h"\n#undef AMT_NAME\n#define AMT_NAME second\n'
        '#include "amt.h"\nint main(void) {\n'
        "    return zwicker_about()->fs == second_about()->fs ? 0 : 1;\n}\n"
    )
    plan = '-DAMT_PLAN="zwicker_plan.h"'
    script = (
        f"cc -c {plan!r} -DAMT_NAME=zwicker amt.c -o {tmp_path}/1.o && "
        f"cc -c {plan!r} -DAMT_NAME=second amt.c -o {tmp_path}/2.o && "
        f"cc -I. {tmp_path}/two.c {tmp_path}/1.o {tmp_path}/2.o amt_numba.c zwicker-{HOST}.o -lm "
        f"-o {tmp_path}/two && {tmp_path}/two"
    )
    subprocess.run(["sh", "-c", script], cwd=folder, check=True)


def test_sanitizers_find_nothing(folder, sound):
    """Bounds, alignment and undefined behavior of the runtime, with the example around it."""
    options = "-fsanitize=address,undefined", "-fno-sanitize-recover", "-g"
    program = compiled(folder, "zwicker", HOST, folder / "checked", *options, main="example.c")
    done = subprocess.run(
        [program, "2"], input=sound[:, :5000].tobytes(), capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) == 1 + 5 * (5000 // 480)


@pytest.mark.cases(1)
@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (["spectrum", "--c", "x"], "spectrum cannot be exported to C: it has steps in Python; "),
        (["bogus", "--c", "x"], "there is no model 'bogus'"),
        (["zwicker"], "give a file to write, or --c or --wasm and a folder"),
        (
            ["zwicker", "z.pt2", "--c", "x"],
            "give a file to write, or --c or --wasm and a folder, not both",
        ),
    ],
)
def test_what_it_cannot_do_it_refuses(asked, said, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert run_command(["export", *asked]) != 0
    assert said in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_numbers_of_channels_and_targets_that_it_does_not_have(capsys):
    with pytest.raises(NotNative, match="moore2016 cannot be exported to C for 3 channels: give 2"):
        host_plan("moore2016", FS, 3, 0.01)
    with pytest.raises(SystemExit):
        run_command(["export", "zwicker", "--c", "x", "--target", "vax"])
    assert f"'vax' is none of {', '.join(TARGETS)}" in capsys.readouterr().err


def test_each_target_is_a_processor():
    assert tuple(MACHINES) == TARGETS


def test_files_that_exist_are_kept(folder, capsys):
    before = (folder / "zwicker.json").read_bytes()
    assert run_command(["export", "zwicker", "--c", str(folder), "-r", "44100"]) == 1
    assert "exists: --force overwrites it" in capsys.readouterr().err
    assert (folder / "zwicker.json").read_bytes() == before


@pytest.mark.soak
def test_a_release_holds_the_same_bytes_wherever_they_are_built(folder, tmp_path, sound, right):
    """Zig links them, for every processor."""
    request = Request("zwicker", FS, 1, 0.01, tuple(ZIG_TARGETS))
    files = {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}
    libraries = linked(request, files, of_any_linux)
    assert linked(request, files, of_any_linux) == libraries
    name = library_name(request, HOST)
    (tmp_path / name).write_bytes(libraries[name])
    frames = Instance(Library(tmp_path / name)).whole(sound, 1000)
    assert worst(frames, right) < 4e-7
