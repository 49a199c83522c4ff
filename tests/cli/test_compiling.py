"""What is said of a start that compiles."""

import sys

import numba
import pytest
from numba.core.event import _registered, install_listener

from amt_stream.cli.compiling import WORDS, Compiling, say_when_compiling


@pytest.mark.parametrize(("patience_s", "times"), [(0.0, 1), (1e-9, 1), (1000.0, 0)])
def test_it_is_said_once_where_it_takes_its_time(capsys, patience_s, times):
    with install_listener("numba:compile", Compiling(patience_s)):
        for _ in range(3):
            assert numba.njit(lambda x: x + 1)(1) == 2
    assert capsys.readouterr().err == f"amt-stream: {WORDS}\n" * times


@pytest.mark.parametrize("seen", [True, False])
def test_a_command_that_makes_models_says_so_on_a_terminal(said, monkeypatch, seen):
    say_when_compiling.cache_clear()
    monkeypatch.setattr(sys.stderr, "isatty", lambda: seen)
    listeners = [*_registered["numba:compile"]]
    asked = ("meter", "--source", "demo", "--fast", "--duration", "0.1", "--format", "csv")
    try:
        assert said(*asked, "--model", "spl")[0] == 0
        new = [one for one in _registered["numba:compile"] if one not in listeners]
        assert [type(one) for one in new] == [Compiling] * seen
    finally:
        _registered["numba:compile"][:] = listeners
        say_when_compiling.cache_clear()
