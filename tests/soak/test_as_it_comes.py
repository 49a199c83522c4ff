"""Every source x condition x model, from a file and from a pipe."""

import pytest

from tests.as_it_comes.matrix import CONDITIONS, Table, run
from tests.as_it_comes.sources import ALL

pytestmark = pytest.mark.soak


@pytest.mark.parametrize("condition", CONDITIONS)
def test_every_cell_is_right_or_refused_in_a_sentence(condition, tmp_path, record):
    table = Table()
    run(table, condition, ALL, tmp_path)
    print(f"\n{table}")
    assert not table.wrong, "\n".join(table.wrong)
    counts = f"{table.count} cells, {table.refused} of them refused in a sentence, none wrong"
    record(f"sound as it comes, {condition}", f"{counts}; {table.largest}")
