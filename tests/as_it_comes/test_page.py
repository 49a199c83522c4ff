"""`docs/sound_as_it_comes.md` says what happens; each sentence in it is one that is really said."""

import re
from pathlib import Path

import pytest

from amt_stream.engine.devices.zero_gate import LONGEST_S
from amt_stream.engine.microphone.offset import FOLLOW_HZ, LISTEN_S, WORTH_TELLING
from tests.as_it_comes.answers import command
from tests.as_it_comes.devices import HAPPENINGS
from tests.as_it_comes.report import quantized, tone
from tests.as_it_comes.test_matrix import CELLS
from tests.as_it_comes.test_reports import REPORTS
from tests.data.sound_files import by_libsndfile, noise, wav

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "sound_as_it_comes.md").read_text(encoding="utf-8")
SENTENCES = re.findall(r"`(\w+\.(?:wav|flac):? [^`]+)`", PAGE)
FS = 48000
SIX = quantized(noise(2.0, 6, rms=0.01))

FILES = {
    "loud.wav": wav(quantized(1.3 * tone(0.0)[:, None])),
    "offset.wav": wav(quantized(noise(2.0, 1, rms=0.001) + 0.02)),
    "six.wav": wav(SIX),
    "film.wav": wav(SIX, mask=0x60F),
    "long.wav": wav(SIX[:, :2], size=4 * FS),
    "short.wav": wav(SIX[:, :2], size=16 * FS),
    "joined.flac": 2 * by_libsndfile(SIX[:, :2], "FLAC", "PCM_16"),
}
STATUS = {"six.wav": 1, "short.wav": 1}


@pytest.mark.cases(2)
@pytest.mark.parametrize("name", FILES)
def test_what_the_page_quotes_is_said(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path(name).write_bytes(FILES[name])
    said = []
    for models in ("bs1770", "spl"):
        status, _, err = command("analyze", name, "--summary", "--model", models)
        said += [line.removeprefix("amt-stream: ") for line in err.splitlines()]
    assert status == STATUS.get(name, 0)
    quoted = [one for one in SENTENCES if re.match(rf"{re.escape(name)}\b", one)]
    assert quoted
    for sentence in quoted:
        assert sentence in said


def test_each_quoted_sentence_is_of_a_file_here():
    assert {re.match(r"[\w.]+\w", one)[0] for one in SENTENCES} == {*FILES}


def test_numbers_of_the_page():
    for words in (
        f"more than {100 * WORTH_TELLING:g} % of full scale",
        f"the first {LISTEN_S:g} s",
        f"below {FOLLOW_HZ:g} Hz",
        f"more than {LONGEST_S:g} s",
        f"{CELLS:,} cells",
        f"{len(REPORTS) + len(HAPPENINGS)} cases",
    ):
        assert words in PAGE, words


def test_the_page_names_each_report():
    links = re.findall(r"https://github\.com/([\w.-]+/[\w.-]+)/issues/(\d+)", PAGE)
    tried = {(one.place, str(one.number)) for one in (*REPORTS, *HAPPENINGS)}
    assert {*links} == tried


def test_the_page_is_linked():
    for page in (DOCS.parent / "README.md", DOCS / "measuring.md", DOCS / "index.md"):
        assert "sound_as_it_comes" in page.read_text(encoding="utf-8")
