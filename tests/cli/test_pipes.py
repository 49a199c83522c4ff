"""Commands read a stream with a header from a pipe, and say what is wrong with its length."""

import contextlib
import json
import os
import re
import subprocess
import threading
from pathlib import Path

import numpy as np
import pytest

from amt_stream.sessions import Session
from tests.data.sound_files import (
    FS,
    UNKNOWN,
    aiff,
    by_libsndfile,
    caf,
    chunk,
    encoded,
    noise,
    rf64,
    samples,
    wav,
)

ROOT = Path(__file__).parents[2]
SPL = ["--model", "spl", "--full-scale-db", "120"]
ROWS = [*SPL, "--columns", "laeq_db", "--step-ms", "1000", "--format", "jsonl"]
X = noise(2.0)
STREAMS = {
    "wav": wav(X, size=UNKNOWN, total=UNKNOWN),
    "bw64": rf64(X, magic=b"BW64", size=0),
    "aiff": aiff(X),
    "caf": caf(X, size=-1),
    "flac": encoded(X, to="pipe"),
    "vorbis": by_libsndfile(X, "OGG", "VORBIS"),
    "opus": encoded(X, container="ogg", codec="libopus"),
    "mp3": encoded(X, container="mp3", codec="libmp3lame"),
    "matroska": encoded(X, container="matroska", codec="aac"),
}


def written_to(path, content):
    """A thread that writes into a named pipe, as long as someone reads it."""

    def write():
        with contextlib.suppress(BrokenPipeError):
            path.write_bytes(content)

    thread = threading.Thread(target=write)
    thread.start()
    return thread


def parts(done):
    """The header, the rows and the summary that a command has written."""
    lines = [json.loads(line) for line in done.out.splitlines()]
    return lines[0]["header"], lines[1:-1], lines[-1]["summary"]


@pytest.mark.parametrize("name", STREAMS)
def test_meter_and_analyze_read_a_pipe_as_its_file(run, tmp_path, name):
    (tmp_path / "sound").write_bytes(STREAMS[name])
    _, expected, of_file = parts(run("analyze", "sound", *ROWS))
    for command in (["meter", "--source", "-"], ["analyze", "-"]):
        done = run(*command, *ROWS, stdin=STREAMS[name])
        assert done.status == 0, done.err
        header, rows, summary = parts(done)
        # Where the end is not known before, the last row does not wait for it.
        assert [row["laeq_db"] for row in rows][:-1] == [row["laeq_db"] for row in expected][:-1]
        assert summary["laeq_db"] == of_file["laeq_db"]
        assert (header["source"]["name"], header["source"]["fs"]) == ("standard input", FS)
        assert header["source"]["sound"]["encoding"] == of_file["sound"]["encoding"]
        assert summary["layout"] == of_file["layout"]
        assert summary["sound"]["found_samples"] == of_file["sound"]["found_samples"] >= len(X)
        assert "cut_off" not in summary["sound"]
    assert f"standard input is {of_file['sound']['encoding']}, stereo (L R), 48000 Hz" in (
        run("meter", "--source", "-", *ROWS, "--duration", "0.1", stdin=STREAMS[name]).err
    )


@pytest.mark.parametrize(
    ("file", "added", "layout"),
    [
        ("film.mkv", ["--columns", "integrated_lufs"], ["L", "R", "C", "LFE", "Ls", "Rs"]),
        ("video.mkv", ["--model", "bs1770", "--columns", "integrated_lufs"], ["L", "R"]),
    ],
)
def test_what_the_page_shows_of_ffmpeg(run, tmp_path, file, added, layout):
    """A tone in the first channel, -20 dB below full scale, from a film without loss."""
    page = (ROOT / "docs" / "measuring.md").read_text(encoding="utf-8")
    ((decode, measure),) = re.findall(
        rf"^(ffmpeg -i {file} .+) \| amt-stream (.+)$", page, re.MULTILINE
    )
    channels = "|".join(["0.1*sin(2000*PI*t)", *["0"] * (len(layout) - 1)])
    tone = f"aevalsrc={channels}:s={FS}:d=2:c={'5.1' if len(layout) > 2 else 'stereo'}"
    make = [
        "ffmpeg",
        "-v",
        "error",
        "-f",
        "lavfi",
        "-i",
        tone,
        "-c:a",
        "flac",
        str(tmp_path / file),
    ]
    subprocess.run(make, check=True)
    decoded = subprocess.run(decode.split(), cwd=tmp_path, capture_output=True, check=True).stdout
    done = run(*measure.split(), *added, "--format", "jsonl", stdin=decoded)
    assert done.status == 0, done.err
    *_, summary = parts(done)
    assert summary["layout"]["positions"] == layout
    assert summary["integrated_lufs"] == pytest.approx(-23.0, abs=0.1)


