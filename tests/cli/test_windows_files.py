"""Tables, presets and other texts that users give, as programs on Windows save them."""

import numpy as np
import pytest
from openpyxl import Workbook

from amt_stream.cli.command import build_parser
from amt_stream.cli.messages import Mistake
from amt_stream.cli.sounds.batch import BatchCalibration
from amt_stream.core.settings import PresetError
from amt_stream.meters.norms import load_norm
from amt_stream.meters.presets import load_preset
from amt_stream.service.page.entrance import token_in
from amt_stream.service.transports.mqtt import Broker

EXCEL = """file;channel;full_scale_db;;
Bühne.wav;1;120,5;;
Bühne.wav;2;118;;
day/*.wav;;94,25;;
;;;;
"""
COMMA = 'file,channel,full_scale_db\n"Bühne.wav",1,"120,5"\nBühne.wav,2.0,118\nday\\*.wav,,94.25\n'
SAVED = {
    "CSV UTF-8, German": EXCEL.encode("utf-8-sig"),
    "CSV, German": EXCEL.encode("cp1252"),
    "CSV with sep=": f"sep=;\n{EXCEL}".encode("utf-8-sig"),
    "Unicode text": EXCEL.replace(";", "\t").encode("utf-16"),
    "CSV UTF-8, English": COMMA.encode("utf-8-sig"),
    "decomposed, as macOS names files": EXCEL.replace("ü", "u\u0308").encode(),
}


def levels_of(table, names):
    typed = build_parser().parse_args(["analyze", "x", "--calibrations", str(table)])
    calibrations = BatchCalibration(typed)
    return [
        [one.full_scale_db_spl for one in calibrations.of(name).of(name, (1, 2))] for name in names
    ]


@pytest.fixture
def names(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return [tmp_path / "Bühne.wav", (tmp_path / "day" / "x.wav").relative_to(tmp_path)]


@pytest.mark.parametrize("how", SAVED)
@pytest.mark.parametrize("ending", [b"\n", b"\r\n"])
def test_a_table_of_calibrations(names, tmp_path, how, ending):
    table = tmp_path / "levels.csv"
    content = SAVED[how]
    wide = how == "Unicode text"
    table.write_bytes(
        content.decode("utf-16").replace("\n", ending.decode()).encode("utf-16")
        if wide
        else content.replace(b"\n", ending)
    )
    assert levels_of(table, names) == [[120.5, 118.0], [94.25]]


def test_a_workbook_of_calibrations(names, tmp_path):
    book = Workbook()
    sheet = book.active
    for row in (
        ["File", "Channel", "full_scale_db", None],
        ["Bühne.wav", 1, 120.5],
        ["Bühne.wav", 2, 118],
        [],
        ["day/*.wav", None, 94.25],
    ):
        sheet.append(row)
    book.save(tmp_path / "levels.xlsx")
    assert levels_of(tmp_path / "levels.xlsx", names) == [[120.5, 118.0], [94.25]]
    sheet["C3"] = "many"
    book.save(tmp_path / "levels.xlsx")
    with pytest.raises(Mistake, match=r"levels.xlsx, line 3: 'many' is not a number"):
        levels_of(tmp_path / "levels.xlsx", names)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"\xd0\xcf\x11\xe0" + bytes(600), "a workbook of an old Excel"),
        (b"PK\x03\x04" + bytes(600), "cannot be read"),
        (b"\x81\x8d\xff", "is not text: save the table as CSV in UTF-8"),
        (b"", "has the columns : give file,channel,full_scale_db"),
        (b"file;channel;full_scale_db\na.wav;1;1.234,5\n", "line 2: '1.234,5' is not a number"),
        (b"file,channel,full_scale_db\na.wav,1,120,5\n", "separate cells by semicolons"),
        (b"file;channel;full_scale_db;channel\na;1;2;3\n", "has the columns"),
        (b"file;channel;full_scale_db\na;0;94\n", "line 2: channel is 0: channels are counted"),
        (b"sep=;\nfile;channel;full_scale_db\n\na;1;x\n", "line 4: 'x' is not a number"),
    ],
)
def test_what_is_no_table_of_calibrations(names, tmp_path, content, words):
    table = tmp_path / "levels.csv"
    table.write_bytes(content)
    with pytest.raises(Mistake) as refused:
        levels_of(table, names)
    assert words in str(refused.value)
    assert str(refused.value).count("levels.csv") == 1


PRESET = 'description = "Bühne"\nlimits = ["laeq_15min_db>65"]\n\n[model]\nname = "spl"\n'
NORM = 'source = "Bühne"\n\n[[limits]]\ncolumn = "laeq_15min_db"\nabove = 65\n'
ENCODINGS = ["utf-8", "utf-8-sig", "utf-16", "cp1252"]


@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("ending", ["\n", "\r\n"])
def test_a_preset_and_limits(tmp_path, encoding, ending):
    path = tmp_path / "given.toml"
    path.write_bytes(PRESET.replace("\n", ending).encode(encoding))
    preset = load_preset(str(path))
    assert (preset.description, preset.names) == ("Bühne", ("spl",))
    path.write_bytes(NORM.replace("\n", ending).encode(encoding))
    (limit,) = load_norm(str(path))
    assert (limit.source, limit.column) == ("Bühne", "laeq_15min_db")


@pytest.mark.parametrize("folder", [r"C:\Users\me", r"C:\logos", r"D:\x"])
def test_a_path_of_windows_in_a_preset_is_explained(tmp_path, folder):
    path = tmp_path / "given.toml"
    path.write_text(f'{PRESET}[report]\nlogo = "{folder}"\n')
    with pytest.raises(PresetError, match="write a path as C:/folder, or in 'single quotes'"):
        load_preset(str(path))
    path.write_text(f"{PRESET}[report]\nlogo = '{folder}'\n")
    assert load_preset(str(path)).report["logo"].endswith(folder)


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
def test_secrets(tmp_path, encoding):
    path = tmp_path / "secret"
    path.touch(0o600)
    path.write_bytes("0123456789abcdef\r\n".encode(encoding))
    assert token_in(str(path)) == "0123456789abcdef"
    path.write_bytes("user\r\npass word\r\n\r\n".encode(encoding))
    broker = Broker("host", 1883, False).with_login(str(path))
    assert (broker.user, broker.password) == ("user", "pass word")


def test_a_key_with_a_byte_order_mark_signs(said, sound_file, tmp_path):
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import ed25519

    key = ed25519.Ed25519PrivateKey.generate()
    form = serialization.PrivateFormat.PKCS8
    pem = key.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption())
    (tmp_path / "key.pem").write_bytes(pem.decode().replace("\n", "\r\n").encode("utf-8-sig"))
    sound_file(0.01 * np.ones(4800), name="x.wav")
    log = ["meter", "--source", "x.wav", "--fast", "--model", "spl", "--log", "night", "--quiet"]
    assert said(*log)[0] == 0
    status, _, err = said("verify", "night", "--sign", "key.pem")
    assert status == 0, err
