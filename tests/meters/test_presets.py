import json
from fractions import Fraction
from pathlib import Path

import pytest
import torch

from amt_stream.cli.command import build_parser
from amt_stream.cli.preset import chosen_preset
from amt_stream.meters import catalog
from amt_stream.meters.presets import (
    Preset,
    PresetError,
    load_preset,
    preset_of,
    presets_folder,
    read_preset,
    rules,
    shipped_presets,
)
from amt_stream.meters.specification import RUNGS, keyed, settings_of

ROOT = Path(__file__).parents[2]
GOOD = '[model]\nname = "moore2016"\n'
CHAIN = '[model]\nname = "chain"\n'
PRELU = '[[model.stages]]\ntype = "torch.nn.PReLU"\n'
COMPRESSION = '[[model.stages]]\ntype = "PowerCompression"\nchannel_dim = -2\n'


@pytest.fixture
def preset_file(tmp_path):
    def write(text):
        path = tmp_path / "mine.toml"
        path.write_text(text)
        return path

    return write


def test_the_shipped_presets_are_valid_complete_and_differ():
    names = shipped_presets()
    assert len(names) >= 3
    assert "moore2016" in names
    loaded = [load_preset(name) for name in names]
    assert len({repr(preset) for preset in loaded}) == len(names)
    for name, preset in zip(names, loaded, strict=True):
        text = (presets_folder() / f"{name}.toml").read_text()
        model = {f"model.{key}" for key in ("name", *preset.settings)}
        settings = {key for key in rules() if not key.startswith("model.")} | model
        # They know of no microphones, and of no place.
        settings -= {"meter.microphones", "meter.layout", "limits", "events", "run"}
        settings -= {"meter.audience", "meter.more_columns"}
        settings -= {"report.paper", "report.company", "report.logo"}
        assert all(f"{key.rpartition('.')[2]} = " in text for key in settings), name


def table_of_settings():
    """The keys of a preset as Markdown: what each may be, its default, and what it sets."""
    usual, lines = (
        Preset(),
        ["| key | what it may be | default | what it sets |", "|---|---|---|---|"],
    )
    for key, one in keyed().items():
        name = key.rpartition(".")[2]
        default = getattr(usual, name, None) or usual.settings.get(name)
        if key == "model.name":
            default = usual.name
        takers = [f"`{e.name}`" for e in catalog.entries().values() if name in e.settings]
        about = one.about() if callable(one.about) else one.about
        if one.flag:
            about = about.partition(": ")[0]  # the rest is of what is typed
        if key.startswith("model.") and takers:
            about = f"of {', '.join(takers)}: {about}"
        if one.page:
            about += f" ([{one.page.partition('#')[0]}]({one.page}))"
        lines.append(f"| `{key}` | {one.rule} | {shown(default)} | {about} |")
    return "\n".join(lines)


def shown(default):
    if isinstance(default, tuple):
        return ", ".join(map(shown, default))
    if isinstance(default, float | int):
        return f"{default:g}"
    return f"`{default}`" if default else "none"


def test_the_document_has_the_table_of_all_settings():
    told = (ROOT / "docs" / "presets.md").read_text(encoding="utf-8")
    table = table_of_settings()
    assert table in told, f"the table of docs/presets.md has to be\n\n{table}"


def test_each_setting_of_models_is_declared():
    keys = {f"model.{key}" for key in settings_of(one.name for one in catalog.SHIPPED)}
    assert keys <= keyed().keys()


def test_events_are_tables_or_lines(tmp_path):
    path = tmp_path / "own.toml"
    path.write_text(
        'events = ["laf_db>85,hold=2", "limits"]\n[model]\nname = "spl"\n'
        '[[limits]]\ncolumn = "laeq_db"\nabove = 80\n'
    )
    by_line = read_preset(path)
    assert [one.words for one in by_line.triggers] == ["laf_db > 85", "a limit is red"]
    path.write_text(
        '[model]\nname = "spl"\n[[limits]]\ncolumn = "laeq_db"\nabove = 80\n'
        '[[events]]\ncolumn = "laf_db"\nabove = 85\nhold_s = 2\n[[events]]\ncolumn = "limits"\n'
    )
    assert read_preset(path) == by_line
    assert preset_of(json.loads(json.dumps(by_line.tables)), path) == by_line