@pytest.mark.parametrize(
    ("content", "length", "status"),
    [
        (wav(X, size=4000), "its header says 1000 samples, but there are 96000", 0),
        (wav(X)[:200044], "its header says 96000 samples, but there are 50000", 1),
        (encoded(X) + encoded(X), "it is 2 sounds in a row", 0),
        (encoded(X) + encoded(X, 44100), "after 96000 samples it goes on at 44100 Hz with 2", 1),
        (wav(X, size=0) + b"\0", "left out at its end: 1 byte", 0),
    ],
)
def test_what_is_wrong_with_a_length_is_said_everywhere(run, tmp_path, content, length, status):
    """On standard error, in the summary, in a log and its report, and by the exit status."""
    (tmp_path / "sound").write_bytes(content)
    for command in (
        ["meter", "--source", "-"],
        ["meter", "--source", "sound", "--fast"],
        ["analyze", "sound"],
        ["analyze", "-"],
    ):
        done = run(*command, *ROWS, stdin=content)
        assert done.status == status, done.err
        assert done.err.count(length) == 1
        _, _, summary = parts(done)
        assert length in summary["sound"]["length"]
        assert summary["sound"].get("cut_off", False) == bool(status)
    logged = run("meter", "--source", "-", *SPL, "--quiet", "--log", "log", stdin=content)
    assert logged.status == status
    assert length in logged.err
    report = run("report", "log", "--out", "report.html")
    assert report.status == 0, report.err
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "PCM 16 bit" in page or "FLAC 16 bit" in page
    assert length in page
    assert Session(tmp_path / "log").runs


def test_analyze_names_the_pipe_and_not_its_copy(run):
    done = run("analyze", "-", *ROWS, stdin=bytes(range(256)) * 100)
    assert done.status == 1
    assert done.err.splitlines()[-1] == (
        "amt-stream: standard input is not a sound file that can be read: Format not recognised"
    )


def test_a_header_is_not_to_be_contradicted(run):
    header = "standard input has a header, which says PCM 16 bit, 48000 Hz, 2 channels: leave out "
    for typed, words in (
        (["--pcm", "s16le"], "--pcm s16le"),
        (["--pcm", "f32le", "-r", "44100"], "--pcm f32le"),
        (["-r", "44100"], "--samplerate 44100"),
        (["-c", "1"], "--channels 1"),
    ):
        done = run("meter", "--source", "-", *typed, *ROWS, stdin=wav(X))
        assert done.status == 1
        assert f"{header}{words}" in done.err
        assert done.out == "" or '"laeq_db": null' in done.out or '"summary"' not in done.out
    for typed in (["-r", "48000"], ["-c", "2"], ["-c", "2,1"]):
        assert run("meter", "--source", "-", *typed, *ROWS, stdin=wav(X)).status == 0


def test_channels_of_a_stream_are_chosen_by_their_numbers(run):
    six = wav(noise(1.0, 6), mask=0x3F)
    done = run("meter", "--source", "-", *ROWS, stdin=wav(noise(1.0, 6)))
    assert done.status == 1
    assert "standard input has 6 channels: choose one" in done.err
    done = run("meter", "--source", "-", "-c", "1,2", *ROWS, stdin=six)
    header, rows, _ = parts(done)
    assert header["source"]["channels"] == [1, 2]
    assert rows[-1]["laeq_db"] > 90
    assert (
        "5.1 (L R C LFE Ls Rs)" in run("meter", "--source", "-", "-c", "1,2", *ROWS, stdin=six).err
    )


def test_pcm_stays_as_it_is(run):
    raw = samples(X)
    _, rows, summary = parts(run("meter", "--source", "-", *ROWS, stdin=raw))
    _, wav_rows, _ = parts(run("meter", "--source", "-", *ROWS, stdin=wav(X)))
    assert [row["laeq_db"] for row in rows] == [row["laeq_db"] for row in wav_rows]
    assert (summary["sound"]["encoding"], summary["sound"]["kind"]) == ("PCM 16 bit", "stream")
    accident = run("meter", "--source", "-", *ROWS, stdin=b"RIFF" + raw)
    assert accident.status == 1
    assert "if it is raw PCM its format (--pcm)" in accident.err
    said = run("meter", "--source", "-", "--pcm", "s16le", *ROWS, stdin=b"RIFF" + raw)
    assert said.status == 0


