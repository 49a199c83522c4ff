"""The catalog: every entry holds what it says, and another package can add one."""

import inspect
import subprocess
import sys

import pytest

from amt_stream.meters import catalog
from amt_stream.meters.catalog import CatalogError, Entry
from amt_stream.meters.rows import readings_of

WORDS = {
    "name": "toy",
    "title": "Toy",
    "method": "nothing at all",
    "model": "amt_stream.dsp.stages:Gain",
    "readings": "amt_stream.meters.rows.models.programme:ProgrammeReadings",
}


@pytest.mark.parametrize("name", catalog.names())
def test_every_entry_is_true(name):
    entry = catalog.entry(name)
    kind = entry.load("model")
    parameters = inspect.signature(kind).parameters
    assert {"fs", *entry.arguments, *entry.settings, *entry.takes} <= set(parameters)
    model = entry.build(48000, channels=2)
    assert model.fs == 48000
    assert model.input_unit == entry.input_unit
    for key, words in entry.settings.items():
        assert parameters[key].default == words[0]
        for word in words:
            entry.build(48000, {key: word})
        with pytest.raises(ValueError, match=f"{key} is 'wrong'"):
            entry.build(48000, {key: "wrong"})
    of_readings = inspect.signature(entry.load("readings")).parameters
    assert list(of_readings) == ["channels", *entry.readings_take]
    for output in entry.outputs.values():
        asked = {} if output.takes is None else {output.takes: True}
        assert asked.keys() <= set(entry.takes)
        fields = entry.build(48000, channels=2, **asked).out_time_dim._fields
        assert output.field in fields
    if not entry.alone:
        assert readings_of([name], 2)[name].columns
        assert entry.load_checks().CHECKS
    if entry.view == "readings":
        assert entry.pane is None or callable(entry.load("pane"))


def test_what_a_model_takes_is_given_and_the_rest_is_left_out():
    known = {"layout": "5.0", "uncertainty_db": 1.0, "specific_loudness": True}
    assert catalog.entry("bs1770").build(48000, {"field": "diffuse"}, **known).channels == 5
    moore = catalog.entry("moore2016").build(32000, {"field": "diffuse"}, **known)
    assert moore.uncertainty_db == 1.0
    catalog.entry("spl").build(48000, {"field": "diffuse"}, **known)


def test_an_unknown_name_tells_the_nearest():
    with pytest.raises(CatalogError, match="no model 'moore2015': did you mean moore2016"):
        catalog.entry("moore2015")
    with pytest.raises(CatalogError, match="no model 'xyz': there are moore2016, gm2002, zwicker"):
        catalog.entry("xyz")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"name": "a,b"}, "the model name is 'a,b': give letters"),
        ({"model": "amt_stream.Gain"}, "toy: model is 'amt_stream.Gain': give 'module:name'"),
        ({"input_unit": "Pa"}, "toy: input_unit is 'Pa': give 'pascal' or"),
    ],
)
def test_an_entry_that_says_nothing_usable_is_refused(change, said):
    with pytest.raises(CatalogError, match=said):
        Entry(**{**WORDS, **change})


def test_a_program_adds_a_model_for_itself(monkeypatch):
    monkeypatch.setattr(catalog, "_added", {})
    new = Entry(**WORDS)
    catalog.add(new)
    assert catalog.entry("toy") is new
    assert catalog.models_side_by_side()[-1] == "toy"
    with pytest.raises(CatalogError, match="a model 'toy' already, Toy: choose another"):
        catalog.add(new)
    with pytest.raises(CatalogError, match="toy has no self-test"):
        new.load_checks()
    with pytest.raises(CatalogError, match="toy has no pane"):
        new.load("pane")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("nowhere.at_all:Gain", "toy: model is in nowhere.at_all, which does not exist"),
        ("amt_stream.dsp.stages:Gian", "toy: model is .*, and amt_stream.dsp.stages has no Gian"),
    ],
)
def test_words_that_stand_for_nothing_are_told(words, said):
    with pytest.raises(CatalogError, match=said):
        Entry(**{**WORDS, "model": words}).load("model")


OFFERED = {
    "None": "offers the model 'toy' as None: it must be an amt_stream.meters.catalog.Entry",
    "1 / 0": "cannot be loaded (ZeroDivisionError: division by zero): repair or uninstall it",
    "Entry('spl', 'T', 'm', 'a:b', 'a:b')": "a model 'spl' already, Sound level: choose another",
}


@pytest.mark.parametrize(("offered", "said"), OFFERED.items())
def test_what_another_package_offers_wrongly_is_one_sentence(tmp_path, offered, said):
    program = f"from amt_stream.meters.catalog import Entry\nENTRY = {offered}\n"
    (tmp_path / "toy.py").write_text(program)
    told = tmp_path / "toy-1.0.dist-info"
    told.mkdir()
    (told / "METADATA").write_text("Metadata-Version: 2.1\nName: toy\nVersion: 1.0\n")
    (told / "entry_points.txt").write_text("[amt_stream.meters]\ntoy = toy:ENTRY\n")
    command = [sys.executable, "-c", "import sys; sys.path.insert(0, sys.argv.pop(1)); "]
    command[-1] += "from amt_stream.cli import main; sys.exit(main(['meter', '--help']))"
    done = subprocess.run([*command, str(tmp_path)], check=False, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (1, "")
    assert said in done.stderr
    assert len(done.stderr.splitlines()) == 1
