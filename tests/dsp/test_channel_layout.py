"""Positions of channels, their weights and their names."""

from pathlib import Path

import pytest

from amt_stream.dsp.channel_layout import (
    LAYOUTS,
    MOST_CHANNELS,
    OTHER_NAMES,
    WEIGHTS,
    Layout,
    LayoutError,
    as_layout,
    layout_named,
    layout_of_mask,
    surround,
    usual_layout,
)

ROOT = Path(__file__).parents[2]

ANGLES = {
    "M": (0, 0),
    "L": (30, 0),
    "R": (-30, 0),
    "C": (0, 0),
    "Lc": (15, 0),
    "Rc": (-15, 0),
    "Ls": (110, 0),
    "Rs": (-110, 0),
    "Lss": (90, 0),
    "Rss": (-90, 0),
    "Cs": (180, 0),
    "Lrs": (135, 0),
    "Rrs": (-135, 0),
    "Lw": (60, 0),
    "Rw": (-60, 0),
    "Ltf": (45, 30),
    "Rtf": (-45, 30),
    "Ctf": (0, 30),
    "Tc": (0, 90),
    "Ctr": (180, 30),
    "Lts": (90, 30),
    "Rts": (-90, 30),
    "Ltr": (135, 30),
    "Rtr": (-135, 30),
    "Lbf": (45, -30),
    "Rbf": (-45, -30),
    "Cbf": (0, -30),
}
"""Azimuth and elevation in degrees of each loudspeaker (ITU-R BS.2051-3)."""


def test_weights_follow_from_angles():
    """ITU-R BS.1770-5, Annex 3: 1.41 beside the listener and less than 30 degrees high."""
    for position, weight in WEIGHTS.items():
        if position.startswith("LFE"):
            assert weight == 0
            continue
        azimuth, elevation = ANGLES[position]
        beside = 60 <= abs(azimuth) <= 120 and abs(elevation) < 30
        assert weight == (1.41 if beside else 1.0), position


def test_layouts_have_names_and_positions():
    for name, positions in LAYOUTS.items():
        layout = layout_named(name.upper())
        assert layout == Layout(tuple(positions.split()), "user")
        assert (layout.name, layout_named(positions.replace(" ", ", "))) == (name, layout)
        assert layout.channels <= MOST_CHANNELS
        mirrored = layout_named(" ".join(reversed(positions.split())))
        assert mirrored.name == name
        assert mirrored.weights == layout.weights[::-1]
        assert Layout.from_dict(layout.to_dict()) == layout
    assert str(layout_named("l c r ls rs lfe")) == "5.1 (L C R Ls Rs LFE)"
    assert str(layout_named("L C")) == "L C"
    assert as_layout(6) == usual_layout(6)


@pytest.mark.parametrize(
    ("typed", "same"),
    [
        ("FL FR FC LFE BL BR", "5.1"),
        ("FL FR FC LFE SL SR", "5.1"),
        ("FL FR FC LFE1 BL BR SL SR", "7.1"),
        ("FL FR FC LFE BC SL SR", "6.1"),
        ("FL,FR,FC,LFE,BL,BR,TFL,TFR,TBL,TBR", "5.1.4"),
        ("2.0", "stereo"),
        ("LCRS", "4.0"),
    ],
)
def test_names_that_other_programs_use(typed, same):
    assert layout_named(typed) == layout_named(same)


@pytest.mark.parametrize(
    ("mask", "expected"),
    [
        (0x4, "C"),
        (0x3, "L R"),
        (0xB, "L R LFE"),
        (0xF, "L R C LFE"),
        (0x33, "L R Ls Rs"),
        (0x107, "L R C Cs"),
        (0x10F, "L R C LFE Cs"),
        (0x3F, "L R C LFE Ls Rs"),
        (0x60F, "L R C LFE Ls Rs"),
        (0x707, "L R C Cs Ls Rs"),
        (0x70F, "L R C LFE Cs Ls Rs"),
        (0xFF, "L R C LFE Ls Rs Lc Rc"),
        (0x63F, "L R C LFE Lrs Rrs Lss Rss"),
        (0x2D03F, "L R C LFE Ls Rs Ltf Rtf Ltr Rtr"),
    ],
)
def test_masks_of_wave_files(mask, expected):
    positions = tuple(expected.split())
    assert layout_of_mask(mask, len(positions)) == Layout(positions, "source")
    assert layout_of_mask(mask, len(positions) + 1) is None


def test_other_names_are_those_of_masks():
    assert len(OTHER_NAMES) == 18
    assert surround(["BL", "BR"]) == ("Ls", "Rs")


def test_usual_layouts_know_their_positions_or_say_that_they_do_not():
    assert [usual_layout(n).name for n in range(1, 9)] == [
        *("mono", "stereo", "3.0", "quad", "5.0", "5.1", "6.1", "7.1")
    ]
    assert usual_layout(24).name == "22.2"
    nine = usual_layout(9)
    assert (nine.name, nine.said, str(nine)) == ("", False, "? ? ? ? ? ? ? ? ?")
    assert nine.weights == (1.0,) * 9


def test_ears_are_left_and_right():
    assert layout_named("L C R Ls Rs LFE").ears == (1, 3)
    assert layout_named("22.2").ears == (7, 8)
    assert layout_named("C LFE").ears is None
    assert layout_named("5.1").of([6, 1]).positions == ("Rs", "L")


@pytest.mark.parametrize("typed", ["", "7.3", "LR", "L Q", "L L"])
def test_what_is_no_layout(typed):
    with pytest.raises(LayoutError):
        layout_named(typed)


def test_the_document_lists_all_layouts():
    page = (ROOT / "docs" / "measuring.md").read_text(encoding="utf-8")
    rows = [f"| `{name}` | {positions} |\n" for name, positions in LAYOUTS.items()]
    assert "| name | positions |\n|---|---|\n" + "".join(rows) in page
