"""Every reading has its name in words and a sentence."""

import pytest

from amt_monitor.base.number_table import NumberTable
from amt_stream.meters import catalog
from amt_stream.meters.rows import Column, readings_of
from amt_stream.meters.rows.captions import caption_of, caption_of_column
from amt_stream.views.reading_cell import ReadingCell

METERS = catalog.models_side_by_side()


@pytest.mark.parametrize("channels", [1, 2])
@pytest.mark.parametrize("model", METERS)
def test_every_reading_of_a_shipped_meter_is_described(model, channels):
    readings = readings_of([model], channels, band=model == "moore2016")[model]
    for name in {column.name for column in readings.offered} | {*readings.headlines}:
        caption = caption_of(name)
        assert caption.sentence.endswith("."), name
        assert "{" not in "".join(caption[:4]), name
        assert caption.words, name
        unit = caption.unit.lower().removesuffix("_hms").replace("/", "_")
        assert name.endswith(f"_{unit}") or not unit, name


@pytest.mark.parametrize("model", METERS)
def test_what_is_made_of_all_that_was_counted_says_so(model):
    readings = readings_of([model], 2, band=model == "moore2016")[model]
    for column in readings.offered:
        now = column.statistic == "instantaneous" or column.window_s
        if "bound" not in column.quantity:
            assert caption_of(column.name).counted == (not now), column.name


@pytest.mark.parametrize(
    ("name", "words", "symbol", "unit"),
    [
        ("ltl_sone", "Loudness, long-term", "LTL", "sone"),
        ("ltl_phon", "Loudness level, long-term", "LTL", "phon"),
        ("gm2002_max_stl_phon", "Highest, short-term", "STL max", "phon"),
        ("laeq_15min_db", "Average level, 15 min", "LAeq,15min", "dB"),
        ("spectrum_max_right_hz", "Strongest line so far, right", "", "Hz"),
        ("lcpeak_left_db", "Peak level C, left", "LCpeak L", "dB"),
        ("integrated_lu", "Integrated", "I", "LU"),
        ("lzf_1_25hz_db", "1.25 Hz, fast", "LZF 1.25 Hz", "dB"),
        ("lzf_31_5hz_db", "31.5 Hz, fast", "LZF 31.5 Hz", "dB"),
        ("sharpness_aures_s5_acum", "Sharpness exceeded 5 % of time Aures", "S5", "acum"),
        ("a_reading_of_others_hz", "A reading of others", "", "Hz"),
    ],
)
def test_words_are_made_of_the_name(name, words, symbol, unit):
    assert caption_of(name)[:3] == (words, symbol, unit)


@pytest.mark.parametrize(
    ("name", "unit", "words"),
    [("toy_db", "dB", "Toy"), ("toy_level", "dB", "Toy level"), ("toy_ratio", "", "Toy ratio")],
)
def test_a_column_without_a_label_has_its_own_unit(name, unit, words):
    assert caption_of_column(Column(name, unit, "toy"))[:3] == (words, "", unit)


def test_time_constants_are_those_of_the_model():
    assert "falls with 0.75 s" in caption_of("ltl_sone").sentence
    assert "falls with 2 s" in caption_of("gm2002_ltl_sone").sentence
    assert "falls with 50 ms" in caption_of("gm2002_stl_phon").sentence
    assert "within 99 dB" in caption_of("laeq_15min_allowed_99_db").sentence
    assert "LAeq,15min" in caption_of("laeq_15min_allowed_99_db").sentence


@pytest.mark.parametrize("short", [False, True])
def test_a_reading_has_its_symbol_in_a_table_of_every_size(qtbot, short):
    names = "lcpeak_db", "lafmax_db", "ltl_n5_phon", "spectrum_max_hz"
    table = NumberTable([[ReadingCell(name)] for name in names])
    qtbot.addWidget(table)
    table.arrange(14, len(table), len(table), short)
    for (cell, _), line in zip(table.numbers, table._lines, strict=True):
        caption = cell.caption
        assert caption.symbol in line.words.text(), "one name, whatever the room"
        assert caption.words in (line.words.toolTip() if short else line.words.text())
        assert line.words.width() >= line.words.fontMetrics().horizontalAdvance(line.words.text())
