"""Correction files of many makers are read, and what makes no sense is refused in a sentence."""

import hashlib
import json
from dataclasses import asdict

import numpy as np
import pytest

from amt_stream import measure
from amt_stream.core.device_store import CalibrationError
from amt_stream.meters.calibration import UNCALIBRATED, Calibration, Record, calibrations_of_comment
from amt_stream.meters.correction import (
    Correction,
    CorrectionError,
    keep_corrections,
    kept_corrections,
    read_correction,
)
from amt_stream.meters.rows.header import calibrations

POINTS = [(20.0, -1.3), (1000.0, 0.0), (10000.0, 2.1), (20000.0, -0.4)]
FILES = {
    "umik.txt": '"Sens Factor =-1.23dB, AGain =18dB, SERNO: 7001234"\n'
    "20.000\t-1.3000\n1000.0\t0.0\n10000\t2.1\n20000\t-0.4\n",
    "dayton.txt": "*1000Hz\t-37.5\r\n20.00\t-1.3\r\n1000.0\t0\r\n10000\t2.1\r\n20000\t-0.4\r\n",
    "rew.frd": "* Freq(Hz) SPL(dB) Phase(degrees)\n20, -1.3, 12\n1000, 0.0, 0\n10000, 2.1, -3\n"
    "20000, -0.4, -60.5\n",
    "behringer.cal": "# ECM8000\nFreq dB\n  20  -1.3\n\n 1e3   0\n 10000   +2.1 \n 20000 -.4\n",
    "comma.cal": "20.0,-1.3\n1000.0,0.0\n10000,2.1\n20000,-0.4\n",
    "decimal comma.txt": "Frequenz\tPegel\n20,0\t-1,3\n1000,0\t0,0\n10000\t2,1\n20000\t-0,4\n",
    "semicolon.txt": "; by hand\n20,0;-1,3\n1000;0\n10000;2,1\n20000;-0,4\n",
    "excel.csv": "sep=;\r\nHz;dB;\r\n20,0;-1,3;\r\n1000;0;\r\n10000;2,1;\r\n20000;-0,4;\r\n;;\r\n",
    "quoted.csv": '"Hz","dB"\n"20","-1.3"\n"1000","0"\n"10000","2.1"\n"20000","\u22120.4"\n',
}


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_a_file_is_read(tmp_path, name, encoding):
    path = tmp_path / name
    path.write_text(FILES[name], encoding=encoding, newline="")
    found = read_correction(path)
    assert list(zip(found.frequencies_hz, found.response_db, strict=True)) == POINTS
    assert found.name == name
    assert found.digest == hashlib.sha256(path.read_bytes()).hexdigest()


def test_remarks_may_be_in_any_encoding(tmp_path):
    path = tmp_path / "mic.txt"
    path.write_bytes("* 23 °C\n20 0\n2000 1\n".encode("latin-1"))
    assert read_correction(path).response_db == (0.0, 1.0)


