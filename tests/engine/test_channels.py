"""Which channels of a sound each model hears: one rule for all ways of use."""

import numpy as np
import pytest

from amt_stream.dsp.channel_layout import Layout, LayoutError, layout_named, usual_layout
from amt_stream.engine.microphone.channels import (
    block_columns,
    channel_numbers,
    heard_channels,
    layout_said,
    number_of,
    refuse_more_than_two,
)
from amt_stream.engine.sources import SourceError

LOUDNESS, PROGRAMME = {"moore2016": 2}, {"bs1770": 24}
BOTH = PROGRAMME | LOUDNESS | {"spl": 2}
OGG = layout_named("L C R Ls Rs LFE")


@pytest.mark.parametrize(
    ("offered", "models", "chosen", "channels", "positions"),
    [
        (usual_layout(1), LOUDNESS, None, (1,), "M"),
        (usual_layout(2), LOUDNESS, None, (1, 2), "L R"),
        (usual_layout(2), LOUDNESS, (2, 1), (2, 1), "L R"),
        (usual_layout(8), LOUDNESS, (4,), (4,), "M"),
        (usual_layout(8), LOUDNESS, (7, 3), (7, 3), "L R"),
        (usual_layout(6), PROGRAMME, None, (1, 2, 3, 4, 5, 6), "L R C LFE Ls Rs"),
        # Where nobody says what channels are for, chosen ones are a sound of their own.
        (usual_layout(6), PROGRAMME, (4,), (4,), "M"),
        (usual_layout(6), PROGRAMME, (5, 6), (5, 6), "L R"),
        (usual_layout(8), PROGRAMME, (3, 4, 5, 6, 7, 8), (3, 4, 5, 6, 7, 8), "L R C LFE Ls Rs"),
        (OGG, LOUDNESS, None, (1, 3), "L R"),
        (OGG, LOUDNESS, (2,), (2,), "C"),
        (OGG, LOUDNESS, (4, 5), (4, 5), "Ls Rs"),
        (OGG, PROGRAMME, None, (1, 2, 3, 4, 5, 6), "L C R Ls Rs LFE"),
        (OGG, PROGRAMME, (5,), (5,), "Rs"),
        (OGG, PROGRAMME, (6, 1), (6, 1), "LFE L"),
        (layout_named("R L"), LOUDNESS, None, (2, 1), "L R"),
        (layout_named("R L"), LOUDNESS, (1, 2), (1, 2), "R L"),
        (layout_named("Ls Rs"), LOUDNESS, None, (1, 2), "Ls Rs"),
        (layout_named("L R LFE"), LOUDNESS, None, (1, 2), "L R"),
    ],
)
def test_what_is_measured(offered, models, chosen, channels, positions):
    heard = heard_channels("box", offered, models, chosen)
    assert (heard.channels, heard.layout.positions) == (channels, tuple(positions.split()))
    assert not heard.places
    (model,) = models
    assert heard.channels_of(model) == channels
    assert heard.layouts(models) == {model: heard.layout}


def test_models_of_ears_hear_left_and_right_beside_a_programme():
    heard = heard_channels("film.ogg", OGG, BOTH)
    assert heard.channels == (1, 2, 3, 4, 5, 6)
    assert [heard.channels_of(model) for model in BOTH] == [heard.channels, (1, 3), (1, 3)]
    layouts = [layout.positions for layout in heard.layouts(BOTH).values()]
    assert layouts == [OGG.positions, ("L", "R"), ("L", "R")]
    assert heard.notes == (
        "film.ogg is 5.1 (L C R Ls Rs LFE): moore2016 and spl hear channel 1 (L) as left and 3 (R) "
        "as right",
    )
    of_device = heard.numbered((11, 12, 13, 14, 15, 16))
    assert of_device.channels_of("spl") == (11, 13)
    few = heard_channels("film.ogg", OGG, BOTH, (4, 3, 1))
    assert few.channels_of("bs1770") == (4, 3, 1)
    assert few.channels_of("moore2016") == (1, 3)


def test_of_two_channels_all_models_hear_both():
    heard = heard_channels("box", usual_layout(2), BOTH)
    assert (heard.channels, heard.places, heard.notes) == ((1, 2), {}, ())
    swapped = heard_channels("box", layout_named("R L"), BOTH)
    assert [swapped.channels_of(model) for model in BOTH] == [(1, 2), (2, 1), (2, 1)]