def test_the_default_preset_is_the_model_as_it_stands():
    loaded = load_preset()
    assert loaded == Preset(description=loaded.description)


@pytest.mark.parametrize("name", shipped_presets())
def test_a_shipped_preset_builds(name):
    preset = load_preset(name)
    rates = {"moore2016": 1000, "gm2002": 1000, "zwicker": 500, "bs1770": 100, "spl": 100}
    rates |= {"ecma_loudness": 187.5, "ecma_tonality": 187.5}
    models = preset.models(48000, 2)
    for one, model in models.items():
        assert (model.fs, model.fs * model.ratio) == (48000, rates.get(one, 50))
    assert type(preset.model(48000)) is type(models[preset.name])
    assert preset.engine_settings["block_ms"] == preset.block_ms


def test_a_path_is_a_preset_and_what_it_leaves_out_is_as_usual(preset_file):
    preset = load_preset(str(preset_file(GOOD + 'field = "diffuse"\n[meter]\nstep_ms = 20\n')))
    assert preset == Preset(settings={"field": "diffuse"}, step_ms=20)


@pytest.mark.parametrize(
    ("written", "ladder"),
    [("", RUNGS), ('"none"', ()), ('"models"', ("models",)), ('["blocks"]', ("blocks",))],
)
def test_what_may_be_done_without_in_an_overload_is_a_setting(preset_file, written, ladder):
    line = f"[engine]\nladder = {written}\n" if written else ""
    assert load_preset(str(preset_file(GOOD + line))).engine_settings["ladder"] == ladder


def test_an_explicit_field_wins():
    assert load_preset("headphones-eardrum").with_field("diffuse").settings["field"] == "diffuse"
    assert load_preset("headphones-eardrum").with_field(None).settings["field"] == "eardrum"


def test_a_model_beside_one_that_includes_it_is_refused():
    with pytest.raises(PresetError, match="ecma has the readings of ecma_loudness: give one of"):
        Preset(("ecma_loudness", "spl", "ecma"))


def test_a_field_that_a_model_has_not_is_refused():
    with pytest.raises(ValueError, match=r"field is .eardrum.: give free or diffuse"):
        Preset(("spl", "zwicker"), {"field": "eardrum"}).models(48000, 2)