REFUSED = {
    "falling": ("20 0\n1000 0\n500 1\n", "line 3: 500 Hz comes after 1000 Hz"),
    "twice": ("20 0\n20 1\n2000 1\n", "line 2: 20 Hz comes after 20 Hz"),
    "from zero": ("0 0\n2000 1\n", "line 1: 0 Hz comes after 0 Hz"),
    "one": ("1000 0\n", "has 1 point: a response needs two or more"),
    "none": ("* nothing\n", "has 0 points"),
    "levels": ("20 93.1\n2000 94\n", "line 1: 93.1 dB at 20 Hz is beyond"),
    "nan": ("20 nan\n2000 1\n", "line 1: nan dB at 20 Hz is beyond"),
    "kilohertz": ("0.02 0\n20 1\n", "the frequencies end at 20 Hz: give hertz"),
    "words": ("20 0\nmany 1\n2000 1\n", "line 2: 'many 1' is not numbers"),
    "alone": ("20 0\n2000\n", "line 2: '2000' has 1 number:"),
    "commas": ("20,5,-1,3\n2000,0,0,1\n", "line 1: '20,5,-1,3' has 4 numbers"),
    "binary": ("\0\1\2", "has 0 points"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_makes_no_sense_is_refused_in_a_sentence(tmp_path, name):
    text, words = REFUSED[name]
    path = tmp_path / "mic.cal"
    path.write_text(text)
    with pytest.raises(CorrectionError) as refused:
        read_correction(path)
    assert words in str(refused.value)
    assert "\n" not in str(refused.value)
    assert "mic.cal" in str(refused.value)


def test_what_is_no_file_is_refused(tmp_path):
    with pytest.raises(CorrectionError, match="is a folder"):
        read_correction(tmp_path)
    with pytest.raises(CorrectionError, match="cannot be read: No such file"):
        read_correction(tmp_path / "none.cal")


@pytest.fixture
def umik(tmp_path):
    path = tmp_path / "umik.txt"
    path.write_text(FILES["umik.txt"])
    return path


def test_the_response_is_taken_off_and_the_sign_is_told(umik):
    found = read_correction(umik)
    assert found.gain_db(10000) == pytest.approx(-2.1)
    assert found.gain_db([5, 20, 40000]).tolist() == pytest.approx([1.3, 1.3, 0.4])
    assert found.in_words() == "+2.1 dB at 10 kHz in umik.txt: readings there are lowered by 2.1 dB"
    turned = read_correction(umik, inverted=True)
    assert turned.gain_db(10000) == pytest.approx(2.1)
    assert turned.in_words().endswith("readings there are raised by 2.1 dB")
    assert "inverted" in str(turned)


def test_halfway_between_two_points_in_octaves_is_halfway_in_decibels():
    found = Correction((100.0, 1600.0), (0.0, 4.0))
    assert found.gain_db(400.0) == pytest.approx(-2.0)


def test_the_tone_of_a_calibration_reads_the_same_with_it():
    response = Correction((20.0, 250.0, 4000.0), (-3.0, 0.5, 1.0))
    plain = Record("usb", 1, 94.0, -26.0, 250.0, "2026-11-22T09:00:00Z").calibration
    corrected = plain.with_correction(response)
    assert corrected.correction.gain_db(250.0) == 0.0
    assert corrected.correction.gain_db(4000.0) == pytest.approx(-0.5)
    assert corrected.correction.in_words().endswith("raised by 3.5 dB, against 250 Hz")
    assert corrected.with_correction(None) == plain
    # A level that somebody has typed in is of no known frequency.
    assert Calibration(120.0).with_correction(response).correction == response


def test_a_header_says_which_file(umik):
    found = read_correction(umik)
    (told,) = calibrations([UNCALIBRATED.with_correction(found)], [1])
    assert told["correction"] == {
        "name": "umik.txt",
        "date": found.date,
        "sha256": found.digest,
        "inverted": False,
        "reference_hz": None,
    }
    assert "correction" not in calibrations([UNCALIBRATED], [1])[0]
    assert f"corrected by umik.txt of {found.date} (sha256 {found.digest[:8]})" in str(
        UNCALIBRATED.with_correction(found)
    )


def test_measuring_takes_a_file(umik):
    t = np.arange(24000) / 48000
    x = 0.1 * np.sin(2 * np.pi * 10000 * t)
    given = {"calibration": 120.0, "step_ms": 100, "columns": ["laeq_db", "lceq_db"]}
    plain = measure(x, 48000, "spl", **given)
    corrected = measure(x, 48000, "spl", correction=umik, **given)
    assert plain["lceq_db"][-1] - corrected["lceq_db"][-1] == pytest.approx(2.1, abs=0.1)
    assert corrected.header["calibration"][0]["correction"]["name"] == "umik.txt"
    with pytest.raises(ValueError, match="2 corrections for 1 channel: give one"):
        measure(x, 48000, "spl", correction=[umik, None], **given)


def test_a_recording_tells_it_and_a_header_that_it_was_there(umik):
    tone = Record("usb", 1, 94.0, -26.0, 1000.0, "2026-11-22T09:00:00Z", 0.25).calibration
    given = tone.with_correction(read_correction(umik))
    comment = json.dumps({"calibration": [{"channel": 2, **asdict(given)}]})
    told = calibrations_of_comment(comment, "amt_stream 1.0", "x.flac")[2]
    assert told.correction == given.correction
    (header,) = calibrations([given], [2])
    assert (header["correction"]["name"], "frequencies_hz" in header["correction"]) == (
        "umik.txt",
        False,
    )
    assert Calibration.from_dict(json.loads(json.dumps(asdict(given)))) == given


def test_what_is_kept_of_a_device_is_read_strictly(tmp_path, umik):
    path = tmp_path / "corrections.jsonl"
    given = read_correction(umik, inverted=True)
    assert kept_corrections(path) == {}
    keep_corrections("usb", {1: given.at(1000.0), 2: given}, path)
    keep_corrections("usb", {2: None}, path)
    assert kept_corrections(path) == {("usb", 1): given}
    good = path.read_text()
    for line, said in (
        ("[1]", "not a record"),
        (good.replace('"usb"', "1"), "device or channel is missing"),
        (good.replace('"inverted": true', '"inverted": 1'), "inverted is missing"),
        (good.replace("-1.3", "NaN"), "beyond"),
        (good.replace('"date"', '"day"'), "day"),
        (good.replace('"frequencies_hz": [', '"frequencies_hz": [["x"], '), ""),
        (good.replace('"reference_hz": null', '"reference_hz": "x"'), "reference_hz"),
        (good.replace('"reference_hz": null', '"reference_hz": -1'), "reference_hz"),
    ):
        path.write_text(line)
        with pytest.raises(CalibrationError, match=rf"corrections.jsonl, line 1: .*{said}"):
            kept_corrections(path)