def test_a_choice_is_explained_where_it_is_not_plain():
    (note,) = heard_channels("box", usual_layout(6), PROGRAMME).notes
    assert note == (
        "box does not say what its 6 channels are for: they are taken as 5.1 (L R C LFE Ls Rs), "
        "unless a layout is given"
    )
    (note,) = heard_channels("box", OGG, PROGRAMME, (1, 4, 6)).notes
    assert note == "the chosen channels of box keep their weights in its loudness: Ls 1.41, LFE 0"
    assert heard_channels("box", OGG, PROGRAMME).notes == ()
    assert heard_channels("box", OGG, PROGRAMME, (1, 2)).notes == ()
    assert heard_channels("box", usual_layout(6), PROGRAMME, (5, 6)).notes == ()


@pytest.mark.parametrize(
    ("offered", "models", "chosen", "said"),
    [
        (usual_layout(6), LOUDNESS, None, r"box has 6 channels: choose one \(channels 1\), or two"),
        (usual_layout(6), BOTH, None, "for moore2016 and spl, or give their layout"),
        (layout_named("C LFE"), LOUDNESS, None, "box is C LFE, without a left and a right channel"),
        (layout_named("C Ls Rs"), LOUDNESS, None, "box is C Ls Rs, without a left and a right"),
        (usual_layout(2), LOUDNESS, (3,), "box has no channel 3: it has 2"),
        (usual_layout(2), LOUDNESS, (0,), "box has no channel 0"),
        (usual_layout(2), LOUDNESS, (1, 1), "choose one, or two different ones"),
        (usual_layout(4), LOUDNESS, (1, 2, 3), "channels 1, 2, 3: choose one"),
        (OGG, LOUDNESS, (1, 2, 3), "channels 1, 2, 3: choose one, or two .*, for moore2016"),
        (usual_layout(4), BOTH, (1, 2, 3), "for moore2016 and spl, or give the layout of box"),
        (usual_layout(25), PROGRAMME, None, "box has 25 channels, and bs1770 takes at most 24"),
    ],
)
def test_what_is_not_clear_is_refused(offered, models, chosen, said):
    with pytest.raises(SourceError, match=said):
        heard_channels("box", offered, models, chosen)


def test_channels_are_numbers():
    with pytest.raises(TypeError, match="channels is 'ab': give numbers in a sequence"):
        channel_numbers("ab", 2, "box")
    assert channel_numbers(None, 3, "box") == [1, 2, 3]
    with pytest.raises(SourceError, match="choose one, or two different ones"):
        refuse_more_than_two((1, 2, 3), 4, "box")


@pytest.mark.parametrize(
    ("chosen", "copied"),
    [
        *(((1,), False), ((2,), False), ((1, 2), False), ((2, 1), False), ((1, 4), False)),
        *(((4, 1), False), ((3, 2), False), ((1, 2, 3, 4), False), ((4, 3, 2, 1), False)),
        *(((1, 3, 4), True), ((2, 1, 4), True)),
    ],
)
def test_columns_are_picked_by_their_numbers(chosen, copied):
    x = np.arange(8).reshape(2, 4)
    picked = x[:, block_columns(chosen)]
    np.testing.assert_array_equal(picked, x[:, [c - 1 for c in chosen]])
    assert number_of(block_columns(chosen), 4) == len(chosen)
    assert np.shares_memory(picked, x) is not copied


def test_a_user_says_the_layout():
    six = usual_layout(6)
    assert layout_said(six, None) is six
    said = layout_said(six, "L C R Ls Rs LFE")
    assert (said, said.origin) == (OGG, "user")
    assert layout_said(OGG, "5.1").positions == ("L", "R", "C", "LFE", "Ls", "Rs")
    assert layout_said(six, "M", (4,)) == Layout(("", "", "", "M", "", ""), "user")
    assert heard_channels("box", layout_said(six, "R L", (5, 2)), PROGRAMME, (5, 2)).layout == (
        layout_named("R L")
    )
    with pytest.raises(SourceError, match=r"the layout 7.1 \(.*\) has 8 channels, and box has 6: "):
        layout_said(six, "7.1", name="box")
    with pytest.raises(SourceError, match="has 8 channels, and box has 6 of which 3 chosen: give"):
        layout_said(six, "7.1", (1, 2, 3), "box")
    with pytest.raises(LayoutError, match="is unknown"):
        layout_said(six, "5.1.9")