def test_an_unknown_name_lists_those_there_are():
    with pytest.raises(PresetError, match=r"no preset 'loud'.*low-power, moore2016"):
        load_preset("loud")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[model\n", "is not TOML: .*line 1"),
        ("", 'model.name is missing; it must be one of "moore2016"'),
        ('[model]\nname = "stevens"\n', 'model.name is "stevens" and must be one of "moore2016"'),
        ('[model]\nname = ["spl", "dau1997"]\n', "or a list of several out of"),
        ('[model]\nname = ["spl", "spl"]\n', "or a list of several out of"),
        ("[model]\nname = []\n", "or a list of several out of"),
        (
            '[model]\nname = ["spl", "zwicker"]\near_filter = "linear"\n',
            'model.ear_filter = "linear" is not a setting of spl, zwicker: leave it out',
        ),
        (GOOD + 'feild = "free"\n', 'model.feild = "free" is not a setting: did you mean model.f'),
        (GOOD + 'colour = "red"\n', "model.colour = .* is not a setting: allowed are model.name"),
        (GOOD + "field = 1\n", 'model.field is 1 and must be one of "free"'),
        (GOOD + "field = []\n", r"model.field is \[\] and must be one of"),
        (GOOD + "[engine]\nblock_s = 0.01\n", "engine.block_s = 0.01 .* mean engine.block_ms, a n"),
        (GOOD + '[engine]\nblock_ms = "10 ms"\n', 'block_ms is "10 ms" and must be a number from'),
        (GOOD + "[engine]\nblock_ms = 0\n", "block_ms is 0 and must be a number from 1 to 1000 ms"),
        (GOOD + "[engine]\nblock_ms = nan\n", "block_ms is nan and must be"),
        (GOOD + "[engine]\nhistory_s = true\n", "history_s is true and must be a number"),
        (GOOD + '[engine]\ncompute = "tpu"\n', 'compute is "tpu" and must be one of "cpu", "cu'),
        (GOOD + '[engine]\nladder = "rows"\n', 'ladder is "rows" and must be one of "none", "acc'),
        (GOOD + "[meter]\nstep_ms = 0.5\n", "step_ms is 0.5 and must be a whole number"),
        (GOOD + "[screen]\nsize = 1\n", r"\[screen\] is not a section: allowed are \[engine\]"),
        (GOOD + "[engine.block_ms]\n", "block_ms is {} and must be a number"),
        ("model = 3\n", r"model is 3 and must be a section \[model\]"),
        ("limits = 3\n" + GOOD, "limits is 3 and must be one or more tables"),
        (
            GOOD + "[[limits]]\nabove = 3\n",
            "limits 1: a limit needs a column, and either above or b",
        ),
        (GOOD + 2 * '[[limits]]\ncolumn = "stl_sone"\nabove = 3\n', "two limits are called stl_3"),
        (GOOD + "[[events]]\nabove = 3\n", "events 1: an event: a limit needs a column, and eit"),
        (GOOD + 2 * '[[events]]\ncolumn = "stl_sone"\nabove = 3\n', "two events are called stl_3"),
        (GOOD + '[[stages]]\ntype = "IHCEnvelope"\n', "'IHCEnvelope'.* is not a setting"),
        ("step_ms = 3\n" + GOOD, "step_ms = 3 is not a setting: did you mean meter.step_ms"),
        (CHAIN, 'model.name = "chain" needs one or more tables'),
        (CHAIN + "stages = []\n", r"model.stages is \[\] and must be one or more tables"),
        (CHAIN + "[[model.stages]]\nsamples = 3\n", "stages is .* each with a type and its arg"),
        (GOOD + PRELU, 'model.stages need model.name = "chain"'),
        (CHAIN + 'field = "free"\n' + PRELU, 'field = "free" is not a setting of a chain: leave'),
        (
            CHAIN + PRELU + '[[model.stages]]\ntype = "Dealy"\n',
            r'stages 2: type = "Dealy" is nei'
            r".* did you mean Delay\?",
        ),
        (CHAIN + PRELU.replace("PReLU", "Preelu"), 'type = "torch.nn.Preelu" is neither a stage'),
        (CHAIN + PRELU.replace("PReLU", "init"), 'type = "torch.nn.init" is neither a stage'),
        (
            CHAIN + PRELU + "num_parameter = 3\n",
            r"stages 1: type = \"torch.nn.PReLU\": num_param"
            r"eter = 3 is not an argument: did you mean num_parameters\?",
        ),
        (
            CHAIN + PRELU + 'dtype = "float64"\n',
            'dtype = "float64" is not an argument: allowed are',
        ),
    ],
)
def test_a_broken_preset_is_refused_in_one_sentence(preset_file, text, said):
    path = preset_file(text)
    with pytest.raises(PresetError, match=said) as refusal:
        load_preset(str(path))
    assert str(path) in str(refusal.value)
    assert "\n" not in str(refusal.value)


def test_a_file_that_cannot_be_text_is_refused(tmp_path):
    path = tmp_path / "noise.toml"
    path.write_bytes(bytes(range(256)))
    with pytest.raises(PresetError, match="is not TOML"):
        load_preset(str(path))


def test_a_chain_of_stages_is_built_in_order_and_at_its_rates(preset_file):
    resample = '[[model.stages]]\ntype = "Resample"\nfs_in = 48000\nfs_out = 32000\n'
    text = CHAIN + resample + '[[model.stages]]\ntype = "EarFilter"\n' + COMPRESSION
    text += PRELU + "num_parameters = 2\n" + PRELU + "init = 0.5\n"
    preset = load_preset(str(preset_file(text)))
    model = preset.model(48000)
    assert list(model.stages()) == ["resample", "earfilter", "powercompression", "prelu", "prelu_2"]
    assert [p.tolist() for p in model.parameters()] == [[0.25, 0.25], [0.5]]
    assert model(torch.zeros(1, 2, 480)).shape == (1, 2, 320)
    assert (model.out_shape((1, 2)), model.ratio) == ((1, 2), Fraction(2, 3))


