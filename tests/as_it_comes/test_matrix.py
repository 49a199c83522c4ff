"""Some of each container, encoding and length under each condition; `make soak` measures all."""

import pytest

from tests.as_it_comes.matrix import CONDITIONS, READINGS, WAYS, Table, run
from tests.as_it_comes.sources import ALL, ENCODINGS, LENGTHS, PACKED, PLAIN, Source, coded

CELLS = 9208
CHOSEN = dict(zip(CONDITIONS, ("s16", "f32", "u8", "s24", "ulaw"), strict=True))


def chosen(condition):
    """A third of the plain containers in one encoding, of several lengths, and two packed ones."""
    shift = list(CONDITIONS).index(condition)
    for n, container in enumerate(PLAIN):
        if (n + shift) % 3:
            continue
        length = LENGTHS[(n // 3 + 2 * shift) % len(LENGTHS)]
        encoding = "f64" if CHOSEN[condition] == "f32" and n % 4 == 1 else CHOSEN[condition]
        yield Source(container, coded(encoding, container), length)
    packed = list(PACKED)
    yield Source(packed[shift])
    yield Source(packed[(shift + 4) % len(packed)], "", "joined")


@pytest.mark.cases(7)
@pytest.mark.parametrize(
    ("condition", "source"),
    [(condition, source) for condition in CONDITIONS for source in chosen(condition)],
    ids=str,
)
def test_a_sound_is_read_right_or_refused_in_a_sentence(condition, source, tmp_path):
    table = Table()
    run(table, condition, [source], tmp_path)
    print(table)
    assert table.count == len(WAYS) * len(READINGS)
    assert not table.wrong, "\n".join(table.wrong)


def test_some_of_all_are_chosen():
    some = [source for condition in CONDITIONS for source in chosen(condition)]
    assert {one.container for one in some} == {*PLAIN, *PACKED}
    assert {one.encoding for one in some} >= {*ENCODINGS}
    assert {one.length for one in some} == {*LENGTHS}


def test_the_matrix_has_so_many_cells():
    pairs = len(ALL) * len(CONDITIONS) - sum(not one.has_six_channels for one in ALL)
    assert (len(PLAIN), len(PACKED), len(ALL)) == (7, 7, 231)
    assert pairs * len(WAYS) * len(READINGS) == CELLS