@pytest.mark.parametrize("content", [b"", b"RI", wav(X)[:30], wav(X)[:44], encoded(X)[:40]])
def test_a_pipe_without_sound_is_one_sentence(run, content):
    for command in (["meter", "--source", "-", *ROWS], ["analyze", "-", *ROWS]):
        done = run(*command, stdin=content)
        assert done.status == 1
        assert done.out == "" or "laeq_db" not in done.out.splitlines()[-1] or not content
        assert "standard input" in done.lines[-1]


def test_a_calibrator_through_a_pipe(run):
    tone = np.repeat(0.1 * np.sin(2 * np.pi * 1000 * np.arange(4 * FS) / FS)[:, None], 2, 1)
    done = run("calibrate", "--source", "-", "--level", "94", stdin=encoded(tone, to="pipe"))
    assert done.status == 0, done.err
    assert done.out.count("full-scale sine = 114.000 dB SPL") == 2


def test_the_calibration_of_a_recording_comes_through_a_pipe(run, tmp_path):
    """As `meter --log --log-sound` has written it, in FLAC and in WAVE."""
    source = tmp_path / "tone.wav"
    source.write_bytes(wav(X))
    for sound in ("flac", "wav"):
        log = ["--quiet", "--log", f"log {sound}", "--log-sound", sound]
        assert run("meter", "--source", "tone.wav", "--fast", *SPL, *log).status == 0
        (recording,) = (tmp_path / f"log {sound}").rglob(f"*.{sound}")
        done = run("meter", "--source", "-", *ROWS, stdin=recording.read_bytes())
        full_scale = ROWS.index("--full-scale-db")
        rows = [*ROWS[:full_scale], *ROWS[full_scale + 2 :]]
        done = run("meter", "--source", "-", *rows, stdin=recording.read_bytes())
        assert "standard input is calibrated by its comment" in done.err
        header, _, _ = parts(done)
        assert [one["full_scale_db_spl"] for one in header["calibration"]] == [120.0, 120.0]


@pytest.mark.skipif(os.name == "nt", reason="pipes of POSIX")
def test_pipes_with_a_name(run, tmp_path):
    os.mkfifo(tmp_path / "pipe")
    expected = parts(run("meter", "--source", "-", *ROWS, stdin=STREAMS["flac"]))[1]
    for command in (["meter", "--source", "pipe"], ["analyze", "pipe"]):
        writer = written_to(tmp_path / "pipe", STREAMS["flac"])
        done = run(*command, *ROWS)
        writer.join()
        assert done.status == 0, done.err
        assert [row["laeq_db"] for row in parts(done)[1]] == [row["laeq_db"] for row in expected]
    for command in (["meter", "--source", "/dev/stdin", "-c", "1"], ["analyze", "/dev/stdin"]):
        done = run(*command, *ROWS, stdin=STREAMS["flac"])
        assert done.status == 0, done.err
        assert len(parts(done)[1]) == len(expected)
    done = run("meter", "--source", "pipe", *ROWS)
    assert done.status == 1
    assert done.lines == [
        "amt-stream: pipe is a named pipe that no program writes: start that program first"
    ]
    raw = written_to(tmp_path / "pipe", samples(X))
    done = run("meter", "--source", "pipe", *ROWS)
    raw.join()
    assert done.status == 1
    assert "pipe has no header of a sound file: give raw PCM to standard input" in done.err


def test_copies_of_pipes_are_removed(run, tmp_path):
    folder = tmp_path / "temporary"
    folder.mkdir()
    for content in (wav(X), b"no sound"):
        run("analyze", "-", *ROWS, stdin=content, TMPDIR=str(folder))
        assert list(folder.iterdir()) == []


def test_chunks_behind_the_sound_of_a_pipe_are_no_sound(run):
    content = wav(X, after=chunk(b"LIST", b"INFO" + bytes(4000)))
    _, _, summary = parts(run("meter", "--source", "-", *ROWS, stdin=content))
    assert (summary["sound"]["found_samples"], summary["sound"].get("length")) == (len(X), None)


def test_a_station_reads_a_pipe(run):
    """Its rows say what the stream is."""
    done = run(
        *("serve", "--source", "-", "--udp", "127.0.0.1:9", *SPL, "--log", "log"),
        *("--log-format", "jsonl"),
        stdin=STREAMS["flac"],
    )
    assert done.status == 0, done.err
    assert "standard input is FLAC 16 bit, stereo (L R), 48000 Hz" in done.err