def test_a_chain_takes_a_range_of_centers_and_the_rate_where_a_stage_stands(preset_file):
    resample = '[[model.stages]]\ntype = "Resample"\nfs_in = 48000\nfs_out = 32000\n'
    banks = "".join(
        f'[[model.stages]]\ntype = "{kind}Filterbank"\nfc = {fc}\n'
        for kind, fc in (("Gammatone", "{ low = 80, high = 8000 }"), ("Modulation", [500.0] * 31))
    )
    model = load_preset(str(preset_file(CHAIN + resample + banks))).model(48000)
    assert {stage.fs for name, stage in model.stages().items() if name != "resample"} == {32000}
    assert model.gammatonefilterbank.num_channels == 31
    assert model.dtype == torch.float32


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (PRELU + 'num_parameters = "x"\n', 'cannot be made with num_parameters = "x": empty'),
        (
            '[[model.stages]]\ntype = "Delay"\nsamples = -1\n',
            "samples = -1: Delay takes a whole",
        ),
        ('[[model.stages]]\ntype = "Resample"\n', "cannot be made with no arguments: .*missing"),
        (
            PRELU + PRELU.replace("PReLU", "Flatten"),
            "model.stages: Chain: 'flatten': Flatten cannot",
        ),
        (COMPRESSION + '[[model.stages]]\ntype = "Moore2016AGC"\n', "model.stages: .* on axis -2"),
    ],
)
def test_stages_that_cannot_be_made_are_refused_in_one_sentence(preset_file, text, said):
    path = preset_file(CHAIN + text)
    preset = load_preset(str(path))
    with pytest.raises(PresetError, match=said) as refusal:
        preset.model(48000)
    assert str(path) in str(refusal.value)
    assert "\n" not in str(refusal.value)


SHIPPED = {name: load_preset(name) for name in shipped_presets()}


@pytest.mark.parametrize("name", SHIPPED)
def test_a_model_and_a_preset_of_it_give_rows_at_the_same_step(name):
    preset = SHIPPED[name]
    typed = build_parser().parse_args(["meter", "--model", ",".join(preset.names)])
    chosen = chosen_preset(typed)
    assert chosen.row_step_ms == preset.row_step_ms
    assert chosen.step_ms == 100
    if not preset.run and name != "low-power":  # which are there to show less often
        assert preset.step_ms == 100


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("x = " + "[" * 2000 + "]" * 2000, "is nested too deeply for a preset"),
        (f"{GOOD}[meter]\nstep_ms = {'9' * 400}\n", "meter.step_ms is 99.*[.][.][.] and must be a"),
        (f"{GOOD}[meter]\nstep_ms = {'9' * 5000}\n", "is not TOML: Exceeds the limit"),
        (f"{GOOD}[meter]\nstep_ms = 0x{'f' * 9000}\n", "is a int too long to be shown and must be"),
        (GOOD + "#" * (1 << 20), "has more than 1048576 bytes"),
        (f"{GOOD}\n{'a.' * 40000}a = 1", "a key has more than 16 parts"),
        (GOOD + "x = {b = 1, " + '"a" . ' * 40000 + "a = 1}", "a key has more than 16 parts"),
        (GOOD + r'"\"".' * 40000 + "a = 1", "a key has more than 16 parts"),
        (f"{GOOD}[{'a.' * 16}a]", "a key has more than 16 parts"),
        (f"{GOOD}[{'a.' * 15}a]", "is not a section"),
        (GOOD + "a" * 900000, "is not TOML"),
    ],
)
def test_a_preset_that_nobody_wrote_is_refused_in_one_sentence(preset_file, text, said):
    with pytest.raises(PresetError, match=said) as refused:
        load_preset(str(preset_file(text)))
    assert len(str(refused.value)) < 500


def test_a_preset_that_is_no_file_is_refused(tmp_path):
    for name, said in (
        (str(tmp_path), "is a folder"),
        ("/dev/zero", "is a device"),
        ("", "no pre"),
    ):
        with pytest.raises(PresetError, match=said):
            load_preset(name)
    with pytest.raises(PresetError, match="File name too long"):
        load_preset("n" * 300)
